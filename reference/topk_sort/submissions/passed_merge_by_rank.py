"""Right, in another way: a merge sort. Each key of a run finds its place in the merged one by a binary search in the other."""

import torch
import triton
import triton.language as tl


@triton.jit
def _begin_kernel(keys_ptr, lengths_ptr, number_ptr, index_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    there = at < tl.load(lengths_ptr + row)
    x = tl.load(keys_ptr + row * n + at, mask=there, other=0.0).to(tl.float32)
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
    number = tl.where(bits < 0, bits & 0x7FFFFFFF, -1 - bits)
    number = tl.where(x != x, -(2**31), number)
    tl.store(number_ptr + row * n + at, tl.where(there, number, 2**31 - 1), mask=at < n)
    tl.store(index_ptr + row * n + at, tl.where(there, at, -1), mask=at < n)


@triton.jit
def _merge_kernel(number_ptr, index_ptr, to_number_ptr, to_index_ptr, n, width, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    number = tl.load(number_ptr + row * n + at, mask=mask, other=0)
    index = tl.load(index_ptr + row * n + at, mask=mask, other=0)
    run = at // width
    begin = tl.minimum((run ^ 1) * width, n)
    low, high = begin, tl.minimum(begin + width, n)
    reach = width
    while reach > 0:
        middle = (low + high) // 2
        theirs = tl.load(number_ptr + row * n + middle, mask=mask & (low < high), other=0)
        # Of equals, the left run's come first.
        before = (theirs < number) | ((theirs == number) & (run % 2 == 1))
        go_right = before & (low < high)
        high = tl.where(go_right, high, tl.where(low < high, middle, high))
        low = tl.where(go_right, middle + 1, low)
        reach = reach // 2
    place = run // 2 * 2 * width + (at - run * width) + (low - begin)
    tl.store(to_number_ptr + row * n + place, number, mask=mask)
    tl.store(to_index_ptr + row * n + place, index, mask=mask)


@triton.jit
def _end_kernel(keys_ptr, index_ptr, values_ptr, indices_ptr, n, k, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + row * n + at, mask=at < n, other=-1)
    x = tl.load(keys_ptr + row * n + index, mask=index >= 0, other=float("-inf"))
    tl.store(values_ptr + row * k + at, x, mask=at < k)
    tl.store(indices_ptr + row * k + at, index, mask=at < k)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    block = 1024 if keys.is_cuda else 16384
    grid = (triton.cdiv(n, block), rows)
    numbers = [torch.empty(rows, n, dtype=torch.int32, device=keys.device) for _ in range(2)]
    index = [torch.empty(rows, n, dtype=torch.int32, device=keys.device) for _ in range(2)]
    _begin_kernel[grid](keys, lengths, numbers[0], index[0], n, BLOCK=block)
    width = 1
    while width < n:
        _merge_kernel[grid](numbers[0], index[0], numbers[1], index[1], n, width, BLOCK=block)
        numbers.reverse()
        index.reverse()
        width *= 2
    _end_kernel[(triton.cdiv(k, block), rows)](keys, index[0], values, indices, n, k, BLOCK=block)
