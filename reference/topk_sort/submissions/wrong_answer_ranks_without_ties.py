"""Wrong: each key goes to where as many keys are larger, so that equal keys go to the same place, and NaN to the first."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rank_kernel(keys_ptr, lengths_ptr, values_ptr, indices_ptr, n, k, BLOCK: tl.constexpr):
    row, mine = tl.program_id(axis=1).to(tl.int64), tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    length = tl.load(lengths_ptr + row)
    x = tl.load(keys_ptr + row * n + mine, mask=mine < length, other=0.0).to(tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, length, BLOCK):
        at = start + tl.arange(0, BLOCK)
        others = tl.load(keys_ptr + row * n + at, mask=at < length, other=float("-inf")).to(tl.float32)
        place += tl.sum((others[None, :] > x[:, None]).to(tl.int32), axis=1)
    mask = (mine < length) & (place < k)
    tl.store(values_ptr + row * k + place, x, mask=mask)
    tl.store(indices_ptr + row * k + place, mine, mask=mask)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    values.fill_(float("-inf"))
    indices.fill_(-1)
    _rank_kernel[(triton.cdiv(n, 1024), rows)](keys, lengths, values, indices, n, k, BLOCK=1024)
