from __future__ import annotations

import dataclasses
import threading
from datetime import timedelta

import pytest
from sqlalchemy import select

from autograder.contract import (
    AttemptEvent,
    AttemptFailure,
    AttemptResult,
    CaseFinished,
    Claim,
    Event,
    GradeResult,
    Kind,
    Lane,
    Mode,
    NodeReport,
    Phase,
    PhaseStarted,
    PhaseTime,
    Review,
    StudentError,
    Verdict,
)
from broker.identity import NodeKey
from server.grading.interface import Outcome
from server.models import AttemptState, CaseRow, Line, State, Submission
from server.nodes import nodes
from tests.doubles.world import SOURCE, World, case, measurement, passed, wrong


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    yield world
    world.database.dispose()


def phase(task, sequence, which=Phase.checking):
    return AttemptEvent(task.attempt, task.fence, sequence, Event(phase=PhaseStarted(which, 1000.0 + sequence)))


# --- claiming --------------------------------------------------------------------------------------------------------


def test_a_claim_makes_an_attempt_and_a_task_that_names_no_person(world):
    submission = world.submit()
    task = world.take()
    assert task.request.source.encode().startswith(SOURCE)
    assert (task.request.slug, task.fence, task.lease_s) == ("vector_add", 1, world.config.lease_s)
    assert "lice" not in repr(task)
    row = world.submission(submission)
    assert (row.state, row.attempts_made, row.revision) == (State.running, 1, 1)
    assert [attempt.state for attempt in world.attempts(submission)] == [AttemptState.dispatched]


def test_submissions_go_before_runs_then_place_then_id(world):
    world.add_node("wide", slots=8)
    late_run = world.submit(mode=Mode.run, line=Line.run)
    world.wait(1)
    second = world.submit("Bob")
    third = world.submit("Bob")
    first = world.submit(place_at=world.now - timedelta(minutes=1))
    order = [world.take("wide").trace for _ in range(4)]
    assert order == [world.submission(name).trace for name in (first, second, third, late_run)]


def test_a_superseded_submission_is_graded_when_its_turn_comes(world):
    submission = world.submit(state=State.superseded, line=Line.superseded)
    world.finish(world.take())
    assert world.submission(submission).state is State.done


def test_a_cancelled_submission_is_never_claimed(world):
    world.submit(state=State.cancelled)
    assert world.claim() is None


def test_a_node_gets_only_what_its_lanes_grade(world):
    world.submit(lane=Lane.h200)
    assert world.claim() is None
    world.add_node("forge", lanes=(Lane.h200,))
    assert world.claim("forge") is not None


def test_a_node_with_no_free_slot_gets_nothing(world):
    world.submit()
    world.submit()
    task = world.take()
    assert world.claim() is None
    world.finish(task)
    assert world.claim() is not None


def test_a_draining_silent_or_disabled_node_gets_nothing(world):
    world.submit()
    report = NodeReport((Lane.cpu,), 1, draining=True, facts={}, at=0.0)
    world.send(Kind.node, report)
    assert world.claim() is None
    world.send(Kind.node, dataclasses.replace(report, draining=False))
    world.wait(nodes.SILENCE_S + 1, nodes_live=False)
    assert world.claim() is None
    world.wait(0)
    with world.database.transaction() as session:
        nodes.set_disabled(session, name="anvil", disabled=True, now=world.now)
    assert world.claim() is None
    with world.database.transaction() as session:
        nodes.set_disabled(session, name="anvil", disabled=False, now=world.now)
    assert world.claim() is not None


