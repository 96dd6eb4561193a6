"""Correctness and times in two attempts; regrades; and what happens to a submission under which nodes go silent."""

from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import select

from autograder.assignment import LanePolicy
from autograder.contract import (
    AttemptFailure,
    Finding,
    FindingKind,
    GradeResult,
    Kind,
    Lane,
    Mode,
    Phase,
    PhaseTime,
    Review,
    Verdict,
    Work,
)
from autograder.errors import ContractError
from server.errors import ConflictError
from server.grading.merge_results import merged
from server.grading.requeue import first_work, requeue
from server.models import Alert, AlertKind, AttemptState, CaseRow, Line, Node, State, Submission
from tests.doubles.world import World, case, manifest, measurement, passed, wrong

H200 = {"lane": Lane.h200}


def apart():
    """The world's rung, where the H200 lane measures apart."""
    lanes = manifest().lanes
    return manifest(lanes={**lanes, "h200": dataclasses.replace(lanes["h200"], apart=True)})


def checked(**changes):
    plain = GradeResult(
        Verdict.passed,
        "All cases passed.",
        (case("small"), case("large", ranked=True), case("hidden 7 of 13")),
        phases=(PhaseTime(Phase.checking, 1.0, 2.0),),
        log="hello",
        environment={"torch": "2", "gpu": "none"},
    )
    return dataclasses.replace(plain, **changes)


def measured(ratio=1.0, **changes):
    plain = GradeResult(
        Verdict.passed,
        "Measured.",
        (case("large", ranked=True),),
        measurements=(measurement("large", ratio),),
        phases=(PhaseTime(Phase.measuring, 9.0, 4.0),),
        environment={"gpu": "H200"},
    )
    return dataclasses.replace(plain, **changes)


def too_slow():
    timed = case("large", Verdict.wrong_answer, ranked=True)
    return GradeResult(Verdict.wrong_answer, "Case large was wrong while it was timed.", (timed,))


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    with world.database.transaction() as session:
        world.publish(session, apart())
    world.add_node("forge", lanes=(Lane.h200,))
    yield world
    world.database.dispose()


def submit(world, person="Alice", **changes):
    return world.submit(person, lane=Lane.h200, work=Work.check, **changes)


def finish(world, result, node="forge"):
    task = world.take(node)
    world.finish(task, result, node)
    return task


def fail(world, times=3, node="forge"):
    for _ in range(times):
        task = world.take(node)
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the GPU fell off the bus"), node)


def again(world, name):
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        requeue(session, row, now=world.now)


def alerts(world):
    with world.database.reading() as session:
        return [(row.kind, row.subject, row.resolved_at is None) for row in session.scalars(select(Alert))]


# --- two halves together ---------------------------------------------------------------------------------------------


def test_a_whole_result_has_the_cases_of_the_check_and_the_times_of_the_measurement():
    finding = Finding(FindingKind.library_call, "torch.add")
    whole = merged(checked(findings=(finding,)), measured(findings=(finding,), held=True, held_reason="too fast"))
    assert (whole.verdict, whole.explanation) == (Verdict.passed, "All cases passed.")
    assert [item.name for item in whole.cases] == ["small", "large", "hidden 7 of 13"]
    assert [item.case for item in whole.measurements] == ["large"]
    assert [item.phase for item in whole.phases] == [Phase.checking, Phase.measuring]
    assert (whole.findings, whole.held, whole.held_reason, whole.log) == ((finding,), True, "too fast", "hello")
    assert whole.environment == {"torch": "2", "gpu": "H200"}


def test_a_timed_call_that_failed_makes_the_verdict_worse():
    whole = merged(checked(), too_slow())
    assert (whole.verdict, whole.explanation) == (Verdict.wrong_answer, "Case large was wrong while it was timed.")
    assert [item.verdict for item in whole.cases] == [Verdict.passed, Verdict.wrong_answer, Verdict.passed]


def test_a_case_that_was_not_timed_because_another_failed_is_as_it_was_checked():
    whole = merged(checked(), measured(verdict=Verdict.time_limit, cases=(case("large", None, ranked=True),)))
    assert [item.verdict for item in whole.cases] == [Verdict.passed] * 3


@pytest.mark.parametrize("name", ["small", "invented"])
def test_what_was_not_checked_and_ranked_cannot_be_measured(name):
    with pytest.raises(ContractError, match="no ranked case"):
        merged(checked(), measured(cases=(case(name),)))


def test_a_check_whose_measurement_cannot_be_sent_has_failed_and_keeps_its_verdict(world):
    name = submit(world)
    finish(world, checked())
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        row.source = b"\xff no text any more"
    assert world.claim("forge") is None
    row = world.submission(name)
    assert (row.state, row.verdict) == (State.failed, Verdict.passed)


@pytest.mark.parametrize(
    ("lane", "mode", "work"),
    [
        (Lane.h200, Mode.submission, Work.check),
        (Lane.h200, Mode.run, Work.all),
        (Lane.cpu, Mode.submission, Work.all),
        (Lane.b200, Mode.submission, Work.all),
    ],
)
def test_only_submissions_on_a_lane_that_measures_apart_are_checked_first(lane, mode, work):
    assert first_work(apart(), lane, mode) is work


