"""Handouts, write-ups and comments as HTML, made in a process of its own (`server.apart`) and kept there for the next.

Text that takes too long stands as it was written, and says so: nobody can see from outside what Markdown costs.
"""

from __future__ import annotations

from markupsafe import Markup

from server.apart.asking import APART, GivenUpError
from server.http.templates import visible
from server.written import markdown

DRAWN_S = 0.5
"""Of processor time; a handout of 30 kB with 100 formulas takes about a third of it."""
HANDED_OUT_S = 5.0
"""For what a course hands out itself."""
_PLAIN = Markup(
    '<p class="hint">This text takes too long to be laid out; here it is as it was written.</p>\n'
    '<pre class="writeup__text" tabindex="0">{}</pre>\n'
)


def handout_html(text: str) -> Markup:
    """A handout as HTML; without its title, a first heading of the first level, because the page has one."""
    return _html(text, HANDED_OUT_S)


def markdown_html(text: str) -> Markup:
    """The same for what anybody may have written."""
    return _html(text, DRAWN_S)


def _html(text: str, seconds: float) -> Markup:
    try:
        return Markup(APART.ask(markdown.html_of, text, seconds=seconds))  # noqa: S704  # the renderer escapes
    except GivenUpError:
        return _PLAIN.format(visible(text))
