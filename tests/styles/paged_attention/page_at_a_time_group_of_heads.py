# Decoding as a serving engine's first kernel does it: one program for a sequence and a key head, one page at a time, the
# group's heads padded to 16 rows; a chunk's queries follow one another in an outer loop.
import torch
import triton
import triton.language as tl


@triton.jit
def decode_kernel(
    Q,
    K,
    V,
    Indptr,
    Indices,
    LastLen,
    Out,
    Lse,
    q_len,
    H,
    KH,
    D,
    P,
    window,
    qk_scale,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    PAGE: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):
    b = tl.program_id(0)
    kh = tl.program_id(1)
    p0 = tl.load(Indptr + b)
    num_pages = tl.load(Indptr + b + 1) - p0
    seq_len = (num_pages - 1) * P + tl.load(LastLen + b)
    seq_len = tl.where(num_pages == 0, 0, seq_len)
    offs_g = tl.arange(0, ROWS)
    offs_p = tl.arange(0, PAGE)
    offs_d = tl.arange(0, HEAD_DIM)
    g_mask = (offs_g[:, None] < GROUP) & (offs_d[None, :] < D)
    for i in range(q_len):
        row = (b.to(tl.int64) * q_len + i) * H + kh * GROUP + offs_g
        q = tl.load(Q + row[:, None] * D + offs_d[None, :], mask=g_mask, other=0.0)
        hi = tl.maximum(seq_len - q_len + i + 1, 0)
        lo = 0
        if window > 0:
            lo = tl.maximum(hi - window, 0)
        m_i = tl.full((ROWS,), float("-inf"), tl.float32)
        l_i = tl.zeros((ROWS,), tl.float32)
        acc = tl.zeros((ROWS, HEAD_DIM), tl.float32)
        for page_idx in range(lo // P, tl.cdiv(hi, P)):
            page = tl.load(Indices + p0 + page_idx).to(tl.int64)
            pos = page_idx * P + offs_p
            valid = (offs_p < P) & (pos >= lo) & (pos < hi)
            at = ((page * P + offs_p)[:, None] * KH + kh) * D + offs_d[None, :]
            kv_mask = valid[:, None] & (offs_d[None, :] < D)
            k = tl.load(K + at, mask=kv_mask, other=0.0)
            qk = tl.where(valid[None, :], tl.dot(q, tl.trans(k)) * qk_scale, float("-inf"))
            # Every page in this range has a key that the row sees, so the maximum is a number.
            m_new = tl.maximum(m_i, tl.max(qk, 1))
            alpha = tl.math.exp2(m_i - m_new)
            p = tl.math.exp2(qk - m_new[:, None])
            l_i = l_i * alpha + tl.sum(p, 1)
            v = tl.load(V + at, mask=kv_mask, other=0.0)
            acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
            m_i = m_new
        denominator = tl.where(l_i > 0.0, l_i, 1.0)
        lse = tl.where(l_i > 0.0, (m_i + tl.math.log2(denominator)) * 0.6931471805599453, float("-inf"))
        o = acc / denominator[:, None]
        tl.store(Out + row[:, None] * D + offs_d[None, :], o.to(Out.dtype.element_ty), mask=g_mask)
        tl.store(Lse + row, lse, mask=offs_g < GROUP)


def paged_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    last_page_len: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    batch: int,
    q_len: int,
    q_heads: int,
    kv_heads: int,
    dim: int,
    page_size: int,
    entries: int,
    window: int,
    scale: float,
) -> None:
    group = q_heads // kv_heads
    decode_kernel[(batch, kv_heads)](
        q,
        k_cache,
        v_cache,
        kv_indptr,
        kv_indices,
        last_page_len,
        out,
        lse,
        q_len,
        q_heads,
        kv_heads,
        dim,
        page_size,
        window,
        scale * 1.4426950408889634,
        GROUP=group,
        ROWS=max(16, triton.next_power_of_2(group)),
        PAGE=max(16, triton.next_power_of_2(page_size)),
        HEAD_DIM=max(16, triton.next_power_of_2(dim)),
        num_warps=4,
        num_stages=2,
    )