# --- check, then measure ---------------------------------------------------------------------------------------------


def test_a_check_counts_at_once_and_what_passed_waits_for_its_times(world):
    name = submit(world)
    place = world.submission(name).place_at
    task = finish(world, checked())
    assert task.request.work is Work.check
    row = world.submission(name)
    assert (row.state, row.line, row.work, row.attempts_made) == (State.queued, Line.measuring, Work.measure, 0)
    assert (row.verdict, row.points, row.place_at, row.phase, row.finished_at) == (
        Verdict.passed,
        60,
        place,
        None,
        None,
    )
    task = finish(world, measured(ratio=0.9))
    assert (task.request.work, task.fence) == (Work.measure, 2)
    row = world.submission(name)
    assert (row.state, row.verdict, row.points, row.finished_at) == (State.done, Verdict.passed, 100, world.now)
    check, whole = world.results(name)
    assert (row.result_id, check.ratio, whole.ratio) == (whole.id, None, pytest.approx(0.9))
    with world.database.reading() as session:
        rows = session.scalars(select(CaseRow.name).where(CaseRow.result_id == whole.id).order_by(CaseRow.index)).all()
    assert list(rows) == ["small", "large", "hidden 7 of 13"]


def test_a_check_that_found_a_mistake_is_the_end(world):
    name = submit(world)
    finish(world, wrong())
    row = world.submission(name)
    assert (row.state, row.verdict, row.line) == (State.done, Verdict.wrong_answer, Line.submission)
    assert world.claim("forge") is None


def test_times_that_came_with_a_check_are_not_believed(world):
    name = submit(world)
    finish(world, passed(0.1))
    assert world.results(name)[0].ratio is None


def test_a_lane_that_does_not_rank_is_checked_only(world):
    with world.database.transaction() as session:
        world.publish(session, manifest(lanes={"cpu": LanePolicy(), "h200": LanePolicy(ranks=False, apart=True)}))
    name = submit(world)
    finish(world, checked())
    assert world.state_of(name) is State.done


def test_a_measurement_can_take_a_verdict_back(world):
    name = submit(world)
    finish(world, checked())
    finish(world, too_slow())
    row = world.submission(name)
    assert (row.state, row.verdict, row.points) == (State.done, Verdict.wrong_answer, 30)
    assert len(world.results(name)) == 2


def test_what_we_cannot_measure_has_failed_and_keeps_its_verdict_and_points(world):
    name = submit(world)
    finish(world, checked())
    fail(world)
    row = world.submission(name)
    assert (row.state, row.verdict, row.points, row.finished_at) == (State.failed, Verdict.passed, 60, world.now)
    assert (AlertKind.submission_failed, f"submission:{name}", True) in alerts(world)
    again(world, name)
    row = world.submission(name)
    assert (row.state, row.line, row.work, row.verdict) == (State.queued, Line.regrade, Work.measure, Verdict.passed)
    assert (AlertKind.submission_failed, f"submission:{name}", False) in alerts(world)
    fail(world)
    assert world.state_of(name) is State.failed
    again(world, name)
    finish(world, measured())
    assert (world.state_of(name), world.submission(name).points) == (State.done, 100)


def test_a_measurement_of_something_else_is_a_failed_attempt(world):
    name = submit(world)
    finish(world, checked())
    finish(world, measured(cases=(case("invented"),)))
    attempt = world.attempts(name)[-1]
    assert (attempt.state, "no ranked case" in attempt.reason) == (AttemptState.failed, True)
    assert (world.state_of(name), len(world.results(name))) == (State.queued, 1)


def test_a_repeated_check_does_not_measure_twice(world):
    name = submit(world)
    task = finish(world, checked())
    world.finish(task, checked(), "forge")
    assert (len(world.results(name)), world.submission(name).work) == (1, Work.measure)


def test_a_node_for_measuring_takes_no_checks(world):
    with world.database.transaction() as session:
        node = session.scalars(select(Node).where(Node.name == "forge")).one()
        node.works = [Work.measure.value]
    name = submit(world)
    assert world.claim("forge") is None
    world.add_node("bench", lanes=(Lane.h200,))
    finish(world, checked(), "bench")
    assert world.take("forge").trace == world.submission(name).trace


def test_a_newer_one_that_passed_takes_the_place_of_an_older_that_waits_for_its_times(world):
    older = submit(world)
    finish(world, checked())
    world.wait(60)
    newer = submit(world)
    assert world.submission(older).line is Line.measuring
    finish(world, checked())
    row = world.submission(newer)
    assert (row.line, row.place_at) == (Line.measuring, world.submission(older).place_at)
    row = world.submission(older)
    assert (row.state, row.line, row.work, row.points) == (State.superseded, Line.superseded, Work.measure, 60)


