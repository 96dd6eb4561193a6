"""The template environment: everything is escaped, and no text can rearrange or hide the page around it.

Besides escaping, every text that a template prints passes `visible`: control characters and those that change the
direction of writing are printed as their code points. So a student's error message, file name or handle cannot forge
what stands beside it. Where the exact characters matter (the text in the editor), a template says `verbatim`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from markupsafe import Markup, escape

_KEPT = "\n\t"
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_CANDIDATES = re.compile(r"[^\n\t\x20-\x7e\xa0-\xac\xae-\u036f]")
"""What may have to be replaced: a quick look, so that plain text costs one scan."""


def visible(text: str) -> str:
    """`text` with each control, direction or other unseen character as its code point, such as `⟨U+202E⟩`."""
    return _CANDIDATES.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    character = found[0]
    if unicodedata.category(character) not in _UNSEEN_CATEGORIES:
        return character
    return f"⟨U+{ord(character):04X}⟩"


def verbatim(text: str) -> Markup:
    """`text` escaped for HTML and otherwise exactly as it is."""
    return Markup(escape(text))  # noqa: S704  # escaped in the same breath


def clip(text: str, most: int = 200) -> str:
    """`text`, or its beginning and how much was left out."""
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}… ({left:,} more characters)"


def _finalize(value: object) -> object:
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value)


class Assets:
    """The bundled files: `asset("app.js")` is the address of the build that is there now."""

    def __init__(self, static: Path) -> None:
        self._manifest = static / "dist" / "manifest.json"

    @cached_property
    def _names(self) -> Mapping[str, str]:
        # Without a build the pages are plain HTML; they read and their forms work.
        return json.loads(self._manifest.read_text("utf-8")) if self._manifest.is_file() else {}

    def __call__(self, name: str) -> str | None:
        """The address, `None` where nothing was built."""
        file = self._names.get(name)
        return f"/static/{file}" if file else None


_OF_RENDER = "of_render"
"""Stands in the scopes of what is being rendered, and not in those of modules that Jinja keeps."""


class _Scope(Context):
    """Where a template finds its names.

    A macro knows the scope that it was made in, and the scope the macro: what a page shows would stay until the garbage
    collector comes, and be most of what it has to look at. So the scopes of a page are emptied when it is made.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if _OF_RENDER in self.parent:
            _scopes.get().append(self)

    def let_go(self) -> None:
        """Forget everything."""
        self.vars.clear()
        self.parent.clear()


_scopes: ContextVar[list[_Scope]] = ContextVar("scopes")


class _Compiled(BytecodeCache):
    """What templates became, for all applications of this process; a template that has changed is compiled anew."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give what is kept, if it is of the same text."""
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it."""
        self._kept[bucket.key] = bucket.bytecode_to_string()


_compiled = _Compiled()


class Templates:
    """The templates of one web folder."""

    def __init__(self, web: Path, *, filters: Mapping[str, Callable[..., Any]], names: Mapping[str, Any]) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(web / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            bytecode_cache=_compiled,
        )
        self._environment.context_class = _Scope
        self._environment.filters.update({"clip": clip, "verbatim": verbatim, "visible": visible, **filters})
        self._environment.globals.update({"asset": Assets(web / "static"), **names})

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """The template as text."""
        template, scopes = self._environment.get_template(name), list[_Scope]()
        token = _scopes.set(scopes)
        try:
            return template.render(context, **{_OF_RENDER: True})
        finally:
            _scopes.reset(token)
            for scope in scopes:
                scope.let_go()
