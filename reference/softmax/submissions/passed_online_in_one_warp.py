# Honest: one warp per row in the online form, and a second pass that divides.
import cutlass
import cutlass.cute as cute


@cute.kernel
def _softmax_kernel(x: cute.Tensor, out: cute.Tensor, cols: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    largest = -cutlass.Float32.inf
    total = cutlass.Float32(0.0)
    for column in range(thread, cols, 32):
        value = x[row, column].to(cutlass.Float32)
        raised = cute.arch.fmax(largest, value)
        # A thread that has seen -inf only has nothing to rescale.
        if raised != -cutlass.Float32.inf:
            total = total * cute.math.exp(largest - raised) + cute.math.exp(value - raised)
        largest = raised
    row_largest = cute.arch.warp_reduction_max(largest)
    total = cute.arch.warp_reduction_sum(total * cute.math.exp(largest - row_largest))
    for column in range(thread, cols, 32):
        numerator = cute.math.exp(x[row, column].to(cutlass.Float32) - row_largest)
        out[row, column] = (numerator / total).to(out.element_type)


def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    _softmax_kernel(x, out, cols).launch(grid=[rows, 1, 1], block=[32, 1, 1])
