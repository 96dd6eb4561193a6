"""Layout lab in plain PyTorch, to read beside the starter: the same six functions, and as wrong."""

import torch


def layout_offsets(
    index: torch.Tensor, shape: torch.Tensor, stride: torch.Tensor, out: torch.Tensor, modes: int, n: int
) -> None:
    for i in range(n):
        # Your part: cut the index into coordinates, and add up coordinate times stride.
        out[i] = index[i]


def composed_offsets(
    index: torch.Tensor,
    a_shape: torch.Tensor,
    a_stride: torch.Tensor,
    b_shape: torch.Tensor,
    b_stride: torch.Tensor,
    out: torch.Tensor,
    a_modes: int,
    b_modes: int,
    n: int,
) -> None:
    for i in range(n):
        # Your part: two layouts, one after the other.
        out[i] = index[i]


def swizzled_offsets(offset: torch.Tensor, rule: torch.Tensor, out: torch.Tensor, n: int) -> None:
    bits, base, shift = rule.tolist()
    for i in range(n):
        # Your part: some bits change by others.
        out[i] = offset[i]


def fragment_offsets(
    lane: torch.Tensor, value: torch.Tensor, operand: torch.Tensor, out: torch.Tensor, n: int
) -> None:
    which, row_stride = operand.tolist()
    for i in range(n):
        # Your part: the row and the column.
        out[i] = lane[i] * row_stride + value[i]


def bank_passes(access: torch.Tensor, access_bytes: torch.Tensor, passes: torch.Tensor, warps: int) -> None:
    for warp in range(warps):
        # Your part: how often is the busiest bank asked, group by group?
        passes[warp] = 1


def tmem_addresses(row: torch.Tensor, column: torch.Tensor, tile: torch.Tensor, out: torch.Tensor, n: int) -> None:
    rows, first, bits = tile.tolist()
    for i in range(n):
        # Your part: the lane, then the column.
        out[i] = row[i] + column[i]
