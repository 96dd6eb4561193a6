"""Print the picture of the handout: a row that is sorted by two digits, in two tiles, as the three kernels do it.

python reference/topk_sort/picture.py
"""

from __future__ import annotations

import sys
from itertools import accumulate

KEYS = (31, 11, 11, 1, 20, 33, 0, 13, 32, 30, 21, 22)
BASE, TILE = 4, 6


def main() -> None:
    """Print what each pass counts, where each tile's keys of a digit begin, and what it leaves."""
    row = list(zip(KEYS, "abcdefghijkl", strict=True))
    lines = _row(row)
    for name, weight in (("last", 1), ("first", 10)):
        digits = [key // weight % 10 for key, _ in row]
        tiles = [digits[start : start + TILE] for start in range(0, len(digits), TILE)]
        counts = [tile.count(digit) for digit in range(BASE) for tile in tiles]
        places = [0, *accumulate(counts)]
        lines += ["", f"by the {name + ' digit':20}" + "".join(f"{f'digit {digit}':>10}" for digit in range(BASE))]
        for title, table in (("keys in tile", counts), ("first place of tile", places)):
            for tile in range(len(tiles)):
                of_tile = table[tile : BASE * len(tiles) : len(tiles)]
                lines.append(f"{f'{title} {tile}':27}" + "".join(f"{of_digit:10}" for of_digit in of_tile))
        row = [one for _, one in sorted(zip(digits, row, strict=True), key=lambda pair: pair[0])]
        lines += _row(row)
    sys.stdout.write("\n".join(lines) + "\n")


def _row(row: list[tuple[int, str]]) -> list[str]:
    """A row's keys, and below them the letters that they had in the beginning."""
    shown = [f"{key:02}" for key, _ in row], [f" {letter}" for _, letter in row]
    return [
        f"{title:8}" + " | ".join("  ".join(texts[start : start + TILE]) for start in range(0, len(texts), TILE))
        for title, texts in zip(("key", "index"), shown, strict=True)
    ]


if __name__ == "__main__":
    main()
