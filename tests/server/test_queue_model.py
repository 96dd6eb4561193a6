"""A model of the whole queue: everything that can happen, in any order, and what holds after every step of it.

`test_grading_states` drives single attempts; here several nodes and lanes, old looks of other dispatchers, forged and
repeated messages, silent recorders and staff take part, and every example ends with a quiet night after which nothing
may be left over. The same class runs on SQLite and PostgreSQL. `--hypothesis-profile=long` runs it for about an hour.

That the model finds something is tested as well: each of `MUTATIONS` breaks the queue in one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, event, false, select, update
from sqlalchemy.exc import IntegrityError

from autograder import contract
from autograder.assignment import LanePolicy
from autograder.contract import (
    AttemptEvent,
    AttemptFailure,
    AttemptResult,
    Claim,
    Event,
    GradeResult,
    GradeTask,
    Kind,
    Lane,
    Language,
    Mode,
    NodeReport,
    PhaseStarted,
    Verdict,
    Work,
)
from broker.envelope import Message
from broker.identity import NodeKey
from server.courses import courses
from server.courses.deadlines import days_late
from server.errors import ConflictError, ForbiddenError, LadderError, NotFoundError
from server.grading import record as recording
from server.grading import states, supersede, sweep
from server.grading.interface import FINAL, LIVE, WAITING, Outcome, fill_slots, requeue
from server.grading.policy import LINES, Queue, Slot
from server.grading.queue_snapshot import look_at, look_at_all
from server.models import Assignment, Attempt, AttemptState, Base, Line, Node, Result, State, Submission, Tick, User
from server.nodes import nodes
from server.reconciliation.checks import broken_rules
from server.submissions import submissions
from tests.doubles.world import SOURCE, START, World, case, manifest, passed, wrong

PEOPLE = ("Alice", "Bob")
SOURCES = (SOURCE, SOURCE + b"# again\n", b"def vector_add(:")
LANES = (Lane.cpu, Lane.h200)
NODES = {"anvil": ((Lane.cpu,), 2), "bellows": ((Lane.cpu, Lane.h200), 1), "crucible": ((Lane.h200,), 1)}
DUE_AT = START + timedelta(minutes=2)
KEPT = ("users", "courses", "enrolments", "bundles", "assignments", "assignment_versions", "nodes", "node_stamps")
HANDED_IN = st.tuples(st.sampled_from(PEOPLE), st.sampled_from(LANES), st.sampled_from(SOURCES), st.integers(0, 4))
"""Who, where, what, and whether it is a practice run: one in five."""
MOST = 7
"""Submissions of one example."""
NIGHT = 120
"""Rounds of a quiet night; each gives every node what it takes."""

_TIMED = (case("large", ranked=True),)
STRANGER = NodeKey.generate()
FOUND = {
    Work.all: (passed(), wrong(), passed(2.0, held=True), GradeResult(Verdict.compile_error, "It does not load.", ())),
    Work.check: (passed(), wrong(), passed(), GradeResult(Verdict.compile_error, "It does not load.", ())),
    Work.measure: (replace(passed(), cases=_TIMED), replace(passed(2.0, held=True), cases=_TIMED)) * 2,
}
OURS = GradeResult(Verdict.grader_error, "The judge ran out of memory.", ())
UNFIT = replace(passed(), measurements=(replace(passed().measurements[0], ratio=-1.0),))

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Taken:
    """A task and the node that it was given to."""

    node: str
    task: GradeTask


class Model(RuleBasedStateMachine):
    """Two students, two lanes of which one measures apart, three nodes, any number of dispatchers."""

    world: World
    """Made once; every example finds it as it was."""
    slots: dict[int, int]
    """Of each node, by its id."""

    @initialize(handed_in=st.lists(HANDED_IN, min_size=2, max_size=4), working=st.sets(st.sampled_from(list(NODES))))
    def begin(self, handed_in: list[tuple[str, Lane, bytes, int]], working: set[str]) -> None:
        """Something is handed in already and some nodes work on it, or most examples would end before they began."""
        self.world.now = START
        self.accepted: dict[str, tuple[Any, ...]] = {}
        self.taken: list[Taken] = []
        self.looks: list[dict[Lane, Queue]] = []
        self.sequence = 0
        self.before: dict[int, Any] = {}
        _empty(self.world)
        for one in handed_in:
            self._hand_in(*one)
        for name in sorted(working):
            self.fill(name)

    def teardown(self) -> None:
        """Whatever happened: after a night in which nothing breaks, everything is final and the accounts are right."""
        if not hasattr(self, "accepted"):
            return
        with self.world.database.transaction() as session:
            session.execute(update(Node).values(draining=False, drained_at=None, quarantine=False, disabled_at=None))
        for _ in range(NIGHT):
            if not self._unfinished():
                break
            self._quiet_round()
        assert self._unfinished() == []
        self.everything_holds()
        with self.world.database.reading() as session:
            assert broken_rules(session) == []

    def _unfinished(self) -> list[str]:
        with self.world.database.reading() as session:
            return list(session.scalars(select(Submission.public_id).where(Submission.state.not_in(FINAL))))

    def _quiet_round(self) -> None:
        # Longer than a lease, and than a node rests.
        self.world.wait(61)
        self.world.sweep()
        for name in NODES:
            for task in self._fill(name, None):
                self._send(name, Kind.result, AttemptResult(task.attempt, task.fence, FOUND[task.request.work][0]))

    # --- students and staff ------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.accepted) < MOST)
    @rule(one=HANDED_IN)
    def hand_in(self, one: tuple[str, Lane, bytes, int]) -> None:
        """Late, or again, or for another lane."""
        self._hand_in(*one)

    def _hand_in(self, person: str, lane: Lane, source: bytes, run: int) -> None:
        """By the service that pages and the API call; four in five count."""
        self.world.now += timedelta(seconds=1)
        with self.world.database.transaction() as session:
            made = submissions.submit(
                session, membership=courses.membership(session, _person(session, person), "gpu"),
                assignment="vector_add", mode=Mode.submission if run else Mode.run, lane=lane,
                language=Language.triton, filename="kernel.py", source=source, config=self.world.config,
                now=self.world.now, trace="0" * 32,
            )  # fmt: skip
            self.accepted[made.public_id] = _as_accepted(made)

    @precondition(lambda self: self.accepted)
    @rule(person=st.sampled_from(PEOPLE), which=st.integers(0, 20))
    def cancel(self, person: str, which: int) -> None:
        """Only what waits, has no verdict and is one's own; everything else is refused and changes nothing."""
        name, before = _pick(list(self.accepted), which), self._rows()
        row = self.world.submission(name)
        try:
            with self.world.database.transaction() as session:
                submissions.cancel(session, _person(session, person), name, now=self.world.now)
        except (ConflictError, ForbiddenError, NotFoundError):
            assert self._rows() == before
        else:
            assert row.state in WAITING
            assert row.result_id is None

    @precondition(lambda self: self.accepted)
    @rule(which=st.integers(0, 20))
    def staff_grade_again(self, which: int) -> None:
        """What has ended goes back to the queue; the rest is refused."""
        name, before = _pick(list(self.accepted), which), self._rows()
        state = self.world.state_of(name)
        try:
            with self.world.database.transaction() as session:
                row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
                requeue(session, row, now=self.world.now)
        except ConflictError:
            assert state not in {State.done, State.failed}
            assert self._rows() == before

    # --- dispatchers -------------------------------------------------------------------------------------------------

    @rule()
    def look(self) -> None:
        """Another dispatcher looks at the queues; what it does with that comes later, or never."""
        with self.world.database.reading() as session:
            self.looks = [*self.looks[-2:], dict(look_at_all(session, now=self.world.now))]

    @precondition(lambda self: self.accepted)
    @rule(node=st.sampled_from(list(NODES)))
    def claim(self, node: str) -> None:
        """One slot, from a look of this moment: who comes next is what the policy says."""
        expected = self._next_by_policy(node)
        task = self.world.claim(node)
        claimed = self._submission_of(task) if task is not None else None
        assert claimed == expected
        self.taken += [Taken(node, task)] if task is not None else []

    @rule(node=st.sampled_from(list(NODES)))
    def fill(self, node: str) -> None:
        """All free slots, from a look of this moment."""
        self.taken += [Taken(node, task) for task in self._fill(node, None)]

    @precondition(lambda self: self.looks)
    @rule(node=st.sampled_from(list(NODES)), which=st.integers(0, 3))
    def fill_from_an_old_look(self, node: str, which: int) -> None:
        """Much may have changed since; whoever is claimed has to be as it is now."""
        self.taken += [Taken(node, task) for task in self._fill(node, self.looks.pop(which % len(self.looks)))]

    def _fill(self, node: str, queues: dict[Lane, Queue] | None) -> list[GradeTask]:
        with self.world.database.transaction() as session:
            found = dict(look_at_all(session, now=self.world.now)) if queues is None else queues
            row = nodes.find_node(session, name=node)
            return fill_slots(session, node_id=row.id, queues=found, now=self.world.now, config=self.world.config)

    def _next_by_policy(self, name: str) -> int | None:
        with self.world.database.reading() as session:
            node = nodes.find_node(session, name=name)
            if not nodes.takes_work(session, node, self.world.now) or nodes.free_slots(session, node) < 1:
                return None
            working = nodes.working_nodes(session, now=self.world.now)
            slot = Slot(frozenset(Work(work) for work in node.works), node.quarantine)
            queues = [Queue(look_at(session, Lane(lane), working, now=self.world.now)) for lane in node.lanes]
        heads = [item for queue in queues if (item := queue.next(slot)) is not None]
        return min(heads, key=lambda item: (LINES.index(item.line), item.place_at, item.id)).id if heads else None

    def _submission_of(self, task: GradeTask) -> int:
        with self.world.database.reading() as session:
            return session.scalars(select(Attempt.submission_id).where(Attempt.public_id == task.attempt)).one()

    @rule(heard=st.booleans())
    def sweep(self, heard: bool) -> None:
        """Where the recorder has heard nothing, nobody may be called silent."""
        with self.world.database.transaction() as session:
            session.execute(delete(Tick))
        before = self._rows()
        if heard:
            self.world.tick()
        with self.world.database.transaction() as session:
            swept = sweep.sweep(session, now=self.world.now, config=self.world.config)
        if not heard:
            assert swept == 0
            assert self._rows() == before

    # --- nodes -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.taken)
    @rule(which=st.integers(0, 30), kind=st.sampled_from([Kind.claimed, Kind.heartbeat]))
    def sign_of_life(self, which: int, kind: Kind) -> None:
        taken = _pick(self.taken, which)
        self._say(taken.node, taken, kind, Claim(taken.task.attempt, taken.task.fence, 0.0))

    @precondition(lambda self: self.taken)
    @rule(which=st.integers(0, 30), back=st.integers(0, 2), phase=st.sampled_from(contract.Phase))
    def event(self, which: int, back: int, phase: contract.Phase) -> None:
        """In order, repeated, or late."""
        taken, self.sequence = _pick(self.taken, which), self.sequence + 1
        started = Event(phase=PhaseStarted(phase, float(self.sequence)))
        said = AttemptEvent(taken.task.attempt, taken.task.fence, max(0, self.sequence - back), started)
        self._say(taken.node, taken, Kind.event, said)

    @precondition(lambda self: self.taken)
    @rule(which=st.integers(0, 30), index=st.integers(0, 5))
    def result(self, which: int, index: int) -> None:
        """Good, bad, ours, or one that cannot be; of an attempt that lives or has ended long ago."""
        taken = _pick(self.taken, which)
        found = (*FOUND[taken.task.request.work], OURS, UNFIT)[index]
        self._say(taken.node, taken, Kind.result, AttemptResult(taken.task.attempt, taken.task.fence, found))

    @precondition(lambda self: self.taken)
    @rule(which=st.integers(0, 30), handed_back=st.booleans())
    def failure(self, which: int, handed_back: bool) -> None:
        taken = _pick(self.taken, which)
        said = AttemptFailure(taken.task.attempt, taken.task.fence, "the judge died", handed_back)
        self._say(taken.node, taken, Kind.failure, said)

    @precondition(lambda self: self.taken)
    @rule(which=st.integers(0, 30), node=st.sampled_from(list(NODES)), off=st.sampled_from([-1, 0, 1]))
    def result_by_somebody_else_or_of_another_try(self, which: int, node: str, off: int) -> None:
        taken = _pick(self.taken, which)
        said = AttemptResult(taken.task.attempt, taken.task.fence + off, FOUND[taken.task.request.work][0])
        if off or node != taken.node:
            before = self._rows("node_stamps")
            assert self._send(node, Kind.result, said) is Outcome.foreign
            assert self._rows("node_stamps") == before

    @precondition(lambda self: self.taken)
    @rule(which=st.integers(0, 30), node=st.sampled_from(list(NODES)))
    def forged_result(self, which: int, node: str) -> None:
        """Signed with another key: all that it leaves is an alert."""
        taken, before = _pick(self.taken, which), self._rows("alerts")
        said = AttemptResult(taken.task.attempt, taken.task.fence, FOUND[taken.task.request.work][0])
        assert self._send(node, Kind.result, said, key=STRANGER) is Outcome.refused
        assert self._rows("alerts") == before

    def _say(self, node: str, taken: Taken, kind: Kind, message: Message) -> None:
        """What an attempt's own node says counts while the attempt lives; else it changes not one value in any row."""
        # That the message came is noted in any case.
        attempt, before = self._attempt(taken), self._rows("node_stamps")
        is_news = not isinstance(message, AttemptEvent) or message.sequence > attempt.sequence
        counts = attempt.state in LIVE and is_news
        outcome = self._send(node, kind, message)
        assert outcome is (Outcome.applied if counts else Outcome.late)
        if not counts:
            assert self._rows("node_stamps") == before

    def _send(self, node: str, kind: Kind, message: Message, key: NodeKey | None = None) -> Outcome:
        return self.world.record(self.world.sealed(kind, message, node, key))

    def _attempt(self, taken: Taken) -> Attempt:
        with self.world.database.reading() as session:
            found = session.scalars(select(Attempt).where(Attempt.public_id == taken.task.attempt)).one()
            session.expunge_all()
            return found

    @rule(seconds=st.sampled_from([1, 10, 31, 61, 400]), nodes_live=st.booleans())
    def time_passes(self, seconds: int, nodes_live: bool) -> None:
        self.world.wait(seconds, nodes_live=nodes_live)

    @rule(node=st.sampled_from(list(NODES)), draining=st.booleans())
    def report(self, node: str, draining: bool) -> None:
        lanes, slots = NODES[node]
        report = NodeReport(lanes, slots, draining=draining, facts={}, at=self.world.now.timestamp())
        assert self._send(node, Kind.node, report) is Outcome.applied

    @rule(
        node=st.sampled_from(list(NODES)),
        what=st.sampled_from(["drain", "undrain", "disable", "enable", "quarantine", "free"]),
    )
    def staff_change_a_node(self, node: str, what: str) -> None:
        change: dict[str, Callable[[Any], object]] = {
            "drain": lambda session: nodes.drain(session, name=node, now=self.world.now),
            "undrain": lambda session: nodes.undrain(session, name=node),
            "disable": lambda session: nodes.set_disabled(session, name=node, disabled=True, now=self.world.now),
            "enable": lambda session: nodes.set_disabled(session, name=node, disabled=False, now=self.world.now),
            "quarantine": lambda session: nodes.set_quarantine(session, name=node, quarantine=True),
            "free": lambda session: nodes.set_quarantine(session, name=node, quarantine=False),
        }
        with self.world.database.transaction() as session:
            change[what](session)

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def everything_holds(self) -> None:
        if not getattr(self, "accepted", None):
            return
        with self.world.database.reading() as session:
            rows = {row.id: row for row in session.scalars(select(Submission))}
            attempts = session.scalars(select(Attempt).order_by(Attempt.submission_id, Attempt.id)).all()
            results = session.scalars(select(Result)).all()
            self.what_was_accepted_is_there_as_it_came(rows)
            self.what_runs_has_one_living_attempt_and_no_node_too_many(rows, attempts)
            self.an_attempt_that_finished_has_its_result_and_no_other_has(attempts, results)
            self.fences_grow_by_one(rows, attempts)
            self.what_is_final_says_what_was_found(rows, attempts, results)
            self.a_newer_one_of_the_same_kind_took_the_place(rows)
            self.a_place_is_inherited_or_its_own(rows)
            self.whoever_watches_is_told(rows)

    def what_was_accepted_is_there_as_it_came(self, rows: dict[int, Submission]) -> None:
        assert {row.public_id: _as_accepted(row) for row in rows.values()} == self.accepted
        numbers: dict[tuple[int, Mode], list[int]] = {}
        for row in rows.values():
            numbers.setdefault((row.user_id, row.mode), []).append(row.number)
        assert all(sorted(found) == list(range(1, len(found) + 1)) for found in numbers.values())

    def what_runs_has_one_living_attempt_and_no_node_too_many(self, rows: Any, attempts: Any) -> None:
        live = [item for item in attempts if item.state in LIVE]
        assert sorted(item.submission_id for item in live) == sorted(
            row.id for row in rows.values() if row.state is State.running
        )
        assert all(count <= self.slots[node] for node, count in Counter(item.node_id for item in live).items())

    def an_attempt_that_finished_has_its_result_and_no_other_has(self, attempts: Any, results: Any) -> None:
        finished = {item.id: item.submission_id for item in attempts if item.state is AttemptState.finished}
        assert Counter({row.attempt_id: 1 for row in results}) == Counter(row.attempt_id for row in results)
        assert {row.attempt_id: row.submission_id for row in results} == finished

    def fences_grow_by_one(self, rows: Any, attempts: Any) -> None:
        fences = {row_id: [item.fence for item in attempts if item.submission_id == row_id] for row_id in rows}
        assert all(found == list(range(1, len(found) + 1)) for found in fences.values())
        assert all(0 <= row.attempts_made <= self.world.config.max_attempts for row in rows.values())

    def what_is_final_says_what_was_found(self, rows: Any, attempts: Any, results: Any) -> None:
        found = {row.id: row for row in results}
        for row in rows.values():
            result = found.get(row.result_id)
            if result is not None:
                assert (result.submission_id, result.verdict) == (row.id, row.verdict)
            else:
                # Nothing is charged for what is ours: no verdict about the code, no points.
                assert row.verdict is (Verdict.grader_error if row.state is State.failed else None)
                assert row.points is None
            assert row.state is not State.done or result is not None
            assert row.state is not State.cancelled or result is None
            if row.state is State.failed:
                tries = [item for item in attempts if item.submission_id == row.id]
                lost = [item for item in tries if item.state in {AttemptState.lost, AttemptState.failed}]
                assert len(lost) >= self.world.config.max_attempts
            assert row.state not in FINAL or row.finished_at is not None

    def a_newer_one_of_the_same_kind_took_the_place(self, rows: dict[int, Submission]) -> None:
        for row in rows.values():
            assert row.state is not State.superseded or row.superseded_by_id is not None
            if row.superseded_by_id is not None:
                newer = rows[row.superseded_by_id]
                assert newer.id > row.id  # So there is no circle either.
                assert _kind(newer) == _kind(row)

    def a_place_is_inherited_or_its_own(self, rows: dict[int, Submission]) -> None:
        uploads: dict[tuple[Any, ...], set[Any]] = {}
        for row in rows.values():
            uploads.setdefault(_kind(row), set()).add(row.uploaded_at)
        for row in rows.values():
            if row.line is not Line.regrade and row.state is not State.done:
                assert row.place_at <= row.uploaded_at or row.place_at not in uploads[_kind(row)]
            if row.line in {Line.submission, Line.measuring, Line.run}:
                assert row.place_at in uploads[_kind(row)]
                assert row.place_at <= row.uploaded_at

    def whoever_watches_is_told(self, rows: dict[int, Submission]) -> None:
        for row in rows.values():
            shown = (row.state, row.phase, row.verdict, row.points, row.review)
            revision, before = self.before.get(row.id, (-1, None))
            assert row.revision >= revision
            assert row.revision > revision or shown == before
            self.before[row.id] = (row.revision, shown)

    def _rows(self, without: str = "") -> Rows:
        """Every row of every table that anything here may change."""
        tables = [table for table in Base.metadata.sorted_tables if table.name not in {without, "bundles"}]
        with self.world.database.reading() as session:
            return {table.name: sorted(map(tuple, session.execute(select(table))), key=repr) for table in tables}


