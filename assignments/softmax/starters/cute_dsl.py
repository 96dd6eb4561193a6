"""Softmax: every row of x becomes exp(x) divided by the sum of exp(x) over the row."""

import cutlass
import cutlass.cute as cute

THREADS = 32  # one warp; a block handles one row


@cute.kernel
def _softmax_kernel(x: cute.Tensor, out: cute.Tensor, cols: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()

    # Each thread goes over every 32nd element of the row and adds up its own part of the sum.
    total = cutlass.Float32(0.0)
    for column in range(thread, cols, THREADS):
        # Your part: what is exp(10000)?
        total += cute.math.exp(x[row, column].to(cutlass.Float32))

    # Your part: every thread has a sum of its own now, and the row has one: cute.arch.warp_reduction_sum(…).
    for column in range(thread, cols, THREADS):
        numerator = cute.math.exp(x[row, column].to(cutlass.Float32))
        out[row, column] = (numerator / total).to(out.element_type)


@cute.jit
def softmax(
    x: cute.Tensor,
    out: cute.Tensor,
    rows: cutlass.Constexpr,
    cols: cutlass.Constexpr,
    x_row_stride: cutlass.Constexpr,
    out_row_stride: cutlass.Constexpr,
):
    # The judge calls this function once for every layout of its tensors, compiles what it launches, and calls that.
    # The tensors know their strides.
    _softmax_kernel(x, out, cols).launch(grid=[rows, 1, 1], block=[THREADS, 1, 1])
