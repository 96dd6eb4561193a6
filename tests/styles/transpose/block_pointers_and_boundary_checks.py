"""Block pointers with boundary checks: the tile is loaded in row order and stored through a second block pointer."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_block_ptr_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    stride_xm,
    stride_om,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    # Walk the tiles in groups, so that what runs together shares lines of both matrices.
    pids_in_group = GROUP * num_n
    group = pid // pids_in_group
    first_m = group * GROUP
    height = tl.minimum(num_m - first_m, GROUP)
    pid_m = first_m + (pid % pids_in_group) % height
    pid_n = (pid % pids_in_group) // height

    src = tl.make_block_ptr(
        base=x_ptr,
        shape=(M, N),
        strides=(stride_xm, 1),
        offsets=(pid_m * BLOCK_M, pid_n * BLOCK_N),
        block_shape=(BLOCK_M, BLOCK_N),
        order=(1, 0),
    )
    dst = tl.make_block_ptr(
        base=out_ptr,
        shape=(N, M),
        strides=(stride_om, 1),
        offsets=(pid_n * BLOCK_N, pid_m * BLOCK_M),
        block_shape=(BLOCK_N, BLOCK_M),
        order=(1, 0),
    )
    tile = tl.load(src, boundary_check=(0, 1))
    tl.store(dst, tl.trans(tile), boundary_check=(0, 1))


def transpose(x, out, rows, cols, x_row_stride, out_row_stride):
    BLOCK_M = BLOCK_N = 64
    if rows * cols <= 4096:
        BLOCK_M = BLOCK_N = 32
    grid = (triton.cdiv(rows, BLOCK_M) * triton.cdiv(cols, BLOCK_N),)
    transpose_block_ptr_kernel[grid](
        x, out, rows, cols, x_row_stride, out_row_stride, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, GROUP=8, num_warps=4
    )
