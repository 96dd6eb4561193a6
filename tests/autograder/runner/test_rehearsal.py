"""A batch as the runner lives it, without a judge: what comes before t0, and what becomes of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from autograder.protocol import Arm
from autograder.runner.session import Session

NONCE = 7


class Line:
    """Reveals a batch when its runner has been awake."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def send(self, name: str, fields: dict[str, Any]) -> None:
        self.said.append((name, fields))

    def receive(self, meanwhile: Any) -> tuple[dict[str, Any], list[int]]:
        meanwhile()
        return {"is": "Reveal", "nonce": NONCE, "drawn": []}, []


def revealed(awake: Any, batch: Any) -> tuple[list[tuple[str, dict[str, Any]]], list[tuple[int, int]]]:
    """What a runner says of a batch, and what it writes into its word."""
    line, finished = Line(), []
    session = Session(line, SimpleNamespace(awake=awake, wrappers=()))  # type: ignore[arg-type]
    words = SimpleNamespace(allowed=lambda: NONCE, finish=lambda nonce, ns: finished.append((nonce, ns)))
    prepared = SimpleNamespace(calls=lambda _inputs, _drawn: iter(()), close=lambda: None)
    entry = SimpleNamespace(batch=batch)
    session._revealed(entry, words, Arm(NONCE, 1, (), {}, 1), prepared)  # type: ignore[arg-type]
    return line.said, finished


def no_memory(*_: object) -> int:
    raise MemoryError("CUDA out of memory")


def test_a_rehearsal_that_fails_costs_nothing() -> None:
    said, finished = revealed(no_memory, lambda _: 5000)
    assert [name for name, _ in said] == ["Armed", "Returned", "Released"]
    assert finished == [(NONCE, 5000)]


def test_whoever_has_no_memory_for_the_call_either_is_told_of_it() -> None:
    said, finished = revealed(no_memory, no_memory)
    assert [name for name, _ in said] == ["Armed", "Raised", "Released"]
    assert said[1][1]["kind"] == "MemoryError"
    assert said[1][1]["nonce"] == NONCE
    assert finished == []


def test_who_ends_a_rehearsal_ends_the_process() -> None:
    """It is for the judge to say how it ended."""

    def ended() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        revealed(ended, lambda _: 5000)
