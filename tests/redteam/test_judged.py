"""The tables *By the judge* are what signed reports say, and nobody's memory of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autograder.signing import SignatureError
from scripts.judged import ROOT, brought_up, newest

Reports = list[dict[str, Any]]
NOTES = sorted(ROOT.glob("reference/*/notes.md"))


@pytest.fixture(scope="module")
def reports() -> Reports:
    """Those of this repository."""
    return newest(ROOT)


@pytest.mark.parametrize("notes", NOTES, ids=lambda path: path.parent.name)
def test_a_rungs_table_is_what_the_reports_say(notes: Path, reports: Reports) -> None:
    text = notes.read_text(encoding="utf-8")
    assert brought_up(text, notes.parent.name, reports) == text
    if not any(rung["slug"] == notes.parent.name for report in reports for rung in report["rungs"]):
        assert "## By the judge" not in text, "no report has graded this rung"
        return
    changed = text.replace("| Triton, H200, 20", "| Triton, H200, 19")
    assert brought_up(changed, notes.parent.name, reports) == text != changed


def test_a_report_that_was_changed_makes_no_table(tmp_path: Path) -> None:
    report = json.loads((ROOT / "docs/data/nodes-2026-11-25/h200-docker-cuda.json").read_text(encoding="utf-8"))
    report["rungs"][0]["cases"][0]["time_us"][0] /= 2
    path = tmp_path / "docs/data/nodes-2026-11-25/changed.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(report), encoding="utf-8")
    with pytest.raises(SignatureError):
        newest(tmp_path)


def test_notes_without_a_table_are_told_of(reports: Reports) -> None:
    with pytest.raises(ValueError, match="softmax: the notes have no table"):
        brought_up("# 3. Softmax\n", "softmax", reports)
