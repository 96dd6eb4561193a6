"""What nodes send is bounded, applied once, and never fills a log."""

from __future__ import annotations

import dataclasses

import pytest

from autograder.contract import (
    AttemptEvent,
    AttemptFailure,
    AttemptResult,
    Claim,
    Event,
    Kind,
    Lane,
    NodeReport,
    Phase,
    PhaseStarted,
    Work,
)
from broker.identity import NodeKey
from server import alerts
from server.grading import record as module
from server.grading.interface import Outcome
from server.models import AlertKind, AttemptState, State
from server.nodes import nodes
from tests.doubles.world import World, case, manifest, passed, wrong

REPORT = NodeReport((Lane.cpu,), 1, draining=False, facts={}, at=0.0)


@pytest.fixture
def world(database_url, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_heard", module._Heard())
    made = World.make(database_url, tmp_path)
    yield made
    made.database.dispose()


def the_alerts(world):
    with world.database.reading() as session:
        return {(row.kind, row.subject): row.count for row in alerts.open_alerts(session)}


def test_forged_messages_are_one_alert_and_one_line(world, caplog):
    for _ in range(5):
        assert world.send(Kind.node, REPORT, key=NodeKey.generate()) is Outcome.refused
    assert the_alerts(world) == {(AlertKind.forged_message, "node:anvil"): 5}
    assert len([line for line in caplog.messages if line.startswith("ignored")]) == 1


def test_messages_of_nodes_that_do_not_exist_are_one_alert_whatever_their_names(world, caplog):
    for name in ("nobody", "x" * 100_000, "a\0b", "⟨other⟩"):
        world.keys[name] = NodeKey.generate()
        assert world.send(Kind.node, REPORT, name) is Outcome.refused
    assert the_alerts(world) == {(AlertKind.forged_message, "node:unknown"): 4}
    assert len([line for line in caplog.messages if line.startswith("ignored")]) == 1


def test_a_name_that_only_begins_like_a_nodes_is_nobodys(world):
    assert world.send(Kind.node, REPORT, "anvil\0", key=NodeKey.generate()) is Outcome.refused


def test_late_messages_about_one_attempt_are_one_line_and_no_alert(world, caplog):
    world.submit()
    task = world.take()
    assert world.finish(task) is Outcome.applied
    for _ in range(10):
        assert world.finish(task) is Outcome.late
        assert world.claimed(task) is Outcome.late
    assert len([line for line in caplog.messages if line.startswith("ignored")]) == 1
    assert the_alerts(world) == {}


def test_messages_about_attempts_of_others_are_one_line(world, caplog):
    world.add_node("forge")
    world.submit()
    task = world.take("anvil")
    for fence in (task.fence, task.fence + 1, 2**63, -1):
        claim = Claim(task.attempt, fence, 0.0)
        node = "forge" if fence == task.fence else "anvil"
        assert world.send(Kind.heartbeat, claim, node) is Outcome.foreign
    for attempt in ("", "\0", "x" * 1_000_000):
        assert world.send(Kind.heartbeat, Claim(attempt, 1, 0.0), "forge") is Outcome.foreign
    assert len([line for line in caplog.messages if line.startswith("ignored")]) == 2


def test_the_same_is_said_again_after_a_while(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    heard = module._Heard()
    said = []
    for clock[0] in range(0, 200, 10):
        if heard.is_news("late"):
            said.append(clock[0])
    assert said == [0, 60, 120, 180]
    for number in range(10 * module.MAX_SUBJECTS):
        heard.is_news(str(number))
    assert len(heard._at) == module.MAX_SUBJECTS


@pytest.mark.parametrize("part", ["explanation", "case"])
def test_a_result_that_the_database_does_not_take_ends_its_attempt_at_once(world, part):
    submission = world.submit()
    task = world.take()
    text = "a NUL: \0"
    result = passed()
    if part == "explanation":
        result = dataclasses.replace(result, explanation=text)
    else:
        result = dataclasses.replace(result, cases=(case("small"), case("large", group=text)))
    assert world.finish(task, result) is Outcome.applied
    (attempt,) = world.attempts(submission)
    if world.database.engine.dialect.name == "postgresql":
        assert (attempt.state, world.state_of(submission)) == (AttemptState.failed, State.queued)
        assert "does not fit" in attempt.reason
        assert world.results(submission) == []
    else:
        assert attempt.state is AttemptState.finished


def test_a_sequence_beyond_all_numbers_changes_nothing(world):
    submission = world.submit()
    task = world.take()
    event = Event(phase=PhaseStarted(Phase.checking, 1e300))
    for sequence in (2**31, 2**63, -5):
        assert world.send(Kind.event, AttemptEvent(task.attempt, task.fence, sequence, event)) is Outcome.late
    assert world.send(Kind.event, AttemptEvent(task.attempt, task.fence, 0, event)) is Outcome.applied
    assert world.submission(submission).phase is Phase.checking


def test_a_repeated_failure_counts_once(world):
    submission = world.submit()
    task = world.take()
    failure = AttemptFailure(task.attempt, task.fence, "x" * 1_000_000)
    assert world.send(Kind.failure, failure) is Outcome.applied
    assert world.send(Kind.failure, failure) is Outcome.late
    assert world.submission(submission).attempts_made == 1
    assert len(world.attempts(submission)[0].reason) < 10_000


def test_a_result_after_its_node_was_disabled_or_drained_counts(world):
    for name, stop in (("first", nodes.set_disabled), ("second", nodes.drain)):
        submission = world.submit(person="Alice" if name == "first" else "Bob")
        task = world.take()
        with world.database.transaction() as session:
            options = {"disabled": True} if stop is nodes.set_disabled else {}
            stop(session, name="anvil", now=world.now, **options)
        assert world.claim() is None
        assert world.finish(task) is Outcome.applied
        assert world.state_of(submission) is State.done
        with world.database.transaction() as session:
            nodes.set_disabled(session, name="anvil", disabled=False, now=world.now)
            nodes.undrain(session, name="anvil")


def test_a_message_by_a_key_that_was_replaced_is_not_believed(world):
    submission = world.submit()
    task = world.take()
    with world.database.transaction() as session:
        nodes.set_identity(nodes.find_node(session, name="anvil"), NodeKey.generate().identity)
    assert world.send(Kind.result, AttemptResult(task.attempt, task.fence, passed())) is Outcome.refused
    assert world.state_of(submission) is State.running


def test_a_report_says_what_a_node_does_and_how_far_off_its_clock_is(world):
    at = world.now.timestamp() + 7.5
    world.send(Kind.node, dataclasses.replace(REPORT, at=at, works=(Work.check,), facts={"a\0": "b\0"}))
    with world.database.reading() as session:
        node = nodes.find_node(session, name="anvil")
        assert (node.works, node.clock_skew_s, node.facts) == (["check"], 7.5, {"a": "b"})
    for absurd in (1e300, -1e300):
        world.send(Kind.node, dataclasses.replace(REPORT, at=absurd))
        with world.database.reading() as session:
            assert abs(nodes.find_node(session, name="anvil").clock_skew_s) == nodes.MAX_SKEW_S


@pytest.mark.parametrize(("result", "told"), [(passed(), True), (wrong(), False)])
def test_who_passes_what_no_honest_kernel_passes_is_told_of(world, result, told):
    with world.database.transaction() as session:
        world.publish(session, manifest(challenge=True))
    name = world.grade(result)
    assert ((AlertKind.judge_beaten, f"submission:{name}") in the_alerts(world)) is told
