"""What a terminal shows of a profile."""

from __future__ import annotations

import dataclasses
import re

from rich.console import Console

from autograder import codec
from autograder.profile_changes import changes
from client.show import show_changes, show_profile, show_sanitized
from tests.doubles.profiles import PROFILE
from tests.doubles.sanitized import SANITIZED


def shown(found, show=show_profile):
    out = Console(width=200, record=True, file=None, quiet=False, highlight=False)
    with out.capture() as captured:
        show(out, found)
    return captured.get()


def test_the_kernels_their_limits_and_what_is_missing():
    text = shown(codec.to_json(PROFILE))
    for said in ("add_one_kernel<float>", "93%", "98 %", "23 %", "90 %", "global_memory", "934"):
        assert said in text, said
    assert "no l1 hit percent: This version of the tool" in text


def test_a_profile_without_counters_says_why_and_prints_no_codes():
    found = codec.to_json(PROFILE) | {"kernels": [], "missing": {"counters": "refused \x1b[2J here"}, "tool": ""}
    text = shown(found)
    assert "no counters: refused" in text
    assert "\x1b" not in text


def test_what_changed_in_sentences_and_side_by_side_or_why_not():
    figures = {**PROFILE.kernels[0].figures, "registers": 12.0}
    before = dataclasses.replace(PROFILE, kernels=(dataclasses.replace(PROFILE.kernels[0], figures=figures),))
    made = changes(PROFILE, before, "your last one")
    rows = [{**codec.to_json(row), "change": row.change} for row in made.rows]
    offered = [{"key": key, "title": key.title(), "profiled": True} for key in ("last", "best")]
    found = codec.to_json(made) | {"against": "last", "offered": offered, "why_not": "", "figures": rows}
    text = shown(found, show_changes)
    for said in ("against: Last", made.headline, "• It uses 2.0 times as many registers", "--against takes best too"):
        assert said in text, said
    assert re.search(r"Registers per thread +24 +12 +2\.0×", text)
    none = {"headline": "", "sentences": [], "notes": [], "figures": []}
    text = shown(found | none | {"why_not": "other \x1b[2J case"}, show_changes)
    assert "other" in text
    assert "\x1b" not in text


def test_what_the_sanitizer_found_names_lines_and_says_what_was_not_looked_at():
    found = dataclasses.replace(SANITIZED, missing={"initcheck": "no\x1b[2J time"}, left_out=3)
    text = shown(codec.to_json(found), show_sanitized)
    assert "line 1: Invalid __global__ write of size 4 bytes in add<float>" in text
    assert "24 times; first thread (3,0,0) in block (1,0,0)" in text
    assert "line 1 and 2: Write and read without a barrier between them" in text
    assert "found nothing: synccheck" in text
    assert "and 3 more" in text
    assert "\x1b[2J" not in text
