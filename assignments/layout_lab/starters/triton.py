"""Layout lab: six functions from integers to integers. The kernels are there; the functions are your part."""

import torch
import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def layout_offset(
    index,  # indices, a block of int32
    shape_ptr,  # the layout's shape, first mode first
    stride_ptr,  # its strides
    modes,  # how many modes there are
):
    # Your part: cut the index into coordinates, the first mode changing fastest, and add up coordinate times stride.
    return index


@triton.jit
def swizzled(offset, bits, base, shift):
    # Your part: `bits` bits of the offset, from bit `base` on, change by those that are `shift` places above them.
    return offset


@triton.jit
def fragment_offset(
    lane,  # 0 to 31
    value,  # which of the lane's elements
    which,  # 0: A (16 × 16), 1: B (16 × 8), 2: C (16 × 8)
    row_stride,  # elements from one row of that matrix to the next
):
    # Your part: which row and which column is it?
    return lane * row_stride + value


@triton.jit
def tmem_address(
    row,
    column,
    rows,  # of the tile: 64 or 128
    first,  # its first column in Tensor Memory
    bits,  # of an element: 16 or 32
):
    # Your part: the lane goes to the upper 16 bits of the address, the column to the lower ones.
    return row + column


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
    # Your part: two layouts, one after the other.
    tl.store(out_ptr + at, index, mask=at < n)


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
    # Your part: which word or element does each lane want, in which bank, and which of them take a pass of their own?
    total = tl.max(access * each - access * each) + 1
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
