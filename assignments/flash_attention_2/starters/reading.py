"""Attention in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch

BLOCK_M, BLOCK_N = 64, 64


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
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
    # One program for each tile of rows of each head.
    for program in range(batch * q_heads):
        sequence, head = divmod(program, q_heads)
        # A group of query heads shares a key head.
        kv_head = head // (q_heads // kv_heads)
        for first in range(0, q_len, BLOCK_M):
            rows = slice(first, min(first + BLOCK_M, q_len))
            # Your part: this looks at the first block of keys only, and lets every row see all of it. Walk over all
            # blocks; keep the largest score and the sum of each row, and rescale what you have when the largest score
            # grows. Then `causal`.
            keys = slice(0, min(BLOCK_N, kv_len))
            of_q, of_k = q[sequence, head, rows].float(), k[sequence, kv_head, keys].float()
            scores = of_q @ of_k.T * scale
            largest = scores.amax(dim=1)
            p = torch.exp(scores - largest[:, None])
            total = p.sum(dim=1)
            # Tensor cores take factors of the inputs' type: p is rounded to it, and only the sums are float32.
            weighted = p.to(v.dtype).float() @ v[sequence, kv_head, keys].float()

            lse[sequence, head, rows] = largest + torch.log(total)
            out[sequence, head, rows] = (weighted / total[:, None]).to(out.dtype)
