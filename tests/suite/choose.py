"""Which rows of a table of hostile files are in `make test`."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Protocol

import pytest


class Row(Protocol):
    """What the tables have in common."""

    @property
    def name(self) -> str: ...

    @property
    def threat(self) -> str: ...

    @property
    def verdict(self) -> str: ...


def first_of_each(rows: Sequence[Row]) -> set[str]:
    """The names of the first row of each class A to G, and of the first of each verdict."""
    chosen: set[str] = set()
    seen: set[str] = set()
    for row in rows:
        shows = {row.threat[0], row.verdict} - seen
        if shows and row.threat[0].isupper():
            chosen.add(row.name)
            seen |= shows
    return chosen


def each(rows: Iterable[Row], kept: Container[str] = ()) -> pytest.MarkDecorator:
    """A test of every row as `attack`; those that are `kept` are in `make test`."""
    marked = [pytest.param(row, id=row.name, marks=pytest.mark.quick if row.name in kept else ()) for row in rows]
    return pytest.mark.parametrize("attack", marked)
