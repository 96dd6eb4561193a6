"""Put something of ours around a function of triton's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def replace(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put what `make` makes of a function in its place; it fails loudly if the name is gone."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))
