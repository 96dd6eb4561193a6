"""Vector add: out[i] = x[i] + y[i] for every i below n."""

import cutlass
import cutlass.cute as cute

THREADS = 256  # how many threads a block has


@cute.kernel
def _vector_add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    # Every thread of every block runs this same code; its two numbers say which element is its own.
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread

    # The last block may reach beyond the end of the vectors: its other threads touch no memory.
    if i < n:
        # Your part: y has to be added.
        out[i] = x[i]


@cute.jit
def vector_add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    # The judge calls this function once for every layout of its tensors, compiles what it launches, and calls that.
    # Your part: one block is enough for 256 elements only. How many does a vector of n elements need?
    _vector_add_kernel(x, y, out, n).launch(grid=[1, 1, 1], block=[THREADS, 1, 1])
