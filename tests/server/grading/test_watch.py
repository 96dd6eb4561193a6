"""Alerts that come and go by themselves."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import update

from autograder.contract import AttemptFailure, Kind, Lane, NodeReport, Work
from server import alerts
from server.grading import lease_clock, watch
from server.models import AlertKind, Node, State, Submission, Tick
from server.nodes import nodes
from server.nodes.nodes import Grant
from tests.doubles.world import World

REPORT = NodeReport((Lane.cpu,), 1, draining=False, facts={}, at=0.0)


@pytest.fixture
def world(database_url, tmp_path):
    made = World.make(database_url, tmp_path)
    yield made
    made.database.dispose()


@pytest.fixture
def look(world):
    """One look of one dispatcher; the alerts that are open then."""
    watching = watch.Watch(world.config)

    def call():
        with world.database.transaction() as session:
            watching.look(session, now=world.now)
        with world.database.reading() as session:
            return {(row.kind, row.subject) for row in alerts.open_alerts(session)}

    return call


def test_nothing_is_wrong(world, look):
    world.submit()
    world.take()
    world.tick()
    assert look() == look() == set()


def test_a_recorder_that_does_not_hear_is_told_of_while_attempts_live(world, look):
    with world.database.transaction() as session:
        session.add(Tick(nonce="0" * 32, made_at=world.now))
    world.wait(11)
    assert look() == set()
    world.submit()
    world.take()
    assert look() == {(AlertKind.recorder_behind, "recorder")}
    world.tick()
    assert look() == set()


def test_work_that_waits_where_nobody_serves_it_is_told_of(world, look):
    world.submit(lane=Lane.h200)
    world.wait(301)
    assert look() == set()
    stuck = (AlertKind.queue_stuck, f"lane:h200:{world.submission(world.submit(lane=Lane.h200)).work}")
    assert look() == {stuck}
    assert look() == {stuck}
    world.add_node("forge", lanes=(Lane.h200,))
    world.take("forge")
    assert look() == set()


def test_a_lane_whose_only_node_is_drained_serves_nobody(world, look):
    world.submit()
    with world.database.transaction() as session:
        nodes.drain(session, name="anvil", now=world.now)
    world.wait(301)
    look()
    assert (AlertKind.queue_stuck, "lane:cpu:all") in look()


def test_a_node_that_does_not_do_the_work_serves_nobody(world, look):
    world.submit(work=Work.measure)
    with world.database.transaction() as session:
        session.execute(update(Node).values(works=["check"]))
    world.wait(301)
    look()
    assert (AlertKind.queue_stuck, "lane:cpu:measure") in look()


def test_a_queue_that_moves_is_not_stuck_however_long_some_wait(world, look):
    for _ in range(3):
        world.submit()
    world.wait(301)
    world.take()
    look()
    assert look() == set()
    world.wait(301)
    look()
    assert look() == set()  # It works on one.


def test_a_node_that_rests_is_told_of_until_it_has_rested(world, look):
    world.add_node("sick", slots=3)
    for _ in range(3):
        world.submit()
    for task in [world.take("sick") for _ in range(3)]:
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "no GPU"), "sick")
    assert (AlertKind.node_rests, "node:sick") in look()
    world.wait(nodes.REST_S)
    assert look() == set()


def test_a_silent_nodes_alert_ends_when_it_is_heard(world, look):
    world.submit()
    world.claimed(world.take())
    world.wait(world.config.lease_s + 1, nodes_live=False)
    world.sweep(nodes_live=False)
    assert look() == {(AlertKind.node_silent, "node:anvil")}
    world.send(Kind.node, REPORT)
    assert look() == set()


def test_a_full_disk_is_told_of_until_there_is_room(world, look):
    full = dataclasses.replace(REPORT, slots=0, facts={"trouble": "disk full: 3 MB are free, 500 are needed"})
    world.send(Kind.node, full)
    assert look() == {(AlertKind.disk_full, "node:anvil")}
    world.send(Kind.node, REPORT)
    assert look() == set()


def test_a_failed_submissions_alert_ends_with_its_next_result(world, look):
    submission = world.submit()
    for _ in range(world.config.max_attempts):
        task = world.take()
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "no bundle"))
        world.wait(120)
    failed = (AlertKind.submission_failed, f"submission:{submission}")
    assert failed in look()
    with world.database.transaction() as session:
        again = {"state": State.queued, "attempts_made": 0, "verdict": None, "finished_at": None}
        session.execute(update(Submission).values(again))
    assert failed in look()
    world.finish(world.take())
    assert look() == set()


@pytest.mark.parametrize(
    ("kind", "subject"),
    [
        (AlertKind.forged_message, "node:anvil"),
        (AlertKind.clock_jumped, "database"),
        (AlertKind.queue_stuck, "dispatcher:sweep"),
    ],
)
def test_what_happens_no_more_is_over_after_a_while(world, look, kind, subject):
    with world.database.transaction() as session:
        alerts.raise_alert(session, kind, subject, "…", world.now)
    world.wait(watch.QUIET_AFTER.total_seconds())
    assert look() == {(kind, subject)}
    world.wait(1)
    assert look() == set()


def test_a_look_forgets_old_ticks(world, look):
    with world.database.transaction() as session:
        session.add(Tick(nonce="0" * 32, made_at=world.now - 2 * lease_clock.KEPT, heard_at=world.now))
        session.add(Tick(nonce="1" * 32, made_at=world.now + timedelta(hours=1), heard_at=world.now))
    look()
    with world.database.reading() as session:
        assert session.query(Tick).count() == 0


def test_a_course_that_none_of_the_lanes_nodes_may_grade_is_told_of(world, look):
    world.submit()
    with world.database.transaction() as session:
        node = nodes.find_node(session, name="anvil")
        nodes.set_grant(node, Grant(frozenset({Lane.cpu}), frozenset({99})))
    world.wait(301)
    assert (AlertKind.queue_stuck, "course:gpu") in look()
    with world.database.transaction() as session:
        nodes.set_grant(nodes.find_node(session, name="anvil"), Grant(frozenset({Lane.cpu})))
    assert (AlertKind.queue_stuck, "course:gpu") not in look()
