"""Points as people read them."""

from __future__ import annotations


def plain(value: float) -> str:
    """`8`, `7.5`, `8.25`."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
