"""Print the picture of the handout: one row and one column, quantised, multiplied, scaled back.

python reference/quantised_gemm/picture.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

ROW, COLUMN = (0.304, -1.270, 0.048, 0.637), (2.000, 0.513, -2.540, 1.109)
LARGEST = 127


def main() -> None:
    """Print both, what is left of them as integers, the exact sum, and what it stands for."""
    (row, a_scale), (column, b_scale) = _quantised(ROW), _quantised(COLUMN)
    total = sum(x * y for x, y in zip(row, column, strict=True))
    wanted = sum(x * y for x, y in zip(ROW, COLUMN, strict=True))
    answer = total * a_scale * b_scale
    lines = (
        f"row of A   {_numbers(ROW, '7.3f')}   largest {max(map(abs, ROW)):.2f}: a_scale = {a_scale:.2f}",
        f"  as int8  {_numbers(row, '7d')}",
        f"column     {_numbers(COLUMN, '7.3f')}   largest {max(map(abs, COLUMN)):.2f}: b_scale = {b_scale:.2f}",
        f"  as int8  {_numbers(column, '7d')}",
        f"sum        {' + '.join(f'{x * y}' for x, y in zip(row, column, strict=True))} = {total}, exactly, in int32",
        f"out        {total} · {a_scale:.2f} · {b_scale:.2f} = {answer:.4f}   (before rounding to int8: {wanted:.4f})",
    )
    sys.stdout.write("\n".join(lines) + "\n")


def _quantised(numbers: tuple[float, ...]) -> tuple[list[int], float]:
    scale = max(map(abs, numbers)) / LARGEST
    return [round(number / scale) for number in numbers], scale


def _numbers(numbers: Iterable[float], form: str) -> str:
    return " ".join(format(number, form) for number in numbers)


if __name__ == "__main__":
    main()
