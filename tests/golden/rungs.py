"""The assignments of this repository."""

from __future__ import annotations

from pathlib import Path

from autograder.assignment import slugs

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENTS = ROOT / "assignments"
REFERENCE = ROOT / "reference"
SLUGS = slugs(ASSIGNMENTS)


def folders(slug: str) -> tuple[Path, Path]:
    """The public folder of an assignment and the staff's."""
    return ASSIGNMENTS / slug, REFERENCE / slug
