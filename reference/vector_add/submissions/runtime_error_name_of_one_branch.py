# A name that only one branch of a condition of the device gives a value: the kernel is refused when it is traced.
import cutlass
import cutlass.cute as cute


@cute.kernel
def _add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 256 + thread
    if i < n:
        total = x[i] + y[i]
    out[i] = total


@cute.jit
def vector_add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    _add_kernel(x, y, out, n).launch(grid=[cute.ceil_div(n, 256), 1, 1], block=[256, 1, 1])
