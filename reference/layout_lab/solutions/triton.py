"""Layout lab, the staff kernels: six functions from integers to integers.

Every function is a few lines in a `@triton.jit` function of its own, as a kernel that needs it would call it; the
kernels around them only fill tables. Nothing here is timed.

Source: NVIDIA, *PTX ISA*, the fragments of mma.m16n8k16 and the rows of an accumulator in Tensor Memory; Shah et al.,
*CuTe*, for layouts, composition and swizzles.
"""

import torch
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def layout_offset(index, shape_ptr, stride_ptr, modes):
    rest = index
    offset = index * 0
    for mode in range(modes):
        length = tl.load(shape_ptr + mode)
        # The last mode takes what is left, so that indices behind the end go on.
        coordinate = tl.where(mode < modes - 1, rest % length, rest)
        offset += coordinate * tl.load(stride_ptr + mode)
        rest = rest // length
    return offset


@triton.jit
def swizzled(offset, bits, base, shift):
    mask = ((1 << bits) - 1) << base
    return offset ^ ((offset >> shift) & mask)


@triton.jit
def fragment_offset(lane, value, which, row_stride):
    group = lane // 4
    pair = 2 * (lane % 4) + value % 2
    # Bit 1 of the value is the lower half of A, bit 2 its right half; B and C have one half each.
    second = 8 * (value // 2 % 2)
    row = tl.where(which == 1, pair + second, group + second)
    column = tl.where(which == 0, pair + 8 * (value // 4), tl.where(which == 1, group, pair))
    return row * row_stride + column


@triton.jit
def tmem_address(row, column, rows, first, bits):
    lane = tl.where(rows == 128, row, row // 16 * 32 + row % 16)
    return (lane << 16) + first + column * bits // 32


@triton.jit
def _layout_kernel(index_ptr, shape_ptr, stride_ptr, out_ptr, modes, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, layout_offset(index, shape_ptr, stride_ptr, modes), mask=at < n)


@triton.jit
def _composed_kernel(
    index_ptr, a_shape_ptr, a_stride_ptr, b_shape_ptr, b_stride_ptr, out_ptr, a_modes, b_modes, n, BLOCK: tl.constexpr
):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + at, mask=at < n, other=0)
    inner = layout_offset(index, b_shape_ptr, b_stride_ptr, b_modes)
    outer = layout_offset(inner, a_shape_ptr, a_stride_ptr, a_modes)
    tl.store(out_ptr + at, outer, mask=at < n)


@triton.jit
def _swizzle_kernel(offset_ptr, rule_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    bits, base, shift = tl.load(rule_ptr), tl.load(rule_ptr + 1), tl.load(rule_ptr + 2)
    offset = tl.load(offset_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, swizzled(offset, bits, base, shift), mask=at < n)


@triton.jit
def _fragment_kernel(lane_ptr, value_ptr, operand_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.load(lane_ptr + at, mask=at < n, other=0)
    value = tl.load(value_ptr + at, mask=at < n, other=0)
    which, row_stride = tl.load(operand_ptr), tl.load(operand_ptr + 1)
    tl.store(out_ptr + at, fragment_offset(lane, value, which, row_stride), mask=at < n)


@triton.jit
def _passes_kernel(access_ptr, access_bytes_ptr, passes_ptr):
    warp = tl.program_id(axis=0)
    lane = tl.arange(0, 32)
    access = tl.load(access_ptr + warp * 32 + lane)
    each = tl.load(access_bytes_ptr)
    # What is fetched at once: a word of 4 bytes, or the whole element where that is larger.
    unit_bytes = tl.maximum(each, 4)
    unit = access * each // unit_bytes
    place = unit % (128 // unit_bytes)
    group = lane // (128 // unit_bytes)
    together = group[:, None] == group[None, :]
    # Of lanes of a group that want the same unit only the first counts: one fetch serves them all.
    earlier = together & (unit[:, None] == unit[None, :]) & (lane[:, None] < lane[None, :])
    is_first = tl.sum(earlier.to(tl.int32), axis=0) == 0
    rivals = together & (place[:, None] == place[None, :]) & is_first[None, :]
    count = tl.sum(rivals.to(tl.int32), axis=1)
    total = 0
    for one in tl.static_range(4):
        total += tl.max(tl.where(group == one, count, 0))
    tl.store(passes_ptr + warp, total)


@triton.jit
def _tmem_kernel(row_ptr, column_ptr, tile_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(row_ptr + at, mask=at < n, other=0)
    column = tl.load(column_ptr + at, mask=at < n, other=0)
    rows, first, bits = tl.load(tile_ptr), tl.load(tile_ptr + 1), tl.load(tile_ptr + 2)
    tl.store(out_ptr + at, tmem_address(row, column, rows, first, bits), mask=at < n)


def layout_offsets(
    index: torch.Tensor, shape: torch.Tensor, stride: torch.Tensor, out: torch.Tensor, modes: int, n: int
) -> None:
    _layout_kernel[(triton.cdiv(n, BLOCK),)](index, shape, stride, out, modes, n, BLOCK=BLOCK)


def composed_offsets(
    index: torch.Tensor,
    a_shape: torch.Tensor,
    a_stride: torch.Tensor,
    b_shape: torch.Tensor,
    b_stride: torch.Tensor,
    out: torch.Tensor,
    a_modes: int,
    b_modes: int,
    n: int,
) -> None:
    _composed_kernel[(triton.cdiv(n, BLOCK),)](
        index, a_shape, a_stride, b_shape, b_stride, out, a_modes, b_modes, n, BLOCK=BLOCK
    )


def swizzled_offsets(offset: torch.Tensor, rule: torch.Tensor, out: torch.Tensor, n: int) -> None:
    _swizzle_kernel[(triton.cdiv(n, BLOCK),)](offset, rule, out, n, BLOCK=BLOCK)


def fragment_offsets(lane: torch.Tensor, value: torch.Tensor, operand: torch.Tensor, out: torch.Tensor, n: int) -> None:
    _fragment_kernel[(triton.cdiv(n, BLOCK),)](lane, value, operand, out, n, BLOCK=BLOCK)


def bank_passes(access: torch.Tensor, access_bytes: torch.Tensor, passes: torch.Tensor, warps: int) -> None:
    _passes_kernel[(warps,)](access, access_bytes, passes)


def tmem_addresses(row: torch.Tensor, column: torch.Tensor, tile: torch.Tensor, out: torch.Tensor, n: int) -> None:
    _tmem_kernel[(triton.cdiv(n, BLOCK),)](row, column, tile, out, n, BLOCK=BLOCK)
