# Wrong: the number of blocks is rounded down, so the tail is never written.
import cutlass
import cutlass.cute as cute

THREADS = 256


@cute.kernel
def _add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < n:
        out[i] = x[i] + y[i]


@cute.jit
def vector_add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    _add_kernel(x, y, out, n).launch(grid=[max(1, n // THREADS), 1, 1], block=[THREADS, 1, 1])
