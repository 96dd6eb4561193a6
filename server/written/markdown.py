"""Markdown with maths and code, as HTML that needs no script.

Raw HTML is text, except `<details>` and `<summary>` without attributes. Maths becomes MathML; of what the converter
makes, only MathML's own elements and harmless attributes are kept. Nothing carries a style of its own, which the
content security policy would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import escape
from mdit_py_plugins.dollarmath import dollarmath_plugin

from server.lexing.lexers import tokens as lexed
from server.written.spans import spans

_FOLD = re.compile(r"(</?(?:details|summary)>)")
_MATHML_TAGS = frozenset(
    {"math", "mrow", "mi", "mo", "mn", "mtext", "ms", "mspace", "mfrac", "msqrt", "mroot", "menclose", "mphantom"}
    | {"msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts", "mprescripts", "none"}
    | {"mtable", "mtr", "mtd", "mstyle", "mpadded"}
)
_MATHML_ATTRIBUTES = frozenset(
    {"xmlns", "display", "displaystyle", "scriptlevel", "mathvariant", "linethickness", "notation"}
    | {"stretchy", "fence", "separator", "form", "accent", "accentunder", "largeop", "movablelimits", "symmetric"}
    | {"lspace", "rspace", "minsize", "maxsize", "width", "height", "depth", "voffset"}
    | {"columnalign", "rowalign", "columnspacing", "rowspacing", "columnlines", "rowlines"}
)
_ALIGNED = {"text-align:right": "number", "text-align:center": "centred"}


def html_of(text: str) -> str:
    """As HTML; without its title, a first heading of the first level, because the page has one."""
    parser = MarkdownIt("commonmark", {"html": True, "typographer": False}, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    parser.use(dollarmath_plugin, allow_space=True, double_inline=True, renderer=_maths)
    for rule in ("math_block", "math_inline_double"):
        parser.add_render_rule(rule, _formula)
    tokens = parser.parse(text)
    if tokens and tokens[0].type == "heading_open" and tokens[0].tag == "h1":
        tokens = tokens[3:]
    _number_headings(tokens)
    _tidy_tables(tokens)
    return str(parser.renderer.render(tokens, parser.options, {}))


def _maths(latex: str, options: Mapping[str, Any]) -> str:
    display = "block" if options["display_mode"] else "inline"
    try:
        return _clean_mathml(convert(latex, display=display))
    except Exception:  # noqa: BLE001  # the converter raises whatever its parser met; a handout then shows the formula's text
        return f"<code>{escape(latex)}</code>"


def _formula(_renderer: object, tokens: Sequence[Token], idx: int, *_: Any) -> str:
    """A formula on lines of its own, in a region that scrolls: on a phone it is wider than the page."""
    inner = _maths(tokens[idx].content, {"display_mode": True})
    return f'<div class="maths" tabindex="0" role="group" aria-label="Formula">{inner}</div>\n'


def _number_headings(tokens: Sequence[Token]) -> None:
    """Give every heading an id that links can name; levels begin below the page's own."""
    seen: dict[str, int] = {}
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type != "heading_open":
            continue
        slug = re.sub(r"[^a-z0-9]+", "-", inline.content.lower()).strip("-") or "section"
        seen[slug] = seen.get(slug, 0) + 1
        opening.attrSet("id", slug if seen[slug] == 1 else f"{slug}-{seen[slug]}")
        closing.meta["anchor"] = opening.attrGet("id")
        if opening.tag == "h1":
            opening.tag = closing.tag = "h2"


def _tidy_tables(tokens: Sequence[Token]) -> None:
    """Align by class, because a style would be refused; an empty corner heads nothing and is a plain cell."""
    for token, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.type == "th_open" and not inline.content:
            token.tag = closing.tag = "td"
        if token.type in {"th_open", "td_open"}:
            style = str(token.attrs.pop("style", ""))
            if style in _ALIGNED:
                token.attrSet("class", _ALIGNED[style])


class _Renderer(RendererHTML):
    """CommonMark's renderer with our own code blocks, headings and raw HTML."""

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """A code block, coloured if its language is known."""
        token = tokens[idx]
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        return _scrolling(f"<code>{spans(lexed(token.content, language))}</code>")

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """An indented code block."""
        return _scrolling(f"<code>{escape(tokens[idx].content)}</code>")

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """The end of a heading, with a link to itself."""
        anchor = escape(tokens[idx].meta.get("anchor", ""))
        link = f'<a class="anchor" href="#{anchor}" aria-label="Link to this section">#</a>'
        return f"{link if anchor else ''}</{tokens[idx].tag}>\n"

    def table_open(self, *_: Any) -> str:
        """A table in a region that scrolls."""
        return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>\n'

    def table_close(self, *_: Any) -> str:
        """The end of a table and its region."""
        return "</table></div>\n"

    def html_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Raw HTML: foldable sections pass, everything else is text."""
        return _only_folds(tokens[idx].content)

    def html_inline(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """As `html_block`, inside a line."""
        return _only_folds(tokens[idx].content)


def _scrolling(code: str) -> str:
    return f'<pre tabindex="0">{code}</pre>\n'


def _only_folds(html: str) -> str:
    return "".join(part if _FOLD.fullmatch(part) else str(escape(part)) for part in _FOLD.split(html))


class _MathMLFilter(HTMLParser):
    """Keeps MathML; any other element becomes text, any other attribute is dropped."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element of MathML."""
        if tag not in _MATHML_TAGS:
            self.handle_data(self.get_starttag_text() or "")
            return
        kept = "".join(f' {name}="{escape(value or "")}"' for name, value in attrs if name in _MATHML_ATTRIBUTES)
        self.out.append(f"<{tag}{kept}>")

    def handle_endtag(self, tag: str) -> None:
        """Keep the end of an element of MathML."""
        if tag in _MATHML_TAGS:
            self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Text is escaped again."""
        self.out.append(str(escape(data)))


def _clean_mathml(html: str) -> str:
    cleaner = _MathMLFilter()
    cleaner.feed(html)
    cleaner.close()
    return "".join(cleaner.out)
