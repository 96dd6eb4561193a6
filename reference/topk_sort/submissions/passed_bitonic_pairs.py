"""Right, in another way: number and index in one word of 64 bits, so that no two are equal, and a bitonic network."""

import torch
import triton
import triton.language as tl


@triton.jit
def _begin_kernel(keys_ptr, lengths_ptr, pairs_ptr, n, padded, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    there = at < tl.load(lengths_ptr + row)
    x = tl.load(keys_ptr + row * n + at, mask=there, other=0.0).to(tl.float32)
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True).to(tl.int64)
    # Negative numbers: the larger the bits, the later; the others: the larger, the earlier, from -1 down.
    number = tl.where(bits < 0, bits + 2**31, -1 - bits)
    number = tl.where(x != x, -(2**31), number)
    pair = tl.where(there, number * 2**32 + at, 2**63 - 1)
    tl.store(pairs_ptr + row * padded + at, pair, mask=at < padded)


@triton.jit
def _swap_kernel(pairs_ptr, padded, size, stride, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    pair = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = pair < padded // 2
    low = pair // stride * 2 * stride + pair % stride
    pointers = pairs_ptr + row * padded + low
    one = tl.load(pointers, mask=mask, other=0)
    other = tl.load(pointers + stride, mask=mask, other=0)
    rising = (low & size) == 0
    swapped = (one > other) == rising
    tl.store(pointers, tl.where(swapped, other, one), mask=mask)
    tl.store(pointers + stride, tl.where(swapped, one, other), mask=mask)


@triton.jit
def _end_kernel(keys_ptr, pairs_ptr, values_ptr, indices_ptr, n, k, padded, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    pair = tl.load(pairs_ptr + row * padded + at, mask=at < padded, other=2**63 - 1)
    there = pair != 2**63 - 1
    index = tl.where(there, pair & 0xFFFFFFFF, -1).to(tl.int32)
    x = tl.load(keys_ptr + row * n + index, mask=there, other=float("-inf"))
    tl.store(values_ptr + row * k + at, x, mask=at < k)
    tl.store(indices_ptr + row * k + at, index, mask=at < k)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    padded = max(2, triton.next_power_of_2(n))
    block = 1024 if keys.is_cuda else 16384
    pairs = torch.empty(rows, padded, dtype=torch.int64, device=keys.device)
    _begin_kernel[(triton.cdiv(padded, block), rows)](keys, lengths, pairs, n, padded, BLOCK=block)
    size = 2
    while size <= padded:
        stride = size // 2
        while stride > 0:
            _swap_kernel[(triton.cdiv(padded // 2, block), rows)](pairs, padded, size, stride, BLOCK=block)
            stride //= 2
        size *= 2
    _end_kernel[(triton.cdiv(k, block), rows)](keys, pairs, values, indices, n, k, padded, BLOCK=block)
