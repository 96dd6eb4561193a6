"""The section of the handout that helps with what went wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape

from autograder.contract import Pattern, Verdict
from server.pages.markdown import handout_html

_HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)<a class="anchor"', re.DOTALL)
_TAGS = re.compile(r"<[^>]+>")
IDEA, HARDWARE, NAIVE, WRITE, HINTS, MISTAKES = (
    "the-idea", "what-the-hardware-does", "the-naive-way", "what-to-write", "hints", "common-mistakes",
)  # fmt: skip
"""The sections that every handout has (docs/authoring.md)."""
BY_PATTERN: Mapping[Pattern, str] = {
    Pattern.everywhere: IDEA,
    Pattern.untouched: WRITE,
    Pattern.all_nan: MISTAKES,
    Pattern.tail: MISTAKES,
    Pattern.rows_from: MISTAKES,
    Pattern.columns_from: MISTAKES,
    Pattern.every_kth_row: WRITE,
    Pattern.every_kth_column: WRITE,
    Pattern.rows: HINTS,
    Pattern.columns: HINTS,
    Pattern.tile: MISTAKES,
    Pattern.scattered: IDEA,
}
BY_VERDICT: Mapping[Verdict, str] = {
    Verdict.wrong_answer: MISTAKES,
    Verdict.compile_error: WRITE,
    Verdict.runtime_error: MISTAKES,
    Verdict.illegal_access: MISTAKES,
    Verdict.time_limit: NAIVE,
    Verdict.out_of_memory: HARDWARE,
    Verdict.output_limit: WRITE,
    Verdict.nondeterministic: MISTAKES,
    Verdict.rule_violation: WRITE,
}


@dataclass(frozen=True)
class Section:
    """A section of the handout: its anchor and its title as text."""

    anchor: str
    title: str


def section_for(handout: str, verdict: Verdict | None, pattern: Pattern | None, *, named: str = "") -> Section | None:
    """Where to read on, as an author or what went wrong says; `None` where nothing did, or no such section is there."""
    wanted = named or (BY_PATTERN.get(pattern) if pattern else None)
    wanted = wanted or (BY_VERDICT.get(verdict) if verdict else None)
    return next((one for one in sections(handout) if one.anchor == wanted), None) if wanted else None


def sections(handout: str) -> list[Section]:
    """The handout's sections in order."""
    found = _HEADING.findall(str(handout_html(handout)))
    return [Section(anchor, unescape(_TAGS.sub("", title))) for anchor, title in found]
