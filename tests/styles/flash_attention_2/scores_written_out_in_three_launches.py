"""No fusion at all: for every head one launch for the scores, one for the probabilities, one for the values."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scores_kernel(
    q_ptr, k_ptr, s_ptr, q_len, kv_len, dim, ldq, ldk, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rd = tl.arange(0, BD)
    q = tl.load(
        q_ptr + rm[:, None].to(tl.int64) * ldq + rd[None, :],
        mask=(rm[:, None] < q_len) & (rd[None, :] < dim),
        other=0.0,
    )
    k = tl.load(
        k_ptr + rn[None, :].to(tl.int64) * ldk + rd[:, None],
        mask=(rn[None, :] < kv_len) & (rd[:, None] < dim),
        other=0.0,
    )
    s = tl.dot(q, k) * scale
    tl.store(
        s_ptr + rm[:, None].to(tl.int64) * kv_len + rn[None, :], s, mask=(rm[:, None] < q_len) & (rn[None, :] < kv_len)
    )


@triton.jit
def _probabilities_kernel(s_ptr, p_ptr, lse_ptr, q_len, kv_len, CAUSAL: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    s_ptr += row.to(tl.int64) * kv_len
    p_ptr += row.to(tl.int64) * kv_len
    seen = kv_len
    if CAUSAL:
        seen = tl.maximum(tl.minimum(row + 1 + kv_len - q_len, kv_len), 0)
    cols = tl.arange(0, BLOCK)

    top = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for start in range(0, seen, BLOCK):
        top = tl.maximum(top, tl.load(s_ptr + start + cols, mask=start + cols < seen, other=float("-inf")))
    m = tl.max(top, axis=0)
    part = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, seen, BLOCK):
        s = tl.load(s_ptr + start + cols, mask=start + cols < seen, other=float("-inf"))
        part += tl.where(start + cols < seen, tl.exp(s - m), 0.0)
    total = tl.sum(part, axis=0)
    # A row that sees nothing: m is -inf and the sum is 0, so that lse becomes -inf and all probabilities 0.
    lse = tl.where(seen > 0, m + tl.log(tl.where(seen > 0, total, 1.0)), float("-inf"))
    tl.store(lse_ptr + row, lse)
    for start in range(0, kv_len, BLOCK):
        s = tl.load(s_ptr + start + cols, mask=start + cols < seen, other=float("-inf"))
        p = tl.where(start + cols < seen, tl.exp(s - m) / total, 0.0)
        tl.store(p_ptr + start + cols, p.to(p_ptr.dtype.element_ty), mask=start + cols < kv_len)


@triton.jit
def _values_kernel(
    p_ptr, v_ptr, out_ptr, q_len, kv_len, dim, ldv, ldo, BM: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, BD)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, kv_len, BK):
        rk = start + tl.arange(0, BK)
        p_mask = (rm[:, None] < q_len) & (rk[None, :] < kv_len)
        v_mask = (rk[:, None] < kv_len) & (rd[None, :] < dim)
        p = tl.load(p_ptr + rm[:, None].to(tl.int64) * kv_len + rk[None, :], mask=p_mask, other=0.0)
        v = tl.load(v_ptr + rk[:, None].to(tl.int64) * ldv + rd[None, :], mask=v_mask, other=0.0)
        acc = tl.dot(p, v, acc)
    o_mask = (rm[:, None] < q_len) & (rd[None, :] < dim)
    tl.store(out_ptr + rm[:, None].to(tl.int64) * ldo + rd[None, :], acc.to(out_ptr.dtype.element_ty), mask=o_mask)


def attention(
    q, k, v, out, lse, batch, q_heads, kv_heads, q_len, kv_len, dim, causal, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
):  # fmt: skip
    BD = max(16, triton.next_power_of_2(dim))
    scores = torch.empty((q_len, kv_len), dtype=torch.float32, device=q.device)
    probs = torch.empty((q_len, kv_len), dtype=v.dtype, device=q.device)
    group = q_heads // kv_heads
    for z in range(batch):
        for h in range(q_heads):
            q_h, o_h, lse_h = q[z, h], out[z, h], lse[z, h]
            k_h, v_h = k[z, h // group], v[z, h // group]
            _scores_kernel[(triton.cdiv(q_len, 64), triton.cdiv(kv_len, 64))](
                q_h, k_h, scores, q_len, kv_len, dim, q_row_stride, k_row_stride, scale, BM=64, BN=64, BD=BD
            )
            _probabilities_kernel[(q_len,)](scores, probs, lse_h, q_len, kv_len, CAUSAL=causal == 1, BLOCK=1024)
            _values_kernel[(triton.cdiv(q_len, 64),)](
                probs, v_h, o_h, q_len, kv_len, dim, v_row_stride, out_row_stride, BM=64, BK=64, BD=BD
            )
