"""Every interleaving of claim, heartbeat, event, expiry, result, failure, repeats, superseding and cancelling.

The model is driven against the real service on a real database; what must always hold is asserted after each step.
"""

from __future__ import annotations

import tempfile
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

from autograder.contract import (
    AttemptEvent,
    AttemptFailure,
    Claim,
    Event,
    GradeTask,
    Kind,
    Phase,
    PhaseStarted,
    Verdict,
)
from server.db import Database
from server.grading.service import FINAL, LIVE, WAITING, Outcome
from server.grading.states import (
    IllegalTransitionError,
    after_an_end_without_result,
    attempt_moves,
    submission_moves,
)
from server.models import AttemptState, Base, State, Submission
from tests.doubles.world import World, passed, wrong

RESULTS = st.sampled_from([passed(), passed(2.0, held=True), wrong()])


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
    """One submission of Alice's and one of Bob's, two nodes, and everything that can happen to them."""

    url = ""
    """Of a database that is emptied for every example; SQLite in a new folder where it is not set."""

    tasks: Bundle[tuple[str, GradeTask]] = Bundle("tasks")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        if self.url:
            empty(self.url)
        self.world = World.make(self.url or f"sqlite:///{self.folder.name}/l.sqlite", Path(self.folder.name))
        self.world.add_node("forge")
        self.names = [self.world.submit("Alice"), self.world.submit("Bob")]
        self.fences: dict[str, int] = dict.fromkeys(self.names, 0)
        self.recorded: dict[str, tuple[int | None, Verdict | None, float | None]] = {}
        self.sequence = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.database.dispose()
            self.folder.cleanup()

    def _is(self, *states: State) -> bool:
        return any(self.world.submission(name).state in states for name in self.names)

    # --- what can happen ---------------------------------------------------------------------------------------------

    @precondition(lambda self: self._is(*WAITING))
    @rule(target=tasks, node=st.sampled_from(["anvil", "forge"]))
    def claim(self, node):
        task = self.world.claim(node)
        return (node, task) if task else ("", None)

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

    @rule(taken=tasks, result=RESULTS)
    def result(self, taken, result):
        node, task = taken
        if task:
            self.world.finish(task, result, node)

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

    @precondition(lambda self: self._is(State.queued))
    @rule(number=st.sampled_from([0, 1]), to=st.sampled_from([State.superseded, State.cancelled]))
    def supersede_or_cancel(self, number, to):
        with self.world.database.transaction() as session:
            rows = session.query(Submission).order_by(Submission.id).with_for_update().all()
            chosen, other = rows[number], rows[1 - number]
            if chosen.state is State.queued:
                chosen.state = submission_moves(chosen.state, to)
                chosen.superseded_by_id = other.id if to is State.superseded else None
                chosen.priority = 30

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def a_result_is_recorded_at_most_once_and_never_changes(self):
        for name in getattr(self, "names", []):
            row, results = self.world.submission(name), self.world.results(name)
            assert len(results) <= 1
            now = (row.result_id, row.verdict, row.points)
            if name in self.recorded:
                assert now == self.recorded[name]
            if row.state in FINAL:
                self.recorded[name] = now

    @invariant()
    def a_final_submission_is_done_with_a_result_or_failed_without(self):
        for name in getattr(self, "names", []):
            row = self.world.submission(name)
            attempts = self.world.attempts(name)
            live = [attempt for attempt in attempts if attempt.state in LIVE]
            assert (row.state is State.done) == (row.result_id is not None)
            assert len(live) == (1 if row.state is State.running else 0)
            if row.state is State.failed:
                assert row.attempts_made == self.world.config.max_attempts
                assert (row.verdict, row.points) == (Verdict.grader_error, None)

    @invariant()
    def fences_only_grow_by_one_and_count_the_attempts(self):
        for name in getattr(self, "names", []):
            attempts = self.world.attempts(name)
            assert [attempt.fence for attempt in attempts] == list(range(1, len(attempts) + 1))
            assert self.world.submission(name).attempts_made == len(attempts) <= self.world.config.max_attempts
            assert len(attempts) >= self.fences[name]
            self.fences[name] = len(attempts)

    @invariant()
    def no_node_has_more_than_it_has_slots_for(self):
        live: dict[int, int] = {}
        for name in getattr(self, "names", []):
            for attempt in self.world.attempts(name):
                live[attempt.node_id] = live.get(attempt.node_id, 0) + (attempt.state in LIVE)
        assert all(count <= 1 for count in live.values())


PROFILE = settings(max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))


def test_every_interleaving_keeps_the_invariants():
    run_state_machine_as_test(Queue, settings=PROFILE)


@pytest.mark.postgres
def test_every_interleaving_keeps_the_invariants_on_postgresql(fresh_postgres):
    machine = type("PostgresQueue", (Queue,), {"url": fresh_postgres})
    run_state_machine_as_test(machine, settings=settings(PROFILE, max_examples=5))
