"""Print the picture of the handout: a cache in pages as `problem.py` draws it, and the pieces of its sequences.

python reference/paged_attention/picture.py
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
SIZE = {
    "batch": 4, "q_len": 1, "q_heads": 1, "kv_heads": 1, "dim": 1, "page_size": 4, "pages": 24, "entries": 17,
    "window": 0,
}  # fmt: skip
PIECE, SEED = 16, 27


def main() -> None:
    """Draw one case, and print it: a letter for each key, a dot for each place without one."""
    spec = importlib.util.spec_from_file_location("problem", ROOT / "assignments" / "paged_attention" / "problem.py")
    if spec is None or spec.loader is None:
        raise SystemExit("there is no problem.py")
    problem = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(problem)
    generator = torch.Generator().manual_seed(SEED)
    inputs = problem.make_inputs(generator=generator, dtype=torch.float32, distribution="edges", **SIZE)
    indptr, indices, last = (inputs[name].tolist() for name in ("kv_indptr", "kv_indices", "last_page_len"))
    pages = ["...."] * SIZE["pages"]
    lengths = []
    for b, letter in enumerate("ABCD"):
        mine = indices[indptr[b] : indptr[b + 1]]
        for page in mine:
            filled = last[b] if page == mine[-1] else SIZE["page_size"]
            pages[page] = letter * filled + "." * (SIZE["page_size"] - filled)
        lengths.append(max(0, (len(mine) - 1) * SIZE["page_size"] + last[b]) if mine else 0)
    lines = [f"kv_indptr      {indptr}", f"kv_indices     {indices}", f"last_page_len  {last}", ""]
    rows = range(0, SIZE["pages"], 8)
    lines += [f"page {row:2}  " + " ".join(f"[{page}]" for page in pages[row : row + 8]) for row in rows]
    lines.append("")
    number = 0
    for letter, length in zip("ABCD", lengths, strict=True):
        parts = [min(PIECE, length - start) for start in range(0, length, PIECE)]
        bars = " ".join(f"{number + i}:" + letter * part for i, part in enumerate(parts))
        lines.append(
            f"{letter} {length:3} keys  pieces {bars}" if parts else f"{letter}   0 keys  no piece: 0 and -inf"
        )
        number += len(parts)
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