def test_a_newer_one_that_is_wrong_takes_nothing_from_an_older_that_waits_for_its_times(world):
    older = submit(world)
    finish(world, checked())
    submit(world)
    finish(world, wrong())
    row = world.submission(older)
    assert (row.state, row.line, row.work) == (State.queued, Line.measuring, Work.measure)


def test_a_superseded_one_is_checked_and_measured_at_the_lowest_priority(world):
    newer = submit(world, state=State.cancelled)
    name = submit(world, state=State.superseded, line=Line.superseded, superseded_by_id=world.submission(newer).id)
    finish(world, checked())
    row = world.submission(name)
    assert (row.state, row.line, row.work) == (State.superseded, Line.superseded, Work.measure)
    finish(world, measured())
    assert (world.state_of(name), world.submission(name).points) == (State.done, 100)


# --- regrades --------------------------------------------------------------------------------------------------------


def test_a_regrade_keeps_what_counts_until_it_is_whole(world):
    name = submit(world)
    finish(world, checked())
    finish(world, measured(ratio=0.9))
    world.wait(60)
    again(world, name)
    row = world.submission(name)
    assert (row.state, row.line, row.work, row.points) == (State.queued, Line.regrade, Work.check, 100)
    assert (row.attempts_made, row.place_at) == (0, world.now)
    finish(world, checked())
    row = world.submission(name)
    assert (row.line, row.work, row.points) == (Line.regrade, Work.measure, 100)
    finish(world, measured(ratio=20.0))
    assert (world.state_of(name), world.submission(name).points) == (State.done, 60)


def test_a_regrade_that_we_cannot_measure_leaves_the_result_from_before(world):
    name = submit(world)
    finish(world, checked())
    finish(world, measured())
    again(world, name)
    finish(world, checked())
    fail(world)
    row = world.submission(name)
    assert (row.state, row.verdict, row.points) == (State.done, Verdict.passed, 100)


def test_what_failed_without_a_result_starts_again_without_a_verdict(world):
    name = submit(world)
    fail(world)
    assert world.submission(name).verdict is Verdict.grader_error
    again(world, name)
    row = world.submission(name)
    assert (row.state, row.line, row.verdict, row.finished_at) == (State.queued, Line.regrade, None, None)
    finish(world, checked())
    assert (world.submission(name).points, world.submission(name).line) == (60, Line.regrade)


@pytest.mark.parametrize("state", [State.queued, State.running, State.superseded, State.cancelled])
def test_only_what_has_ended_is_regraded(world, state):
    name = submit(world, state=state)
    with pytest.raises(ConflictError, match=f"is {state}"):
        again(world, name)


# --- suspects --------------------------------------------------------------------------------------------------------


def go_silent(world, node="forge"):
    task = world.take(node)
    world.claimed(task, node)
    world.wait(world.config.lease_s + 1)
    world.sweep()
    return task


def test_a_suspect_runs_alone_and_is_none_any_more_once_it_has_a_result(world):
    world.add_node("bench", lanes=(Lane.h200,), slots=3)
    name, other = submit(world), submit(world, "Bob")
    for node in ("forge", "bench"):
        world.claimed(world.take(node), node)
    world.wait(world.config.lease_s + 1)
    world.sweep()
    assert [world.submission(each).suspect for each in (name, other)] == [True, True]
    third = submit(world, source=b"#")
    first = world.take("bench")
    assert first.trace == world.submission(name).trace
    assert world.take("bench").trace == world.submission(third).trace
    assert world.claim("bench") is None
    world.finish(first, wrong(), "bench")
    assert not world.submission(name).suspect
    assert world.take("bench").trace == world.submission(other).trace


def test_an_attempt_that_no_node_began_raises_no_suspicion(world):
    name = submit(world)
    world.take("forge")
    world.wait(world.config.lease_s + 1)
    world.sweep()
    assert not world.submission(name).suspect


def test_a_node_in_quarantine_gets_suspects_only_and_no_other_gets_them(world):
    world.add_node("cell", lanes=(Lane.h200,))
    with world.database.transaction() as session:
        session.scalars(select(Node).where(Node.name == "cell")).one().quarantine = True
    name = submit(world)
    assert world.claim("cell") is None
    go_silent(world)
    other = submit(world, "Bob")
    assert world.take("forge").trace == world.submission(other).trace
    assert world.take("cell").trace == world.submission(name).trace


def test_a_suspect_that_used_up_its_attempts_is_held_and_told_to_staff(world):
    name = submit(world)
    for _ in range(world.config.max_attempts):
        go_silent(world)
    row = world.submission(name)
    assert (row.state, row.review, row.verdict, row.points) == (State.failed, Review.held, Verdict.grader_error, None)
    assert (AlertKind.suspect_held, f"submission:{name}", True) in alerts(world)


def test_a_suspect_in_its_measurement_keeps_its_correctness_points(world):
    name = submit(world)
    finish(world, checked())
    for _ in range(world.config.max_attempts):
        go_silent(world)
    row = world.submission(name)
    assert (row.state, row.review, row.verdict, row.points) == (State.failed, Review.held, Verdict.passed, 60)
