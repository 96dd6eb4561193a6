"""What a group is told of what one of them handed in, and whose dates put somebody in a hurry."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from autograder.assignment import Points
from autograder.contract import Lane, Mode
from server.grading.policy import DUE_SOON, in_a_hurry
from server.grading.queue_snapshot import look_at
from server.models import (
    Assignment,
    Enrolment,
    Extension,
    Group,
    GroupMember,
    Line,
    Notification,
    NotificationKind,
    User,
)
from server.regrades.console import rescore
from tests.doubles.world import manifest, passed, wrong


@pytest.fixture
def pair(world):
    """Alice and Bob do the rung together."""
    with world.database.transaction() as session:
        row = session.scalars(select(Assignment)).one()
        row.group_size = 2
        group = Group(course_id=row.course_id, assignment_id=row.id, code="code", created_at=world.now)
        session.add(group)
        session.flush()
        for name in ("Alice", "Bob"):
            user = session.scalars(select(User).where(User.name == name)).one()
            session.add(GroupMember(group_id=group.id, assignment_id=row.id, user_id=user.id, joined_at=world.now))


def told(world, kind=NotificationKind.group_result):
    with world.database.reading() as session:
        query = select(User.name, Notification.title).join(User, User.id == Notification.user_id)
        return [tuple(row) for row in session.execute(query.where(Notification.kind == kind).order_by(Notification.id))]


def test_the_others_are_told_the_verdict_and_points_once(world, pair):
    world.grade(passed())
    assert told(world) == [("Bob", "Alice's submission in Vector add: passed, 60 points")]
    world.grade(wrong(), "Bob")
    assert told(world)[1:] == [("Alice", "Bob's submission in Vector add: wrong answer, 0 points")]
    world.grade(passed(), mode=Mode.run, line=Line.run)
    assert len(told(world)) == 2


def test_who_dropped_the_course_is_told_nothing_of_the_others_results(world, pair):
    with world.database.transaction() as session:
        bob = select(Enrolment).join(User, User.id == Enrolment.user_id).where(User.name == "Bob")
        session.scalars(bob).one().dropped_at = world.now
    world.grade(passed())
    assert told(world) == []


def test_who_is_on_their_own_is_told_nothing(world):
    world.grade(passed())
    assert told(world) == []


def test_a_regrade_tells_the_whole_group(world, pair):
    world.grade(passed())
    with world.database.transaction() as session:
        world.publish(session, manifest(points=Points(correctness=80, speed=20)))
        row = session.scalars(select(Assignment)).one()
        rescore(session, row, reason="The points were wrong.", apply=True, now=world.now)
    assert {name for name, _ in told(world, NotificationKind.regrade_applied)} == {"Alice", "Bob"}


def test_who_has_an_extension_is_in_a_hurry_by_their_own_date(world):
    world.submit()
    world.submit("Bob")
    soon = world.now + DUE_SOON / 2
    with world.database.transaction() as session:
        row = session.scalars(select(Assignment)).one()
        row.due_at, row.late_until = soon, soon
        alice = session.scalars(select(User).where(User.name == "Alice")).one()
        session.add(
            Extension(
                course_id=row.course_id, assignment_id=row.id, user_id=alice.id, due_at=soon + timedelta(days=9),
                late_until=soon + timedelta(days=9), reason="Ill.", at=world.now,
            )
        )  # fmt: skip

    def hurried():
        with world.database.reading() as session:
            look = look_at(session, Lane.cpu, [], now=world.now)
            names = {user.id: user.name for user in session.scalars(select(User))}
            return {names[item.user_id]: in_a_hurry(item, world.now) for item in look.waiting}

    assert hurried() == {"Alice": False, "Bob": True}
    with world.database.transaction() as session:
        session.scalars(select(Extension)).one().withdrawn_at = world.now
    assert hurried() == {"Alice": True, "Bob": True}
