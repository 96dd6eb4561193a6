"""Top-k and radix sort, the staff kernels: each row's first k keys, in order, and where in the row they stood.

A key is mapped to an int32 that is smaller for what comes first: falling, NaN before all, -0 like +0. Few keys are
selected: a program finds the k-th number of its tile bit by bit, keeps what comes before it, in the order of indices,
and, of its equals, as many as still fit. What the tiles kept is a shorter row, of which the same is done, until one
tile is left; the rank of each of the last k is a count of those before it. Otherwise rows are sorted by digits of
four bits, the lowest first: a kernel counts each tile's digits, one scans the counts, and one moves each key to its
place, which is stable.
"""

import torch
import triton
import triton.language as tl

FIRST: tl.constexpr = tl.constexpr(-(2**31))
ABSENT: tl.constexpr = tl.constexpr(2**31 - 1)
DIGITS: tl.constexpr = tl.constexpr(16)
SELECTED = 256
"""The largest k for which keys are selected."""


@triton.jit
def _number(x):
    """A key's number: smaller for what comes first, equal for what is equal."""
    wide = x.to(tl.float32)
    bits = tl.where(wide == 0.0, 0.0, wide).to(tl.int32, bitcast=True)
    falling = ~(bits ^ ((bits >> 31) & 0x7FFFFFFF))
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return tl.where(is_nan, FIRST, falling)


@triton.jit
def _digit(x, shift):
    """Four bits of a key's number; the sign's bit is turned, so that the lowest numbers have the lowest digits."""
    return ((_number(x) ^ FIRST) >> shift) & (DIGITS - 1)


@triton.jit(do_not_specialize=["k"])
def _fill_kernel(lengths_ptr, values_ptr, indices_ptr, k, BLOCK: tl.constexpr):
    """What a row has no keys for."""
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
    digit = _digit(tl.load(keys_ptr + row * n + at, mask=mask, other=0.0), shift)
    counts = tl.histogram(digit, DIGITS, mask=mask)
    tl.store(counts_ptr + (row * DIGITS + tl.arange(0, DIGITS)) * tiles + tile, counts)


@triton.jit(do_not_specialize=["tiles"])
def _scan_kernel(counts_ptr, totals_ptr, tiles, PART: tl.constexpr, BLOCK: tl.constexpr):
    """Of PART digits: how many keys of the digit there are in the tiles before each tile, and in the row."""
    row = tl.program_id(axis=1).to(tl.int64)
    digit = tl.program_id(axis=0) * PART + tl.arange(0, PART)
    before = tl.zeros((PART,), tl.int32)
    for start in range(0, tiles, BLOCK):
        tile = start + tl.arange(0, BLOCK)
        pointers = counts_ptr + (row * DIGITS + digit)[:, None] * tiles + tile[None, :]
        counts = tl.load(pointers, mask=tile[None, :] < tiles, other=0)
        tl.store(pointers, before[:, None] + tl.cumsum(counts, axis=1) - counts, mask=tile[None, :] < tiles)
        before += tl.sum(counts, axis=1)
    tl.store(totals_ptr + row * DIGITS + digit, before)


