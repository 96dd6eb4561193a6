"""A source without what people change first: comments and layout are gone, a name of one's own is one letter.

Names that others chose stay: after a dot (`tl.load`), keywords, built-in types. Otherwise all kernels would look alike.
A definition, a use and a parameter become the same letter, so that renaming changes nothing; a string becomes another,
numbers stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pygments.token import Comment, Literal, Name, Text, _TokenType

from server.lexing import lexers
from server.lexing.lexers import Token

_OTHERS = (Name.Builtin, Name.Builtin.Pseudo, Name.Exception, Name.Decorator)
"""Names that the language, or CUDA, gives."""
NAME, STRING = "V", "S"


@dataclass(frozen=True)
class Reduced:
    """What is left of a source; `lines[i]` is the line, from 1, that character `i` of `text` comes from."""

    text: str
    lines: tuple[int, ...]
    total_lines: int


def reduce(source: str, language: str, lex: Callable[[str, str], Iterable[Token]] = lexers.tokens) -> Reduced:
    """Reduce a source of this language, read by `lex`."""
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    text: list[str] = []
    lines: list[int] = []
    for piece, line in _pieces(lex(source, language)):
        text.append(piece)
        lines.extend([line] * len(piece))
    return Reduced("".join(text), tuple(lines), source.count("\n") + 1)


def _pieces(tokens: Iterable[Token]) -> Iterator[tuple[str, int]]:
    """What is left of each token, and its line."""
    line, after_dot, in_string = 1, False, False
    for kind, value in tokens:
        piece = _reduced(kind, value, after_dot=after_dot)
        is_string = kind in Literal.String
        # A string is several tokens: its prefix, its quotes, its text, what is escaped in it.
        if is_string:
            piece = "" if in_string else STRING
        if piece:
            yield piece, line
        if value.strip() and kind not in Comment:
            after_dot, in_string = value.endswith((".", "->")) and not is_string, is_string
        line += value.count("\n")


def _reduced(kind: _TokenType, value: str, *, after_dot: bool) -> str:
    if kind in Comment.Preproc or kind in Comment.PreprocFile:
        return "".join(value.split())
    if kind in Comment or kind in Text or not value.strip():
        return ""
    if kind in Name and not after_dot and not any(kind in other for other in _OTHERS):
        return NAME
    return "".join(value.split())