def _pick(items: list[Any], which: int) -> Any:
    """The newest for 0."""
    return items[-1 - which % len(items)]


def _person(session: Any, name: str) -> User:
    found: User = session.scalars(select(User).where(User.name == name)).one()
    return found


def _as_accepted(row: Submission) -> tuple[Any, ...]:
    """What never changes."""
    return (row.number, row.mode, row.lane, row.user_id, row.assignment_id, row.source_hash, row.uploaded_at)


def _kind(row: Submission) -> tuple[Any, ...]:
    """One takes over another's place only within this: person, assignment, lane, and late charge."""
    return (row.user_id, row.assignment_id, row.lane, row.mode, days_late(row.uploaded_at, DUE_AT))


def _empty(world: World) -> None:
    """The world as it was made, without making it again."""
    with world.database.transaction() as session:
        # Much faster than TRUNCATE where there are few rows; these two refer to each other.
        session.execute(update(Submission).values(result_id=None, superseded_by_id=None))
        for table in reversed(Base.metadata.sorted_tables):
            if table.name not in KEPT:
                session.execute(delete(table))
        values = {"draining": False, "drained_at": None, "quarantine": False, "disabled_at": None}
        session.execute(update(Node).values(last_seen_at=START, **values))


@contextmanager
def modelled(url: str, folder: Path) -> Iterator[type[Model]]:
    """The model on this database, which is not made to survive a power cut: that costs most of the time."""
    world = World.make(url, folder, submit_quota_per_minute="1000", run_quota_per_minute="1000")
    engine = world.database.engine
    hurry = "SET synchronous_commit = off" if engine.dialect.name == "postgresql" else "PRAGMA synchronous = OFF"
    event.listen(engine, "connect", lambda connection, _record: _run(connection, hurry))
    engine.dispose()
    apart = {"cpu": LanePolicy(), "h200": LanePolicy(speed_points=True, r_full=1.25, r_zero=10.0, apart=True)}
    with world.database.transaction() as session:
        world.publish(session, manifest(lanes=apart))
        session.execute(update(Assignment).values(due_at=DUE_AT))
        session.execute(delete(Node))
    for name, (lanes, slots) in NODES.items():
        world.add_node(name, lanes, slots)
    try:
        with world.database.reading() as session:
            slots = {node.id: NODES[node.name][1] for node in session.scalars(select(Node))}
        yield type("Modelled", (Model,), {"world": world, "slots": slots})
    finally:
        world.database.dispose()


