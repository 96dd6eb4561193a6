"""Tokens as HTML: coloured by classes, of which the style sheet has both themes."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape
from pygments.token import STANDARD_TYPES, _TokenType

from server.http.templates import visible

_PLAIN = frozenset({"", "n", "p", "o", "w", "nn", "nv", "err", "x", "g"})
"""Classes that look like plain text: a span for each would only make the page longer."""

_BEGINNINGS = {name: Markup('<span class="{}">').format(name) for name in STANDARD_TYPES.values()}
_END = Markup("</span>")


def spans(tokens: Iterable[tuple[_TokenType, str]]) -> Markup:
    """All of them, one after the other."""
    return Markup("").join(span(kind, value) for kind, value in tokens)


def span(kind: _TokenType, value: str) -> Markup:
    """One token; it may hold the end of a line."""
    text = escape(visible(value))
    if not value:
        return text
    # A kind without a class of its own looks like its parent.
    name = STANDARD_TYPES.get(kind) or STANDARD_TYPES.get(kind.parent, "")
    return text if name in _PLAIN else _BEGINNINGS[name] + text + _END
