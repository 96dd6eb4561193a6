"""What was captured cannot be played again: each signed message of a node is taken once, and none that is old."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import httpx
import pytest

from autograder import codec
from autograder.contract import Claim, Envelope, Kind, Lane, NodeReport, Stamp
from broker.identity import NodeKey, Sender
from server import alerts
from server.grading.record import Outcome
from server.models import AlertKind, NodeStamps
from server.nodes import nodes, stamps
from server.nodes.stamps import Freshness
from tests.doubles.machines import make_node
from tests.doubles.world import START, World
from worker.server import Signature

REPORT = NodeReport((Lane.cpu,), 1, draining=False, facts={}, at=0.0)
AT = START.timestamp()


@pytest.fixture
def world(database_url, tmp_path):
    made = World.make(database_url, tmp_path)
    yield made
    made.database.dispose()


def open_alerts(world):
    with world.database.reading() as session:
        return [(alert.kind, alert.subject) for alert in alerts.open_alerts(session)]


def test_a_captured_report_does_not_revive_a_node(world):
    captured = world.sealed(Kind.node, REPORT)
    assert world.record(captured) is Outcome.applied
    world.send(Kind.node, dataclasses.replace(REPORT, draining=True))
    assert world.record(captured) is Outcome.repeated
    with world.database.reading() as session:
        assert nodes.find_node(session, name="anvil").draining
    # The broker gives what a killed recorder had again: that is no attack.
    assert open_alerts(world) == []


def test_a_captured_heartbeat_does_not_keep_an_attempt_alive(world):
    world.submit()
    task = world.take()
    beat = world.sealed(Kind.heartbeat, Claim(task.attempt, task.fence, 0.0))
    assert world.record(beat) is Outcome.applied
    world.wait(60)
    assert world.record(beat) is Outcome.repeated
    assert world.sweep() == 1


def test_a_message_that_was_kept_back_for_a_day_is_refused_and_told(world):
    captured = world.sealed(Kind.node, REPORT)
    world.now += timedelta(seconds=stamps.MAX_AGE_S + 1)
    assert world.record(captured) is Outcome.refused
    assert open_alerts(world) == [(AlertKind.forged_message, "node:anvil")]


def test_a_node_whose_clock_is_days_ahead_is_told_of(world):
    ahead = Sender("anvil", world.keys["anvil"], clock=lambda: AT + 2 * stamps.MAX_AGE_S)
    assert world.record(codec.dumps(ahead.envelope(Kind.node, codec.dumps(REPORT)))) is Outcome.refused
    assert open_alerts(world) == [(AlertKind.forged_message, "node:anvil")]


def test_what_waited_while_the_recorder_was_away_for_hours_is_taken(world):
    waiting = [world.sealed(Kind.node, REPORT) for _ in range(5)]
    world.now += timedelta(hours=20)
    assert [world.record(text) for text in waiting] == [Outcome.applied] * 5


def test_several_recorders_take_messages_in_any_order(world):
    texts = [world.sealed(Kind.node, REPORT) for _ in range(200)]
    shuffled = texts[::-2] + texts[::2]
    assert {world.record(text) for text in shuffled} == {Outcome.applied}
    assert {world.record(text) for text in texts} == {Outcome.repeated}


def test_a_node_that_starts_anew_is_heard_and_so_is_what_its_old_process_said_last(world):
    last = world.sealed(Kind.node, REPORT)
    world.senders["anvil"] = Sender("anvil", world.keys["anvil"], clock=world.now.timestamp)
    assert world.send(Kind.node, REPORT) is Outcome.applied
    assert world.record(last) is Outcome.applied
    assert world.record(last) is Outcome.repeated


def test_sessions_are_bounded_and_one_that_is_forgotten_is_not_taken_again(world):
    first = world.sealed(Kind.node, REPORT)
    assert world.record(first) is Outcome.applied
    for _ in range(stamps.KEPT_SESSIONS + 5):
        world.now += timedelta(seconds=1)
        world.senders.pop("anvil")
        assert world.send(Kind.node, REPORT) is Outcome.applied
    assert world.record(first) is Outcome.refused
    with world.database.reading() as session:
        assert len(session.get_one(NodeStamps, nodes.find_node(session, name="anvil").id).sessions) == 16


@pytest.mark.parametrize(
    "stamp",
    [
        Stamp(-1, 1, AT), Stamp(2**62, 1, AT), Stamp(1, 0, AT), Stamp(1, -5, AT), Stamp(1, 2**62, AT),
        Stamp(1, 1, -1e300), Stamp(1, 1, 1e300),
    ],
)  # fmt: skip
def test_a_stamp_out_of_all_bounds_is_stale(world, stamp):
    with world.database.transaction() as session:
        node = nodes.find_node(session, name="anvil")
        assert stamps.take(session, node.id, stamp, now=START) is Freshness.stale


def test_a_jump_far_ahead_costs_neither_time_nor_room(world):
    with world.database.transaction() as session:
        node = nodes.find_node(session, name="anvil")
        for number in (1, 2**61, 2**61 - 1, 2**61 - stamps.WINDOW + 1):
            assert stamps.take(session, node.id, Stamp(1, number, AT), now=START) is Freshness.fresh
        for number in (1, 2**61, 2**61 - stamps.WINDOW):
            assert stamps.take(session, node.id, Stamp(1, number, AT), now=START) is Freshness.repeated


def test_a_forged_message_uses_no_number_up(world):
    real = codec.loads(Envelope, world.sealed(Kind.node, REPORT))
    forged = dataclasses.replace(real, signature=NodeKey.generate().sign("x"))
    assert world.record(codec.dumps(forged)) is Outcome.refused
    assert world.record(codec.dumps(real)) is Outcome.applied


def test_a_revoked_nodes_messages_are_forged(world):
    with world.database.transaction() as session:
        nodes.revoke(session, name="anvil", now=START)
    assert world.send(Kind.node, REPORT) is Outcome.refused
    assert open_alerts(world) == [(AlertKind.forged_message, "node:anvil")]


def test_a_captured_request_is_answered_once(site, database):
    with database.transaction() as session:
        _, key = make_node(session, name="anvil", now=START)
    request = httpx.Request("GET", f"{site.url}/api/v1/nodes/own")
    signed = next(Signature("anvil", key).auth_flow(request))
    headers = {"authorization": signed.headers["authorization"]}
    assert [httpx.get(request.url, headers=headers, timeout=60).status_code for _ in range(2)] == [200, 401]
    other = httpx.get(f"{site.url}/api/v1/attempts/{'0' * 26}?fence=1", headers=headers, timeout=60)
    assert other.status_code == 401
