"""Top-k and radix sort: of every row the first k keys, in falling order, and where in the row they stood."""

import torch
import triton
import triton.language as tl


@triton.jit
def _digit(x, SHIFT: tl.constexpr):
    """Four bits of a key; a digit that comes first is smaller."""
    bits = x.to(tl.float32).to(tl.int32, bitcast=True)
    # Your part: larger keys come first, but the bits of a float grow with its magnitude, whatever its sign. And where do
    # NaN and -0 belong?
    return (~bits >> SHIFT) & 15


@triton.jit
def _sort_kernel(
    keys_ptr,  # (rows, n)
    lengths_ptr,  # how many keys each row has
    values_ptr,  # (rows, k), the first k
    indices_ptr,  # (rows, k), where they stood
    n,
    k,
    BLOCK: tl.constexpr,  # how many keys are moved at a time
):
    row = tl.program_id(axis=0).to(tl.int64)
    length = tl.load(lengths_ptr + row)
    lane, digits = tl.arange(0, BLOCK), tl.arange(0, 16)
    # Your part: this sorts by the highest digit only. Begin with the lowest one, and sort again and again.
    counts = tl.zeros((16,), tl.int32)
    for start in range(0, length, BLOCK):
        mask = start + lane < length
        x = tl.load(keys_ptr + row * n + start + lane, mask=mask, other=0.0)
        counts += tl.histogram(_digit(x, 28), 16, mask=mask)
    # Where the next key of each digit goes: behind all keys of smaller digits.
    following = tl.cumsum(counts, axis=0) - counts
    for start in range(0, length, BLOCK):
        mask = start + lane < length
        x = tl.load(keys_ptr + row * n + start + lane, mask=mask, other=0.0)
        mine = ((_digit(x, 28)[:, None] == digits[None, :]) & mask[:, None]).to(tl.int32)
        # The first key of a digit in this block goes there, the second to the place behind it.
        place = tl.sum(mine * (following[None, :] + tl.cumsum(mine, axis=0) - 1), axis=1)
        tl.store(values_ptr + row * k + place, x, mask=mask & (place < k))
        tl.store(indices_ptr + row * k + place, start + lane, mask=mask & (place < k))
        following += tl.sum(mine, axis=0)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    # Your part: one program for a row. And what is to stand in a row of the answer that is longer than the row of keys?
    _sort_kernel[(rows,)](keys, lengths, values, indices, n, k, BLOCK=1024)
