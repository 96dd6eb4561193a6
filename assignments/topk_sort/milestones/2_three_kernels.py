"""Top-k and radix sort, second milestone: all tiles at work in three kernels for each digit; whole rows are sorted.

The first counts each tile's digits, the second scans the counts, and the third moves each tile's keys.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _digit(x, shift):
    wide = x.to(tl.float32)
    bits = tl.where(wide == 0.0, 0.0, wide).to(tl.int32, bitcast=True)
    number = tl.where(bits < 0, bits, bits ^ 0x7FFFFFFF)
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return (tl.where(is_nan, 0, number) >> shift) & 15


@triton.jit(do_not_specialize=["k"])
def _fill_kernel(lengths_ptr, values_ptr, indices_ptr, k, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    place = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = (place >= tl.load(lengths_ptr + row)) & (place < k)
    nothing = tl.full((BLOCK,), float("-inf"), tl.float32)
    tl.store(values_ptr + row * k + place, nothing.to(values_ptr.dtype.element_ty), mask=mask)
    tl.store(indices_ptr + row * k + place, tl.full((BLOCK,), -1, tl.int32), mask=mask)


@triton.jit(do_not_specialize=["n", "shift"])
def _count_kernel(keys_ptr, lengths_ptr, counts_ptr, n, shift, TILE: tl.constexpr):
    tile, row, tiles = tl.program_id(axis=0), tl.program_id(axis=1).to(tl.int64), tl.num_programs(axis=0)
    at = tile * TILE + tl.arange(0, TILE)
    mask = at < tl.load(lengths_ptr + row)
    x = tl.load(keys_ptr + row * n + at, mask=mask, other=0.0)
    counts = tl.histogram(_digit(x, shift), 16, mask=mask)
    tl.store(counts_ptr + (row * 16 + tl.arange(0, 16)) * tiles + tile, counts)


@triton.jit(do_not_specialize=["tiles"])
def _scan_kernel(counts_ptr, tiles, BLOCK: tl.constexpr):
    """A row's counts, all tiles of digit 0, then all of digit 1, and so on: what comes before each of them."""
    row = tl.program_id(axis=0).to(tl.int64)
    before = 0
    for start in range(0, 16 * tiles, BLOCK):
        place = start + tl.arange(0, BLOCK)
        counts = tl.load(counts_ptr + row * 16 * tiles + place, mask=place < 16 * tiles, other=0)
        upto = before + tl.cumsum(counts, axis=0)
        tl.store(counts_ptr + row * 16 * tiles + place, upto - counts, mask=place < 16 * tiles)
        before += tl.sum(counts, axis=0)


@triton.jit(do_not_specialize=["n", "to_n", "shift"])
def _move_kernel(
    keys_ptr, index_ptr, lengths_ptr, counts_ptr, to_keys_ptr, to_index_ptr, n, to_n, shift,
    IS_FIRST: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    tile, row, tiles = tl.program_id(axis=0), tl.program_id(axis=1).to(tl.int64), tl.num_programs(axis=0)
    at = tile * TILE + tl.arange(0, TILE)
    mask = at < tl.load(lengths_ptr + row)
    x = tl.load(keys_ptr + row * n + at, mask=mask, other=0.0)
    index = at
    if not IS_FIRST:
        index = tl.load(index_ptr + row * n + at, mask=mask, other=0)
    digits = tl.arange(0, 16)
    start = tl.load(counts_ptr + (row * 16 + digits) * tiles + tile)
    mine = ((_digit(x, shift)[:, None] == digits[None, :]) & mask[:, None]).to(tl.int32)
    place = tl.sum(mine * (start[None, :] + tl.cumsum(mine, axis=0) - 1), axis=1)
    tl.store(to_keys_ptr + row * to_n + place, x, mask=mask & (place < to_n))
    tl.store(to_index_ptr + row * to_n + place, index, mask=mask & (place < to_n))


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    _fill_kernel[(triton.cdiv(k, 1024), rows)](lengths, values, indices, k, BLOCK=1024)
    tile, block = (1024, 4096) if keys.is_cuda else (8192, 256)
    tiles = triton.cdiv(n, tile)
    counts = torch.empty(rows * 16 * tiles, dtype=torch.int32, device=keys.device)
    of_keys = [torch.empty(rows, n, dtype=keys.dtype, device=keys.device) for _ in range(2)]
    of_index = [torch.empty(rows, n, dtype=torch.int32, device=keys.device) for _ in range(2)]
    x, index = keys, indices
    for number in range(8):
        last = number == 7
        to_x, to_index = (values, indices) if last else (of_keys[number % 2], of_index[number % 2])
        _count_kernel[(tiles, rows)](x, lengths, counts, n, 4 * number, TILE=tile, num_warps=8)
        _scan_kernel[(rows,)](counts, tiles, BLOCK=block)
        _move_kernel[(tiles, rows)](
            x, index, lengths, counts, to_x, to_index, n, k if last else n, 4 * number,
            IS_FIRST=number == 0, TILE=tile, num_warps=8,
        )  # fmt: skip
        x, index = to_x, to_index
