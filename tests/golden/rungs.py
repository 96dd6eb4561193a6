"""The assignments of this repository."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from types import ModuleType

from autograder.assignment import slugs

ROOT = Path(__file__).resolve().parents[2]
ASSIGNMENTS = ROOT / "assignments"
REFERENCE = ROOT / "reference"
SLUGS = slugs(ASSIGNMENTS)


def folders(slug: str) -> tuple[Path, Path]:
    """The public folder of an assignment and the staff's."""
    return ASSIGNMENTS / slug, REFERENCE / slug


@functools.cache
def facts(slug: str) -> ModuleType:
    """What the staff's `facts.py` says of a rung: its arithmetic step by step, an honest answer, sizes to draw."""
    path = REFERENCE / slug / "facts.py"
    spec = importlib.util.spec_from_file_location(f"facts_of_{slug}", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
