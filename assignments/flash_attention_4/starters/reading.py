"""FlashAttention 4 in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import math

import torch

BLOCK_M, BLOCK_N = 64, 64


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    row_max: torch.Tensor,
    batch: int,
    q_heads: int,
    kv_heads: int,
    q_len: int,
    kv_len: int,
    dim: int,
    causal: int,
    scale: float,
    q_row_stride: int,
    k_row_stride: int,
    v_row_stride: int,
    out_row_stride: int,
) -> None:
    # A torch tensor knows its strides, so they are not used here. A kernel has only pointers, and needs them.
    # One program for each tile of rows of each head; a group of query heads shares a key head.
    for program in range(batch * q_heads):
        sequence, head = divmod(program, q_heads)
        kv_head = head // (q_heads // kv_heads)
        for first in range(0, q_len, BLOCK_M):
            rows = slice(first, min(first + BLOCK_M, q_len))
            where = sequence, head, rows
            out[where], lse[where], row_max[where] = _tile(
                q[where], k[sequence, kv_head], v[sequence, kv_head],
                first + kv_len - q_len if causal else kv_len - 1, scale * math.log2(math.e),
            )  # fmt: skip


def _tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, last_of_first: int, scale: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # `last_of_first` is the last key that the first row sees; each further row sees one more, and none beyond the end.
    count, kv_len = q.shape[0], k.shape[0]
    last = (torch.arange(count, device=q.device) + last_of_first).clamp(max=kv_len - 1)
    # Blocks of keys that no row of the tile sees are left out.
    end = min(max(last_of_first + count, 0), kv_len)
    largest = torch.full((count,), -math.inf, device=q.device)
    total = torch.zeros(count, device=q.device)
    weighted = torch.zeros(q.shape, device=q.device)
    for start in range(0, end, BLOCK_N):
        keys = torch.arange(start, min(start + BLOCK_N, kv_len), device=q.device)
        seen = keys[None, :] <= last[:, None]
        scores = torch.where(seen, q.float() @ k[keys].float().T * scale, -math.inf)
        # Your part: the maximum of the first block is kept forever, and nothing is ever rescaled. Move it for rows
        # whose scores are too far above it, and only then rescale. A kernel then takes exponentials off the special
        # function unit, which torch does not show.
        if start == 0:
            largest = scores.amax(dim=1)
        p = torch.exp2(scores - torch.where(largest == -math.inf, 0.0, largest)[:, None])
        total += p.sum(dim=1)
        # Tensor cores take factors of the inputs' type: p is rounded to it, and only the sums are float32.
        weighted += p.to(v.dtype).float() @ v[keys].float()
    seen_any = total > 0
    lse = torch.where(seen_any, (largest + torch.log2(total)) * math.log(2), -math.inf)
    return (weighted * torch.where(seen_any, 1 / total, 0.0)[:, None]).to(q.dtype), lse, largest
