"""A beginner's way: a Python loop that launches one small kernel after another, and waits for each by .item()."""

import triton
import triton.language as tl

CHUNK = 32768  # elements for each launch
BLOCK = 1024


@triton.jit
def add_chunk(x_ptr, y_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    idx = start + pid * BLOCK + tl.arange(0, BLOCK)
    ok = idx < n
    a = tl.load(x_ptr + idx, mask=ok, other=0.0)
    b = tl.load(y_ptr + idx, mask=ok, other=0.0)
    tl.store(out_ptr + idx, a + b, mask=ok)


def vector_add(x, y, out, n):
    start = 0
    while start < n:
        length = min(CHUNK, n - start)
        # slices of the tensors, so that the numbers in the kernel stay small
        xs = x[start : start + length]
        ys = y[start : start + length]
        outs = out[start : start + length]
        blocks = (length + BLOCK - 1) // BLOCK
        add_chunk[(blocks,)](xs, ys, outs, 0, length, BLOCK=BLOCK)
        last = outs[length - 1].item()  # waits until this piece is done
        if last != last:
            print("not a number at", start + length - 1)
        start = start + CHUNK
