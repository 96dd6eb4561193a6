"""What tests have to know of the rung that asks for tests. Staff only."""

from __future__ import annotations

import torch

COUNTED: frozenset[str] = frozenset()
"""Tests are no floating-point work."""
SIZES = ({"tests": 41, "width": 301}, {"tests": 48, "width": 512})
PATTERNS = 10


def honest(room: torch.Tensor, **_: torch.Tensor) -> dict[str, torch.Tensor]:
    """Tests in plain torch: ten patterns, in full length first, then one shorter, then in any length."""
    tests, width = room.tolist()
    row, column = torch.arange(tests)[:, None], torch.arange(width)[None, :]
    uneven = (row * 31 + column * 17) % 127 * 0.0631 - 4
    patterns = torch.stack(
        [
            uneven,
            uneven + 300,
            uneven - 300,
            (0.25 * column).expand_as(uneven),
            (2.0 * column).expand_as(uneven),
            torch.where(column == row % width, -500.0, uneven),
            torch.where(4 * column < 3 * width, -torch.inf, uneven),
            torch.full_like(uneven, -3.3),
            uneven - 2,
            5 * uneven,
        ]
    )
    x = patterns[row[:, 0] % PATTERNS, row[:, 0]].float()
    if width == 1:
        x = torch.full_like(x, 300.0)
    turn = row[:, 0] // PATTERNS
    length = torch.where(turn < 2, width - turn, width - turn * 13 % width).clamp(1, width)
    used = column < length[:, None]
    wide = x.double().masked_fill(~used, -torch.inf)
    # A row of which too little is used may have nothing but -inf.
    length = torch.where(wide.isfinite().any(1), length, 0)
    right = wide.softmax(1).nan_to_num(0.0)
    below = (wide.amax(1, keepdim=True) - wide).nan_to_num(0.0, posinf=0.0)
    allowed = right * (length[:, None] + below + 8) * 2.0**-23 + 2.0**-125
    return {
        "x": x.masked_fill(~used, 0.0),
        "length": length.int(),
        "right": right.float(),
        "allowed": allowed.float(),
    }


oracle = honest
