"""Handouts, write-ups and comments as HTML, made in a process of its own (`server.apart`) and kept there for the next.

Text that takes too long stands as it was written, and says so: nobody can see from outside what Markdown costs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from markupsafe import Markup

from server.apart.asking import APART, GivenUpError
from server.http.templates import visible
from server.written import markdown

DRAWN_S = 0.5
"""Of processor time; 254 kB of prose take 0.23 s, 25 kB with 100 formulas 0.04 s (two cores, 2026-11-27)."""
HANDED_OUT_S = 5.0
"""For what a course hands out itself."""
_PLAIN = Markup(
    '<p class="hint">This text takes too long to format; here it is unformatted.</p>\n'
    '<pre class="writeup__text" tabindex="0">{}</pre>\n'
)


def handout_html(text: str) -> Markup:
    """A handout as HTML; without its title, a first heading of the first level, because the page has one."""
    return _html(text, _handout)


def markdown_html(text: str) -> Markup:
    """The same for what anybody may have written."""
    return _html(text, _written)


@lru_cache(128)
def _handout(text: str) -> Markup:
    """Kept here too: what students write must not push out what every page of a rung needs."""
    return _drawn(text, HANDED_OUT_S)


def _written(text: str) -> Markup:
    return _drawn(text, DRAWN_S)


def _drawn(text: str, seconds: float) -> Markup:
    return Markup(APART.ask(markdown.html_of, text, seconds=seconds))  # noqa: S704  # the renderer escapes


def _html(text: str, drawn: Callable[[str], Markup]) -> Markup:
    try:
        return drawn(text)
    except GivenUpError:
        return _PLAIN.format(visible(text))
