"""The fused-attention tutorial's shape: an inner function called for full blocks first, and again for masked ones."""

import torch
import triton
import triton.language as tl


@triton.jit
def _attn_fwd_inner(
    acc,
    l_i,
    m_i,
    q,
    k_base,
    v_base,
    stride_k,
    stride_v,
    limit,
    kv_len,
    dim,
    qk_scale,
    lo,
    hi,
    MASKED: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    EVEN_DIM: tl.constexpr,
):
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    for start_n in range(lo, hi, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        keys = start_n + offs_n
        k_ptrs = k_base + keys[None, :].to(tl.int64) * stride_k + offs_d[:, None]
        v_ptrs = v_base + keys[:, None].to(tl.int64) * stride_v + offs_d[None, :]
        if MASKED:
            k = tl.load(k_ptrs, mask=(keys[None, :] < kv_len) & (offs_d[:, None] < dim), other=0.0)
            v = tl.load(v_ptrs, mask=(keys[:, None] < kv_len) & (offs_d[None, :] < dim), other=0.0)
        elif EVEN_DIM:
            k = tl.load(k_ptrs)
            v = tl.load(v_ptrs)
        else:
            k = tl.load(k_ptrs, mask=offs_d[:, None] < dim, other=0.0)
            v = tl.load(v_ptrs, mask=offs_d[None, :] < dim, other=0.0)

        qk = tl.dot(q, k) * qk_scale
        if MASKED:
            qk = tl.where(keys[None, :] < limit[:, None], qk, float("-inf"))
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        base = tl.where(m_ij == float("-inf"), 0.0, m_ij)
        p = tl.math.exp2(qk - base[:, None])
        alpha = tl.math.exp2(m_i - base)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
    return acc, l_i, m_i


@triton.jit
def _attn_fwd(
    Q,
    K,
    V,
    Out,
    Lse,
    sm_scale,
    q_heads,
    kv_heads,
    q_len,
    kv_len,
    dim,
    stride_q,
    stride_k,
    stride_v,
    stride_o,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    EVEN_DIM: tl.constexpr,
):
    # The longest tiles of a causal case are the last ones: they go first.
    start_m = tl.num_programs(0) - 1 - tl.program_id(0)
    off_hz = tl.program_id(1)
    off_z = off_hz // q_heads
    off_h = off_hz % q_heads
    kv_hz = (off_z * kv_heads + off_h // (q_heads // kv_heads)).to(tl.int64)

    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    q_rows = off_hz.to(tl.int64) * q_len + offs_m
    q_mask = (offs_m[:, None] < q_len) & (offs_d[None, :] < dim)
    q = tl.load(Q + q_rows[:, None] * stride_q + offs_d[None, :], mask=q_mask, other=0.0)
    k_base = K + kv_hz * kv_len * stride_k
    v_base = V + kv_hz * kv_len * stride_v

    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504

    # Keys below `limit` are seen by a row; below `full` by all rows of the tile.
    if CAUSAL:
        limit = tl.minimum(offs_m + 1 + kv_len - q_len, kv_len)
        full = tl.minimum(start_m * BLOCK_M + 1 + kv_len - q_len, kv_len)
        hi = tl.minimum(start_m * BLOCK_M + BLOCK_M + kv_len - q_len, kv_len)
    else:
        limit = tl.full([BLOCK_M], 0, dtype=tl.int32) + kv_len
        full = kv_len
        hi = kv_len
    full = tl.maximum(full, 0) // BLOCK_N * BLOCK_N
    hi = tl.maximum(hi, 0)

    acc, l_i, m_i = _attn_fwd_inner(
        acc, l_i, m_i, q, k_base, v_base, stride_k, stride_v, limit, kv_len, dim, qk_scale, 0, full,
        False, BLOCK_N, HEAD_DIM, EVEN_DIM,
    )  # fmt: skip
    acc, l_i, m_i = _attn_fwd_inner(
        acc, l_i, m_i, q, k_base, v_base, stride_k, stride_v, limit, kv_len, dim, qk_scale, full, hi,
        True, BLOCK_N, HEAD_DIM, EVEN_DIM,
    )  # fmt: skip

    seen = l_i > 0
    lse = tl.where(seen, (m_i + tl.math.log2(tl.where(seen, l_i, 1.0))) * 0.6931471805599453, float("-inf"))
    acc = acc / tl.where(seen, l_i, 1.0)[:, None]
    tl.store(Lse + q_rows, lse, mask=offs_m < q_len)
    tl.store(Out + q_rows[:, None] * stride_o + offs_d[None, :], acc.to(Out.dtype.element_ty), mask=q_mask)


def attention(
    q, k, v, out, lse, batch, q_heads, kv_heads, q_len, kv_len, dim, causal, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
):  # fmt: skip
    HEAD_DIM = max(16, triton.next_power_of_2(dim))
    BLOCK_M, BLOCK_N, num_warps = (128, 64, 8) if q_len > 64 else (32, 32, 4)
    _attn_fwd[(triton.cdiv(q_len, BLOCK_M), batch * q_heads)](
        q, k, v, out, lse, scale, q_heads, kv_heads, q_len, kv_len, dim,
        q_row_stride, k_row_stride, v_row_stride, out_row_stride,
        CAUSAL=causal == 1, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, HEAD_DIM=HEAD_DIM, EVEN_DIM=dim == HEAD_DIM,
        num_warps=num_warps, num_stages=3,
    )  # fmt: skip
