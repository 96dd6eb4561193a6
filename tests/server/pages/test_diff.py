"""Two versions side by side: what changed, what it did to the times, and whose versions they are."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.contract import Lane
from server.pages.diff import CONTEXT, Diff, compare
from tests.doubles.world import passed

LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "c = 3", ""]), max_size=30)


def diff(old: str, new: str) -> Diff:
    return compare(old, new, "triton", "triton")


def shown(found: Diff, side: str) -> list[str]:
    lines = [getattr(row, side) for hunk in found.hunks for row in hunk.rows]
    return [html.unescape(re.sub(r"<[^>]+>", "", str(line.html))) for line in lines if line]


def test_a_changed_line_stands_beside_what_it_was() -> None:
    found = diff("a = 1\nb = 2\nc = 3\n", "a = 1\nb = 20\nc = 3\n")
    assert [(row.changed, row.old.number if row.old else 0, row.new.number if row.new else 0)
            for row in found.hunks[0].rows] == [(False, 1, 1), (True, 2, 2), (False, 3, 3)]  # fmt: skip
    assert (found.added, found.removed, found.left_out) == (1, 1, 0)


def test_equal_lines_far_from_a_change_are_counted_not_shown() -> None:
    old = [f"x{number}" for number in range(30)]
    new = [*old[:15], "here", *old[15:]]
    found = diff("\n".join(old), "\n".join(new))
    assert [hunk.skipped for hunk in found.hunks] == [15 - CONTEXT]
    assert found.left_out == 15 - CONTEXT
    assert len(found.hunks[0].rows) == 2 * CONTEXT + 1


def test_equal_sources_have_no_change() -> None:
    assert diff("a\nb", "a\r\nb\n").hunks == ()


@given(old=LINES, new=LINES)
def test_nothing_is_lost_between_the_hunks(old: list[str], new: list[str]) -> None:
    found = diff("\n".join(old), "\n".join(new))
    equal = sum(hunk.skipped for hunk in found.hunks) + found.left_out
    assert len(shown(found, "old")) + equal == max(1, len(old) - (len(old) > 1 and not old[-1]))
    assert len(shown(found, "new")) + equal == max(1, len(new) - (len(new) > 1 and not new[-1]))


@pytest.fixture
def database_url(sqlite_url):
    return sqlite_url


def graded(world, ratio, person="Alice"):
    return world.grade(passed(ratio), person, node="forge", lane=Lane.h200)


def test_the_page_says_which_edit_made_it_faster(world, visit):
    first, second = graded(world, 2.0), graded(world, 1.0)
    status, text, _ = visit("Alice", f"/submissions/{second}/diff")
    assert status == 200
    assert "Submission 1 → Submission 2" in text
    assert "2.00 times faster" in text
    assert "VERSION = 1" in text
    assert "VERSION = 2" in text
    assert "2.00 times slower" in visit("Alice", f"/submissions/{first}/diff?from={second}")[1]


def test_a_difference_within_the_intervals_is_none(world, visit):
    graded(world, 1.0)
    second = graded(world, 1.01)
    assert "no difference beyond the intervals" in visit("Alice", f"/submissions/{second}/diff")[1]


def test_the_first_version_has_nothing_to_be_held_against(world, visit):
    first = graded(world, 1.0)
    assert "no earlier version" in visit("Alice", f"/submissions/{first}/diff")[1]


def test_staff_see_it_and_another_student_does_not_learn_of_it(world, visit):
    graded(world, 2.0)
    second = graded(world, 1.0)
    assert visit("Tom", f"/submissions/{second}/diff")[0] == 200
    assert visit("Bob", f"/submissions/{second}/diff")[0] == 404


def test_nobody_reads_another_students_kernel_through_their_own(world, visit):
    theirs = world.submit("Bob")
    own = graded(world, 1.0)
    assert visit("Alice", f"/submissions/{own}/diff?from={theirs}")[0] == 404
    assert visit("Alice", f"/submissions/{own}/diff?from=nothing")[0] == 404
    assert visit("Tom", f"/submissions/{own}/diff?from={theirs}")[0] == 422


def test_two_long_sources_with_much_in_common_are_compared() -> None:
    lines = [f"x = {number % 100}" for number in range(6000)]
    found = diff("\n".join(lines), "\n".join(reversed(lines)))
    assert found.cut
    assert found.hunks
