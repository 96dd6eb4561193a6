"""Top-k and radix sort, first milestone: all digits, one program for each row, and whole rows are sorted whatever k is.

A launch for each digit of four bits, the lowest first. A program counts its row's digits, and then moves one block of
keys after another.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _digit(x, shift):
    wide = x.to(tl.float32)
    bits = tl.where(wide == 0.0, 0.0, wide).to(tl.int32, bitcast=True)
    # Of negative keys, those with larger bits come later; of the others, they come earlier; and these before those.
    number = tl.where(bits < 0, bits, bits ^ 0x7FFFFFFF)
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return (tl.where(is_nan, 0, number) >> shift) & 15


@triton.jit(do_not_specialize=["k"])
def _fill_kernel(lengths_ptr, values_ptr, indices_ptr, k, BLOCK: tl.constexpr):
    row = tl.program_id(axis=1).to(tl.int64)
    place = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = (place >= tl.load(lengths_ptr + row)) & (place < k)
    nothing = tl.full((BLOCK,), float("-inf"), tl.float32)
    tl.store(values_ptr + row * k + place, nothing.to(values_ptr.dtype.element_ty), mask=mask)
    tl.store(indices_ptr + row * k + place, tl.full((BLOCK,), -1, tl.int32), mask=mask)


@triton.jit(do_not_specialize=["n", "to_n", "shift"])
def _pass_kernel(
    keys_ptr, index_ptr, lengths_ptr, to_keys_ptr, to_index_ptr, n, to_n, shift,
    IS_FIRST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(axis=0).to(tl.int64)
    length = tl.load(lengths_ptr + row)
    lane, digits = tl.arange(0, BLOCK), tl.arange(0, 16)
    counts = tl.zeros((16,), tl.int32)
    for start in range(0, length, BLOCK):
        mask = start + lane < length
        x = tl.load(keys_ptr + row * n + start + lane, mask=mask, other=0.0)
        counts += tl.histogram(_digit(x, shift), 16, mask=mask)
    following = tl.cumsum(counts, axis=0) - counts
    for start in range(0, length, BLOCK):
        mask = start + lane < length
        x = tl.load(keys_ptr + row * n + start + lane, mask=mask, other=0.0)
        index = start + lane
        if not IS_FIRST:
            index = tl.load(index_ptr + row * n + start + lane, mask=mask, other=0)
        mine = ((_digit(x, shift)[:, None] == digits[None, :]) & mask[:, None]).to(tl.int32)
        place = tl.sum(mine * (following[None, :] + tl.cumsum(mine, axis=0) - 1), axis=1)
        tl.store(to_keys_ptr + row * to_n + place, x, mask=mask & (place < to_n))
        tl.store(to_index_ptr + row * to_n + place, index, mask=mask & (place < to_n))
        following += tl.sum(mine, axis=0)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    _fill_kernel[(triton.cdiv(k, 1024), rows)](lengths, values, indices, k, BLOCK=1024)
    block = 1024 if keys.is_cuda else 8192
    of_keys = [torch.empty(rows, n, dtype=keys.dtype, device=keys.device) for _ in range(2)]
    of_index = [torch.empty(rows, n, dtype=torch.int32, device=keys.device) for _ in range(2)]
    x, index = keys, indices
    for number in range(8):
        last = number == 7
        to_x, to_index = (values, indices) if last else (of_keys[number % 2], of_index[number % 2])
        _pass_kernel[(rows,)](
            x, index, lengths, to_x, to_index, n, k if last else n, 4 * number,
            IS_FIRST=number == 0, BLOCK=block, num_warps=8,
        )  # fmt: skip
        x, index = to_x, to_index
