"""`ladder quiz` against the real server, with the repository's own questions."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result

from client import show
from client.commands import quiz

Ladder = Callable[..., Result]


def test_questions_are_shown_without_their_answers(alice: str, ladder: Ladder) -> None:
    done = ladder("quiz", "show", "vector_add")
    assert done.exit_code == 0
    assert ladder("quiz", "vector_add").output == done.output
    slip = ladder("quiz", "anwser", "vector_add", "blocks", "3")
    assert (slip.exit_code, "answer" in slip.output) == (2, True)
    assert "0 of 5 points" in done.output
    assert "1. blocks" in done.output
    assert "size_chosen: You choose" in done.output
    assert "    HADD2 R4, R4, R8" in done.output
    assert "Right:" not in done.output


def test_an_answer_is_marked_and_explained_once_it_is_right(alice: str, ladder: Ladder) -> None:
    wrong = ladder("quiz", "answer", "vector_add", "blocks", "390")
    assert wrong.exit_code == 1
    assert "try 1: 390 blocks: wrong" in wrong.output
    assert "2 tries left" in wrong.output
    assert "triton.cdiv" not in wrong.output
    right = ladder("quiz", "answer", "vector_add", "blocks", "391", "--json")
    assert right.exit_code == 0
    assert json.loads(right.output)["key"]["value"] == 391
    assert "triton.cdiv" in ladder("quiz", "show", "vector_add").output


def test_options_are_named(alice: str, ladder: Ladder) -> None:
    done = ladder("quiz", "answer", "softmax", "occupancy", "hides", "registers", "bandwidth")
    assert done.exit_code == 0
    assert "right" in done.output


def test_what_is_no_answer_is_refused_and_uses_no_try(alice: str, ladder: Ladder) -> None:
    for question, answer, words in (
        ("blocks", "many", "Write a number"),
        ("profile", "nothing", "answered with options"),
        ("none", "1", "has no question 'none'"),
    ):
        done = ladder("quiz", "answer", "vector_add", question, answer)
        assert done.exit_code == 2
        assert words in done.output
    assert "tries left" in ladder("quiz", "show", "vector_add").output
    assert ": wrong" not in ladder("quiz", "show", "vector_add").output


def test_no_control_character_of_a_question_reaches_the_terminal() -> None:
    asked = {
        "number": 1, "name": "n", "standing": "open", "points": 0, "maximum": 1, "text": "\x1b[31mred", "code": "\x07",
        "options": {"a": "\x9b2J"}, "answers": [], "tries_left": 1, "key": None, "kind": "choice", "unit": "",
    }  # fmt: skip
    out = show.console()
    with out.capture() as caught:
        quiz._show_question(out, asked)
    assert not {"\x1b", "\x07", "\x9b"} & set(caught.get())
