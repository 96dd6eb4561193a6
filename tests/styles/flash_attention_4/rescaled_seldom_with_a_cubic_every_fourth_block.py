"""Rows keep a maximum that may be eight behind, and every fourth block of keys takes its exponentials by a cubic."""

import torch
import triton
import triton.language as tl


@triton.jit
def _exp2_cubic(x):
    # 2^x = 2^n · 2^f with n the nearest whole number; 2^f by a cubic, n added to the bits of the exponent.
    clamped = tl.maximum(x, -126.0)
    n = tl.floor(clamped + 0.5)
    f = clamped - n
    poly = 0.9999281 + f * (0.69326099 + f * (0.24261068 + f * 0.05517138))
    bits = poly.to(tl.int32, bitcast=True) + (n.to(tl.int32) << 23)
    return tl.where(x < -126.0, 0.0, bits.to(tl.float32, bitcast=True))


@triton.jit
def _fwd_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    row_max_ptr,
    q_heads,
    kv_heads,
    q_len,
    kv_len,
    dim,
    scale_log2,
    ldq,
    ldk,
    ldv,
    ldo,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    SLACK: tl.constexpr,
):
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_D)
    lanes = tl.arange(0, BLOCK_N)
    inside = (rows[:, None] < q_len) & (cols[None, :] < dim)
    q = tl.load(q_ptr + (head * q_len + rows[:, None]) * ldq + cols[None, :], mask=inside, other=0.0)
    k_ptr += kv_head * kv_len * ldk
    v_ptr += kv_head * kv_len * ldv

    last = tl.zeros((BLOCK_M,), tl.int32) + (kv_len - 1)
    end = kv_len
    if CAUSAL:
        last = tl.minimum(last, rows + (kv_len - q_len))
        end = tl.maximum(tl.minimum(tile * BLOCK_M + BLOCK_M + kv_len - q_len, kv_len), 0)

    ref = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, end, BLOCK_N):
        keys = start + lanes
        there = (keys[:, None] < kv_len) & (cols[None, :] < dim)
        k = tl.load(k_ptr + keys[:, None].to(tl.int64) * ldk + cols[None, :], mask=there, other=0.0)
        v = tl.load(v_ptr + keys[:, None].to(tl.int64) * ldv + cols[None, :], mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale_log2
        s = tl.where(keys[None, :] <= last[:, None], s, float("-inf"))

        # Only rows whose new maximum is more than SLACK above the one they subtract move it.
        top = tl.max(s, axis=1)
        moves = top > ref + SLACK
        if tl.max(moves.to(tl.int32), axis=0) > 0:
            moved = tl.where(moves, top, ref)
            shrink = tl.where(moves, tl.exp2(ref - tl.where(moves, moved, 0.0)), 1.0)
            total = total * shrink
            acc = acc * shrink[:, None]
            ref = moved

        away = s - tl.where(ref == float("-inf"), 0.0, ref)[:, None]
        if (start // BLOCK_N) % 4 == 3:
            p = _exp2_cubic(away)
        else:
            p = tl.exp2(away)
        total += tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc)

    some = total > 0.0
    safe = tl.where(some, total, 1.0)
    lse = tl.where(some, (ref + tl.log2(safe)) * 0.6931471805599453, float("-inf"))
    tl.store(lse_ptr + head * q_len + rows, lse, mask=rows < q_len)
    tl.store(row_max_ptr + head * q_len + rows, ref, mask=rows < q_len)
    out = tl.where(some[:, None], acc / safe[:, None], 0.0)
    tl.store(
        out_ptr + (head * q_len + rows[:, None]) * ldo + cols[None, :], out.to(out_ptr.dtype.element_ty), mask=inside
    )


def attention(
    q, k, v, out, lse, row_max, batch, q_heads, kv_heads, q_len, kv_len, dim, causal, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
):  # fmt: skip
    block_m, block_n = 128, 64
    _fwd_kernel[(triton.cdiv(q_len, block_m), batch * q_heads)](
        q, k, v, out, lse, row_max, q_heads, kv_heads, q_len, kv_len, dim, scale * 1.4426950408889634,
        q_row_stride, k_row_stride, v_row_stride, out_row_stride,
        CAUSAL=bool(causal), BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=max(16, triton.next_power_of_2(dim)), SLACK=8.0,
        num_warps=8, num_stages=2,
    )  # fmt: skip
