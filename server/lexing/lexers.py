"""Which lexer a language has, and what it makes of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from pygments.lexer import Lexer, default, include, inherit
from pygments.lexers import CppLexer, CudaLexer, PythonLexer, get_lexer_by_name
from pygments.token import Name, Text, _TokenType
from pygments.util import ClassNotFound

from autograder import languages

Token = tuple[_TokenType, str]

# Without the rules that look for a whole function, with comments at every place: each backslash at the end of a line in
# one doubles what they try. A name before a bracket is a function's instead.
_FUNCTION = (r"(?!\d)\w+(?=[ \t]{0,4}\()", Name.Function)
_TOKENS = {
    "root": [include("whitespace"), include("keywords"), include("types"), default("statement")],
    "statement": [include("whitespace"), include("keywords"), include("types"), _FUNCTION, inherit],
}


class Cpp(CppLexer):  # type: ignore[misc]
    """C++ without Pygments' rules for whole functions."""

    tokens = _TOKENS


class Cuda(CudaLexer):  # type: ignore[misc]
    """CUDA C++ without them."""

    tokens = _TOKENS


LEXERS: Mapping[str, type[Lexer]] = {alias: lexer for lexer in (PythonLexer, Cpp, Cuda) for alias in lexer.aliases}
"""Those that stand for Pygments' own, by its names for them."""


def tokens(code: str, language: str) -> Iterator[Token]:
    """Every character of the code, in order; all of it is one piece where the language is not known."""
    lexer = _lexer(language)
    if lexer is None:
        yield Text, code
    else:
        yield from lexer.get_tokens(code)


def _lexer(language: str) -> Lexer | None:
    options = {"stripnl": False, "ensurenl": False}
    record = languages.known(language)
    name = record.lexer if record else language
    if ":" in name and record:
        return cast("Lexer", languages.imported(name)(**options))
    if name in LEXERS:
        return LEXERS[name](**options)
    try:
        return get_lexer_by_name(name, **options) if name else None
    except ClassNotFound:
        return None


def named_tokens(code: str, language: str) -> list[tuple[str, str]]:
    """The same with the names of their kinds, which a process can tell another."""
    return [(str(kind), value) for kind, value in tokens(code, language)]
