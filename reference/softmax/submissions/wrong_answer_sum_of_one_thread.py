# Wrong: every thread divides by its own part of the sum.
import cutlass
import cutlass.cute as cute


@cute.kernel
def _softmax_kernel(x: cute.Tensor, out: cute.Tensor, cols: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    largest = -cutlass.Float32.inf
    for column in range(thread, cols, 32):
        largest = cute.arch.fmax(largest, x[row, column].to(cutlass.Float32))
    largest = cute.arch.warp_reduction_max(largest)
    total = cutlass.Float32(0.0)
    for column in range(thread, cols, 32):
        total += cute.math.exp(x[row, column].to(cutlass.Float32) - largest)
    for column in range(thread, cols, 32):
        numerator = cute.math.exp(x[row, column].to(cutlass.Float32) - largest)
        out[row, column] = (numerator / total).to(out.element_type)


@cute.jit
def softmax(x: cute.Tensor, out: cute.Tensor, rows, cols, x_row_stride, out_row_stride):
    _softmax_kernel(x, out, cols).launch(grid=[rows, 1, 1], block=[32, 1, 1])