def test_many_dispatchers_at_once_claim_every_submission_once(world):
    world.add_node("wide", slots=64)
    for _ in range(20):
        world.submit()
    claimed: list[str] = []

    def dispatch() -> None:
        while (task := world.claim("wide")) is not None:
            claimed.append(task.attempt)

    threads = [threading.Thread(target=dispatch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len(set(claimed)) == 20
    with world.database.reading() as session:
        assert set(session.scalars(select(Submission.attempts_made))) == {1}


# --- recording -------------------------------------------------------------------------------------------------------


def test_a_result_is_recorded_and_counts(world):
    submission = world.grade(passed())
    row = world.submission(submission)
    assert (row.state, row.verdict, row.points, row.phase) == (State.done, Verdict.passed, 60, None)
    (result,) = world.results(submission)
    assert (row.result_id, row.finished_at) == (result.id, world.now)
    assert result.ratio == pytest.approx(1.0)
    (attempt,) = world.attempts(submission)
    assert attempt.state is AttemptState.finished
    with world.database.reading() as session:
        rows = session.scalars(select(CaseRow).order_by(CaseRow.index)).all()
        session.expunge_all()
    assert [(item.name, item.verdict) for item in rows] == [
        ("small", Verdict.passed),
        ("large", Verdict.passed),
        ("hidden 7 of 13", Verdict.passed),
    ]
    assert rows[1].ratio == pytest.approx(1.0)


def test_a_repeated_result_changes_nothing(world):
    submission = world.submit()
    task = world.take()
    assert world.finish(task) is Outcome.applied
    before = world.submission(submission).revision
    assert world.finish(task, wrong()) is Outcome.late
    row = world.submission(submission)
    assert (row.verdict, row.revision, len(world.results(submission))) == (Verdict.passed, before, 1)


def test_practice_counts_for_nothing(world):
    submission = world.grade(passed(), mode=Mode.run)
    row = world.submission(submission)
    (result,) = world.results(submission)
    assert (row.verdict, row.points, result.correctness_points) == (Verdict.passed, None, 0)


def test_a_held_result_keeps_its_verdict_and_waits_with_its_speed_points(world):
    world.add_node("forge", lanes=(Lane.h200,))
    submission = world.grade(passed(held=True), node="forge", lane=Lane.h200)
    row = world.submission(submission)
    assert (row.verdict, row.review, row.points) == (Verdict.passed, Review.held, 60)
    assert world.results(submission)[0].speed_points == 40


def test_a_claim_and_heartbeats_keep_an_attempt_alive(world):
    submission = world.submit()
    task = world.take()
    world.claimed(task)
    for _ in range(5):
        world.wait(world.config.lease_s * 0.9)
        assert world.send(Kind.heartbeat, Claim(task.attempt, task.fence, 0.0)) is Outcome.applied
        assert world.sweep() == 0
    (attempt,) = world.attempts(submission)
    assert (attempt.state, attempt.heartbeat_at) == (AttemptState.running, world.now)


def test_events_show_phases_and_cases_without_what_is_hidden(world):
    submission = world.submit()
    task = world.take()
    world.send(Kind.event, phase(task, 0, Phase.preparing))
    world.send(Kind.event, phase(task, 1, Phase.checking))
    secret = case("hidden 7 of 13", Verdict.wrong_answer, message="Expected 3.0 at index 12.")
    for sequence, shown in ((2, case("small")), (3, secret)):
        finished = CaseFinished(sequence - 2, 2, shown)
        world.send(Kind.event, AttemptEvent(task.attempt, task.fence, sequence, Event(case=finished)))
    row = world.submission(submission)
    (attempt,) = world.attempts(submission)
    assert row.phase is Phase.checking
    assert attempt.phases == [{"phase": "preparing", "at": 1000.0}, {"phase": "checking", "at": 1001.0}]
    assert [item["name"] for item in attempt.live_cases] == ["small", "odd sizes"]
    assert "index 12" not in str(attempt.live_cases)
    assert row.revision == 6


def test_an_event_that_comes_late_or_twice_changes_nothing(world):
    submission = world.submit()
    task = world.take()
    world.send(Kind.event, phase(task, 4, Phase.measuring))
    before = world.submission(submission).revision
    assert world.send(Kind.event, phase(task, 3, Phase.checking)) is Outcome.late
    assert world.send(Kind.event, phase(task, 4, Phase.measuring)) is Outcome.late
    row = world.submission(submission)
    assert (row.phase, row.revision) == (Phase.measuring, before)


def test_the_phases_of_the_result_replace_the_live_ones(world):
    submission = world.submit()
    task = world.take()
    world.send(Kind.event, phase(task, 0))
    phases = (PhaseTime(Phase.checking, 5.0, 0.5), PhaseTime(Phase.measuring, 5.5, 2.0))
    world.finish(task, dataclasses.replace(passed(), phases=phases))
    (attempt,) = world.attempts(submission)
    assert attempt.phases == [{"phase": "checking", "at": 5.0}, {"phase": "measuring", "at": 5.5}]
    assert attempt.live_cases == []


def test_a_forged_signature_is_refused(world):
    submission = world.submit()
    task = world.take()
    message = AttemptResult(task.attempt, task.fence, passed())
    assert world.send(Kind.result, message, key=NodeKey.generate()) is Outcome.refused
    assert world.send(Kind.result, message, node="anvil") is Outcome.applied
    assert len(world.results(submission)) == 1


def test_a_node_cannot_speak_for_the_attempt_of_another(world):
    world.add_node("forge")
    submission = world.submit()
    task = world.take("anvil")
    assert world.finish(task, node="forge") is Outcome.foreign
    assert world.submission(submission).state is State.running


def test_another_fence_than_the_attempts_own_is_foreign(world):
    world.submit()
    task = world.take()
    assert world.finish(dataclasses.replace(task, fence=2)) is Outcome.foreign


def test_a_disabled_nodes_running_attempt_may_still_finish(world):
    submission = world.submit()
    task = world.take()
    with world.database.transaction() as session:
        nodes.set_disabled(session, name="anvil", disabled=True, now=world.now)
    assert world.finish(task) is Outcome.applied
    assert world.submission(submission).state is State.done


# --- whose fault -----------------------------------------------------------------------------------------------------


def test_an_expired_lease_gives_the_submission_back_with_its_place_kept(world):
    submission = world.submit()
    place = world.submission(submission).place_at
    world.claimed(world.take())
    world.wait(world.config.lease_s + 1)
    assert world.sweep() == 1
    row = world.submission(submission)
    (attempt,) = world.attempts(submission)
    assert (row.state, row.place_at, row.verdict, row.points) == (State.queued, place, None, None)
    assert (attempt.state, attempt.reason) == (AttemptState.lost, "the node fell silent")
    assert world.take().fence == 2


def test_a_node_that_let_an_attempt_expire_gets_no_other_before_it_is_heard_of_again(world):
    submission = world.submit()
    world.take()
    world.wait(world.config.lease_s + 1)
    world.sweep(nodes_live=False)
    assert world.submission(submission).state is State.queued
    assert world.claim() is None
    world.send(Kind.node, NodeReport((Lane.cpu,), 1, draining=False, facts={}, at=0.0))
    assert world.claim() is not None


def test_a_superseded_submission_goes_back_to_its_own_queue(world):
    newer = world.submit(state=State.cancelled)
    submission = world.submit(state=State.superseded, line=Line.superseded, superseded_by_id=world.submission(newer).id)
    world.take()
    world.wait(world.config.lease_s + 1)
    world.sweep()
    row = world.submission(submission)
    assert (row.state, row.line) == (State.superseded, Line.superseded)


def test_a_late_result_of_a_lost_attempt_changes_nothing(world):
    submission = world.submit()
    lost = world.take()
    world.wait(world.config.lease_s + 1)
    world.sweep()
    assert world.finish(lost) is Outcome.late
    second = world.take()
    assert world.finish(lost) is Outcome.late
    assert world.finish(second, wrong()) is Outcome.applied
    assert world.finish(lost) is Outcome.late
    assert [result.verdict for result in world.results(submission)] == [Verdict.wrong_answer]


def test_after_the_last_attempt_a_submission_has_failed_and_it_was_us(world):
    submission = world.submit()
    for _ in range(world.config.max_attempts):
        assert world.submission(submission).state is State.queued
        task = world.take()
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the judge died"))
    row = world.submission(submission)
    assert (row.state, row.verdict, row.points) == (State.failed, Verdict.grader_error, None)
    assert [attempt.state for attempt in world.attempts(submission)] == [AttemptState.failed] * 3
    assert world.claim() is None


def fail(world, task, node="anvil"):
    world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the GPU fell off the bus"), node)


def failing_node(world, submissions):
    """A node `sick` on which one attempt at each of so many submissions failed; their ids."""
    world.add_node("sick", slots=submissions)
    names = [world.submit() for _ in range(submissions)]
    for task in [world.take("sick") for _ in names]:
        fail(world, task, "sick")
    return names


def test_a_node_on_which_three_submissions_failed_rests_for_a_minute(world):
    failed = failing_node(world, 3)
    # Before all others, as soon as the node takes anything.
    fourth = world.submit("Bob", place_at=world.now - timedelta(minutes=1))
    assert world.claim("sick") is None
    world.wait(nodes.REST_S - 1)
    assert world.claim("sick") is None
    assert (world.submission(fourth).attempts_made, world.attempts(fourth)) == (0, [])
    assert [world.submission(name).attempts_made for name in failed] == [1, 1, 1]
    world.wait(1)
    world.finish(world.take("sick"), node="sick")
    assert world.submission(fourth).state is State.done


def test_another_node_works_on_while_one_rests(world):
    failing_node(world, 3)
    assert world.claim("sick") is None
    assert world.claim("anvil") is not None


def test_lost_attempts_make_a_node_rest_as_failed_ones_do(world):
    world.add_node("sick", slots=3)
    submissions = [world.submit() for _ in range(3)]
    for _ in submissions:
        world.take("sick")
    world.wait(world.config.lease_s + 1)
    assert world.sweep() == 3
    assert world.claim("sick") is None
    world.wait(nodes.REST_S)
    assert world.claim("sick") is not None


def test_a_node_that_still_fails_after_its_rest_rests_again(world):
    failing_node(world, 3)
    world.wait(nodes.REST_S)
    fail(world, world.take("sick"), "sick")
    assert world.claim("sick") is None


def test_a_result_among_the_failures_keeps_a_node_at_work(world):
    failing_node(world, 2)
    world.submit("Bob", place_at=world.now - timedelta(minutes=1))
    world.finish(world.take("sick"), node="sick")
    world.submit("Bob", place_at=world.now - timedelta(minutes=1))
    fail(world, world.take("sick"), "sick")
    assert world.claim("sick") is not None


def test_one_poisonous_submission_fails_as_ours_and_makes_no_node_rest(world):
    poison = world.submit()
    for _ in range(world.config.max_attempts):
        fail(world, world.take())
    row = world.submission(poison)
    assert (row.state, row.verdict) == (State.failed, Verdict.grader_error)
    other = world.submit()
    assert world.finish(world.take()) is Outcome.applied
    assert world.submission(other).state is State.done


def test_an_attempt_that_outlives_its_deadline_is_ended_although_it_says_it_is_alive(world):
    submission = world.submit()
    task = world.take()
    for _ in range(100):
        world.wait(world.config.lease_s / 2)
        world.send(Kind.heartbeat, Claim(task.attempt, task.fence, 0.0))
        if world.sweep():
            break
    (attempt,) = world.attempts(submission)
    assert attempt.reason == "the deadline of the attempt passed"
    lived = (world.now - attempt.dispatched_at).total_seconds()
    assert lived <= world.config.attempt_deadline_s + 2 * world.config.lease_s


def test_a_grader_error_is_a_failed_attempt_and_no_result(world):
    error = StudentError("HarnessError", "no reference", ())
    result = GradeResult(Verdict.grader_error, "The grader failed.", (), error=error)
    submission = world.grade(result)
    row = world.submission(submission)
    (attempt,) = world.attempts(submission)
    assert (row.state, row.verdict, world.results(submission)) == (State.queued, None, [])
    assert (attempt.state, "no reference" in attempt.reason) == (AttemptState.failed, True)


def test_a_result_with_an_impossible_number_is_a_failed_attempt(world):
    submission = world.grade(dataclasses.replace(passed(), measurements=(measurement("large", 0.0, spread=0),)))
    assert (world.submission(submission).state, world.results(submission)) == (State.queued, [])
    assert "does not fit" in world.attempts(submission)[0].reason


def test_a_submission_that_is_graded_again_keeps_its_result_if_we_fail(world):
    submission = world.grade(passed())
    with world.database.transaction() as session:
        row = session.scalars(select(Submission)).one()
        row.state, row.attempts_made = State.queued, world.config.max_attempts - 1
    world.claimed(world.take())
    world.wait(world.config.lease_s + 1)
    world.sweep()
    row = world.submission(submission)
    assert (row.state, row.verdict, row.points) == (State.done, Verdict.passed, 60)
    assert [attempt.fence for attempt in world.attempts(submission)] == [1, 2]
