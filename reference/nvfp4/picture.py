"""Print the picture of the handout: where the scales of a tile of 128 rows and 4 blocks lie.

python reference/nvfp4/picture.py
"""

from __future__ import annotations

import sys

BLOCKS, LINE = 4, 16


def main() -> None:
    """Print 16 bytes of the tile a line: the rows whose four scales they hold, from the left."""
    lines = ["bytes        row, its blocks 0 to 3 one after the other"]
    for first in (0, 16, 32, None, 480, 496):
        if first is None:
            lines.append("  ...")
            continue
        rows = [_row(place) for place in range(first, first + LINE, BLOCKS)]
        cells = "".join(f"| row {row:<8}" for row in rows)
        lines.append(f"{first:3} to {first + LINE - 1:3}   {cells}|")
    sys.stdout.write("\n".join(lines) + "\n")


def _row(place: int) -> int:
    """The row of the scale at this place of a tile: what is not the block turned round."""
    return place // LINE + 32 * (place // BLOCKS % 4)


if __name__ == "__main__":
    main()
