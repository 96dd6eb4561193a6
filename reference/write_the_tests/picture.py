"""The picture of the handout: which row refuses which mutant. Staff only.

    python reference/write_the_tests/picture.py

Every mutant works in blocks of 8, or has its fault in column 5. Rows have 64 elements; an answer may be off by 10^-4 of
itself, in the last line by 10^-3 in all.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import torch

PROBLEM = Path(__file__).parents[2] / "assignments" / "write_the_tests" / "problem.py"
WIDTH, AT, BLOCK = 64, 5, 8
SHOWN = {
    "no maximum": "no maximum",
    "from zero": "maximum begins at zero",
    "tail": "tail skipped",
    "zeros": "tail counted as zeros",
    "-inf": "block of minus infinity",
    "ties": "ties counted once",
    "column": "column left out",
    "half": "inputs in half precision",
}
"""Headings, and the faults that they stand for."""


def rows() -> dict[str, tuple[torch.Tensor, int, bool]]:
    """Inputs, how many of them are the test, and whether the tolerance is relative."""
    uneven = torch.arange(WIDTH) * 17 % 127 * 0.0631 - 4
    return {
        "-4 to 4": (uneven, WIDTH, True),
        "one shorter": (uneven, WIDTH - 1, True),
        "200 higher": (uneven + 200, WIDTH - 1, True),
        "200 lower": (uneven - 200, WIDTH - 1, True),
        "-inf first": (uneven.masked_fill(torch.arange(WIDTH) < WIDTH // 4, -torch.inf), WIDTH, True),
        "all equal": (torch.zeros(WIDTH), WIDTH, True),
        "flat 0.001": (uneven, WIDTH, False),
    }


def picture() -> str:
    """One line for each row, one column for each mutant; a dot where the row refuses the mutant."""
    problem = runpy.run_path(str(PROBLEM))
    kinds = list(problem["_FAULTS"])
    lines = [" " * 12 + "".join(f"{heading:>12}" for heading in SHOWN)]
    for name, (values, length, relative) in rows().items():
        used = (torch.arange(WIDTH) < length)[None, :]
        row = values.float()[None, :].masked_fill(~used, -torch.inf)
        right = torch.softmax(row.double(), dim=1)
        allowed = 1e-4 * right if relative else 1e-3
        found = ""
        for fault in SHOWN.values():
            answer = problem["mutant"](kinds.index(fault), AT, BLOCK)(row, used)
            found += f"{'●' if bool((used & ~((answer - right).abs() <= allowed)).any()) else '·':>12}"
        lines.append(f"{name:<12}{found}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{picture()}\n")
