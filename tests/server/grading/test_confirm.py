"""Times that have to be taken again, what is graded once more, and what a person decides."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from autograder.assignment import LanePolicy
from autograder.contract import (
    AttemptFailure,
    Calibration,
    GpuFacts,
    GradeResult,
    Kind,
    Lane,
    Mode,
    NodeReport,
    Review,
    Verdict,
    Work,
)
from server.errors import ConflictError
from server.grading.confirm import confirm_due, measure_suspects_again
from server.grading.requeue import requeue
from server.grading.review import decide
from server.leaderboard.board import board
from server.models import (
    Alert,
    AlertKind,
    Assignment,
    AuditEntry,
    ChangeReason,
    Enrolment,
    GradeChange,
    Line,
    Node,
    Result,
    State,
    Submission,
)
from server.reconciliation.checks import broken_rules
from tests.doubles.world import World, case, manifest, measurement, passed, wrong

GPU = {"lane": Lane.h200}
TROUBLE = GpuFacts("NVIDIA H200", "GPU-1", "580", trouble="it was throttled: hardware_thermal")


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    for name in ("forge", "kiln"):
        world.add_node(name, lanes=(Lane.h200,))
    yield world
    world.database.dispose()


def asks(reason="The interval is too wide.", ratio=2.0, **changes):
    return dataclasses.replace(passed(ratio), remeasure=reason, **changes)


def finish(world, result, *nodes):
    """The next attempt, on whichever of these nodes gets it; which one that was."""
    for node in nodes or ("forge", "kiln"):
        task = world.claim(node)
        if task is not None:
            world.finish(task, result, node)
            return node
    raise AssertionError("no node got anything")


def alerts(world):
    with world.database.reading() as session:
        return [row.kind for row in session.scalars(select(Alert).where(Alert.resolved_at.is_(None)))]


def on_board(world):
    with world.database.reading() as session:
        found = board(session, assignment=session.scalars(select(Assignment)).one(), lane=Lane.h200)
        return [(entry.submission, entry.confirmations) for entry in found.entries]


def confirm(world, when=0.0):
    with world.database.transaction() as session:
        return confirm_due(session, now=world.now + timedelta(hours=when))


def review(world, name, decision):
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        decide(session, row, decision, actor=None, reason="reviewed it", now=world.now)


def balanced(world):
    with world.database.reading() as session:
        return broken_rules(session) == []


# --- measured again --------------------------------------------------------------------------------------------------


def test_what_asks_to_be_measured_again_keeps_its_correctness_and_goes_to_another_node(world):
    name = world.submit(**GPU)
    first = finish(world, asks())
    row = world.submission(name)
    assert (row.state, row.line, row.verdict, row.points) == (State.queued, Line.measuring, Verdict.passed, 60)
    assert (row.review, on_board(world)) == (Review.none, [])
    assert world.claim(first) is None
    task = world.take({"forge": "kiln", "kiln": "forge"}[first])
    assert task.request.remeasured == 1
    world.finish(task, passed(2.0), {"forge": "kiln", "kiln": "forge"}[first])
    row = world.submission(name)
    assert (row.state, row.review, row.avoid_node_id) == (State.done, Review.none, None)
    assert row.points > 60
    assert [found for found, _ in on_board(world)] == [name]
    assert balanced(world)


def test_the_same_node_does_it_where_there_is_no_other(world):
    world.submit(**GPU)
    first = finish(world, asks())
    with world.database.transaction() as session:
        for node in session.scalars(select(Node).where(Node.name != first)):
            node.drained_at = world.now
    assert finish(world, passed(2.0)) == first


def test_after_two_times_it_is_held_for_a_person(world):
    name = world.submit(**GPU)
    for _ in range(3):
        finish(world, asks("The reference was slowed."))
    row = world.submission(name)
    assert (row.state, row.verdict, row.review, row.points) == (State.done, Verdict.passed, Review.held, 60)
    assert alerts(world) == [AlertKind.result_held]
    review(world, name, Review.cleared)
    assert world.submission(name).points > 60
    assert alerts(world) == []


def test_a_judge_that_holds_is_not_asked_again(world):
    name = world.grade(asks(held=True, held_reason="below the floor"), node="forge", **GPU)
    assert (world.state_of(name), world.submission(name).review) == (State.done, Review.held)


def test_what_a_node_in_trouble_measured_is_measured_again_and_nobody_is_held_for_it(world):
    name = world.submit(**GPU)
    for _ in range(2):
        finish(world, dataclasses.replace(passed(2.0), gpu=TROUBLE))
        assert (world.state_of(name), world.submission(name).points) == (State.queued, 60)
    assert world.submission(name).remeasured == 0
    finish(world, dataclasses.replace(passed(2.0), gpu=TROUBLE))
    row = world.submission(name)
    assert (row.state, row.verdict, row.review, row.points) == (State.failed, Verdict.passed, Review.none, 60)
    assert alerts(world) == [AlertKind.submission_failed]
    assert balanced(world)
    with world.database.transaction() as session:
        requeue(session, session.scalars(select(Submission)).one(), now=world.now)
    finish(world, passed(2.0))
    assert (world.state_of(name), world.submission(name).points > 60) == (State.done, True)


def test_a_node_that_breaks_while_it_measures_again_costs_no_verdict(world):
    name = world.submit(**GPU)
    finish(world, asks())
    for _ in range(3):
        node, task = next((node, task) for node in ("forge", "kiln") if (task := world.claim(node)))
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the GPU fell off the bus"), node)
        world.wait(120)
    row = world.submission(name)
    assert (row.state, row.verdict, row.points) == (State.failed, Verdict.passed, 60)
    assert balanced(world)


def test_practice_and_lanes_without_speed_points_are_never_measured_again(world):
    run = world.submit(mode=Mode.run, line=Line.run, **GPU)
    finish(world, asks())
    cpu = world.grade(asks(), "Bob")
    for name in (run, cpu):
        assert (world.state_of(name), world.submission(name).review) == (State.done, Review.none)


def test_what_an_older_version_graded_otherwise_is_not_confirmed(world):
    world.grade(passed(2.0), node="forge", **GPU)
    with world.database.transaction() as session:
        world.publish(session, manifest(entry="vector_sum"))
    assert confirm(world) == 0


def test_a_lane_that_measures_apart_measures_again_without_another_check(world):
    lanes = manifest().lanes
    with world.database.transaction() as session:
        world.publish(session, manifest(lanes={**lanes, "h200": dataclasses.replace(lanes["h200"], apart=True)}))
    name = world.submit(work=Work.check, **GPU)
    finish(world, GradeResult(Verdict.passed, "Passed.", (case("small"), case("large", ranked=True))))
    measured = GradeResult(
        Verdict.passed, "Measured.", (case("large", ranked=True),), measurements=(measurement("large", 2.0),)
    )
    finish(world, dataclasses.replace(measured, remeasure="too wide"))
    assert (world.submission(name).work, world.submission(name).points) == (Work.measure, 60)
    finish(world, measured)
    assert [item.work for item in world.attempts(name)] == [Work.check, Work.measure, Work.measure]
    assert world.submission(name).points > 60


def test_the_best_verified_times_travel_with_a_request_that_is_timed(world):
    world.grade(passed(2.0), node="forge", **GPU)
    world.grade(passed(1.5), "Bob", node="forge", **GPU)
    world.grade(dataclasses.replace(passed(0.01), held=True), "Bob", node="forge", **GPU)
    world.submit(**GPU)
    assert world.take("forge").request.best_us == {"large": pytest.approx(150.0)}
    world.submit()
    assert world.take("anvil").request.best_us == {}


# --- confirmed -------------------------------------------------------------------------------------------------------


def test_what_counts_is_graded_once_more_by_another_node_and_keeps_its_grade_meanwhile(world):
    name = world.submit(**GPU)
    first = finish(world, passed(2.0))
    points = world.submission(name).points
    assert confirm(world) == 1
    row = world.submission(name)
    assert (row.state, row.line, row.verdict, row.points) == (State.queued, Line.confirm, Verdict.passed, points)
    assert on_board(world) == [(name, 0)]
    assert finish(world, passed(2.0)) != first
    assert (world.state_of(name), world.submission(name).confirmations) == (State.done, 1)
    assert on_board(world) == [(name, 1)]
    assert balanced(world)


def test_only_the_best_of_each_person_with_a_speed_that_counts_is_confirmed(world):
    world.grade(passed(3.0), node="forge", **GPU)
    best = world.grade(passed(2.0), node="forge", **GPU)
    world.grade(dataclasses.replace(passed(1.0), held=True), node="forge", **GPU)
    world.grade(passed(1.0), "Bob")  # on the CPU lane
    world.grade(wrong(), "Bob", node="forge", **GPU)
    assert confirm(world) == 1
    assert world.state_of(best) is State.queued
    assert confirm(world) == 0


def test_what_staff_cleared_stands_on_the_board_and_is_confirmed(world):
    """Also where its time never settled: what is confirmed is what the board shows, by the same query."""
    name = world.grade(dataclasses.replace(passed(2.0), held=True), node="forge", **GPU)
    with world.database.transaction() as session:
        session.execute(update(Result).values(settled=False))
    assert (on_board(world), confirm(world)) == ([], 0)
    review(world, name, Review.cleared)
    assert on_board(world) == [(name, 0)]
    assert confirm(world) == 1
    assert world.state_of(name) is State.queued


def test_who_has_left_the_course_is_not_confirmed(world):
    world.grade(passed(2.0), node="forge", **GPU)
    with world.database.transaction() as session:
        session.execute(update(Enrolment).values(dropped_at=world.now))
    assert (on_board(world), confirm(world)) == ([], 0)


def test_whoever_leads_is_confirmed_again_on_another_day_and_not_for_ever(world):
    name = world.grade(passed(2.0), node="forge", **GPU)
    counts = []
    for _ in range(5):
        counts.append(confirm(world))
        assert confirm(world) == 0
        if counts[-1]:
            finish(world, passed(2.0))
        assert confirm(world) == 0
        world.wait(21 * 3600)
    assert (counts, world.submission(name).confirmations) == ([1, 1, 1, 0, 0], 3)


def test_what_does_not_pass_when_it_is_graded_once_more_is_held_with_its_correctness(world):
    name = world.grade(passed(2.0), node="forge", **GPU)
    confirm(world)
    finish(world, wrong())
    row = world.submission(name)
    assert (row.state, row.verdict, row.review, row.points) == (State.done, Verdict.passed, Review.held, 60)
    assert (alerts(world), on_board(world)) == ([AlertKind.confirmation_failed], [])
    assert row.confirmations == 0
    assert balanced(world)


def test_a_confirmation_that_asks_to_be_measured_again_takes_no_points_away(world):
    name = world.grade(passed(2.0), node="forge", **GPU)
    points = world.submission(name).points
    confirm(world)
    finish(world, asks())
    assert (world.submission(name).line, world.submission(name).points) == (Line.confirm, points)
    finish(world, passed(2.0))
    assert (world.submission(name).confirmations, world.submission(name).points) == (1, points)


def test_a_confirmation_that_no_node_ends_leaves_the_grade(world):
    name = world.grade(passed(2.0), node="forge", **GPU)
    points = world.submission(name).points
    confirm(world)
    for _ in range(3):
        node, task = next((node, task) for node in ("forge", "kiln") if (task := world.claim(node)))
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "broken"), node)
        world.wait(120)
    assert (world.state_of(name), world.submission(name).points) == (State.done, points)
    assert balanced(world)


def test_a_confirmation_that_only_nodes_in_trouble_end_leaves_the_grade(world):
    name = world.grade(passed(2.0), node="forge", **GPU)
    before = world.submission(name)
    confirm(world)
    for _ in range(3):
        finish(world, dataclasses.replace(passed(2.0), gpu=TROUBLE))
        world.wait(120)
    row = world.submission(name)
    assert (row.state, row.verdict, row.points, row.result_id) == (
        State.done, Verdict.passed, before.points, before.result_id,
    )  # fmt: skip
    assert (row.confirmations, on_board(world)) == (0, [(name, 0)])
    assert alerts(world) == [AlertKind.submission_failed]
    assert balanced(world)
    assert (confirm(world), confirm(world, when=21.0)) == (0, 1)


def test_what_has_failed_leaves_its_room_to_others(world, monkeypatch):
    monkeypatch.setattr("server.grading.confirm.CONFIRM_LIMIT", 1)
    name = world.grade(passed(2.0), node="forge", **GPU)
    world.grade(passed(2.0), "Bob", node="forge", **GPU)
    assert (confirm(world), confirm(world)) == (1, 0)
    with world.database.transaction() as session:
        session.execute(update(Submission).where(Submission.public_id == name).values(state=State.failed))
    assert confirm(world) == 1


def test_anybody_else_goes_first(world):
    world.grade(passed(2.0), node="forge", **GPU)
    confirm(world)
    for _ in range(5):
        waiting = world.submit("Bob", **GPU)
        for node in ("forge", "kiln"):
            if (task := world.claim(node)) is not None:
                assert task.trace == world.submission(waiting).trace
                world.finish(task, wrong(), node)
                break


# --- what a sick node measured ---------------------------------------------------------------------------------------


def report(world, name, since, until, **changes):
    plain = NodeReport((Lane.h200,), 1, draining=False, facts={}, at=world.now.timestamp(), suspect_since=since,
                       suspect_until=until, **changes)  # fmt: skip
    world.send(Kind.node, plain, name)


def again(world):
    with world.database.transaction() as session:
        return measure_suspects_again(session, now=world.now)


def test_what_a_sick_node_measured_is_measured_once_more(world):
    before = world.grade(passed(2.0), node="forge", **GPU)
    world.wait(600)
    began = world.now.timestamp()
    suspect = world.grade(passed(2.0), node="forge", **GPU)
    elsewhere = world.grade(passed(2.0), "Bob", node="kiln", **GPU)
    points = world.submission(suspect).points
    world.wait(10)
    for _ in range(2):
        report(world, "forge", began - 1, world.now.timestamp())
        assert again(world) in {1, 0}
    states = [world.state_of(name) for name in (before, suspect, elsewhere)]
    assert states == [State.done, State.queued, State.done]
    assert world.submission(suspect).points == points
    assert finish(world, passed(2.0), "forge", "kiln") == "kiln"
    report(world, "forge", began - 1, world.now.timestamp() - 5)
    assert again(world) == 0


def test_a_report_brings_the_nodes_noise_floor(world):
    floor = Calibration(1.0, Lane.h200, 5, "large", 1.0, 0.002, 100.0, 0.004)
    report(world, "forge", None, None, calibration=floor)
    with world.database.reading() as session:
        node = session.scalars(select(Node).where(Node.name == "forge")).one()
        assert (node.calibration["ratio_spread"], node.suspect_handled) == (0.002, True)


@pytest.mark.parametrize("times", [(float(2**62), 1e300), (-1e18, 5.0)])
def test_a_time_that_is_none_is_no_suspicion(world, times):
    report(world, "forge", *times)
    assert again(world) == 0


def test_a_submission_after_which_a_known_good_job_failed_is_a_suspect(world):
    name = world.submit(**GPU)
    task = world.take("forge")
    world.send(
        Kind.failure, AttemptFailure(task.attempt, task.fence, "the GPU is not as it was", suspect=True), "forge"
    )
    assert (world.submission(name).suspect, world.submission(name).attempts_made) == (True, 1)


# --- what staff decide -----------------------------------------------------------------------------------------------


def test_a_decision_changes_the_points_and_leaves_a_trail(world):
    name = world.grade(dataclasses.replace(passed(1.0), held=True), node="forge", **GPU)
    for decision, points in ((Review.cleared, 100), (Review.rejected, 60), (Review.held, 60), (Review.cleared, 100)):
        review(world, name, decision)
        assert world.submission(name).points == points
    with pytest.raises(ConflictError, match="cleared already"):
        review(world, name, Review.cleared)
    with world.database.reading() as session:
        trail = session.scalars(select(AuditEntry).where(AuditEntry.action == "submission.reviewed")).all()
        changes = [(row.reason, row.after) for row in session.scalars(select(GradeChange).order_by(GradeChange.id))]
    assert len(trail) == 4
    assert changes == [
        (ChangeReason.graded, 60), (ChangeReason.reviewed, 100), (ChangeReason.reviewed, 60),
        (ChangeReason.reviewed, 100),
    ]  # fmt: skip


def test_what_was_never_graded_cannot_be_decided_about(world):
    name = world.submit(**GPU)
    with pytest.raises(ConflictError, match="no result"):
        review(world, name, Review.cleared)


def test_the_cpu_lane_is_never_confirmed_even_where_an_author_lets_it_rank(world):
    with world.database.transaction() as session:
        world.publish(session, manifest(lanes={"cpu": LanePolicy(ranks=True)}))
    world.grade(passed(1.0))
    assert confirm(world) == 0