def _run(connection: Any, statement: str) -> None:
    connection.execute(statement)
    connection.commit()


BOUNDED = settings(
    max_examples=40, stateful_step_count=30, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
PROFILE = settings() if settings.get_current_profile_name() == "long" else BOUNDED
SEARCH = settings(BOUNDED, max_examples=500, phases=[Phase.generate], print_blob=False)
QUICK_SEED = 5
"""With it the rarest of the bugs below is found after seconds instead of minutes; any other finds them too."""


@pytest.mark.full("slow")
@pytest.mark.timeout(6000)
def test_everything_holds_whatever_happens(database_url: str, tmp_path: Path) -> None:
    with modelled(database_url, tmp_path) as model:
        run_state_machine_as_test(model, settings=PROFILE)


def _forget_the_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    def given(session: Any, message: Any, _node_id: int) -> Any:
        query = select(Attempt.id, Attempt.submission_id).where(Attempt.public_id == message.attempt)
        return session.execute(query).one_or_none()

    monkeypatch.setattr(recording, "_given", given)


def _forget_the_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep._Sweep, "is_over", lambda _self: false())


def _cancel_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "WAITING", (*WAITING, State.running))
    moves = {**states._SUBMISSION, State.running: (*states._SUBMISSION[State.running], State.cancelled)}
    monkeypatch.setattr(states, "_SUBMISSION", moves)


