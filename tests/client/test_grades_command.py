"""`ladder grades` against the real server."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

from click.testing import Result
from rich.console import Console

from client.commands.grades import show_grades

Ladder = Callable[..., Result]


def test_grades_are_shown_with_the_late_days_that_are_left(alice: str, ladder: Ladder) -> None:
    done = ladder("grades")
    assert done.exit_code == 0, done.output
    assert "vector_add" in done.output
    assert "late days left" in done.output
    found = json.loads(ladder("grades", "--json").output)
    assert found["late_days"]["used"] == 0
    assert {"vector_add"} <= {grade["assignment"] for grade in found["grades"]}


def test_a_line_says_what_lateness_cost_and_who_set_it() -> None:
    grade = {
        "assignment": "sa\x1b[31mxpy", "points": 40.0, "possible": 100.0, "late_days": 1, "late_penalty": 2.5,
        "override_points": None, "final": False,
    }  # fmt: skip
    by_staff = {**grade, "override_points": 50.0, "points": 50.0, "final": True, "late_days": 0}
    out = Console(file=io.StringIO(), width=120)
    show_grades(out, {"grades": [grade, by_staff], "points": 90, "possible": 200, "late_days": {"left": 4}})
    text = out.file.getvalue()
    assert "\x1b[31m" not in text
    assert "1 late day, -2.50" in text
    assert "final, set by staff" in text
    assert "90.00 of 200 points; 4 late days left." in text
