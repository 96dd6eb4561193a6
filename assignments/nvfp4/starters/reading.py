"""NVFP4 in plain PyTorch, to read beside the starter: program by program, and wrong in the same places."""

import torch


def nvfp4_quantise(
    x: torch.Tensor,
    packed: torch.Tensor,
    scales: torch.Tensor,
    rows: int,
    blocks: int,
    x_row_stride: int,
    packed_row_stride: int,
    global_scale: float,
) -> None:
    # A torch tensor knows its strides, so they are not used here. A kernel has only pointers, and needs them.
    places = scales.view(-1)
    # One program for each row.
    for row in range(rows):
        values = x[row].float().view(blocks, 16)
        # Your part: the scale of every block, from its largest value and global_scale. 0x38 is the code of 1.
        code = torch.full((blocks,), 0x38, dtype=torch.uint8)
        factor = torch.full((blocks,), global_scale)
        # Your part: the nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the sign. These are whole numbers, cut off.
        y = values * factor[:, None]
        nibble = y.abs().clamp(max=7.0).to(torch.uint8)
        packed[row] = (nibble[:, 0::2] | (nibble[:, 1::2] << 4)).view(-1)
        # Your part: the place of a scale in its tile, and zeros where no block is.
        places[row * blocks : (row + 1) * blocks] = code
