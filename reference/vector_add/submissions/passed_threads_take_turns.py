# Honest: a fixed number of blocks goes over the vectors, each thread by the whole grid's width at a time.
import cutlass
import cutlass.cute as cute

THREADS = 256
MOST_BLOCKS = 1056


@cute.kernel
def _add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    for i in range(block * THREADS + thread, n, blocks * THREADS):
        out[i] = x[i] + y[i]


@cute.jit
def vector_add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    blocks = min(MOST_BLOCKS, (n + THREADS - 1) // THREADS)
    _add_kernel(x, y, out, n).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1])
