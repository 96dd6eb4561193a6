"""CUTLASS's headers, of which CuTe is a part: where Python has installed them. Standard library only."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

EXTRA = "cutlass"
"""Of this package, by which pip installs them."""
PACKAGES = ("nvidia-cutlass>=4.2,<4.3",)
ABSENT = f"CUTLASS's headers are not installed on this node (kernel-ladder[{EXTRA}])"

_MODULE = "cutlass_library"


@cache
def folder() -> str:
    """What `<cute/tensor.hpp>` is looked for in; `""` where they are not installed. Nothing of theirs is imported."""
    spec = find_spec(_MODULE)
    found = [Path(place) / "source" / "include" for place in (spec and spec.submodule_search_locations) or ()]
    return next((str(place) for place in found if (place / "cute").is_dir()), "")


def flags(option: str) -> tuple[str, ...]:
    """By which a compiler finds them, nothing where they are not here."""
    return (option, folder()) if folder() else ()
