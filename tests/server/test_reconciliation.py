"""The accounts of submissions: sound ones balance, and every way to break them is found by name."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select, update

from autograder.contract import Phase, Verdict
from server import alerts
from server.models import (
    AlertKind,
    Assignment,
    Attempt,
    AttemptState,
    Course,
    Mode,
    ReconciliationRun,
    Result,
    State,
    Submission,
)
from server.reconciliation import runs as reconciliation
from server.reconciliation.checks import CHECKS
from tests.doubles.world import World, wrong


@pytest.fixture
def world(database_url, tmp_path):
    made = World.make(database_url, tmp_path)
    yield made
    made.database.dispose()


@pytest.fixture
def busy(world):
    """A done one, a failed one, a running one, a waiting one and a run; their receipts by name."""
    names = {"done": world.grade(wrong())}
    names["failed"] = world.submit(state=State.failed, verdict=Verdict.grader_error, finished_at=world.now)
    names["running"] = world.submit("Bob")
    world.claimed(world.take())
    names["queued"] = world.submit()
    names["run"] = world.submit("Bob", mode=Mode.run, number=1)
    return names


def examine(world, **options):
    with world.database.reading() as session:
        return reconciliation.examine(session, **options)


def test_sound_accounts_balance(world, busy):
    found = examine(world, deep=True)
    assert found.problems == ()
    assert (found.received, found.final, found.in_flight) == (5, 2, 3)
    assert found.balanced


def test_an_empty_database_balances(world):
    found = examine(world, deep=True)
    assert (found.received, found.final, found.in_flight, found.balanced) == (0, 0, 0, True)


def change(table, **values):
    """A change to the row with this receipt or, for attempts and results, to those of it."""

    def apply(session, receipt):
        owner = select(Submission.id).where(Submission.public_id == receipt).scalar_subquery()
        column = Submission.id if table is Submission else table.submission_id
        session.execute(
            update(table).where(column == owner).values(**values).execution_options(synchronize_session=False)
        )

    return apply


def another_live_attempt(session, receipt):
    row = session.scalars(select(Attempt).join(Attempt.submission).where(Submission.public_id == receipt)).one()
    copy = {column.key: getattr(row, column.key) for column in Attempt.__mapper__.columns if column.key != "id"}
    session.add(Attempt(**{**copy, "public_id": "0" * 26, "fence": 2}))


def remove(table):
    def apply(session, receipt):
        owner = select(Submission.id).where(Submission.public_id == receipt).scalar_subquery()
        if table is Result:
            session.execute(update(Submission).where(Submission.public_id == receipt).values(result_id=None))
        column = Submission.id if table is Submission else table.submission_id
        session.execute(delete(table).where(column == owner))

    return apply


def superseded_by_somebody_elses(session, receipt):
    other = session.scalar(
        select(Submission.id).where(Submission.public_id != receipt, Submission.user_id == 2).limit(1)
    )
    assert other is not None
    session.execute(update(Submission).where(Submission.public_id == receipt).values(superseded_by_id=other))


def result_of_anothers_attempt(session, receipt):
    other = session.scalar(
        select(Submission.id).where(Submission.public_id != receipt).order_by(Submission.id.desc()).limit(1)
    )
    session.execute(update(Result).values(submission_id=other))


BROKEN = {
    "a receipt that was deleted": ("failed", remove(Submission), {"numbers_gapless"}),
    "a result that was deleted": ("done", remove(Result), {"done_has_result", "attempt_has_result"}),
    "a result that does not count": ("done", change(Submission, result_id=None), {"done_has_result"}),
    "another verdict than the result's": ("done", change(Submission, verdict=Verdict.passed), {"done_has_result"}),
    "done and no verdict": ("done", change(Submission, verdict=None), {"done_has_result"}),
    "done at no time": ("done", change(Submission, finished_at=None), {"done_has_result"}),
    "points for our failure": ("failed", change(Submission, points=0.0), {"failed_is_free"}),
    "a student's verdict for our failure": ("failed", change(Submission, verdict=None), {"failed_is_free"}),
    "running and nobody at it": (
        "running", change(Attempt, state=AttemptState.lost), {"running_has_attempt"},
    ),
    "two at it": ("running", another_live_attempt, {"running_has_attempt"}),
    "somebody at what waits": (
        "running", change(Submission, state=State.queued), {"attempt_has_running"},
    ),
    "somebody at what is final": (
        "running", change(Submission, state=State.cancelled), {"attempt_has_running"},
    ),
    "an attempt that was deleted": ("running", change(Attempt, fence=2), {"attempts_gapless"}),
    "finished and no result": (
        "running", change(Attempt, state=AttemptState.finished), {"running_has_attempt", "attempt_has_result"},
    ),
    "a result of an attempt that failed": (
        "done", change(Attempt, state=AttemptState.failed), {"attempt_has_result"},
    ),
    "a result of another's attempt": (
        "done", result_of_anothers_attempt, {"done_has_result", "attempt_has_result", "result_has_attempt"},
    ),
    "superseded by nothing": ("queued", change(Submission, state=State.superseded), {"superseded_by_newer"}),
    "superseded by somebody else's": ("queued", superseded_by_somebody_elses, {"superseded_by_newer"}),
    "no source": ("queued", change(Submission, source=b""), {"source_present"}),
    "no hash": ("queued", change(Submission, source_hash=""), {"source_present"}),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_found_by_name(world, busy, what):
    receipt, apply, expected = BROKEN[what]
    with world.database.transaction() as session:
        apply(session, busy[receipt])
    found = examine(world)
    assert {problem.check for problem in found.problems} == expected
    assert not found.balanced
    assert reconciliation.summary(found)


def test_two_results_of_one_attempt_are_found_where_the_table_lets_them_in(sqlite_url, tmp_path):
    """The table forbids it; what if a hand on the database's console took the constraint away?"""
    world = World.make(sqlite_url, tmp_path)
    world.grade(wrong())
    raw = world.database.engine.raw_connection()
    for statement in (
        "PRAGMA foreign_keys=OFF",
        "CREATE TABLE bare AS SELECT * FROM results",
        "INSERT INTO bare SELECT * FROM results",
        "DROP TABLE results",
        "ALTER TABLE bare RENAME TO results",
    ):
        raw.execute(statement)
    raw.close()
    assert {problem.check for problem in examine(world).problems} == {"attempt_has_result"}
    world.database.dispose()


