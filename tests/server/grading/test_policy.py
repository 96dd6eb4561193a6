"""The order of the queue, as tables that can be read, and what holds of every queue."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.grading.policy import (
    ANY,
    DUE_SOON,
    EVERY,
    HURRY,
    LATE_FOR,
    LINES,
    LONG,
    LOW,
    WINDOW,
    Claimed,
    Look,
    Queue,
    Running,
    Slot,
    Waiting,
    in_a_hurry,
    order,
)
from server.models import Work

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
SUBMISSION, MEASURING, RUN, PROFILE, REGRADE, SUPERSEDED, CONFIRM = LINES


def waits(number, line=SUBMISSION, *, user=None, course=1, ago_s=None, due_h=None, **changes):
    """One that waits; by default each is another person's, and a higher number came later."""
    return Waiting(
        id=number,
        user_id=number if user is None else user,
        course_id=course,
        line=line,
        place_at=NOW - timedelta(seconds=100 - number if ago_s is None else ago_s),
        due_at=None if due_h is None else NOW + timedelta(hours=due_h),
        **changes,
    )


def ids(look, slot=ANY):
    return [item.id for item in order(look, slot)]


def taken(look, many, slot=ANY):
    """What so many free slots get in one look, nothing ending between."""
    queue, found = Queue(look), []
    for _ in range(many):
        if (item := queue.next(slot)) is not None:
            queue.take(item)
            found.append(item)
    return found


# --- line ------------------------------------------------------------------------------------------------------------


def test_lines_go_in_their_order_while_nobodys_reserve_is_due():
    waiting = [waits(5 - index, line) for index, line in enumerate(LINES)]
    assert [item.line for item in order(Look(NOW, waiting))] == list(LINES)


@pytest.mark.parametrize("line", list(EVERY))
def test_a_line_is_next_once_all_other_claims_of_its_turn_went_elsewhere(line):
    waiting = [waits(1), waits(2, line)]
    not_yet = [Claimed(SUBMISSION, 1)] * (EVERY[line] - 2)
    assert ids(Look(NOW, waiting, not_yet)) == [1, 2]
    assert ids(Look(NOW, waiting, [*not_yet, Claimed(SUBMISSION, 1)])) == [2, 1]
    assert ids(Look(NOW, waiting, [*not_yet, Claimed(line, 1)])) == [1, 2]


def test_a_line_nobody_waits_in_gives_its_turn_away():
    assert ids(Look(NOW, [waits(1), waits(2)], [Claimed(SUBMISSION, 1)] * WINDOW)) == [1, 2]


def test_the_reserves_leave_a_third_to_submissions():
    assert sum(Fraction(1, every) for every in EVERY.values()) == Fraction(2, 3)


def test_with_everybody_waiting_each_line_has_its_share():
    waiting = [waits(index, line) for index, line in enumerate(LINES * 60)]
    had = [item.line for item in taken(Look(NOW, waiting, slots=1000), 120)]
    # Not quite 40, 20, 10 and 10: a turn that came late because two were due at once is not made up for.
    assert [had.count(line) for line in LINES] == [47, 37, 18, 0, 9, 9, 0]


def test_a_profile_waits_until_nobody_waits_for_a_grade_or_a_run():
    waiting = [waits(1, PROFILE), waits(2, RUN), waits(3, SUBMISSION), waits(4, REGRADE)]
    assert ids(Look(NOW, waiting, slots=10)) == [3, 2, 1, 4]


def test_what_is_to_be_confirmed_runs_only_when_nobody_else_waits():
    waiting = [waits(1, CONFIRM), *(waits(index, line) for index, line in enumerate(LINES[:-1], start=2))]
    assert ids(Look(NOW, waiting, [Claimed(SUBMISSION, 1)] * WINDOW, slots=10))[-1] == 1


def test_another_node_than_before_takes_what_has_to_avoid_one():
    item = dataclasses.replace(waits(1, MEASURING), avoid=7)
    look = Look(NOW, [item, waits(2, RUN)])
    assert ids(look, Slot(node=7)) == [2]
    assert ids(look, Slot(node=8)) == [1, 2]


def test_who_stands_behind_one_that_avoids_this_node_is_not_kept_from_it():
    look = Look(NOW, [dataclasses.replace(waits(1), avoid=7), waits(2), dataclasses.replace(waits(3), avoid=8)])
    assert ids(look, Slot(node=7)) == [2, 3]


@pytest.mark.parametrize(("slots", "low"), [(1, 1), (2, 1), (4, 3)])
def test_regrades_and_superseded_ones_leave_one_slot_of_several_free(slots, low):
    waiting = [waits(1, REGRADE), waits(2, SUPERSEDED), *(waits(index, REGRADE) for index in range(3, 9))]
    assert len(taken(Look(NOW, waiting, slots=slots), slots)) == low
    running = [Running(9, REGRADE)] * low
    assert taken(Look(NOW, waiting, running=running, slots=slots), 1) == []
    assert taken(Look(NOW, [*waiting, waits(9)], running=running, slots=slots), 1) == [waits(9)]


# --- course ----------------------------------------------------------------------------------------------------------


def test_two_courses_take_turns():
    waiting = [waits(index, course=1) for index in range(4)] + [waits(index, course=2) for index in range(4, 6)]
    assert ids(Look(NOW, waiting)) == [0, 4, 1, 5, 2, 3]


def test_a_course_that_had_more_lately_waits_for_the_other():
    waiting = [waits(1, course=1), waits(2, course=2)]
    assert ids(Look(NOW, waiting, [Claimed(SUBMISSION, 1)])) == [2, 1]
    assert ids(Look(NOW, waiting, [Claimed(RUN, 1)])) == [1, 2]


def test_a_course_in_its_deadline_hour_gets_most_and_the_other_still_its_share():
    urgent = [waits(index, course=1, due_h=0.5, ago_s=60) for index in range(200)]
    calm = [waits(index, course=2, due_h=200, ago_s=60) for index in range(200, 400)]
    history = [Claimed(SUBMISSION, 1)] * WINDOW
    courses = [item.course_id for item in taken(Look(NOW, urgent + calm, history), 120)]
    assert courses[0] == 2
    settled = courses[WINDOW:]
    assert settled.count(1) == HURRY * settled.count(2) == 72


def test_a_full_course_does_not_keep_one_submission_of_another_waiting():
    crowd = [waits(index, course=1, due_h=0.1, ago_s=900) for index in range(500)]
    assert ids(Look(NOW, [*crowd, waits(500, course=2, ago_s=1)], [Claimed(SUBMISSION, 1)] * WINDOW))[0] == 500


# --- hurry, own pending, place ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("due_h", "closes_h", "ago_s", "hurry"),
    [
        (None, None, 1, False),
        (13, None, 1, False),
        (11, None, 1, True),
        (-1, 2, 1, True),
        (-3, -1, 1, False),
        (-24 * 6, None, 1, True),
        (-24 * 8, None, 1, False),
        (None, None, 601, True),
        (500, None, 601, True),
    ],
)
def test_who_is_in_a_hurry(due_h, closes_h, ago_s, hurry):
    closes_at = None if closes_h is None else NOW + timedelta(hours=closes_h)
    assert in_a_hurry(waits(1, ago_s=ago_s, due_h=due_h, closes_at=closes_at), NOW) is hurry


def test_the_numbers_that_the_table_above_stands_on():
    assert (timedelta(hours=12), timedelta(days=7), timedelta(minutes=10)) == (DUE_SOON, LATE_FOR, LONG)


def test_what_is_due_soon_goes_before_what_is_not_and_who_waited_long_before_both():
    assert ids(Look(NOW, [waits(1, due_h=300), waits(2, due_h=1), waits(3, due_h=300, ago_s=1000)])) == [3, 2, 1]


def test_a_persons_second_waits_for_everybodys_first():
    waiting = [waits(1, user=7), waits(2, user=7), waits(3, user=7), waits(4, user=8), waits(5, user=9)]
    assert ids(Look(NOW, waiting)) == [1, 4, 5, 2, 3]


def test_what_runs_counts_as_a_persons_own_in_its_line():
    waiting = [waits(1, user=7), waits(2, user=8)]
    assert ids(Look(NOW, waiting, running=[Running(7, SUBMISSION)])) == [2, 1]
    assert ids(Look(NOW, waiting, running=[Running(7, RUN), Running(7, REGRADE)])) == [1, 2]


def test_then_the_earlier_place_then_the_lower_id():
    assert ids(Look(NOW, [waits(3, ago_s=5), waits(2, ago_s=5), waits(1, ago_s=4)])) == [2, 3, 1]


# --- slots -----------------------------------------------------------------------------------------------------------


def test_a_node_gets_only_the_work_it_does():
    waiting = [waits(1, work=Work.check), waits(2, MEASURING, work=Work.measure), waits(3, RUN)]
    assert ids(Look(NOW, waiting), Slot(frozenset({Work.measure}))) == [2]
    assert ids(Look(NOW, waiting), Slot(frozenset({Work.check, Work.all}))) == [1, 3]


def test_a_quarantine_node_gets_suspects_and_nothing_else_and_others_get_none():
    look = Look(NOW, [waits(1, suspect=True), waits(2)], quarantine=True)
    assert ids(look, Slot(quarantine=True)) == [1]
    assert ids(look) == [2]


def test_without_a_quarantine_node_one_suspect_runs_at_a_time():
    look = Look(NOW, [waits(1, suspect=True), waits(2, suspect=True), waits(3)], slots=4)
    assert [item.id for item in taken(look, 3)] == [1, 3]
    assert [item.id for item in taken(dataclasses.replace(look, running=[Running(9, RUN, suspect=True)]), 3)] == [3]


def test_who_has_to_wait_for_an_end_is_still_in_the_order():
    look = Look(NOW, [waits(1, REGRADE), waits(2)], running=[Running(9, REGRADE)], slots=2)
    assert ids(look) == [2, 1]


def test_what_was_passed_over_does_not_count_as_claimed():
    queue = Queue(Look(NOW, [waits(1), waits(2, RUN)], [Claimed(SUBMISSION, 1)] * 4))
    queue.drop(queue.next())
    assert queue.next() == waits(2, RUN)
    queue = Queue(Look(NOW, [waits(1), waits(2), waits(3, RUN)], [Claimed(SUBMISSION, 1)] * 4))
    queue.drop(queue.next())
    assert queue.next() == waits(2)


# --- whatever waits --------------------------------------------------------------------------------------------------

COURSES = (1, 2, 3)


@st.composite
def looks(draw, most=40):
    entries = draw(
        st.lists(
            st.tuples(
                st.sampled_from(LINES),
                st.integers(1, 6),
                st.sampled_from(COURSES),
                st.integers(0, 1500),
                st.sampled_from([None, -1, 1, 100]),
                st.sampled_from(Work),
                st.booleans(),
            ),
            max_size=most,
        )
    )
    waiting = [
        waits(index, line, user=user, course=course, ago_s=ago_s, due_h=due_h, work=work, suspect=suspect)
        for index, (line, user, course, ago_s, due_h, work, suspect) in enumerate(entries)
    ]
    claimed = draw(st.lists(st.builds(Claimed, st.sampled_from(LINES), st.sampled_from(COURSES)), max_size=30))
    running = draw(st.lists(st.builds(Running, st.integers(1, 6), st.sampled_from(LINES), st.booleans()), max_size=8))
    return Look(NOW, waiting, claimed, running, draw(st.integers(0, 8)), draw(st.booleans()))


@given(looks(), st.randoms(use_true_random=False))
def test_the_order_is_of_what_waits_and_does_not_depend_on_how_it_was_read(look, random):
    found = order(look)
    elsewhere = {item.id for item in look.waiting if item.suspect and look.quarantine}
    assert sorted(item.id for item in found) == [item.id for item in look.waiting if item.id not in elsewhere]
    shuffled = list(look.waiting)
    random.shuffle(shuffled)
    assert order(dataclasses.replace(look, waiting=shuffled)) == found


@given(looks(), st.sets(st.sampled_from(Work)), st.booleans())
def test_a_slot_gets_only_what_it_may_take_and_never_too_much(look, works, quarantine):
    slot = Slot(frozenset(works), quarantine)
    got = taken(look, len(look.waiting) + 1, slot)
    assert len({item.id for item in got}) == len(got)
    assert all(item.work in works for item in got)
    low = sum(item.line in LOW for item in look.running)
    assert sum(item.line in LOW for item in got) <= max(0, max(1, look.slots - 1) - low)
    if quarantine:
        assert all(item.suspect for item in got)
    else:
        suspects = sum(item.suspect for item in look.running)
        allowed = 0 if look.quarantine or suspects else 1
        assert sum(item.suspect for item in got) <= allowed


@given(looks())
def test_the_order_of_a_person_in_a_line_of_one_hurry_is_that_of_their_places(look):
    found: dict[object, list[tuple[datetime, int]]] = {}
    for item in order(look):
        who = (item.user_id, item.course_id, item.line, item.work, item.suspect, in_a_hurry(item, NOW))
        found.setdefault(who, []).append((item.place_at, item.id))
    assert all(places == sorted(places) for places in found.values())


@settings(max_examples=20, deadline=None)
@given(looks(most=12), st.lists(st.sampled_from(LINES), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_nobody_starves_however_many_come_later(look, flood, random):
    """One slot, one claim every 30 s, and with each claim newcomers in some lines, in a hurry, each a new person."""
    # What is to be confirmed has its grade, and a profile gives none: they may starve.
    plain = (item for item in look.waiting if item.line not in {CONFIRM, PROFILE})
    waiting = {item.id: dataclasses.replace(item, suspect=False, work=Work.all) for item in plain}
    numbers = count(1000)
    first, now, history, claims = set(waiting), NOW, list(look.claimed), 0
    while first & waiting.keys():
        for line in flood:
            number = next(numbers)
            new = waits(number, line, course=random.choice(COURSES), due_h=1)
            waiting[number] = dataclasses.replace(new, id=number, place_at=now)
        got = Queue(Look(now, list(waiting.values()), history)).next()
        assert got is not None
        del waiting[got.id]
        history = [Claimed(got.line, got.course_id), *history]
        now, claims = now + timedelta(seconds=30), claims + 1
        # Until everybody waited long; then each has at worst all others of its line before it, twice other courses.
        assert claims <= LONG.total_seconds() / 30 + 12 * 3 * (max(EVERY.values()) + 3)


@given(st.lists(st.sampled_from(LINES), min_size=60, max_size=60), st.sets(st.sampled_from(LINES), min_size=1))
def test_who_waits_all_the_time_gets_a_turn_in_every_window(history, waiting_lines):
    """Whatever happened before: from then on the gap between two turns of a line is its reserve plus three at most."""
    waiting = [waits(index, line) for index, line in enumerate([*waiting_lines] * 80)]
    look = Look(NOW, waiting, [Claimed(line, 1) for line in history], slots=10_000)
    had = [item.line for item in taken(look, 72)]
    for line in waiting_lines & EVERY.keys():
        turns = [-1, *(index for index, item in enumerate(had) if item is line), len(had)]
        assert max(after - before for before, after in pairwise(turns)) <= EVERY[line] + 3
    if SUBMISSION in waiting_lines:
        assert all(SUBMISSION in had[start : start + 9] for start in range(len(had) - 9))


def test_a_slot_of_some_courses_passes_over_all_others():
    look = Look(NOW, [waits(1, course=1), waits(2, course=2), waits(3, RUN, course=3), waits(4, course=2)])
    assert ids(look, Slot(courses=frozenset({2, 3}))) == [2, 4, 3]
    assert ids(look, Slot(courses=frozenset({9}))) == []
    assert Queue(look).next(Slot(courses=frozenset())) is None


def test_a_slot_passes_over_those_whose_language_its_node_lacks():
    waiting = [waits(1, language="one"), waits(2, language="other"), waits(3, language="one")]
    look = Look(NOW, waiting=waiting, slots=2)
    assert ids(look) == [1, 2, 3]
    assert [item.id for item in taken(look, 3, Slot(lacks=frozenset({"one"})))] == [2]
