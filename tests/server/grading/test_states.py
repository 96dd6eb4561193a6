"""Every interleaving of claim, heartbeat, event, expiry, result, failure, repeats, superseding and cancelling.

The model is driven against the real service on a real database; what must always hold is asserted after each step.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from autograder.assignment import LanePolicy
from autograder.contract import (
    AttemptEvent,
    AttemptFailure,
    Claim,
    Event,
    GradeResult,
    GradeTask,
    Kind,
    Lane,
    Language,
    Mode,
    Phase,
    PhaseStarted,
    Verdict,
    Work,
)
from server.courses import courses
from server.db import Database
from server.errors import ConflictError
from server.grading.interface import FINAL, LIVE, WAITING, Outcome, requeue
from server.grading.states import (
    IllegalTransitionError,
    after_an_end_without_result,
    attempt_moves,
    submission_moves,
)
from server.models import Attempt, AttemptState, Base, Line, Result, State, Submission, User
from server.submissions import submissions
from tests.doubles.world import SOURCE, World, case, manifest, passed, wrong

_COMPILE_ERROR = GradeResult(Verdict.compile_error, "It does not load.", ())
_TIMED = (case("large", ranked=True),)
RESULTS = {
    Work.check: [passed(), wrong(), _COMPILE_ERROR],
    Work.measure: [
        replace(passed(), cases=_TIMED),
        replace(passed(2.0, held=True), cases=_TIMED),
        replace(wrong(), cases=(replace(_TIMED[0], verdict=Verdict.wrong_answer),)),
    ],
    Work.all: [passed(), passed(2.0, held=True), wrong()],
}


@pytest.mark.parametrize("before", list(State))
def test_a_cancelled_submission_goes_nowhere_and_only_a_waiting_one_is_claimed(before):
    with pytest.raises(IllegalTransitionError):
        submission_moves(State.cancelled, before)
    if before in WAITING:
        assert submission_moves(before, State.running) is State.running
    else:
        with pytest.raises(IllegalTransitionError):
            submission_moves(before, State.running)


@pytest.mark.parametrize("ended", [state for state in AttemptState if state not in LIVE])
@pytest.mark.parametrize("after", list(AttemptState))
def test_an_attempt_that_ended_stays_as_it_ended(ended, after):
    with pytest.raises(IllegalTransitionError):
        attempt_moves(ended, after)


@pytest.mark.parametrize(
    ("made", "superseded", "graded_before", "after"),
    [
        (1, False, False, State.queued),
        (2, True, False, State.superseded),
        (3, False, False, State.failed),
        (3, True, False, State.failed),
        (3, False, True, State.done),
        (4, False, False, State.failed),
    ],
)
def test_where_a_submission_goes_when_we_failed(made, superseded, graded_before, after):
    assert after_an_end_without_result(made, 3, superseded=superseded, graded_before=graded_before) is after


def empty(url: str) -> None:
    """Drop every table."""
    database = Database(url)
    Base.metadata.drop_all(database.engine)
    database.dispose()


class Queue(RuleBasedStateMachine):
    """Two students, two nodes, a lane that measures apart, and everything that can happen to what they hand in."""

    url = ""
    """Of a database that is emptied for every example; SQLite in a new folder where it is not set."""

    tasks: Bundle[tuple[str, GradeTask]] = Bundle("tasks")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        if self.url:
            empty(self.url)
        url = self.url or f"sqlite:///{self.folder.name}/l.sqlite"
        self.world = World.make(url, Path(self.folder.name), submit_quota_per_minute="1000")
        self.world.add_node("forge")
        with self.world.database.transaction() as session:
            lanes = {"cpu": LanePolicy(apart=True)}
            self.world.publish(session, manifest(lanes=lanes))
        self.names: dict[str, str] = {}
        self.final: dict[str, tuple[object, ...]] = {}
        self.sequence = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.database.dispose()
            self.folder.cleanup()

    def _is(self, *states: State) -> list[str]:
        return [name for name in getattr(self, "names", {}) if self.world.submission(name).state in states]

    # --- what can happen ---------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.names) < 6)
    @rule(person=st.sampled_from(["Alice", "Bob"]), source=st.sampled_from([SOURCE, b"def vector_add(:", b"#"]))
    def hand_in(self, person, source):
        self.world.wait(1)
        with self.world.database.transaction() as session:
            user = session.scalars(select(User).where(User.name == person)).one()
            made = submissions.submit(
                session, membership=courses.membership(session, user, "gpu"), assignment="vector_add",
                mode=Mode.submission, lane=Lane.cpu, language=Language.triton, filename="kernel.py", source=source,
                config=self.world.config, now=self.world.now, trace="0" * 32,
            )  # fmt: skip
            self.names[made.public_id] = person

    @precondition(lambda self: self.names)
    @rule(data=st.data(), luck=st.integers(0, 3))
    def cancel(self, data, luck):
        if luck:
            return  # Else it would end most examples before anything else can happen.
        name = data.draw(st.sampled_from(list(self.names)))
        before = self.world.submission(name)
        with self.world.database.transaction() as session:
            user = session.scalars(select(User).where(User.name == self.names[name])).one()
            try:
                submissions.cancel(session, user, name, now=self.world.now)
            except ConflictError:
                assert before.state not in WAITING or before.result_id is not None
            else:
                assert before.state in WAITING

    @precondition(lambda self: self._is(State.done, State.failed))
    @rule(data=st.data())
    def staff_grade_again(self, data):
        name = data.draw(st.sampled_from(self._is(State.done, State.failed)))
        with self.world.database.transaction() as session:
            requeue(
                session,
                session.scalars(select(Submission).where(Submission.public_id == name)).one(),
                now=self.world.now,
            )
        self.final.pop(name, None)

    @precondition(lambda self: self._is(*WAITING))
    @rule(target=tasks, node=st.sampled_from(["anvil", "forge"]))
    def claim(self, node):
        task = self.world.claim(node)
        return (node, task) if task else ("", None)

    @precondition(lambda self: self._is(*WAITING))
    @rule(target=tasks, node=st.sampled_from(["anvil", "forge"]), index=st.sampled_from([0, 0, 1, 2]))
    def grade(self, node, index):
        """The usual way, in one step, so that an example has time for the unusual ones."""
        task = self.world.claim(node)
        if task is None:
            return ("", None)
        self.world.finish(task, RESULTS[task.request.work][index], node)
        return (node, task)

    @rule(taken=tasks)
    def claimed(self, taken):
        node, task = taken
        if task:
            self.world.claimed(task, node)

    @rule(taken=tasks)
    def heartbeat(self, taken):
        node, task = taken
        if task:
            self.world.send(Kind.heartbeat, Claim(task.attempt, task.fence, 0.0), node)

    @rule(taken=tasks, back=st.integers(0, 3), phase=st.sampled_from(Phase))
    def event(self, taken, back, phase):
        node, task = taken
        self.sequence += 1
        if task:
            event = Event(phase=PhaseStarted(phase, float(self.sequence)))
            self.world.send(Kind.event, AttemptEvent(task.attempt, task.fence, self.sequence - back, event), node)

    @rule(taken=tasks, index=st.integers(0, 2))
    def result(self, taken, index):
        node, task = taken
        if task:
            self.world.finish(task, RESULTS[task.request.work][index], node)

    @rule(taken=tasks)
    def failure(self, taken):
        node, task = taken
        if task:
            self.world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the judge died"), node)

    @rule(taken=tasks)
    def result_from_another_node(self, taken):
        node, task = taken
        if task:
            other = {"anvil": "forge", "forge": "anvil"}[node]
            assert self.world.finish(task, passed(), other) is Outcome.foreign

    @rule(share=st.sampled_from([0.3, 1.1]))
    def time_passes(self, share):
        self.world.wait(self.world.config.lease_s * share)

    @rule()
    def sweep(self):
        self.world.sweep()

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def everything_holds(self):
        if not getattr(self, "names", None):
            return
        with self.world.database.reading() as session:
            rows = {row.id: row for row in session.scalars(select(Submission))}
            attempts = session.scalars(select(Attempt).order_by(Attempt.submission_id, Attempt.fence)).all()
            results = session.scalars(select(Result)).all()
            self.what_is_final_stays_as_it_is_and_has_what_its_state_says(rows)
            self.every_attempt_that_finished_wrote_one_result_and_no_other_did(attempts, results)
            self.what_runs_has_one_living_attempt_and_no_node_too_many(rows, attempts)
            self.fences_only_grow_by_one_and_attempts_are_bounded(rows, attempts)
            self.a_superseded_one_names_a_newer_one_of_its_person_that_was_not_cancelled(rows)
            self.a_place_is_that_of_one_of_the_persons_uploads(rows)

    def what_is_final_stays_as_it_is_and_has_what_its_state_says(self, rows):
        for row in rows.values():
            now = (row.state, row.result_id, row.verdict, row.points, row.finished_at)
            assert self.final.get(row.public_id, now) == now
            if row.state in FINAL:
                self.final[row.public_id] = now
            assert row.state is not State.done or row.result_id is not None
            if row.state is State.failed and row.result_id is None:
                assert (row.verdict, row.points) == (Verdict.grader_error, None)
            if row.state is State.cancelled:
                assert (row.result_id, row.points) == (None, None)

    def every_attempt_that_finished_wrote_one_result_and_no_other_did(self, attempts, results):
        finished = sorted(attempt.id for attempt in attempts if attempt.state is AttemptState.finished)
        assert sorted(result.attempt_id for result in results) == finished

    def what_runs_has_one_living_attempt_and_no_node_too_many(self, rows, attempts):
        live = [attempt for attempt in attempts if attempt.state in LIVE]
        running = sorted(row.id for row in rows.values() if row.state is State.running)
        assert sorted(attempt.submission_id for attempt in live) == running
        assert len({attempt.node_id for attempt in live}) == len(live)

    def fences_only_grow_by_one_and_attempts_are_bounded(self, rows, attempts):
        fences = {row_id: [item.fence for item in attempts if item.submission_id == row_id] for row_id in rows}
        assert all(found == list(range(1, len(found) + 1)) for found in fences.values())
        assert all(0 <= row.attempts_made <= self.world.config.max_attempts for row in rows.values())

    def a_superseded_one_names_a_newer_one_of_its_person_that_was_not_cancelled(self, rows):
        for row in rows.values():
            assert row.line is not Line.superseded or row.superseded_by_id is not None
            assert row.state is not State.superseded or row.line is Line.superseded
            if row.line is Line.superseded and row.state in WAITING:
                newer = rows[row.superseded_by_id]
                assert newer.id > row.id
                assert newer.user_id == row.user_id
                assert newer.state is not State.cancelled
                assert newer.verdict is not Verdict.compile_error or newer.state is not State.done

    def a_place_is_that_of_one_of_the_persons_uploads(self, rows):
        uploads = {(row.user_id, row.uploaded_at) for row in rows.values()}
        for row in rows.values():
            if row.line in {Line.submission, Line.measuring}:
                assert (row.user_id, row.place_at) in uploads
                assert row.place_at <= row.uploaded_at


PROFILE = settings(max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.full("slow")
def test_every_interleaving_keeps_the_invariants():
    run_state_machine_as_test(Queue, settings=PROFILE)


@pytest.mark.postgres
def test_every_interleaving_keeps_the_invariants_on_postgresql(fresh_postgres):
    machine = type("PostgresQueue", (Queue,), {"url": fresh_postgres})
    run_state_machine_as_test(machine, settings=settings(PROFILE, max_examples=4))
