"""Right, and not the exercise: torch computes the offsets on the host."""

import torch


def _offsets(index: torch.Tensor, shape: torch.Tensor, stride: torch.Tensor) -> torch.Tensor:
    rest, offset = index, torch.zeros_like(index)
    for mode in range(len(shape)):
        offset = offset + (rest if mode == len(shape) - 1 else rest % shape[mode]) * stride[mode]
        rest = rest // shape[mode]
    return offset


def layout_offsets(
    index: torch.Tensor, shape: torch.Tensor, stride: torch.Tensor, out: torch.Tensor, modes: int, n: int
) -> None:
    out.copy_(_offsets(index, shape, stride))


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
    out.copy_(_offsets(_offsets(index, b_shape, b_stride), a_shape, a_stride))


def swizzled_offsets(offset: torch.Tensor, rule: torch.Tensor, out: torch.Tensor, n: int) -> None:
    bits, base, shift = rule.tolist()
    out.copy_(offset ^ ((offset >> shift) & (((1 << bits) - 1) << base)))


def fragment_offsets(lane: torch.Tensor, value: torch.Tensor, operand: torch.Tensor, out: torch.Tensor, n: int) -> None:
    which, row_stride = operand.tolist()
    group, pair, second = lane // 4, 2 * (lane % 4) + value % 2, 8 * (value // 2 % 2)
    row = pair + second if which == 1 else group + second
    column = (pair + 8 * (value // 4), group, pair)[which]
    out.copy_(row * row_stride + column)


def bank_passes(access: torch.Tensor, access_bytes: torch.Tensor, passes: torch.Tensor, warps: int) -> None:
    unit_bytes = max(int(access_bytes), 4)
    places = 128 // unit_bytes
    unit = (access * access_bytes // unit_bytes).reshape(warps, -1, places).sort(dim=-1).values
    fresh = torch.ones_like(unit)
    fresh[..., 1:] = unit[..., 1:] != unit[..., :-1]
    wanted = torch.zeros_like(unit).scatter_add_(-1, (unit % places).long(), fresh)
    passes.copy_(wanted.amax(-1).sum(-1))


def tmem_addresses(row: torch.Tensor, column: torch.Tensor, tile: torch.Tensor, out: torch.Tensor, n: int) -> None:
    rows, first, bits = tile.tolist()
    lane = row if rows == 128 else row // 16 * 32 + row % 16
    out.copy_(lane * 65536 + first + column * bits // 32)
