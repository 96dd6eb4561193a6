"""Print the picture of the handout: five tokens, two choices each, four experts, tiles of two rows.

python reference/fused_moe/picture.py
"""

from __future__ import annotations

import sys

CHOSEN = ((3, 0), (0, 2), (0, 3), (3, 0), (0, 2))
EXPERTS, TOP, ROWS = 4, 2, 2


def main() -> None:
    """Print each token's choices, the pairs in the order of experts, the tiles, and where a token's rows come back."""
    flat = [expert for choices in CHOSEN for expert in choices]
    order = [pair for expert in range(EXPERTS) for pair, theirs in enumerate(flat) if theirs == expert]
    counts = [flat.count(expert) for expert in range(EXPERTS)]
    tiles = [-(-count // ROWS) for count in counts]
    most = min(len(flat), EXPERTS) + (len(flat) - min(len(flat), EXPERTS)) // ROWS
    lines = [
        _row("token", [str(pair // TOP) for pair in range(len(flat))]),
        _row("pair", [str(pair) for pair in range(len(flat))]),
        _row("its expert", [str(expert) for expert in flat]),
        "",
        _row("expert", [str(expert) for expert in range(EXPERTS)]),
        _row("its rows", [str(count) for count in counts]),
        _row("its tiles of 2", [str(count) for count in tiles]),
        _row("tiles up to it", [str(sum(tiles[: expert + 1])) for expert in range(EXPERTS)]),
        "",
        _row("row", [str(row) for row in range(len(order))]),
        _row("of pair", [str(pair) for pair in order]),
        _row("loads token", [str(pair // TOP) for pair in order]),
        _row("weights of expert", [str(flat[pair]) for pair in order]),
        _row("in tile", [str(tile) for tile in _tiles(counts)]),
        "",
        f"at most {most} tiles are launched; {sum(tiles)} have rows",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _tiles(counts: list[int]) -> list[int]:
    """For each row its tile."""
    found, first = [], 0
    for count in counts:
        found += [first + row // ROWS for row in range(count)]
        first += -(-count // ROWS)
    return found


def _row(title: str, numbers: list[str]) -> str:
    return f"{title:20}" + "".join(f"{number:>4}" for number in numbers)


if __name__ == "__main__":
    main()
