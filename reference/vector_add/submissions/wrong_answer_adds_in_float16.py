# Wrong: it adds in half precision.
import cutlass
import cutlass.cute as cute

THREADS = 256


@cute.kernel
def _add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < n:
        out[i] = (x[i].to(cutlass.Float16) + y[i].to(cutlass.Float16)).to(out.element_type)


@cute.jit
def vector_add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    _add_kernel(x, y, out, n).launch(grid=[cute.ceil_div(n, THREADS), 1, 1], block=[THREADS, 1, 1])
