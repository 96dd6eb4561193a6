"""Source code as HTML: coloured by classes (the style sheet has both themes), every line a target with its number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from pygments.token import Text, _TokenType

from server.apart.asking import GivenUpError
from server.lexing import apart
from server.written.spans import span, spans

MAX_COLOURED_CHARS = 100_000
"""Longer sources are shown plain: colouring takes time that the reader would wait for."""
LEXED_S = 1.0
"""So are those that take longer, of processor time: some would take years."""
MAX_LINE_CHARS = 2_000
MAX_LINES = 5_000


@dataclass(frozen=True)
class Line:
    """One line of a listing, from 1."""

    number: int
    html: Markup


@dataclass(frozen=True)
class Listing:
    """A source to show; `left_out` lines at its end are not in it."""

    lines: tuple[Line, ...]
    left_out: int


def highlight(code: str, language: str) -> Markup:
    """Code as spans, without numbers; plain where the language is not known."""
    return spans(_tokens(code, language))


def listing(source: str, language: str) -> Listing:
    """Source as numbered lines; very long lines are cut and say so."""
    rows = source_lines(source.expandtabs(4))
    shown = "\n".join(_cut(row) for row in rows[:MAX_LINES])
    lines = (Line(number, html) for number, html in enumerate(_lines(shown, language), 1))
    return Listing(tuple(lines)[: min(len(rows), MAX_LINES)], max(0, len(rows) - MAX_LINES))


def source_lines(source: str) -> list[str]:
    """Lines as Python and a compiler count them: other separators of Unicode end none."""
    rows = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return rows[:-1] if len(rows) > 1 and not rows[-1] else rows


def _cut(row: str) -> str:
    left = len(row) - MAX_LINE_CHARS
    return row if left <= 0 else f"{row[:MAX_LINE_CHARS]} … {left:,} more characters"


def _lines(code: str, language: str) -> Iterator[Markup]:
    """One piece of HTML per line: a token that spans lines is closed and opened again."""
    line: list[Markup] = []
    for kind, value in _tokens(code, language):
        first, *rest = value.split("\n")
        line.append(span(kind, first))
        for part in rest:
            yield Markup("").join(line)
            line = [span(kind, part)]
    yield Markup("").join(line)


def _tokens(code: str, language: str) -> Sequence[tuple[_TokenType, str]]:
    plain = [(Text, code)]
    if len(code) > MAX_COLOURED_CHARS or not (code and language):
        return plain
    try:
        return apart.tokens(code, language, seconds=LEXED_S)
    except GivenUpError:
        return plain
