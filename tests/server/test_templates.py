"""The template environment: what a page showed is let go when it is made, and nobody else's page is touched by that."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment

from server.http.templates import Templates

KEPT = "{% macro bold(text) %}<b>{{ text }}</b>{% endmacro %}"
OWN = "{% macro own() %}{{ shown.name }}{% endmacro %}"
PAGE = """{% extends "base" %}{% import "kept" as kept %}{% import "own" as own with context %}
{% macro here() %}{{ shown.name }}{% endmacro %}
{% block main %}{{ kept.bold(shown.name) }} {{ own.own() }} {{ here() }}{{ wait() }} {{ own.own() }}{% endblock %}"""


class Shown:
    """Something that a page shows."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def templates(tmp_path: Path) -> Templates:
    folder = tmp_path / "templates"
    folder.mkdir()
    (tmp_path / "static").mkdir()
    base = "<p>{% block main %}{% endblock %}</p>"
    for name, text in {"kept": KEPT, "own": OWN, "page": PAGE, "base": base}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return Templates(tmp_path, filters={}, names={})


@pytest.fixture
def no_collection() -> Iterator[None]:
    """What is let go here, no garbage collector came for."""
    gc.disable()
    yield
    gc.enable()


def _nothing() -> str:
    return ""


@pytest.mark.usefixtures("no_collection")
def test_what_a_page_showed_is_let_go_with_it(templates: Templates) -> None:
    shown = Shown("one")
    gone = weakref.ref(shown)
    assert templates.render("page", {"shown": shown, "wait": _nothing}) == "<p><b>one</b> one one one</p>"
    del shown
    assert gone() is None


def test_what_jinja_keeps_of_a_page_serves_the_next(templates: Templates) -> None:
    for name in ("one", "two"):
        made = templates.render("page", {"shown": Shown(name), "wait": _nothing})
        assert made == f"<p><b>{name}</b> {name} {name} {name}</p>"


def test_a_page_that_is_made_meanwhile_keeps_what_it_shows(templates: Templates) -> None:
    begun, others_made = threading.Event(), threading.Event()
    made: list[str] = []

    def wait() -> str:
        begun.set()
        assert others_made.wait(30)
        return ""

    slow = threading.Thread(
        target=lambda: made.append(templates.render("page", {"shown": Shown("slow"), "wait": wait}))
    )
    slow.start()
    assert begun.wait(30)
    # Within the other's thread too: a page of which a part is made by itself.
    quick = templates.render("page", {"shown": Shown("quick"), "wait": lambda: templates.render("own", {}).strip()})
    others_made.set()
    slow.join(30)
    assert quick == "<p><b>quick</b> quick quick quick</p>"
    assert made == ["<p><b>slow</b> slow slow slow</p>"]


def test_a_page_that_fails_does_no_harm_to_the_next(templates: Templates) -> None:
    def wait() -> str:
        raise ValueError("before it was done")

    with pytest.raises(ValueError, match="before it was done"):
        templates.render("page", {"shown": Shown("one"), "wait": wait})
    assert templates.render("page", {"shown": Shown("two"), "wait": _nothing}) == "<p><b>two</b> two two two</p>"


def test_what_is_compiled_once_is_compiled_anew_where_its_text_has_changed(
    templates: Templates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []
    whole = Environment.compile
    monkeypatch.setattr(Environment, "compile", lambda *given, **more: compiled.append(1) or whole(*given, **more))

    def base(made: Templates) -> str:
        return made.render("base", {})

    assert base(templates) == "<p></p>"
    assert base(Templates(tmp_path, filters={}, names={})) == "<p></p>"
    assert len(compiled) == 1
    (tmp_path / "templates" / "base").write_text("<p>{% block main %}new{% endblock %}</p>", encoding="utf-8")
    assert base(Templates(tmp_path, filters={}, names={})) == "<p>new</p>"
    assert len(compiled) == 2
