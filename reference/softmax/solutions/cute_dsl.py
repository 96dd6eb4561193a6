"""Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / Σ_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].

A block takes one row, in packs of up to 16 bytes. Rows that fit its registers are read once and written once:
2·rows·cols·e bytes. Longer rows go through the online form, with one running maximum and sum for every thread, and are
read twice: 3·rows·cols·e bytes. The second pass goes backwards, as what was read last is still in the L2 cache.

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
"""

import math

import cutlass
from cutlass import cute
from cutlass.memory import SmemAllocator

LOG2_E = math.log2(math.e)
WARP = 32
MOST_THREADS = 1024
MOST_KEPT = 32  # elements of a row that a thread has in registers
ONLINE_THREADS = 512


@cute.jit
def _over_row(value, combine: cutlass.Constexpr, words: cute.Tensor, threads: cutlass.Constexpr):
    """A row's maximum or sum, in every thread, of what each thread has of it."""
    value = cute.arch.warp_reduction(value, combine)
    if cutlass.const_expr(threads > WARP):
        thread, _, _ = cute.arch.thread_idx()
        if thread % WARP == 0:
            words[thread // WARP] = value
        cute.arch.barrier()
        warps = threads // WARP
        value = cute.arch.warp_reduction(words[thread % warps], combine, threads_in_group=warps)
    return value


def _packs_of(row, width):
    return cute.logical_divide(row, cute.make_layout(width))


def _largest_of(values):
    return values.reduce(cute.ReductionOp.MAX, -cutlass.Float32.inf, 0)


def _sum_of(values):
    return values.reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)


def _add(left, right):
    return left + right


def _exponential(values, largest):
    return cute.math.exp2((values - largest) * LOG2_E, fastmath=True)


@cute.kernel
def _short_kernel(
    x: cute.Tensor,
    out: cute.Tensor,
    width: cutlass.Constexpr,
    packs: cutlass.Constexpr,
    threads: cutlass.Constexpr,
):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    sources, results = _packs_of(x[row, None], width), _packs_of(out[row, None], width)
    memory = SmemAllocator()
    maxima = memory.allocate_tensor(cutlass.Float32, cute.make_layout(WARP))
    sums = memory.allocate_tensor(cutlass.Float32, cute.make_layout(WARP))
    turns = (packs + threads - 1) // threads
    kept = cute.make_rmem_tensor((width, turns), x.element_type)
    # What lies beyond the row counts as -inf.
    kept.fill(x.element_type(-cutlass.Float32.inf))
    for turn in cutlass.range_constexpr(turns):
        pack = turn * threads + thread
        if pack < packs:
            cute.autovec_copy(sources[None, pack], kept[None, turn])
    largest = -cutlass.Float32.inf
    for turn in cutlass.range_constexpr(turns):
        largest = cute.arch.fmax(largest, _largest_of(kept[None, turn].load().to(cutlass.Float32)))
    largest = _over_row(largest, cute.arch.fmax, maxima, threads)
    total = cutlass.Float32(0.0)
    for turn in cutlass.range_constexpr(turns):
        total += _sum_of(_exponential(kept[None, turn].load().to(cutlass.Float32), largest))
    scale = 1.0 / _over_row(total, _add, sums, threads)
    for turn in cutlass.range_constexpr(turns):
        pack = turn * threads + thread
        if pack < packs:
            values = _exponential(kept[None, turn].load().to(cutlass.Float32), largest) * scale
            kept[None, turn].store(values.to(out.element_type))
            cute.autovec_copy(kept[None, turn], results[None, pack])


@cute.kernel
def _online_kernel(x: cute.Tensor, out: cute.Tensor, width: cutlass.Constexpr, packs: cutlass.Constexpr):
    threads = ONLINE_THREADS
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    sources, results = _packs_of(x[row, None], width), _packs_of(out[row, None], width)
    memory = SmemAllocator()
    maxima = memory.allocate_tensor(cutlass.Float32, cute.make_layout(WARP))
    sums = memory.allocate_tensor(cutlass.Float32, cute.make_layout(WARP))
    kept = cute.make_rmem_tensor(width, x.element_type)
    largest = -cutlass.Float32.inf
    total = cutlass.Float32(0.0)
    for pack in range(thread, packs, threads):
        cute.autovec_copy(sources[None, pack], kept)
        values = kept.load().to(cutlass.Float32)
        raised = cute.arch.fmax(largest, _largest_of(values))
        # While a thread has seen -inf only, -inf - -inf must not become NaN.
        pivot = cutlass.Float32(0.0) if raised == -cutlass.Float32.inf else raised
        total = total * _exponential(largest, pivot) + _sum_of(_exponential(values, pivot))
        largest = raised
    row_largest = _over_row(largest, cute.arch.fmax, maxima, threads)
    scale = 1.0 / _over_row(total * _exponential(largest, row_largest), _add, sums, threads)
    turns = (packs + threads - 1) // threads
    for done in range(turns):
        pack = (turns - 1 - done) * threads + thread
        if pack < packs:
            cute.autovec_copy(sources[None, pack], kept)
            values = _exponential(kept.load().to(cutlass.Float32), row_largest) * scale
            kept.store(values.to(out.element_type))
            cute.autovec_copy(kept, results[None, pack])


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    # Plain Python, which `cute.jit` would make conditions and loops of the device's of.
    # The widest access that rows of both matrices begin at a multiple of, and that their length is one of.
    width = min(x.iterator.alignment, out.iterator.alignment) * 8 // x.element_type.width
    while cols % width or x_row_stride % width or out_row_stride % width:
        width //= 2
    packs = cols // width
    threads = WARP
    while threads < MOST_THREADS and threads * MOST_KEPT < packs * width:
        threads *= 2
    if threads * MOST_KEPT >= packs * width:
        _short_kernel(x, out, width, packs, threads).launch(grid=[rows, 1, 1], block=[threads, 1, 1])
    else:
        _online_kernel(x, out, width, packs).launch(grid=[rows, 1, 1], block=[ONLINE_THREADS, 1, 1])