def _supersede_across_the_due_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supersede, "_same_charge", lambda _one, _other, _due_at: True)


def _write_a_result_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    write, finish = recording.write_result, Attempt.__table__.c

    def twice(session: Any, submission: Submission, attempt: Attempt, result: GradeResult, **at: Any) -> Any:
        row = write(session, submission, attempt, result, **at)
        session.flush()
        first = session.scalars(select(Attempt.id).where(finish.id != attempt.id).order_by(Attempt.id)).first()
        if first is not None and session.scalar(select(Result.id).where(Result.attempt_id == first)) is None:
            session.add(
                Result(
                    attempt_id=first, submission_id=submission.id, verdict=row.verdict, explanation="", payload={},
                    correctness_points=0.0, speed_points=0.0, created_at=row.created_at,
                )
            )  # fmt: skip
        return row

    monkeypatch.setattr(recording, "write_result", twice)


MUTATIONS = (
    _forget_the_fence,
    _forget_the_leases,
    _cancel_what_runs,
    _supersede_across_the_due_date,
    _write_a_result_twice,
)


@pytest.mark.full("slow")
@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__.strip("_"))
def test_the_model_finds_what_is_broken(
    mutate: Callable[[pytest.MonkeyPatch], None], sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    with modelled(sqlite_url, tmp_path) as model, pytest.raises((AssertionError, LadderError, IntegrityError)):
        run_state_machine_as_test(seed(QUICK_SEED)(model), settings=SEARCH)
