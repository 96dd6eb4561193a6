"""The picture of the handout: where results lie that follow x, and those that follow its shape. Staff only.

    python reference/custom_op/picture.py

Its lines stand in the handout as they are printed here.
"""

from __future__ import annotations

import torch

ROWS, COLS = 3, 4


def lines() -> list[str]:
    """One line for each order of x, under a headline."""
    orders = {
        "row by row": torch.empty(ROWS, COLS),
        "column by column": torch.empty(COLS, ROWS).t(),
        "part of longer rows": torch.empty(ROWS, COLS + 3)[:, :COLS],
        "one row, expanded": torch.empty(1, COLS).expand(ROWS, COLS),
    }
    found = [f"{'x of 3 x 4':22}{'strides of x':>14}{'empty_like(x)':>16}{'x.new_empty(x.shape)':>24}"]
    for name, x in orders.items():
        like, new = torch.empty_like(x), x.new_empty(x.shape)
        found.append(f"{name:22}{x.stride()!s:>14}{like.stride()!s:>16}{new.stride()!s:>24}")
    return found


if __name__ == "__main__":
    print("\n".join(lines()))  # noqa: T201
