"""Blocks of two dimensions: a program takes several short rows at once, and loops over columns for long ones."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rows_kernel(
    x_ptr,
    r_ptr,
    w_ptr,
    s_ptr,
    out_ptr,
    rows,
    cols,
    ldx,
    ldr,
    lds,
    ldo,
    eps,
    XBLOCK: tl.constexpr,
    RBLOCK: tl.constexpr,
    PERSISTENT: tl.constexpr,
):
    xindex = tl.program_id(0).to(tl.int64) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < rows
    rbase = tl.arange(0, RBLOCK)[None, :]
    if PERSISTENT:
        # The rows fit: everything stays in registers.
        mask = xmask & (rbase < cols)
        tmp0 = tl.load(x_ptr + xindex * ldx + rbase, mask=mask, other=0.0).to(tl.float32)
        tmp1 = tl.load(r_ptr + xindex * ldr + rbase, mask=mask, other=0.0).to(tl.float32)
        tmp2 = (tmp0 + tmp1).to(s_ptr.dtype.element_ty)
        tl.store(s_ptr + xindex * lds + rbase, tmp2, mask=mask)
        tmp3 = tmp2.to(tl.float32)
        tmp4 = tl.sum(tmp3 * tmp3, axis=1)[:, None]
        tmp5 = tl.rsqrt(tmp4 / cols + eps)
        tmp6 = tl.load(w_ptr + rbase, mask=rbase < cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + xindex * ldo + rbase, (tmp3 * tmp5 * tmp6).to(out_ptr.dtype.element_ty), mask=mask)
    else:
        partial = tl.zeros((XBLOCK, RBLOCK), dtype=tl.float32)
        for roffset in range(0, cols, RBLOCK):
            rindex = roffset + rbase
            mask = xmask & (rindex < cols)
            tmp0 = tl.load(x_ptr + xindex * ldx + rindex, mask=mask, other=0.0).to(tl.float32)
            tmp1 = tl.load(r_ptr + xindex * ldr + rindex, mask=mask, other=0.0).to(tl.float32)
            tmp2 = (tmp0 + tmp1).to(s_ptr.dtype.element_ty)
            tl.store(s_ptr + xindex * lds + rindex, tmp2, mask=mask)
            tmp3 = tmp2.to(tl.float32)
            partial += tmp3 * tmp3
        tmp5 = tl.rsqrt(tl.sum(partial, axis=1)[:, None] / cols + eps)
        tl.debug_barrier()  # s was stored by this program, maybe by another of its threads.
        for roffset in range(0, cols, RBLOCK):
            rindex = roffset + rbase
            mask = xmask & (rindex < cols)
            tmp3 = tl.load(s_ptr + xindex * lds + rindex, mask=mask, other=0.0).to(tl.float32)
            tmp6 = tl.load(w_ptr + rindex, mask=rindex < cols, other=0.0).to(tl.float32)
            tl.store(out_ptr + xindex * ldo + rindex, (tmp3 * tmp5 * tmp6).to(out_ptr.dtype.element_ty), mask=mask)


def residual_norm(x, r, weight, s, out, rows, cols, x_row_stride, r_row_stride, s_row_stride, out_row_stride, eps):
    rblock = triton.next_power_of_2(cols)
    persistent = rblock <= 1024
    if persistent:
        xblock = max(1, 2048 // rblock)
    else:
        xblock, rblock = 1, min(rblock, 2048)
    _rows_kernel[(triton.cdiv(rows, xblock),)](
        x,
        r,
        weight,
        s,
        out,
        rows,
        cols,
        x_row_stride,
        r_row_stride,
        s_row_stride,
        out_row_stride,
        eps,
        XBLOCK=xblock,
        RBLOCK=rblock,
        PERSISTENT=persistent,
        num_warps=4,
    )
