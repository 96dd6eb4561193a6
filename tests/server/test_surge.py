"""The hours before a due date: who arrives, what staff are told of it, and what the real code makes of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from server.surge.arrivals import HOUR_S, HOURS, arrivals
from server.surge.plan import Expectation, Service, expectation

SCRIPT = Path(__file__).parents[2] / "scripts" / "surge.py"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_arrivals_have_the_counts_of_the_term(seed: int) -> None:
    found = arrivals(seed)
    assert len(found) == 1217
    assert sum(item.at_s > (HOURS - 1) * HOUR_S for item in found) == 916
    each = Counter(item.student for item in found)
    assert len(each) == 300
    assert Counter(each.values())[12] == 30
    assert {count for count in each.values() if count != 12} <= {3, 4}


def test_arrivals_come_in_order_before_the_due_date_and_grow() -> None:
    found = arrivals(5)
    assert all(one.at_s <= other.at_s for one, other in pairwise(found))
    assert found[0].at_s >= 0
    assert found[-1].at_s <= HOURS * HOUR_S
    thirds = Counter(int(item.at_s // HOUR_S) for item in found)
    assert thirds[0] < thirds[1] < thirds[2]


def test_the_same_seed_is_the_same_evening() -> None:
    assert arrivals(9) == arrivals(9)
    assert arrivals(9) != arrivals(10)


@pytest.mark.parametrize("students", [1, 2, 7, 33])
def test_small_courses_have_their_share(students: int) -> None:
    found = arrivals(1, students=students, per_student=3)
    assert len(found) == 3 * students
    assert {item.student for item in found} <= set(range(students))


def told(slots: int, seconds: float = 12.0, **given: float) -> Expectation:
    return expectation(students=300, slots=slots, service=Service([seconds]), **given)  # type: ignore[arg-type]


def test_more_slots_never_make_it_worse() -> None:
    longest = [told(slots).p95_s for slots in (1, 2, 4, 8)]
    assert longest == sorted(longest, reverse=True)
    assert longest[0] > 10 * longest[-1]


def test_nobody_waits_where_there_is_room_for_all() -> None:
    found = told(500)
    assert (found.p50_s, found.max_s) == pytest.approx((12.0, 12.0))
    assert found.drained_s <= 12.0


def test_it_keeps_one_place_per_student_so_that_no_wait_is_longer_than_one_round() -> None:
    # With one slot nobody has more than 299 others before them.
    assert told(1).max_s <= 301 * 12.0


def test_the_sentence_says_what_it_was_worked_out_from() -> None:
    text = told(1).sentence("H200")
    assert text.startswith("300 students × 4.1 × 12 s on 1 slot of the H200 lane: expect waits of up to ")
    assert "at the due date" in text
    assert told(0).sentence("H200").endswith("no node is in service, so nothing would be graded.")
    guess = expectation(students=10, slots=2, service=Service([5.0, 10.0], measured=False))
    assert "(a guess: nothing was graded yet) on 2 slots" in guess.sentence("CPU")


def test_what_is_measured_apart_costs_only_those_that_pass() -> None:
    service = Service([6.0], [10.0], passing=0.5)
    assert service.mean_s == 11.0


def test_a_course_without_students_has_no_evening() -> None:
    found = expectation(students=0, slots=1, service=Service([5.0]))
    assert (found.submissions, found.max_s, found.drained_s) == (0, 0.0, 0.0)
    assert found.sentence("CPU") == "No student is in the course yet, so nobody would wait on the CPU lane."


@cache
def replayed(*arguments: str) -> dict[str, list[tuple[str, int, dict[str, object]]]]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--json", *arguments], capture_output=True, text=True, check=False
    )
    # It checks itself that nothing is lost and that our order is no worse than first in, first out.
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.full("slow")
def test_through_the_real_code_nothing_is_lost_and_nobody_waits_for_ever() -> None:
    (_, _, fifo), (_, _, ours) = replayed("--sqlite")["gpu"]
    assert fifo["received"] == ours["received"] == 101
    assert fifo["unfinished"] == ours["unfinished"] == 0
    assert fifo["later_s"] == []
    assert len(ours["later_s"]) > 0
    assert len(ours["verdict_s"]) + len(ours["later_s"]) == 101
    # What was superseded is graded all the same: every job that first in, first out runs is run here too.
    assert ours["jobs_in_all"] == fifo["jobs_in_all"] == fifo["jobs"]
    assert ours["jobs"] < fifo["jobs"]
    assert ours["drained_s"] < fifo["drained_s"]


@pytest.mark.full("slow")
@pytest.mark.postgres
def test_the_same_evening_is_the_same_on_both_databases(postgres_url: str) -> None:
    assert replayed("--sqlite") == replayed()
