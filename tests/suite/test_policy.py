"""What is allowed to be skipped, to be unsure and to cost: each rule is shown what it allows and what it does not."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from tests.suite import policy
from tests.suite.policy import AllowedSkip, Quarantined

NO_GPU = AllowedSkip("sees no GPU", "no GPU here", most=2, in_ci=True)
NO_DOCKER = AllowedSkip("no docker", "no Docker here", most=5)
SINCE = Quarantined("tests/x.py::test_x", dt.date(2026, 11, 1), "seen once")


def test_a_skip_needs_a_reason_that_is_allowed_and_a_number_that_is_not_used_up() -> None:
    skips = ["torch sees no GPU"] * 3 + ["no docker daemon", "because"]
    explained, unknown = policy.counted(skips, (NO_GPU, NO_DOCKER), in_ci=False)
    assert explained == {"no GPU here": 2, "no Docker here": 1}
    assert unknown == ["torch sees no GPU", "because"]


def test_in_ci_only_what_ci_cannot_have_may_be_missing() -> None:
    explained, unknown = policy.counted(["torch sees no GPU", "no docker daemon"], (NO_GPU, NO_DOCKER), in_ci=True)
    assert explained == {"no GPU here": 1}
    assert unknown == ["no docker daemon"]


def test_nothing_allows_a_test_that_was_not_begun() -> None:
    assert policy.counted([policy.NO_TIME], policy.allowed_skips(), in_ci=False)[1] == [policy.NO_TIME]


def test_quarantine_ends_ten_days_after_its_date() -> None:
    assert policy.broken_quarantine([SINCE], dt.date(2026, 11, 11)) == []
    assert "tests/x.py::test_x" in policy.broken_quarantine([SINCE], dt.date(2026, 11, 12))[0]


def test_quarantine_holds_five_at_most() -> None:
    assert policy.broken_quarantine([SINCE] * 5, SINCE.since) == []
    assert policy.broken_quarantine([SINCE] * 6, SINCE.since) == ["6 tests are in it, and 5 may be"]


def test_a_folder_may_cost_its_budget_and_a_half_by_the_speed_of_the_machine() -> None:
    assert policy.over_budget({"tests/a": 299.0}, {"tests/a": 100.0}, speed=2.0) == []
    assert policy.over_budget({"tests/a": 301.0}, {"tests/a": 100.0}, speed=2.0)[0].startswith("tests/a: 301 s")


def test_a_folder_without_a_budget_is_over_it() -> None:
    assert policy.over_budget({"tests/new": 1.0}, {}, speed=1.0)


def test_the_files_can_be_read_and_every_folder_with_tests_has_a_budget() -> None:
    assert policy.allowed_skips()
    assert len(policy.quarantine()) <= policy.MOST_QUARANTINED
    tests = Path(policy.ROOT, "tests")
    folders = {f"tests/{path.relative_to(tests).parts[0]}" for path in tests.rglob("test_*.py")}
    assert folders - {"tests/hostile/passed"} == set(policy.budgets())
