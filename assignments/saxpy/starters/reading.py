"""SAXPY in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch

BLOCK_SIZE = 1024
PROGRAMS = 8


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    # Your part: the factor is missing.
    # On a GPU the programs run side by side; a loop over them says what each of them does.
    for program in range(PROGRAMS):
        # Your part: a program that is done with this block goes on with the one a whole grid further on.
        block = slice(program * BLOCK_SIZE, min((program + 1) * BLOCK_SIZE, n))
        out[block] = (x[block].float() + y[block].float()).to(out.dtype)
