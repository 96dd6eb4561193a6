"""NVFP4 in one kernel, the staff kernel: four bits a value, and a scale for every 16 in tiles of 128 rows and 4 blocks.

A program takes the values of whole tiles of scales. Its rows stand in the order in which their scales lie, so these are
stored as one run of bytes. Nothing is converted to a small type by the hardware: numbers are rounded by adding a power
of two whose last bit is the step, and read from the bits of the sum. All of it is defined by the rounding of single
operations, so the product is not to be contracted with what is added to it: `enable_fp_fusion=False`.
"""

import torch
import triton
import triton.language as tl

WHOLE = tl.constexpr(8388608.0)  # 2^23: from here on float32 holds whole numbers only.
WHOLE_BITS = tl.constexpr(0x4B000000)


@triton.jit
def _e4m3_code(u):
    """The code of a number that is not negative, int32: to nearest, ties to even, at most 448."""
    u = tl.minimum(u, 448.0)
    # Below 2^-6 the step is 2^-9, the last bit of 2^14.
    small = (u + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    bits = u.to(tl.int32, bitcast=True)
    rounded = (bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20
    return tl.where(u < 0.015625, small, rounded - (120 << 3))


@triton.jit
def _e4m3_value(code):
    large = ((code + (120 << 3)) << 20).to(tl.float32, bitcast=True)
    return tl.where(code < 8, code.to(tl.float32) * 0.001953125, large)


@triton.jit
def _e2m1_code(a):
    """The code of a number that is not negative, int32: to nearest, ties to even, at most 7.

    The code is 2a up to 2, a + 2 up to 4 and a / 2 + 4 up to 6: always the least of the three, rounded.
    """
    up_to_2 = tl.fma(a, 2.0, WHOLE).to(tl.int32, bitcast=True)
    up_to_4 = (a + (WHOLE + 2.0)).to(tl.int32, bitcast=True)
    up_to_6 = tl.fma(a, 0.5, WHOLE + 4.0).to(tl.int32, bitcast=True)
    return tl.minimum(tl.minimum(up_to_2, up_to_4), tl.minimum(up_to_6, WHOLE_BITS + 7)) & 7


@triton.jit
def _quantise_kernel(
    x_ptr,
    packed_ptr,
    scales_ptr,
    rows,
    blocks,
    x_row_stride,
    packed_row_stride,
    global_scale,
    BLOCKS: tl.constexpr,
    WORDS: tl.constexpr,
):
    tiles = tl.cdiv(blocks, 4)
    steps = tl.cdiv(tiles * 4, BLOCKS)
    tile_row = tl.program_id(axis=0) // steps
    first = tl.program_id(axis=0) % steps * BLOCKS
    # Place p of a tile's 128 belongs to row p / 4 of its quarter p % 4.
    place = tl.arange(0, 128)
    row = tl.cast(tile_row, tl.int64) * 128 + place % 4 * 32 + place // 4
    block = first + tl.arange(0, BLOCKS)
    inside = (row < rows)[:, None] & (block < blocks)[None, :]

    value = tl.arange(0, 16)[None, None, :]
    at = (row * x_row_stride)[:, None, None] + (block * 16)[None, :, None] + value
    x = tl.load(x_ptr + at, mask=inside[:, :, None], other=0.0).to(tl.float32)

    largest = tl.max(tl.abs(x), axis=2)
    code = _e4m3_code(tl.div_rn(largest * global_scale, 6.0))
    # A scale of 0 has no reciprocal, and its values are zeros.
    factor = tl.div_rn(tl.zeros_like(largest) + global_scale, tl.where(code == 0, 1.0, _e4m3_value(code)))
    factor = tl.where(code == 0, 0.0, factor)
    y = x * factor[:, :, None]
    nibble = _e2m1_code(tl.abs(y)) | ((x.to(tl.int32, bitcast=True) >> 28) & 8)

    if WORDS:
        # Eight codes make a word: a sum, as no two have a bit in common.
        shifted = tl.reshape(nibble, (128, BLOCKS, 2, 8)) << (4 * tl.arange(0, 8))[None, None, None, :]
        word = tl.arange(0, 2)[None, None, :]
        to = (row * (packed_row_stride // 4))[:, None, None] + (block * 2)[None, :, None] + word
        packed_words_ptr = packed_ptr.to(tl.pointer_type(tl.int32))
        tl.store(packed_words_ptr + to, tl.sum(shifted, axis=3), mask=inside[:, :, None])
    else:
        low, high = tl.split(tl.reshape(nibble, (128, BLOCKS, 8, 2)))
        byte = tl.arange(0, 8)[None, None, :]
        to = (row * packed_row_stride)[:, None, None] + (block * 8)[None, :, None] + byte
        tl.store(packed_ptr + to, (low | (high << 4)).to(tl.uint8), mask=inside[:, :, None])

    # Where no block is, the values were zeros, and so is the scale.
    tile = tl.cast(tile_row, tl.int64) * tiles + block // 4
    of_scale = tile[None, :] * 512 + place[:, None] * 4 + block[None, :] % 4
    tl.store(scales_ptr + of_scale, code.to(tl.uint8), mask=(block < tiles * 4)[None, :])


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
    # The interpreter pays per program, so there it takes eight tiles at once.
    of_program = 4 if x.is_cuda else min(32, triton.next_power_of_2(4 * triton.cdiv(blocks, 4)))
    grid = (triton.cdiv(rows, 128) * triton.cdiv(4 * triton.cdiv(blocks, 4), of_program),)
    _quantise_kernel[grid](
        x,
        packed,
        scales,
        rows,
        blocks,
        x_row_stride,
        packed_row_stride,
        global_scale,
        BLOCKS=of_program,
        WORDS=(packed.data_ptr() | packed_row_stride) % 4 == 0,
        num_warps=8,
        enable_fp_fusion=False,
    )
