"""Strides of the fragments as layouts, host code that reads the small tensors and passes numbers to the kernels."""

import torch
import triton
import triton.language as tl


@triton.jit
def _layout_kernel(index_ptr, out_ptr, shape_ptr, stride_ptr, modes, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(index_ptr + at, at < n, other=0)
    total = tl.zeros([BLOCK], dtype=tl.int32)
    for k in range(0, modes - 1):
        s = tl.load(shape_ptr + k)
        quotient = left // s
        total += (left - quotient * s) * tl.load(stride_ptr + k)
        left = quotient
    tl.store(out_ptr + at, total + left * tl.load(stride_ptr + modes - 1), at < n)


@triton.jit
def _swizzle_kernel(x_ptr, out_ptr, n, mask, divisor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, at < n, other=0)
    tl.store(out_ptr + at, x ^ (x // divisor & mask), at < n)


@triton.jit
def _fragment_kernel(lane_ptr, value_ptr, out_ptr, n, L0, L1, V0, V1, V2, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.load(lane_ptr + at, at < n, other=0)
    value = tl.load(value_ptr + at, at < n, other=0)
    of_lane = lane % 4 * L0 + lane // 4 * L1
    of_value = value % 2 * V0 + value // 2 % 2 * V1 + value // 4 * V2
    tl.store(out_ptr + at, of_lane + of_value, at < n)


@triton.jit
def _passes_kernel(access_ptr, passes_ptr, warps, each, UNIT: tl.constexpr, WARPS: tl.constexpr):
    PLACES: tl.constexpr = 128 // UNIT
    GROUPS: tl.constexpr = 32 // PLACES
    warp = tl.program_id(0) * WARPS + tl.arange(0, WARPS)
    lane = tl.arange(0, PLACES)
    total = tl.zeros([WARPS], dtype=tl.int32)
    for group in tl.static_range(GROUPS):
        where = access_ptr + warp[:, None] * 32 + group * PLACES + lane[None, :]
        unit = tl.load(where, (warp < warps)[:, None], other=0) * each // UNIT
        same = unit[:, :, None] == unit[:, None, :]
        seen = tl.sum((same & (lane[:, None] < lane[None, :])[None, :, :]).to(tl.int32), axis=1)
        fresh = (seen == 0)[:, None, :]
        rivals = (unit[:, :, None] % PLACES == unit[:, None, :] % PLACES) & fresh
        total += tl.max(tl.sum(rivals.to(tl.int32), axis=2), axis=1)
    tl.store(passes_ptr + warp, total, warp < warps)


@triton.jit
def _tmem_kernel(row_ptr, column_ptr, out_ptr, n, first, SPREAD: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.load(row_ptr + at, at < n, other=0)
    if SPREAD:
        lane += lane // 16 * 16
    column = first + tl.load(column_ptr + at, at < n, other=0) // EACH
    tl.store(out_ptr + at, lane * 65536 + column, at < n)


def _grid(n):
    return (triton.cdiv(n, 128),)


def layout_offsets(index, shape, stride, out, modes, n):
    _layout_kernel[_grid(n)](index, out, shape, stride, modes, n, BLOCK=128)


def composed_offsets(index, a_shape, a_stride, b_shape, b_stride, out, a_modes, b_modes, n):
    inner = torch.empty_like(out)
    layout_offsets(index, b_shape, b_stride, inner, b_modes, n)
    layout_offsets(inner, a_shape, a_stride, out, a_modes, n)


def swizzled_offsets(offset, rule, out, n):
    bits, base, shift = rule.tolist()
    _swizzle_kernel[_grid(n)](offset, out, n, (2**bits - 1) << base, 2**shift, BLOCK=128)


def fragment_offsets(lane, value, operand, out, n):
    which, ld = operand.tolist()
    strides = {0: (2, ld, 1, 8 * ld, 8), 1: (2 * ld, 1, ld, 8 * ld, 0), 2: (2, ld, 1, 8 * ld, 0)}[which]
    _fragment_kernel[_grid(n)](lane, value, out, n, *strides, BLOCK=128)


def bank_passes(access, access_bytes, passes, warps):
    each = int(access_bytes.item())
    _passes_kernel[(triton.cdiv(warps, 4),)](access, passes, warps, each, UNIT=max(each, 4), WARPS=4)


def tmem_addresses(row, column, tile, out, n):
    rows, first, bits = tile.tolist()
    _tmem_kernel[_grid(n)](row, column, out, n, first, SPREAD=rows == 64, EACH=32 // bits, BLOCK=128)
