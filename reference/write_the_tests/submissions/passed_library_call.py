"""Right, and not the exercise: torch answers the tests on the host. It passes, and staff are shown that no kernel ran."""

import torch


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    generator = torch.Generator().manual_seed(31)
    row, column = torch.arange(tests)[:, None], torch.arange(width)[None, :]
    drawn = 4 * torch.rand(tests, width, generator=generator) - 2
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
