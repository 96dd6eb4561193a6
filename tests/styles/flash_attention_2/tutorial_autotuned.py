# The tutorial's forward pass: autotuned tiles, an inner loop before the diagonal without a mask, and one across it.
import torch
import triton
import triton.language as tl


@triton.jit
def _inner(
    acc,
    l_i,
    m_i,
    q,
    k_base,
    v_base,
    lo,
    hi,
    stride_k,
    stride_v,
    last,
    kv_len,
    dim,
    qk_scale,
    MASKED: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    offs_d = tl.arange(0, BLOCK_D)
    for start in range(lo, hi, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        inside = (offs_n[:, None] < kv_len) & (offs_d[None, :] < dim)
        k = tl.load(k_base + offs_n[:, None] * stride_k + offs_d[None, :], mask=inside, other=0.0)
        qk = tl.dot(q, tl.trans(k)) * qk_scale
        if MASKED:
            qk = tl.where(offs_n[None, :] <= last[:, None], qk, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(qk, axis=1))
        # Rows that have seen no key yet.
        m_use = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.math.exp2(qk - m_use[:, None])
        alpha = tl.math.exp2(m_i - m_use)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(v_base + offs_n[:, None] * stride_v + offs_d[None, :], mask=inside, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    return acc, l_i, m_i


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8, num_stages=2),
    ],
    key=["q_len", "kv_len", "BLOCK_D"],
)
@triton.jit(do_not_specialize=["q_len", "kv_len"])
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    q_heads,
    kv_heads,
    q_len,
    kv_len,
    dim,
    qk_scale,
    stride_q,
    stride_k,
    stride_v,
    stride_o,
    CAUSAL: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64)
    kv_head = head // q_heads * kv_heads + (head % q_heads) // (q_heads // kv_heads)
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, BLOCK_D)
    q_mask = (offs_m[:, None] < q_len) & (offs_d[None, :] < dim)
    q_at = q_ptr + (head * q_len + offs_m[:, None]) * stride_q + offs_d[None, :]
    q = tl.load(q_at, mask=q_mask, other=0.0)
    k_base = k_ptr + kv_head * kv_len * stride_k
    v_base = v_ptr + kv_head * kv_len * stride_v

    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    m_i = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    # The last key that each row sees; blocks before `full` are seen whole by every row of the tile.
    if CAUSAL:
        last = tl.minimum(offs_m + (kv_len - q_len), kv_len - 1)
        seen_by_first = tl.minimum(tl.maximum(start_m + 1 + kv_len - q_len, 0), kv_len)
        end = tl.minimum(tl.maximum(start_m + BLOCK_M + kv_len - q_len, 0), kv_len)
    else:
        last = tl.zeros((BLOCK_M,), dtype=tl.int32) + (kv_len - 1)
        seen_by_first = kv_len
        end = kv_len
    full = seen_by_first // BLOCK_N * BLOCK_N
    acc, l_i, m_i = _inner(
        acc,
        l_i,
        m_i,
        q,
        k_base,
        v_base,
        0,
        full,
        stride_k,
        stride_v,
        last,
        kv_len,
        dim,
        qk_scale,
        False,
        BLOCK_N,
        BLOCK_D,
    )
    acc, l_i, m_i = _inner(
        acc,
        l_i,
        m_i,
        q,
        k_base,
        v_base,
        full,
        end,
        stride_k,
        stride_v,
        last,
        kv_len,
        dim,
        qk_scale,
        True,
        BLOCK_N,
        BLOCK_D,
    )
    any_key = l_i > 0.0
    divisor = tl.where(any_key, l_i, 1.0)
    lse = tl.where(any_key, (m_i + tl.math.log2(divisor)) * 0.6931471805599453, float("-inf"))
    tl.store(lse_ptr + head * q_len + offs_m, lse, mask=offs_m < q_len)
    out = acc / divisor[:, None]
    out_at = out_ptr + (head * q_len + offs_m[:, None]) * stride_o + offs_d[None, :]
    tl.store(out_at, out.to(out_ptr.dtype.element_ty), mask=q_mask)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    batch: int,
    q_heads: int,
    kv_heads: int,
    q_len: int,
    kv_len: int,
    dim: int,
    causal: int,
    scale: float,
    q_row_stride: int,
    k_row_stride: int,
    v_row_stride: int,
    out_row_stride: int,
) -> None:
    grid = lambda meta: (triton.cdiv(q_len, meta["BLOCK_M"]), batch * q_heads)  # noqa: E731
    attention_kernel[grid](
        q,
        k,
        v,
        out,
        lse,
        q_heads,
        kv_heads,
        q_len,
        kv_len,
        dim,
        scale * 1.4426950408889634,
        q_row_stride,
        k_row_stride,
        v_row_stride,
        out_row_stride,
        CAUSAL=bool(causal),
        BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )
