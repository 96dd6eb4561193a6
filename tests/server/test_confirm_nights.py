"""Every night the first places of the boards are graded once more: once, and wherever a round was broken off, on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from autograder.assignment import LanePolicy
from autograder.contract import Lane
from server.grading import confirm
from server.models import ConfirmNight, Course, Enrolment, Submission, User
from tests.doubles.world import World, manifest, passed

GPU = {"lane": Lane.h200}
NODES = ("forge", "kiln")


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    for name in NODES:
        world.add_node(name, lanes=(Lane.h200,))
    with world.database.transaction() as session:
        for number in range(8):
            world.enrol(session, f"Student{number}")
    yield world
    world.database.dispose()


def look(world):
    with world.database.transaction() as session:
        return confirm.confirm_due(session, now=world.now)


def finish_all(world):
    """Whatever waits is graded, and passes with its ratio."""
    done = 0
    while tasks := [(node, task) for node in NODES if (task := world.claim(node)) is not None]:
        for node, task in tasks:
            with world.database.reading() as session:
                row = session.scalars(select(Submission).where(Submission.trace == task.trace)).one()
                ratio = float(row.filename.removesuffix(".py"))
            world.finish(task, passed(ratio, spread=0.001), node)
            done += 1
    return done


def hand_in(world, *ratios):
    for number, ratio in enumerate(ratios):
        world.submit(f"Student{number}", filename=f"{ratio}.py", **GPU)
    assert finish_all(world) == len(ratios)
    assert look(world) == len(ratios)
    finish_all(world)


def waiting(world):
    with world.database.reading() as session:
        rows = session.scalars(select(Submission.filename).where(Submission.state == "queued"))
        return sorted(float(name.removesuffix(".py")) for name in rows)


def nights(world):
    with world.database.reading() as session:
        rows = session.scalars(select(ConfirmNight).order_by(ConfirmNight.night_at))
        return [(row.queued, row.finished_at is not None) for row in rows]


def next_night(world):
    world.wait((confirm.night_of(world.now) + timedelta(days=1, hours=1) - world.now).total_seconds())


def test_a_board_whose_times_give_no_points_keeps_nobody_from_being_confirmed(world, monkeypatch):
    """It came first, and nothing of it is ever confirmed: for ever the same ones would be looked at."""
    for number, ratio in enumerate([1.0, 1.0, 1.0, 1.0, 2.0]):
        world.submit(f"Student{number}", filename=f"{ratio}.py", **GPU)
    with world.database.transaction() as session:
        practice = {"slug": "practice", "title": "Practice", "rung": 2, "lanes": {"h200": LanePolicy()}}
        version = world.publish(session, manifest(**practice))
        ids = {"assignment_id": version.assignment_id, "version_id": version.id}
        session.execute(update(Submission).where(Submission.filename == "1.0.py").values(**ids))
    finish_all(world)
    monkeypatch.setattr(confirm, "CONFIRM_LIMIT", 2)
    assert look(world) == 1
    assert waiting(world) == [2.0]
    finish_all(world)
    next_night(world)
    assert look(world) == 1
    assert nights(world)[-1] == (1, True)


@pytest.mark.parametrize(("hour", "day"), [(1, 20), (2, 21), (3, 21), (23, 21)])
def test_a_night_begins_at_two(hour, day):
    found = confirm.night_of(datetime(2026, 11, 21, hour, 30, tzinfo=UTC))
    assert found == datetime(2026, 11, day, 2, tzinfo=UTC)


def test_the_first_ranks_of_a_board_are_confirmed_once_a_night_and_three_times_in_all(world):
    hand_in(world, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    assert look(world) == 0
    for _ in range(2):
        next_night(world)
        assert look(world) == 5
        assert waiting(world) == [1.0, 2.0, 3.0, 4.0, 5.0]
        assert look(world) == 0
        finish_all(world)
        world.wait(3600)
        assert look(world) == 0
    next_night(world)
    assert look(world) == 0
    assert nights(world) == [(0, True), (5, True), (5, True), (0, True)]


def test_who_shares_a_rank_is_confirmed_too_up_to_a_bound(world, monkeypatch):
    monkeypatch.setattr(confirm, "TOP", 1)
    hand_in(world, 1.0, 1.0005, 1.001, 2.0)
    next_night(world)
    assert look(world) == 3
    finish_all(world)
    monkeypatch.setattr(confirm, "MOST_OF_A_BOARD", 2)
    next_night(world)
    assert look(world) == 2


def test_a_round_that_was_broken_off_goes_on_where_it_was(world, monkeypatch):
    hand_in(world, 1.0, 2.0, 3.0)
    monkeypatch.setattr(confirm, "CONFIRM_LIMIT", 2)
    next_night(world)
    assert look(world) == 2
    assert nights(world)[-1] == (2, False)
    assert look(world) == 0
    finish_all(world)
    assert look(world) == 1
    assert nights(world)[-1] == (3, True)
    finish_all(world)
    assert look(world) == 0


def test_only_who_stands_on_the_board_is_confirmed_at_night(world):
    hand_in(world, 1.0, 2.0)
    with world.database.transaction() as session:
        gone = session.scalars(select(User.id).where(User.name == "Student0")).one()
        session.execute(update(Enrolment).where(Enrolment.user_id == gone).values(dropped_at=world.now))
    next_night(world)
    assert look(world) == 1
    assert waiting(world) == [2.0]


def test_a_course_can_be_confirmed_at_once(world):
    hand_in(world, 1.0, 2.0, 3.0)
    with world.database.transaction() as session:
        course = session.scalars(select(Course.id)).one()
        assert confirm.confirm_top(session, course + 1, now=world.now) == 0
        assert confirm.confirm_top(session, course, now=world.now, top=2) == 2
    assert waiting(world) == [1.0, 2.0]
