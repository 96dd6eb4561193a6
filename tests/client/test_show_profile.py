"""What a terminal shows of a profile."""

from __future__ import annotations

from rich.console import Console

from autograder import codec
from client.show import show_profile
from tests.doubles.profiles import PROFILE


def shown(profile):
    out = Console(width=200, record=True, file=None, quiet=False, highlight=False)
    with out.capture() as captured:
        show_profile(out, profile)
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
