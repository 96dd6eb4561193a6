"""What tests and `reference/measure.py` have to know of nvfp4. Staff only."""

from __future__ import annotations

import torch

SIZES = (
    {"rows": 1, "blocks": 1},
    {"rows": 3, "blocks": 2},
    {"rows": 130, "blocks": 5},
    {"rows": 257, "blocks": 33},
)
COUNTED = frozenset({"amax", "addcmul"})
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def oracle(x: torch.Tensor, global_scale: torch.Tensor) -> dict[str, torch.Tensor]:
    """The exercise's arithmetic, step by step; `COUNTED` names the steps that are operations.

    The product with the factor is an `addcmul`, to tell it from products that find places. Small types are rounded by
    looking for the nearest of their numbers in a table, so nothing is shared with `problem.py`.
    """
    rows, blocks = x.shape[0], x.shape[1] // 16
    numbers = _e4m3_numbers(x.device)
    wide = x.double().view(rows, blocks, 16)
    peak = torch.amax(wide.abs(), dim=2)
    target = _rn(_rn(peak.mul_(float(global_scale))).div_(6))
    codes = _nearest(target, numbers)
    scale = numbers[codes]
    factor = torch.where(scale > 0, _rn(torch.full_like(scale, float(global_scale)).div_(scale)), 0.0)
    y = _rn(torch.addcmul(torch.zeros((), dtype=torch.float64, device=x.device), wide, factor[:, :, None]))
    nibbles = _nearest(y.abs(), torch.tensor(VALUES, dtype=torch.float64, device=x.device)).add_(
        torch.signbit(x).view_as(y).long(), alpha=8
    )
    packed = nibbles[:, :, 0::2] + nibbles[:, :, 1::2].bitwise_left_shift(4)
    return {"packed": packed.to(torch.uint8).flatten(1), "scales": _placed(codes.to(torch.uint8))}


def honest(x: torch.Tensor, global_scale: torch.Tensor) -> dict[str, torch.Tensor]:
    """The answer in float32 as torch computes it, with its own conversion to E4M3, which has to pass."""
    rows, blocks = x.shape[0], x.shape[1] // 16
    wide = x.float().view(rows, blocks, 16)
    scale = (wide.abs().amax(dim=2) * global_scale / 6).clamp(max=448).to(torch.float8_e4m3fn)
    factor = torch.where(scale.float() > 0, global_scale / scale.float(), 0.0)
    y = (wide * factor[:, :, None]).abs().double()
    # Whole numbers are rounded with ties to even; the least of the three lines is the code.
    code = torch.minimum((2 * y).round(), torch.minimum((y + 2).round(), (y / 2 + 4).round())).clamp(max=7)
    nibbles = code.to(torch.uint8) + 8 * torch.signbit(wide).to(torch.uint8)
    packed = nibbles[:, :, 0::2] + 16 * nibbles[:, :, 1::2]
    return {"packed": packed.flatten(1), "scales": _placed(scale.view(torch.uint8))}


def _rn(value: torch.Tensor) -> torch.Tensor:
    return value.float().double()


def _e4m3_numbers(where: torch.device) -> torch.Tensor:
    """The numbers of E4M3 from 0 to 448, at their codes."""
    code = torch.arange(127, dtype=torch.float64, device=where)
    exponent, eighths = (code / 8).floor(), code % 8
    return torch.where(exponent > 0, (8 + eighths) * 2 ** (exponent - 10), eighths * 2.0**-9)


def _nearest(value: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """The places in `numbers`, which rise, of those nearest to `value`; half-way the even place."""
    ties = (numbers[1:] + numbers[:-1]) / 2
    above, not_below = torch.bucketize(value, ties), torch.bucketize(value, ties, right=True)
    return torch.where(above % 2 == 0, above, not_below)


def _placed(codes: torch.Tensor) -> torch.Tensor:
    """Codes (rows, blocks) written one by one to the places of the formula in the handout."""
    rows, blocks = codes.shape
    down, across = -(-rows // 128), -(-blocks // 4)
    out = torch.zeros(down * across * 512, dtype=torch.uint8, device=codes.device)
    r = torch.arange(rows, device=codes.device)[:, None]
    k = torch.arange(blocks, device=codes.device)[None, :]
    tile = r.div(128, rounding_mode="floor") * across + k.div(4, rounding_mode="floor")
    inside = r % 32 * 16 + (r % 128).div(32, rounding_mode="floor") * 4 + k % 4
    out[tile * 512 + inside] = codes
    return out.view(down, across, 512)
