"""Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / Σ_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].

A block takes one row, in packs of up to 16 bytes. Rows that fit its registers are read once and written once:
2·rows·cols·e bytes. Longer rows go through the online form, with one running maximum and sum for every thread, and are
read twice: 3·rows·cols·e bytes. The second pass goes backwards, as what was read last is still in the L2 cache.

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
"""

import math

from tvm.script import tirx as T

LOG2_E = math.log2(math.e)
WARP = 32
MOST_THREADS = 1024
MOST_KEPT = 32  # elements of a row that a thread has in registers
ONLINE_THREADS = 512


def _short(x, out, width, packs, threads):
    rows, warps = x.shape[0], threads // WARP
    turns = (packs + threads - 1) // threads
    kept_of = turns * width

    @T.prim_func
    def short_rows(x_ptr: T.handle, out_ptr: T.handle):
        xs = T.match_buffer(x_ptr, x.shape, x.dtype, strides=x.strides, layout=x.layout)
        results = T.match_buffer(out_ptr, out.shape, out.dtype, strides=out.strides, layout=out.layout)
        T.device_entry()
        row = T.cta_id([rows])
        thread = T.thread_id([threads])
        maxima = T.alloc_shared((WARP,), "float32")
        sums = T.alloc_shared((WARP,), "float32")
        kept = T.alloc_local((kept_of,), x.dtype)
        largest = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        largest[0] = -T.infinity("float32")
        # What lies beyond the row counts as -inf.
        for place in T.unroll(kept_of):
            kept[place] = T.cast(largest[0], x.dtype)
        for turn in T.unroll(turns):
            if turn * threads + thread < packs:
                for lane in T.vectorized(width):
                    kept[turn * width + lane] = xs[row, (turn * threads + thread) * width + lane]
        for place in T.unroll(kept_of):
            largest[0] = T.max(largest[0], T.cast(kept[place], "float32"))
        largest[0] = T.cuda.cta_max(largest[0], warps, maxima.data)
        total[0] = 0.0
        for place in T.unroll(kept_of):
            total[0] += T.exp2((T.cast(kept[place], "float32") - largest[0]) * LOG2_E)
        total[0] = 1.0 / T.cuda.cta_sum(total[0], warps, sums.data)
        for place in T.unroll(kept_of):
            value = T.exp2((T.cast(kept[place], "float32") - largest[0]) * LOG2_E) * total[0]
            kept[place] = T.cast(value, x.dtype)
        for turn in T.unroll(turns):
            if turn * threads + thread < packs:
                for lane in T.vectorized(width):
                    results[row, (turn * threads + thread) * width + lane] = kept[turn * width + lane]

    return short_rows


def _online(x, out, width, packs):
    rows, threads, warps = x.shape[0], ONLINE_THREADS, ONLINE_THREADS // WARP
    turns = (packs + threads - 1) // threads

    @T.prim_func
    def long_rows(x_ptr: T.handle, out_ptr: T.handle):
        xs = T.match_buffer(x_ptr, x.shape, x.dtype, strides=x.strides, layout=x.layout)
        results = T.match_buffer(out_ptr, out.shape, out.dtype, strides=out.strides, layout=out.layout)
        T.device_entry()
        row = T.cta_id([rows])
        thread = T.thread_id([threads])
        maxima = T.alloc_shared((WARP,), "float32")
        sums = T.alloc_shared((WARP,), "float32")
        kept = T.alloc_local((width,), x.dtype)
        largest = T.alloc_local((1,), "float32")
        raised = T.alloc_local((1,), "float32")
        pivot = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        largest[0] = -T.infinity("float32")
        total[0] = 0.0
        for turn in T.serial(turns):
            if turn * threads + thread < packs:
                for lane in T.vectorized(width):
                    kept[lane] = xs[row, (turn * threads + thread) * width + lane]
                raised[0] = largest[0]
                for lane in T.unroll(width):
                    raised[0] = T.max(raised[0], T.cast(kept[lane], "float32"))
                # While a thread has seen -inf only, -inf - -inf must not become NaN.
                pivot[0] = T.if_then_else(raised[0] == -T.infinity("float32"), 0.0, raised[0])
                total[0] *= T.exp2((largest[0] - pivot[0]) * LOG2_E)
                for lane in T.unroll(width):
                    total[0] += T.exp2((T.cast(kept[lane], "float32") - pivot[0]) * LOG2_E)
                largest[0] = raised[0]
        raised[0] = T.cuda.cta_max(largest[0], warps, maxima.data)
        total[0] *= T.exp2((largest[0] - raised[0]) * LOG2_E)
        total[0] = 1.0 / T.cuda.cta_sum(total[0], warps, sums.data)
        for done in T.serial(turns):
            pack = (turns - 1 - done) * threads + thread
            if pack < packs:
                for lane in T.vectorized(width):
                    kept[lane] = xs[row, pack * width + lane]
                for lane in T.unroll(width):
                    value = T.exp2((T.cast(kept[lane], "float32") - raised[0]) * LOG2_E) * total[0]
                    kept[lane] = T.cast(value, x.dtype)
                for lane in T.vectorized(width):
                    results[row, pack * width + lane] = kept[lane]

    return long_rows


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    # The widest access that rows of both matrices begin at a multiple of, and that their length is one of.
    width = min(x.alignment, out.alignment) // x.itemsize
    while cols % width or x_row_stride % width or out_row_stride % width:
        width //= 2
    packs = cols // width
    threads = WARP
    while threads < MOST_THREADS and threads * MOST_KEPT < packs * width:
        threads *= 2
    if threads * MOST_KEPT >= packs * width:
        return _short(x, out, width, packs, threads)
    return _online(x, out, width, packs)