def test_every_rule_was_broken_by_a_test():
    assert {name for _, _, names in BROKEN.values() for name in names} == {check.name for check in CHECKS}


def test_a_problem_counts_all_and_names_a_few(world):
    receipts = [world.submit(source_hash="none") for _ in range(7)]
    (problem,) = examine(world).problems
    assert problem.count == 7
    assert list(problem.examples) == sorted(receipts)[:5]


def test_only_a_deep_look_reads_the_sources(world, busy):
    with world.database.transaction() as session:
        change(Submission, source=b"def something_else(): pass\n")(session, busy["done"])
    assert examine(world).balanced
    (problem,) = examine(world, deep=True).problems
    assert (problem.check, problem.count, problem.examples) == ("source_unchanged", 1, (busy["done"],))


def test_a_missing_receipt_unbalances_the_sum(world, busy):
    with world.database.transaction() as session:
        remove(Submission)(session, busy["failed"])
    found = examine(world)
    assert (found.received, found.final + found.in_flight) == (5, 4)
    assert "5 received, 1 final and 3 in flight" in reconciliation.summary(found)


def test_what_another_course_broke_is_not_ours(world, busy):
    with world.database.transaction() as session:
        other = Course(slug="other", title="Another", created_at=world.now)
        session.add(other)
        session.flush()
        (rung,) = session.scalars(select(Assignment))
        theirs = Assignment(course_id=other.id, slug="x", rung=1, title="X", created_at=world.now)
        session.add(theirs)
        session.flush()
        ours, others = rung.course_id, other.id
        ids = {"course_id": other.id, "assignment_id": theirs.id}
    with world.database.transaction() as session:
        # Its numbers begin at 9: eight receipts are gone.
        session.execute(update(Submission).where(Submission.public_id == busy["queued"]).values(number=9, **ids))
    assert examine(world, courses=[ours]).balanced
    assert {problem.check for problem in examine(world, courses=[others]).problems} == {"numbers_gapless"}
    assert examine(world, courses=[]).received == 0
    with world.database.reading() as session:
        assert {item.count for item in reconciliation.standings(session, [others])} == {1}
        assert reconciliation.live_leases(session, [others]) == []


def test_standings_name_the_oldest_of_each_place(world, busy):
    with world.database.transaction() as session:
        change(Submission, phase=Phase.checking)(session, busy["running"])
    with world.database.reading() as session:
        found = {(item.state, item.phase): item for item in reconciliation.standings(session)}
        (lease,) = reconciliation.live_leases(session)
    assert found[State.running, Phase.checking].oldest == busy["running"]
    assert found[State.queued, None].count == 2
    assert found[State.queued, None].oldest == min(busy["queued"], busy["run"])
    assert (lease.submission, lease.node, lease.fence) == (busy["running"], "anvil", 1)


def open_kinds(world):
    with world.database.reading() as session:
        return [(alert.kind, alert.subject) for alert in alerts.open_alerts(session)]


def make_due(world):
    with world.database.transaction() as session:
        session.execute(update(ReconciliationRun).values(checked_at=datetime.now(UTC) - timedelta(minutes=2)))


def test_a_check_is_made_once_a_minute_and_raises_and_ends_the_alert(world, busy):
    assert reconciliation.check_due(world.database) == 1
    assert reconciliation.check_due(world.database) == 0
    assert open_kinds(world) == []
    with world.database.transaction() as session:
        change(Submission, source_hash="x")(session, busy["queued"])
    make_due_and_check(world)
    assert open_kinds(world) == [(AlertKind.reconciliation_failed, "course:gpu")]
    with world.database.reading() as session:
        check = reconciliation.last_check(session, 1)
        assert not reconciliation.is_balanced(check)
        assert check.problems[0]["examples"] == [busy["queued"]]
    with world.database.transaction() as session:
        change(Submission, source_hash="sha256:" + "0" * 64)(session, busy["queued"])
    make_due_and_check(world)
    assert open_kinds(world) == []


def test_dispatchers_that_check_at_once_do_not_get_in_each_others_way(world, busy):
    with world.database.reading() as session:
        course = session.scalars(select(Course)).one()
        accounts = reconciliation.examine(session, [course.id])
        session.expunge_all()
    many = 8
    barrier = threading.Barrier(many)

    def keep(_):
        barrier.wait()
        with world.database.transaction() as session:
            reconciliation.keep(session, course, accounts)

    with ThreadPoolExecutor(many) as pool:
        list(pool.map(keep, range(many)))
    with world.database.reading() as session:
        assert len(session.scalars(select(ReconciliationRun)).all()) == 1


def make_due_and_check(world):
    make_due(world)
    assert reconciliation.check_due(world.database) == 1
