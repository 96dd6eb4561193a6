# A row has one coordinate, and is given two: the kernel is refused when it is traced.
import cutlass
import cutlass.cute as cute


@cute.kernel
def _softmax_kernel(x: cute.Tensor, out: cute.Tensor, cols: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    mine = x[row, None]
    for column in range(thread, cols, 32):
        out[row, column] = mine[row, column]


@cute.jit
def softmax(x: cute.Tensor, out: cute.Tensor, rows, cols, x_row_stride, out_row_stride):
    _softmax_kernel(x, out, cols).launch(grid=[rows, 1, 1], block=[32, 1, 1])
