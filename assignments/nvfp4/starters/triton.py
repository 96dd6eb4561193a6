"""NVFP4: four bits a value, and a scale for every 16 of them."""

import torch
import triton
import triton.language as tl


@triton.jit
def _quantise_kernel(
    x_ptr,  # the matrix
    packed_ptr,  # where the values go, two in a byte
    scales_ptr,  # where the scales go
    blocks,  # blocks of 16 values in a row
    x_row_stride,  # elements from one row of x to the next
    packed_row_stride,  # bytes from one row of packed to the next
    global_scale,  # what all scales are multiplied by
    BLOCKS: tl.constexpr,  # a power of two that is at least `blocks`
):
    # One program handles one row, and holds all of it at once.
    row = tl.program_id(axis=0).to(tl.int64)
    block = tl.arange(0, BLOCKS)
    inside = block < blocks
    at = block[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = tl.load(x_ptr + row * x_row_stride + at, mask=inside[:, None], other=0.0).to(tl.float32)

    # Your part: the scale of every block, from its largest value and global_scale. 0x38 is the code of 1.
    code = tl.full((BLOCKS,), 0x38, tl.int32)
    factor = tl.full((BLOCKS,), global_scale, tl.float32)

    # Your part: the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the sign. These are whole numbers, cut off.
    y = x * factor[:, None]
    nibble = tl.minimum(tl.abs(y), 7.0).to(tl.int32)

    low, high = tl.split(tl.reshape(nibble, (BLOCKS, 8, 2)))
    byte = block[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(packed_ptr + row * packed_row_stride + byte, (low | (high << 4)).to(tl.uint8), mask=inside[:, None])

    # Your part: the place of a scale in its tile, and zeros where no block is.
    tl.store(scales_ptr + row * blocks + block, code.to(tl.uint8), mask=inside)


def nvfp4_quantise(
    x: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    rows: int,
    blocks: int,
    x_row_stride: int,
    packed_row_stride: int,
    global_scale: float,
) -> None:
    # The judge calls this function. It writes its answers into `packed` and `scales`; what it returns is ignored.
    strides = (x_row_stride, packed_row_stride)
    size = triton.next_power_of_2(blocks)
    _quantise_kernel[(rows,)](x, packed, scales, blocks, *strides, global_scale, BLOCKS=size)
