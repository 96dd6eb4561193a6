"""Scan and histogram, the staff kernels: prefix[i] = x[0] + … + x[i], and counts[v] = how many keys are v.

The scan reads and writes every element once. A program scans a tile, and publishes the tile's sum in a word of 64 bits,
flag and value together. What stands before the tile it learns by looking back: it reads the states of a window of tiles
before it, waits until all of them are published, and adds their sums up to the nearest one that knows all that is
before it. Tiles are numbered by a ticket, in the order in which programs begin to run, so that a program waits only for
programs that run already.

The histogram is private to each program, in registers, until its keys are counted; a second kernel adds the programs'.

Source: Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
"""

import torch
import triton
import triton.language as tl

BINS: tl.constexpr = tl.constexpr(256)
SUM_KNOWN: tl.constexpr = tl.constexpr(1)
PREFIX_KNOWN: tl.constexpr = tl.constexpr(2)


@triton.jit
def _before(states_ptr, tile, WINDOW: tl.constexpr):
    """The sum of everything before `tile`. A state has its flag in the upper half and a float32 in the lower."""
    lane = tl.arange(0, WINDOW)
    before = 0.0
    nearest = tile - 1
    while nearest >= 0:
        inside = lane <= nearest
        pointers = states_ptr + tl.where(inside, nearest - lane, 0)
        # Before the first tile there is nothing, and that is known.
        state = tl.where(inside, tl.load(pointers, volatile=True), PREFIX_KNOWN << 32)
        while tl.min(state >> 32, axis=0) == 0:
            state = tl.where(inside, tl.load(pointers, volatile=True), PREFIX_KNOWN << 32)
        last = tl.min(tl.where((state >> 32) == PREFIX_KNOWN, lane, WINDOW), axis=0)
        value = (state & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True)
        before += tl.sum(tl.where(lane <= last, value, 0.0), axis=0)
        nearest = tl.where(last < WINDOW, -1, nearest - WINDOW)
    return before


@triton.jit
def _scan_kernel(x_ptr, prefix_ptr, states_ptr, ticket_ptr, n, TILE: tl.constexpr, WINDOW: tl.constexpr):
    tile = tl.atomic_add(ticket_ptr, 1)
    offsets = tile.to(tl.int64) * TILE + tl.arange(0, TILE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    total = tl.sum(x, axis=0)
    if tile > 0:
        bits = total.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
        tl.atomic_xchg(states_ptr + tile, bits | (SUM_KNOWN << 32), sem="relaxed")
    scanned = tl.cumsum(x, axis=0)
    before = _before(states_ptr, tile, WINDOW)
    bits = (before + total).to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    tl.atomic_xchg(states_ptr + tile, bits | (PREFIX_KNOWN << 32), sem="relaxed")
    tl.store(prefix_ptr + offsets, (before + scanned).to(prefix_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _count_kernel(keys_ptr, partial_ptr, m, BLOCK: tl.constexpr):
    counts = tl.zeros((BINS,), tl.int32)
    lane = tl.arange(0, BLOCK)
    for block in range(tl.program_id(axis=0), tl.cdiv(m, BLOCK), tl.num_programs(axis=0)):
        offsets = tl.cast(block, tl.int64) * BLOCK + lane
        mask = offsets < m
        keys = tl.load(keys_ptr + offsets, mask=mask, other=0).to(tl.int32)
        counts += tl.histogram(keys, BINS, mask=mask)
    tl.store(partial_ptr + tl.program_id(axis=0) * BINS + tl.arange(0, BINS), counts)


@triton.jit
def _fold_kernel(partial_ptr, counts_ptr, partials, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.arange(0, ROWS)[:, None]
    column = tl.program_id(axis=0) * COLUMNS + tl.arange(0, COLUMNS)
    counts = tl.load(partial_ptr + row * BINS + column[None, :], mask=row < partials, other=0)
    tl.store(counts_ptr + column, tl.sum(counts, axis=0))


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    if x.is_cuda:
        tile, window, warps, block = 4096, 128, 4, 8192
        programs = 8 * torch.cuda.get_device_properties(x.device).multi_processor_count
    else:
        tile, window, warps, block, programs = 32768, 4, 4, 16384, 3
    tiles = triton.cdiv(n, tile)
    # The states of all tiles, and the ticket behind them.
    states = torch.zeros(tiles + 1, dtype=torch.int64, device=x.device)
    ticket = states[tiles:].view(torch.int32)
    _scan_kernel[(tiles,)](x, prefix, states, ticket, n, TILE=tile, WINDOW=window, num_warps=warps)

    programs = min(programs, triton.cdiv(m, block))
    partial = torch.empty(programs, 256, dtype=torch.int32, device=x.device)
    _count_kernel[(programs,)](keys, partial, m, BLOCK=block, num_warps=warps)
    _fold_kernel[(16,)](partial, counts, programs, ROWS=triton.next_power_of_2(programs), COLUMNS=16)
