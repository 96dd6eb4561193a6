"""Illegal: what a row has no keys for is stored in whole blocks, also beyond the row's k places."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rank_kernel(keys_ptr, lengths_ptr, values_ptr, indices_ptr, n, k, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    length = tl.load(lengths_ptr + row)
    lane = tl.arange(0, BLOCK)
    for start in range(0, k, BLOCK):
        tl.store(values_ptr + row * k + start + lane, float("-inf"))
        tl.store(indices_ptr + row * k + start + lane, -1)
    for start in range(0, length, BLOCK):
        mine = start + lane
        x = tl.load(keys_ptr + row * n + mine, mask=mine < length, other=0.0).to(tl.float32)
        place = tl.zeros((BLOCK,), tl.int32)
        for begin in range(0, length, BLOCK):
            at = begin + lane
            others = tl.load(keys_ptr + row * n + at, mask=at < length, other=float("-inf")).to(tl.float32)
            first = (others[None, :] > x[:, None]) | ((others[None, :] == x[:, None]) & (at[None, :] < mine[:, None]))
            place += tl.sum((first & (at < length)[None, :]).to(tl.int32), axis=1)
        mask = (mine < length) & (place < k)
        tl.store(values_ptr + row * k + place, x, mask=mask)
        tl.store(indices_ptr + row * k + place, mine, mask=mask)


def topk_sort(
    keys: torch.Tensor, lengths: torch.Tensor, values: torch.Tensor, indices: torch.Tensor, rows: int, n: int, k: int
) -> None:
    _rank_kernel[(rows,)](keys, lengths, values, indices, n, k, BLOCK=512)
