# Block pointers for both matrices, with boundary checks on both axes, as in older Triton tutorials.
import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x_ptr, out_ptr, rows, cols, x_stride, out_stride, BLOCK: tl.constexpr):
    pid_r = tl.program_id(1)
    pid_c = tl.program_id(0)
    x_block = tl.make_block_ptr(
        base=x_ptr,
        shape=(rows, cols),
        strides=(x_stride, 1),
        offsets=(pid_r * BLOCK, pid_c * BLOCK),
        block_shape=(BLOCK, BLOCK),
        order=(1, 0),
    )
    out_block = tl.make_block_ptr(
        base=out_ptr,
        shape=(cols, rows),
        strides=(out_stride, 1),
        offsets=(pid_c * BLOCK, pid_r * BLOCK),
        block_shape=(BLOCK, BLOCK),
        order=(1, 0),
    )
    tile = tl.load(x_block, boundary_check=(0, 1))
    tl.store(out_block, tl.trans(tile), boundary_check=(0, 1))


def transpose(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    block = 64
    grid = (triton.cdiv(cols, block), triton.cdiv(rows, block))
    transpose_kernel[grid](x, out, rows, cols, x_row_stride, out_row_stride, BLOCK=block, num_warps=4)
