"""Two kernels as in operator libraries: one holds the whole row, the other loops over it twice."""

import logging

import torch
import triton
import triton.language as tl

logger = logging.getLogger(__name__)


@triton.jit(do_not_specialize=["eps"])
def fused_add_rms_norm_small_kernel(
    in_ptr, re_ptr, w_ptr, s_ptr, out_ptr, N, in_stride, re_stride, s_stride, out_stride, eps, BLOCK_SIZE: tl.constexpr
):
    pid = tl.program_id(0).to(tl.int64)
    in_ptr += pid * in_stride
    re_ptr += pid * re_stride
    s_ptr += pid * s_stride
    out_ptr += pid * out_stride

    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < N
    x = tl.load(in_ptr + cols, mask, other=0.0).to(tl.float32)
    r = tl.load(re_ptr + cols, mask, other=0.0).to(tl.float32)
    s_low = (x + r).to(s_ptr.dtype.element_ty)
    tl.store(s_ptr + cols, s_low, mask)

    s = s_low.to(tl.float32)
    var = tl.sum(s * s, axis=0) / N
    rrms = tl.rsqrt(var + eps)
    w = tl.load(w_ptr + cols, mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols, (s * rrms * w).to(out_ptr.dtype.element_ty), mask)


@triton.jit(do_not_specialize=["eps"])
def fused_add_rms_norm_loop_kernel(
    in_ptr, re_ptr, w_ptr, s_ptr, out_ptr, N, in_stride, re_stride, s_stride, out_stride, eps, BLOCK_SIZE: tl.constexpr
):
    pid = tl.program_id(0).to(tl.int64)
    in_ptr += pid * in_stride
    re_ptr += pid * re_stride
    s_ptr += pid * s_stride
    out_ptr += pid * out_stride

    acc = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        x = tl.load(in_ptr + cols, mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        r = tl.load(re_ptr + cols, mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        s_low = (x + r).to(s_ptr.dtype.element_ty)
        tl.store(s_ptr + cols, s_low, mask)
        s = s_low.to(tl.float32)
        acc += s * s
    rrms = tl.rsqrt(tl.sum(acc, axis=0) / N + eps)

    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        # The sum is made again from x and r: nobody has to wait for another thread's store.
        x = tl.load(in_ptr + cols, mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        r = tl.load(re_ptr + cols, mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        s = (x + r).to(s_ptr.dtype.element_ty).to(tl.float32)
        w = tl.load(w_ptr + cols, mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (s * rrms * w).to(out_ptr.dtype.element_ty), mask)


def residual_norm(x, r, weight, s, out, rows, cols, x_row_stride, r_row_stride, s_row_stride, out_row_stride, eps):
    logger.debug("residual_norm %s x %s", rows, cols)
    strides = (x_row_stride, r_row_stride, s_row_stride, out_row_stride)
    if cols <= 8192:
        block = triton.next_power_of_2(cols)
        warps = 4 if block <= 2048 else 8 if block <= 4096 else 16
        fused_add_rms_norm_small_kernel[(rows,)](
            x, r, weight, s, out, cols, *strides, eps, BLOCK_SIZE=block, num_warps=warps
        )
    else:
        fused_add_rms_norm_loop_kernel[(rows,)](x, r, weight, s, out, cols, *strides, eps, BLOCK_SIZE=4096, num_warps=8)
