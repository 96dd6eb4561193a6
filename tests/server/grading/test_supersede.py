"""One kept place per student: who is superseded, who gets it back, and that nobody is hurt by it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select

from autograder.contract import AttemptFailure, GradeResult, Kind, Lane, Language, Mode, Verdict
from server.courses import courses
from server.courses.deadlines import days_late
from server.errors import ConflictError, ForbiddenError, NotFoundError
from server.grading.requeue import requeue
from server.grading.supersede import Older, takeover
from server.grading.syntax_check import MOST_BYTES, compiles
from server.models import Assignment, Line, Role, State, Submission, User
from server.submissions import submissions
from tests.doubles.world import SOURCE, START, World, manifest, passed, wrong

BROKEN = b"def vector_add(:\n"


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path, submit_quota_per_minute="1000")
    yield world
    world.database.dispose()


def hand_in(world, source=SOURCE, *, person="Alice", slug="vector_add", mode=Mode.submission, lane=Lane.cpu):
    """What the web tier does; a second passes. The public id."""
    world.wait(1)
    with world.database.transaction() as session:
        user = session.scalars(select(User).where(User.name == person)).one()
        made = submissions.submit(
            session,
            membership=courses.membership(session, user, "gpu"),
            assignment=slug,
            mode=mode,
            lane=lane,
            language=Language.triton,
            filename="kernel.py",
            source=source,
            config=world.config,
            now=world.now,
            trace="0" * 32,
        )
        return made.public_id


def cancel(world, submission, person="Alice"):
    with world.database.transaction() as session:
        user = session.scalars(select(User).where(User.name == person)).one()
        submissions.cancel(session, user, submission, now=world.now)


def due(world, at):
    with world.database.transaction() as session:
        for row in session.scalars(select(Assignment)):
            row.due_at = at


def standing(world, *names):
    return [(row.state, row.line) for row in map(world.submission, names)]


QUEUED = (State.queued, Line.submission)
SUPERSEDED = (State.superseded, Line.superseded)

# --- the decision ----------------------------------------------------------------------------------------------------

GOOD, LATER_GOOD, NOISE = Older(1, START, True), Older(2, START + timedelta(1), True), Older(3, START, False)


@pytest.mark.parametrize(
    ("older", "new_compiles", "holds_another", "superseded", "place"),
    [
        ([], True, False, set(), None),
        ([GOOD], True, False, {1}, START),
        ([LATER_GOOD, NOISE], True, False, {2, 3}, LATER_GOOD.place_at),
        ([GOOD, LATER_GOOD], True, False, {1, 2}, START),
        ([NOISE], True, False, {3}, None),
        ([NOISE], False, True, {3}, None),
        ([GOOD], False, False, set(), None),
        ([GOOD, NOISE], False, False, {3}, None),
        ([GOOD], True, True, set(), None),
        ([GOOD, NOISE], True, True, {3}, None),
    ],
)
def test_who_is_superseded_and_which_place_is_kept(older, new_compiles, holds_another, superseded, place):
    decided = takeover(older, new_compiles=new_compiles, holds_another=holds_another)
    assert (decided.superseded, decided.place_at) == (superseded, place)


@given(
    st.lists(st.builds(Older, st.integers(1, 9), st.just(START), st.booleans()), unique_by=lambda item: item.id),
    st.booleans(),
    st.booleans(),
)
def test_what_can_be_graded_is_superseded_only_by_what_takes_its_place(older, new_compiles, holds_another):
    decided = takeover(older, new_compiles=new_compiles, holds_another=holds_another)
    good = {item.id for item in older if item.compiles}
    if good & decided.superseded:
        assert new_compiles
        assert not holds_another
        assert good <= decided.superseded
        assert decided.place_at == START
    else:
        assert decided.place_at is None


@pytest.mark.parametrize(
    ("hours", "late"), [(-1, 0), (0, 0), (0.001, 1), (24, 1), (24.001, 2), (48, 2), (24 * 30 + 1, 31)]
)
def test_a_late_day_that_has_begun_counts_whole(hours, late):
    assert days_late(START + timedelta(hours=hours), START) == late
    assert days_late(START + timedelta(hours=hours), None) == 0


@pytest.mark.parametrize(
    ("source", "plausible"),
    [
        (SOURCE, True),
        (b"from x import kernel as vector_add", True),
        (b"if 1:\n    vector_add = print\n", True),
        (b"vector_add(1)", False),
        (b"def other(): ...", False),
        (b"'\\d'\nclass vector_add: ...", True),
        (BROKEN, False),
        (b"\xff\xfe", False),
        (b"x = '\x00'", False),
        (b"vector_add = " + b"(" * 60_000, False),
        (b"vector_add = " + b"-" * 60_000 + b"1", False),
        (b"vector_add = 1" + b"+1" * 30_000, False),
        (b"vector_add = a" + b".b" * 30_000, False),
        (b"vector_add = " + b"lambda:" * 9_000 + b"1", False),
        (b"if a: pass\n" + b"elif a: pass\n" * 5_000, False),
        (b"vector_add = 1\n" + b"#" * MOST_BYTES, False),
    ],
)
def test_what_plausibly_compiles_is_told_without_harm_from_what_does_not(source, plausible):
    assert compiles(source, Language.triton, "vector_add") is plausible


def test_cuda_has_to_name_its_entry():
    assert compiles(b'extern "C" void vector_add(float* x) {}', Language.cuda, "vector_add")
    assert not compiles(b"void my_vector_add2(float* x) {}", Language.cuda, "vector_add")


def test_a_source_compiles_if_it_has_all_functions_that_are_asked_for() -> None:
    source = b"def one(x): ...\ndef two(x): ...\n"
    assert compiles(source, Language.triton, "one", "two")
    assert not compiles(source, Language.triton, "one", "three")


# --- handing in ------------------------------------------------------------------------------------------------------


def test_a_newer_one_takes_the_place_and_the_older_is_graded_later(world):
    world.submit("Bob", source=b"#", place_at=START + timedelta(seconds=1.5))
    first, second = hand_in(world), hand_in(world)
    assert standing(world, first, second) == [SUPERSEDED, QUEUED]
    row = world.submission(second)
    assert (row.place_at, row.uploaded_at) == (START + timedelta(seconds=1), START + timedelta(seconds=2))
    assert world.submission(first).superseded_by_id == row.id
    world.finish(world.take(), passed())
    assert world.state_of(second) is State.done
    world.finish(world.take(), wrong())
    world.finish(world.take(), wrong())
    assert world.submission(first).verdict is Verdict.wrong_answer


def test_a_place_goes_from_hand_to_hand(world):
    names = [hand_in(world) for _ in range(4)]
    assert standing(world, *names) == [SUPERSEDED] * 3 + [QUEUED]
    assert world.submission(names[3]).place_at == world.submission(names[0]).uploaded_at


def test_what_runs_or_is_graded_is_not_superseded(world):
    first = hand_in(world)
    world.take()
    second = hand_in(world)
    assert standing(world, first, second) == [(State.running, Line.submission), QUEUED]
    assert world.submission(second).place_at == world.submission(second).uploaded_at


def test_an_attempt_that_was_lost_comes_back_beside_what_was_handed_in_meanwhile(world):
    first = hand_in(world)
    world.claimed(world.take())
    second = hand_in(world)
    world.wait(world.config.lease_s + 1)
    world.sweep()
    assert standing(world, first, second) == [QUEUED, QUEUED]


def test_another_late_charge_stays(world):
    due(world, START + timedelta(hours=1))
    on_time = hand_in(world)
    world.wait(3600)
    late = hand_in(world)
    later = hand_in(world)
    world.wait(24 * 3600)
    latest = hand_in(world)
    assert standing(world, on_time, late, later, latest) == [QUEUED, SUPERSEDED, QUEUED, QUEUED]
    assert world.submission(later).place_at == world.submission(late).uploaded_at


def test_other_people_lanes_assignments_and_practice_stay(world):
    with world.database.transaction() as session:
        world.publish(session, manifest(slug="softmax", title="Softmax"))
    names = [
        hand_in(world),
        hand_in(world, person="Bob"),
        hand_in(world, lane=Lane.h200),
        hand_in(world, slug="softmax"),
    ]
    runs = [hand_in(world, mode=Mode.run), hand_in(world, mode=Mode.run)]
    assert standing(world, *names) == [QUEUED] * 4
    assert standing(world, *runs) == [(State.queued, Line.run)] * 2


def test_a_broken_one_never_takes_the_place_of_one_that_can_be_graded(world):
    good, broken = hand_in(world), hand_in(world, BROKEN)
    assert standing(world, good, broken) == [QUEUED, QUEUED]
    better = hand_in(world)
    assert standing(world, good, broken, better) == [SUPERSEDED, SUPERSEDED, QUEUED]
    assert world.submission(better).place_at == world.submission(good).place_at


def test_noise_reserves_no_place(world):
    noise, good = hand_in(world, BROKEN), hand_in(world)
    assert standing(world, noise, good) == [SUPERSEDED, QUEUED]
    assert world.submission(good).place_at == world.submission(good).uploaded_at


def test_a_person_holds_one_taken_over_place_at_a_time(world):
    with world.database.transaction() as session:
        world.publish(session, manifest(slug="softmax", title="Softmax"))
    softmax = SOURCE
    hand_in(world)
    first = hand_in(world, softmax, slug="softmax")
    holder = hand_in(world)
    second = hand_in(world, softmax, slug="softmax")
    assert standing(world, first, holder, second) == [QUEUED, QUEUED, QUEUED]
    cancel(world, holder)
    world.finish(world.take(), passed())
    third = hand_in(world, softmax, slug="softmax")
    assert standing(world, first, second, third) == [SUPERSEDED, SUPERSEDED, QUEUED]


def test_what_does_not_compile_after_all_gives_the_place_back(world):
    first, second = hand_in(world), hand_in(world)
    world.finish(world.take(), GradeResult(Verdict.compile_error, "It does not load.", ()))
    assert world.submission(second).verdict is Verdict.compile_error
    assert standing(world, first) == [QUEUED]
    assert world.submission(first).superseded_by_id is None


def test_what_fails_by_our_fault_gives_the_place_back(world):
    first, second = hand_in(world), hand_in(world)
    for _ in range(world.config.max_attempts):
        task = world.take()
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the judge died"))
    assert world.state_of(second) is State.failed
    assert standing(world, first) == [QUEUED]


def test_the_same_bytes_under_suspicion_stay_under_it(world):
    first = hand_in(world)
    world.claimed(world.take())
    world.wait(world.config.lease_s + 1)
    world.sweep()
    assert world.submission(first).suspect
    again, other = hand_in(world), hand_in(world, SOURCE + b"\n", person="Bob")
    assert [world.submission(name).suspect for name in (again, other)] == [True, False]


# --- cancelling ------------------------------------------------------------------------------------------------------


def test_what_waits_can_be_cancelled_and_is_never_graded(world):
    name = hand_in(world)
    before = world.submission(name).revision
    cancel(world, name)
    row = world.submission(name)
    assert (row.state, row.finished_at, row.verdict, row.revision) == (State.cancelled, world.now, None, before + 1)
    assert world.claim() is None


def test_cancelling_gives_the_place_back_to_what_was_superseded(world):
    first, second = hand_in(world), hand_in(world)
    cancel(world, second)
    row = world.submission(first)
    assert ((row.state, row.line), row.superseded_by_id, row.place_at) == (QUEUED, None, row.uploaded_at)


def test_cancelling_one_of_a_chain_leaves_the_place_with_the_newest(world):
    first, second, third = (hand_in(world) for _ in range(3))
    cancel(world, second)
    assert standing(world, first, third) == [SUPERSEDED, QUEUED]
    assert world.submission(first).superseded_by_id == world.submission(third).id
    cancel(world, third)
    assert standing(world, first) == [QUEUED]


def test_a_superseded_one_that_runs_comes_back_to_its_place_if_its_successor_is_cancelled(world):
    first, second = hand_in(world), hand_in(world)
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == second)).one()
        row.place_at, row.line = world.now + timedelta(days=1), Line.superseded
    world.claimed(world.take())
    assert world.state_of(first) is State.running
    cancel(world, second)
    world.wait(world.config.lease_s + 1)
    world.sweep()
    assert standing(world, first) == [QUEUED]


def test_what_runs_or_is_over_cannot_be_cancelled(world):
    name = hand_in(world)
    task = world.take()
    with pytest.raises(ConflictError, match="is being graded"):
        cancel(world, name)
    world.finish(task, passed())
    with pytest.raises(ConflictError, match="is graded"):
        cancel(world, name)
    with world.database.transaction() as session:
        requeue(session, session.scalars(select(Submission)).one(), now=world.now)
    with pytest.raises(ConflictError, match="has its verdict already"):
        cancel(world, name)
    other = hand_in(world, mode=Mode.run)
    cancel(world, other)
    with pytest.raises(ConflictError, match="practice run is cancelled"):
        cancel(world, other)


def test_only_its_student_cancels_it(world):
    name = hand_in(world)
    with world.database.transaction() as session:
        world.enrol(session, "Tom", role=Role.ta)
    with pytest.raises(ForbiddenError):
        cancel(world, name, "Tom")
    with pytest.raises(NotFoundError):
        cancel(world, name, "Bob")
    assert standing(world, name) == [QUEUED]
