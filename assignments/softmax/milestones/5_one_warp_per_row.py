# language: cute_dsl
"""Softmax, a milestone: one warp goes over a row three times.

The first pass finds the maximum, the second the sum, the third divides; shuffles bring the warp's threads together.
"""

import cutlass
from cutlass import cute

THREADS = 32


@cute.kernel
def _softmax_kernel(x: cute.Tensor, out: cute.Tensor, cols: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()

    largest = -cutlass.Float32.inf
    for column in range(thread, cols, THREADS):
        largest = cute.arch.fmax(largest, x[row, column].to(cutlass.Float32))
    largest = cute.arch.warp_reduction_max(largest)

    total = cutlass.Float32(0.0)
    for column in range(thread, cols, THREADS):
        total += cute.math.exp(x[row, column].to(cutlass.Float32) - largest)
    total = cute.arch.warp_reduction_sum(total)

    for column in range(thread, cols, THREADS):
        numerator = cute.math.exp(x[row, column].to(cutlass.Float32) - largest)
        out[row, column] = (numerator / total).to(out.element_type)


@cute.jit
def softmax(x: cute.Tensor, out: cute.Tensor, rows, cols, x_row_stride, out_row_stride):
    _softmax_kernel(x, out, cols).launch(grid=[rows, 1, 1], block=[THREADS, 1, 1])
