"""What students read of recorded profiles says the same everywhere, and the quiz asks for numbers that are in it."""

from __future__ import annotations

import json
import runpy
from typing import Any

import pytest

from autograder.quiz import load_quiz
from tests.golden.rungs import ASSIGNMENTS, REFERENCE, folders

SLUG = "profile_repair"
RECORDED = ASSIGNMENTS / SLUG / "recorded"


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return runpy.run_path(str(REFERENCE / SLUG / "record.py"))


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    return dict(json.loads((RECORDED / "profiles.json").read_text(encoding="utf-8")))


def test_the_quiz_asks_for_numbers_of_the_recorded_profiles(record: dict[str, Any], tables: dict[str, Any]) -> None:
    keys = {key.question: key for key in load_quiz(*folders(SLUG)).keys if not key.options}
    found = record["answers"](tables)
    assert set(found) == set(keys)
    for name, key in keys.items():
        assert abs(found[name] - key.value) <= key.tolerance, f"{name}: {found[name]}"


def test_every_given_kernel_has_its_profile_as_text(record: dict[str, Any], tables: dict[str, Any]) -> None:
    texts = record["texts"](tables)
    assert set(texts) == {f"{path.stem}.txt" for path in (ASSIGNMENTS / SLUG / "given").iterdir()}
    for name, text in texts.items():
        assert (RECORDED / name).read_text(encoding="utf-8") == text


def test_the_handout_shows_what_was_recorded() -> None:
    drawn = runpy.run_path(str(REFERENCE / SLUG / "picture.py"))["recorded"]().strip("\n")
    assert f"```text\n{drawn}\n```" in (ASSIGNMENTS / SLUG / "README.md").read_text(encoding="utf-8")


def test_the_trace_of_the_layer_has_its_parts(tables: dict[str, Any]) -> None:
    events = json.loads((RECORDED / "layer_trace.json").read_text(encoding="utf-8"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    parts = {span["name"]: (span["ts"], span["ts"] + span["dur"]) for span in spans if span["cat"] == "part"}
    assert set(parts) == set(tables["layer"]["parts"])
    for name, (begin, end) in parts.items():
        theirs = [span for span in spans if span["cat"] not in {"part", "host"} and begin - 1e-3 <= span["ts"] < end]
        assert len(theirs) == tables["layer"]["parts"][name]["kernels"]
