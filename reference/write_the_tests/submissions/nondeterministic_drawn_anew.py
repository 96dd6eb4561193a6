"""Tests that are drawn anew at every call, without a seed: what they find is another thing each time."""

import torch


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    row, column = torch.arange(tests)[:, None], torch.arange(width)[None, :]
    drawn = 4 * torch.rand(tests, width) - 2
    kinds = torch.stack(
        [
            drawn + 400,
            drawn,
            drawn - 400,
            column * 3.0 + 0 * drawn,
            column * 0.3 + 0 * drawn,
            torch.where(column < width - 3, -torch.inf, drawn),
            0 * drawn - 1.7,
            8 * drawn,
            torch.where(column == row % width, -600.0, drawn),
        ]
    )
    kind = row[:, 0] % len(kinds)
    count = torch.where(kind == 5, width, width - row[:, 0] // len(kinds) % 3).clamp(min=1)
    used = column < count[:, None]
    rows = kinds[kind, row[:, 0]]
    x.copy_(torch.where(used, rows, 0.0))
    length.copy_(count)
    right.copy_(torch.softmax(rows.masked_fill(~used, -torch.inf).double(), dim=1))
    allowed.copy_(right * 8e-5 + 3e-38)