@triton.jit(do_not_specialize=["n", "to_n", "shift"])
def _move_kernel(
    keys_ptr, index_ptr, lengths_ptr, counts_ptr, totals_ptr, to_keys_ptr, to_index_ptr, n, to_n, shift,
    IS_FIRST: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    tile, row, tiles = tl.program_id(axis=0), tl.program_id(axis=1).to(tl.int64), tl.num_programs(axis=0)
    at = tile * TILE + tl.arange(0, TILE)
    mask = at < tl.load(lengths_ptr + row)
    x = tl.load(keys_ptr + row * n + at, mask=mask, other=0.0)
    index = at
    if not IS_FIRST:
        index = tl.load(index_ptr + row * n + at, mask=mask, other=0)
    digits = tl.arange(0, DIGITS)
    totals = tl.load(totals_ptr + row * DIGITS + digits)
    smaller = tl.cumsum(totals, axis=0) - totals
    start = smaller + tl.load(counts_ptr + (row * DIGITS + digits) * tiles + tile)
    mine = (_digit(x, shift)[:, None] == digits[None, :]) & mask[:, None]
    # The first key of a digit in this tile goes to `start`, the second behind it.
    rank = tl.cumsum(mine.to(tl.int32), axis=0) - 1
    place = tl.sum(tl.where(mine, start[None, :] + rank, 0), axis=1)
    mask = mask & (place < to_n)
    tl.store(to_keys_ptr + row * to_n + place, x, mask=mask)
    tl.store(to_index_ptr + row * to_n + place, index, mask=mask)


@triton.jit
def _keep_kernel(
    keys_ptr, index_ptr, lengths_ptr, kept_keys_ptr, kept_index_ptr, n, k, IS_FIRST: tl.constexpr, TILE: tl.constexpr
):
    """The k first keys of a tile, in the order in which they stand; places without a key have index -1."""
    tile, row, tiles = tl.program_id(axis=0), tl.program_id(axis=1).to(tl.int64), tl.num_programs(axis=0)
    at = tile * TILE + tl.arange(0, TILE)
    if IS_FIRST:
        mask = at < tl.load(lengths_ptr + row)
        index = at
    else:
        index = tl.load(index_ptr + row * n + at, mask=at < n, other=-1)
        mask = index >= 0
    x = tl.load(keys_ptr + row * n + at, mask=mask, other=0.0)
    number = tl.where(mask, _number(x), ABSENT)
    # The largest number that fewer than k are below: the k-th.
    kth = tl.full((), FIRST, tl.int32)
    bit = tl.full((), FIRST, tl.int32)
    for _ in range(32):
        trial = kth ^ bit
        kth = tl.where(tl.sum((number < trial).to(tl.int32), axis=0) < k, trial, kth)
        bit = (bit >> 1) & 0x7FFFFFFF
    before, equal = number < kth, number == kth
    left = k - tl.sum(before.to(tl.int32), axis=0)
    keep = before | (equal & (tl.cumsum(equal.to(tl.int32), axis=0) <= left))
    place = tl.cumsum(keep.to(tl.int32), axis=0) - 1
    to = (row * tiles + tile) * k + place
    tl.store(kept_keys_ptr + to, x, mask=keep)
    tl.store(kept_index_ptr + to, tl.where(mask, index, -1), mask=keep)


@triton.jit
def _rank_kernel(keys_ptr, index_ptr, values_ptr, indices_ptr, k, BLOCK: tl.constexpr, PART: tl.constexpr):
    """Of k keys that stand in the order of their indices, each goes to where as many come before it."""
    row = tl.program_id(axis=0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + row * k + at, mask=at < k, other=-1)
    x = tl.load(keys_ptr + row * k + at, mask=index >= 0, other=0.0)
    number = tl.where(index >= 0, _number(x), ABSENT)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, k, PART):
        them = start + tl.arange(0, PART)
        is_key = tl.load(index_ptr + row * k + them, mask=them < k, other=-1) >= 0
        theirs = _number(tl.load(keys_ptr + row * k + them, mask=is_key, other=0.0))
        theirs = tl.where(is_key, theirs, ABSENT)[None, :]
        first = (theirs < number[:, None]) | ((theirs == number[:, None]) & (them[None, :] < at[:, None]))
        place += tl.sum(first.to(tl.int32), axis=1)
    tl.store(values_ptr + row * k + place, x, mask=index >= 0)
    tl.store(indices_ptr + row * k + place, index, mask=index >= 0)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    _fill_kernel[(triton.cdiv(k, 1024), rows)](lengths, values, indices, k, BLOCK=1024)
    if k <= SELECTED:
        _select(keys, lengths, values, indices, rows, n, k)
    else:
        _sort(keys, lengths, values, indices, rows, n, k)


def _select(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    tile, warps = (4096, 8) if keys.is_cuda else (8192, 4)
    kept, index, left, tiles = keys, indices, n, 0
    while tiles != 1:
        tiles = triton.cdiv(left, tile)
        to_kept = torch.empty(rows * tiles * k, dtype=keys.dtype, device=keys.device)
        to_index = torch.empty(rows * tiles * k, dtype=torch.int32, device=keys.device)
        _keep_kernel[(tiles, rows)](
            kept, index, lengths, to_kept, to_index, left, k, IS_FIRST=kept is keys, TILE=tile, num_warps=warps
        )
        kept, index, left = to_kept, to_index, tiles * k
    _rank_kernel[(rows,)](kept, index, values, indices, k, BLOCK=triton.next_power_of_2(k), PART=32)


def _sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    tile, warps, part, block = (1024, 8, 1, 2048) if keys.is_cuda else (8192, 4, 16, 16)
    tiles = triton.cdiv(n, tile)
    counts = torch.empty(rows * 16 * tiles, dtype=torch.int32, device=keys.device)
    totals = torch.empty(rows * 16, dtype=torch.int32, device=keys.device)
    of_keys = [torch.empty(rows, n, dtype=keys.dtype, device=keys.device) for _ in range(2)]
    of_index = [torch.empty(rows, n, dtype=torch.int32, device=keys.device) for _ in range(2)]
    # A 16-bit key that was widened has nothing in its lowest bits.
    lowest = {torch.float32: 0, torch.float16: 12, torch.bfloat16: 16}[keys.dtype]
    x, index = keys, indices
    for number, shift in enumerate(range(lowest, 32, 4)):
        last = shift == 28
        to_x, to_index = (values, indices) if last else (of_keys[number % 2], of_index[number % 2])
        _count_kernel[(tiles, rows)](x, lengths, counts, n, shift, TILE=tile, num_warps=warps)
        _scan_kernel[(16 // part, rows)](counts, totals, tiles, PART=part, BLOCK=block)
        _move_kernel[(tiles, rows)](
            x, index, lengths, counts, totals, to_x, to_index, n, k if last else n, shift,
            IS_FIRST=number == 0, TILE=tile, num_warps=warps,
        )  # fmt: skip
        x, index = to_x, to_index
