"""Claiming: many slots from one look, rows that cannot be sent, and several dispatchers and students at once."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest
from sqlalchemy import event, select

from autograder.contract import (
    MAX_SOURCE_BYTES,
    AttemptFailure,
    AttemptResult,
    GradeResult,
    Kind,
    Lane,
    Language,
    Mode,
    Verdict,
)
from server.courses import courses
from server.errors import ConflictError
from server.grading.interface import fill_slots, look_at_all
from server.grading.policy import EVERY
from server.models import (
    Alert,
    AlertKind,
    Attempt,
    AttemptState,
    Line,
    Node,
    State,
    Submission,
    User,
)
from server.nodes import nodes
from server.nodes.nodes import Grant
from server.submissions import submissions
from tests.doubles.world import SOURCE, World, passed, wrong

COMPILE_ERROR = GradeResult(Verdict.compile_error, "It does not load.", ())


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path, submit_quota_per_minute="100000")
    yield world
    world.database.dispose()


def fill(world, *names, queues=None):
    """What one step of a dispatcher claims for these nodes: traces, by node."""
    if queues is None:
        with world.database.reading() as session:
            queues = look_at_all(session, now=world.now)
    found = {}
    for name in names:
        with world.database.transaction() as session:
            node = nodes.find_node(session, name=name)
            tasks = fill_slots(session, node_id=node.id, queues=queues, now=world.now, config=world.config)
        found[name] = [task.trace for task in tasks]
    return found


def trace(world, name):
    return world.submission(name).trace


def people(world, many):
    with world.database.transaction() as session:
        for number in range(many):
            world.enrol(session, f"P{number}")
    return [f"P{number}" for number in range(many)]


# --- one look --------------------------------------------------------------------------------------------------------


def test_one_look_fills_the_slots_of_several_nodes_in_order(world):
    world.add_node("wide", slots=2)
    world.add_node("forge", lanes=(Lane.h200,), slots=3)
    names = []
    for person in people(world, 4):
        world.wait(1)
        names.append(world.submit(person))
    gpu = world.submit(lane=Lane.h200)
    first, second, third, last = (trace(world, name) for name in names)
    assert fill(world, "anvil", "wide", "forge") == {
        "anvil": [first],
        "wide": [second, third],
        "forge": [trace(world, gpu)],
    }
    assert fill(world, "anvil", "wide", "forge") == {"anvil": [], "wide": [], "forge": []}
    assert trace(world, names[3]) == last
    assert world.state_of(names[3]) is State.queued


def test_a_look_reads_no_source(world):
    for person in people(world, 3):
        world.submit(person, source=b"#" * 100_000)
    read = []
    event.listen(world.database.engine, "before_cursor_execute", lambda *args: read.append(args[2]))
    with world.database.reading() as session:
        look_at_all(session, now=world.now)
    assert read
    assert not [statement for statement in read if "submissions.source" in statement.replace("source_hash", "")]


def test_what_changed_since_the_look_is_passed_over(world):
    world.add_node("wide", slots=8)
    gone, moved, suspected, stays = (world.submit(person) for person in people(world, 4))
    with world.database.reading() as session:
        queues = look_at_all(session, now=world.now)
    with world.database.transaction() as session:
        rows = {row.public_id: row for row in session.scalars(select(Submission))}
        rows[gone].state = State.cancelled
        rows[moved].line, rows[moved].state = Line.superseded, State.superseded
        rows[suspected].suspect = True
    assert fill(world, "wide", queues=queues) == {"wide": [trace(world, stays)]}


def test_an_old_look_claims_nobody_twice(world):
    world.add_node("wide", slots=8)
    for person in people(world, 3):
        world.submit(person)
    with world.database.reading() as session:
        looks = [look_at_all(session, now=world.now) for _ in range(2)]
    assert [len(fill(world, "wide", queues=queues)["wide"]) for queues in looks] == [3, 0]


def test_a_node_of_two_lanes_takes_who_is_first_in_either(world):
    world.add_node("both", lanes=(Lane.cpu, Lane.h200), slots=3)
    run = world.submit("Bob", mode=Mode.run, line=Line.run)
    world.wait(1)
    late, early = (
        world.submit(place_at=world.now),
        world.submit("Bob", lane=Lane.h200, place_at=world.now.replace(hour=9)),
    )
    assert fill(world, "both")["both"] == [trace(world, name) for name in (early, late, run)]


def test_the_low_lines_leave_a_slot_free_whoever_looks(world):
    world.add_node("wide", slots=3)
    for person in people(world, 6):
        world.submit(person, line=Line.regrade)
    with world.database.reading() as session:
        looks = [look_at_all(session, now=world.now) for _ in range(2)]
    # Four slots in the lane, three for regrades, although each dispatcher's look allows as many.
    assert [len(fill(world, "wide", queues=looks[0])["wide"]), len(fill(world, "anvil", queues=looks[1])["anvil"])] == [
        3,
        0,
    ]
    new = world.submit("P0")
    assert fill(world, "anvil")["anvil"] == [trace(world, new)]


def test_one_suspect_at_a_time_whoever_looks(world):
    world.add_node("wide", slots=3)
    for person in people(world, 3):
        world.submit(person, suspect=True)
    with world.database.reading() as session:
        looks = [look_at_all(session, now=world.now) for _ in range(2)]
    assert [len(fill(world, name, queues=look)[name]) for name, look in zip(("wide", "anvil"), looks, strict=True)] == [
        1,
        0,
    ]


def test_reserves_are_counted_from_the_lanes_own_attempts(world):
    bob = world.submit("Bob", mode=Mode.run, line=Line.run, place_at=world.now + timedelta(days=1))
    for _ in range(EVERY[Line.run] - 1):
        world.grade(passed())
    world.submit()
    assert world.take().trace == trace(world, bob)


# --- what cannot be sent ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [b"\xff\xfe no text", b"\x01" * MAX_SOURCE_BYTES])
def test_what_cannot_be_sent_has_failed_as_ours_and_keeps_nobody_waiting(world, source):
    bad, good = world.submit(source=source), world.submit("Bob")
    assert world.take().trace == trace(world, good)
    row = world.submission(bad)
    assert (row.state, row.verdict, row.points, row.finished_at) == (
        State.failed,
        Verdict.grader_error,
        None,
        world.now,
    )
    assert world.attempts(bad) == []
    with world.database.reading() as session:
        (alert,) = session.scalars(select(Alert)).all()
        assert (alert.kind, alert.subject) == (AlertKind.submission_failed, f"submission:{bad}")


def test_many_that_cannot_be_sent_are_no_illness_of_the_node(world):
    for person in people(world, 5):
        world.submit(person, source=b"\xff")
    assert world.claim() is None
    good = world.submit()
    assert world.take().trace == trace(world, good)


# --- at once ---------------------------------------------------------------------------------------------------------


def at_once(*works):
    """Run all of them in threads that begin together; what each returned or raised."""
    barrier = threading.Barrier(len(works))

    def one(work):
        barrier.wait()
        try:
            return work()
        except ConflictError as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(one, work) for work in works]]


def hand_in(world, person, source=SOURCE):
    with world.database.transaction() as session:
        user = session.scalars(select(User).where(User.name == person)).one()
        return submissions.submit(
            session, membership=courses.membership(session, user, "gpu"), assignment="vector_add",
            mode=Mode.submission, lane=Lane.cpu, language=Language.triton, filename="kernel.py", source=source,
            config=world.config, now=world.now, trace="0" * 32,
        ).public_id  # fmt: skip


def cancel(world, person, name):
    with world.database.transaction() as session:
        user = session.scalars(select(User).where(User.name == person)).one()
        submissions.cancel(session, user, name, now=world.now)


def test_several_dispatchers_claim_each_row_once_and_no_node_more_than_it_has_slots_for(world):
    names = [f"node-{number}" for number in range(4)]
    for name in names:
        world.add_node(name, slots=5)
    for number, person in enumerate(people(world, 40)):
        world.submit(person, line=Line.regrade if number % 4 == 0 else Line.submission)
    at_once(*[lambda: [fill(world, *names) for _ in range(3)] for _ in range(4)])
    with world.database.reading() as session:
        attempts = session.scalars(select(Attempt)).all()
        claimed = Counter(attempt.submission_id for attempt in attempts)
        by_node = Counter(attempt.node_id for attempt in attempts)
        assert set(claimed.values()) == {1}
        assert all(many <= 5 for many in by_node.values())
        assert sum(attempt.line is Line.regrade for attempt in attempts) <= 19
    assert len(claimed) == 20


@pytest.mark.postgres
def test_claim_cancel_and_a_newer_one_at_once_exactly_one_wins(postgres_url, tmp_path):
    world = World.make(postgres_url, tmp_path, submit_quota_per_minute="100000")
    persons = people(world, 12)
    world.add_node("wide", slots=64)
    ends = Counter()
    for person in persons:
        name = hand_in(world, person)
        _, cancelled, newer = at_once(
            lambda: fill(world, "wide"),
            lambda person=person, name=name: cancel(world, person, name),
            lambda person=person: hand_in(world, person),
        )
        row, new, attempts = world.submission(name), world.submission(newer), world.attempts(name)
        ends[row.state] += 1
        assert len(attempts) == (row.state is State.running)
        assert isinstance(cancelled, ConflictError) == (row.state is not State.cancelled)
        # It may have been superseded first, and then cancelled or claimed in that line.
        assert row.state is not State.superseded or row.superseded_by_id == new.id
        assert row.state is not State.queued
        assert new.state in {State.queued, State.running}
        assert new.place_at <= new.uploaded_at
        # Whatever is left, so that the next person begins with an empty queue.
        while fill(world, "wide")["wide"]:
            pass
    assert sum(ends.values()) == len(persons)
    world.database.dispose()


def a_students_turn(world, person, number):
    """Hand in something good, broken or changed; cancel every fourth, if that is still possible."""
    name = hand_in(world, person, [SOURCE, b"def vector_add(:\n", SOURCE + b"#"][number % 3])
    if number % 4 == 3:
        with suppress(ConflictError):
            cancel(world, person, name)


def a_nodes_turn(world, number):
    """End everything that was sent: passed, wrong, not compiling, or without a result."""
    with world.database.reading() as session:
        sent = select(Attempt.public_id, Attempt.fence, Node.name).join(Node, Node.id == Attempt.node_id)
        rows = session.execute(sent.where(Attempt.state == AttemptState.dispatched)).all()
    for row in rows:
        found = [passed(), wrong(), COMPILE_ERROR, None][number % 4]
        if found is None:
            world.send(Kind.failure, AttemptFailure(row.public_id, row.fence, "the judge died"), row.name)
        else:
            world.send(Kind.result, AttemptResult(row.public_id, row.fence, found), row.name)


@pytest.mark.postgres
def test_nothing_waits_in_a_circle(postgres_url, tmp_path):
    """Students hand in and cancel while dispatchers claim, nodes answer and it is swept; PostgreSQL finds circles."""
    world = World.make(postgres_url, tmp_path, submit_quota_per_minute="100000")
    persons = people(world, 3)
    world.add_node("wide", slots=4)
    works = [
        *[lambda turn, person=person: a_students_turn(world, person, turn) for person in persons],
        *[lambda _: fill(world, "wide", "anvil")] * 2,
        lambda turn: a_nodes_turn(world, turn),
        lambda _: world.sweep(nodes_live=False),
    ]
    at_once(*[lambda work=work: [work(turn) for turn in range(12)] for work in works])
    for _ in range(60):
        fill(world, "wide", "anvil")
        a_nodes_turn(world, 0)
    with world.database.reading() as session:
        left = Counter(session.scalars(select(Submission.state)))
    assert set(left) <= {State.done, State.cancelled, State.failed}
    assert sum(left.values()) == 36
    world.database.dispose()


@pytest.mark.postgres
@pytest.mark.parametrize("low", [Line.confirm, Line.regrade, Line.superseded])
def test_who_waits_for_a_first_answer_is_not_overtaken_while_its_row_is_held(postgres_url, tmp_path, low):
    """A look passes over a row that somebody writes to; the slot then waits for the next look, not for a low line."""
    world = World.make(postgres_url, tmp_path)
    people(world, 2)
    again, first = world.submit("P0", line=low), world.submit("P1")
    with world.database.transaction() as session:
        session.scalars(select(Submission).where(Submission.public_id == first).with_for_update()).one()
        assert fill(world, "anvil") == {"anvil": []}
    assert fill(world, "anvil") == {"anvil": [trace(world, first)]}
    assert world.submission(again).state is State.queued
    world.database.dispose()


def test_a_node_gets_no_work_of_a_course_or_a_lane_that_it_was_not_granted(world):
    world.add_node("theirs", grant=Grant(frozenset({Lane.cpu}), frozenset({99})))
    # It says that it serves everything.
    world.add_node("cpu", lanes=tuple(Lane), grant=Grant(frozenset({Lane.cpu})))
    world.submit()
    world.submit("Bob", lane=Lane.h200)
    assert world.claim("theirs") is None
    assert world.take("cpu").request.lane is Lane.cpu
    assert world.claim("cpu") is None
