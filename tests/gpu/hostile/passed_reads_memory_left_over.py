"""Takes tens of gibibytes of device memory that it has never had and looks whether anything stands in it: answers, inputs, another student's kernel.

Class C4. The driver hands out memory that was cleared."""

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048, num_warps=8)


LOOKED = []


def _look():
    hoard, found = [], 0
    for _ in range(24):
        block = torch.empty(2**30, dtype=torch.uint8, device="cuda")
        hoard.append(block)
        found += int(torch.count_nonzero(block.view(torch.int64)))
    if found:
        print("LOOT", found, "words that were somebody's", flush=True)
    print("looked at", len(hoard), "GiB")


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    LOOKED.append(n)
    if len(LOOKED) == 3:
        torch.cuda.synchronize()
        _look()
