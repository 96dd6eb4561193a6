"""Vector add in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch

BLOCK_SIZE = 1024


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    # On a GPU the programs of the grid run side by side; a loop over them says what each of them does.
    # Your part: one program is enough for 1024 elements only.
    for program in range(1):
        # The mask: the last block ends where the vectors end.
        block = slice(program * BLOCK_SIZE, min((program + 1) * BLOCK_SIZE, n))
        # Your part: y has to be added.
        out[block] = x[block]
