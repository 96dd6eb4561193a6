"""The picture of the handout: in which bank each 16-byte piece of a tile begins, plain and swizzled. Staff only.

    python reference/layout_lab/picture.py

A row is 64 elements of 16 bits, 128 bytes, eight pieces. Its lines stand in the handout as they are printed here, and
`tests/golden/test_layouts.py` compares them.
"""

from __future__ import annotations

ROWS, PIECES, WORDS = 8, 8, 4


def lines() -> list[str]:
    """One line a row of the tile, under a headline."""
    head = f"{'piece':>9}" + "".join(f"{piece:>4}" for piece in range(PIECES))
    found = [f"{head}   {'':9}" + "".join(f"{piece:>4}" for piece in range(PIECES))]
    for row in range(ROWS):
        plain = "".join(f"{WORDS * piece:>4}" for piece in range(PIECES))
        moved = "".join(f"{WORDS * (piece ^ row):>4}" for piece in range(PIECES))
        found.append(f"{f'row {row}':>9}{plain}   {f'row {row}':>9}{moved}")
    return found


if __name__ == "__main__":
    print("\n".join(lines()))  # noqa: T201
