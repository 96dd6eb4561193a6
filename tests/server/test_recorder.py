from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest
from celery.exceptions import Reject
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from autograder.contract import AttemptResult, Kind, NodeReport
from broker.envelope import seal
from broker.identity import Sender
from server import recorder as module
from server.db import Database
from server.grading.interface import Outcome
from server.models import Node, State
from server.recorder import Recorder, make_recorder
from tests.doubles.world import World, passed


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path, now=datetime.now(UTC))
    yield world
    world.database.dispose()


@pytest.fixture
def recorder(world):
    return Recorder(world.database, world.config)


def sealed(world, kind, message, node="anvil"):
    return seal(Sender(node, world.keys[node]), kind, message)


def test_a_signed_result_is_applied(world, recorder):
    submission = world.submit()
    task = world.take()
    envelope = sealed(world, Kind.result, AttemptResult(task.attempt, task.fence, passed()))
    assert recorder.apply(envelope) is Outcome.applied
    assert recorder.apply(envelope) is Outcome.repeated
    again = sealed(world, Kind.result, AttemptResult(task.attempt, task.fence, passed()))
    assert recorder.apply(again) is Outcome.late
    assert world.state_of(submission) is State.done


@pytest.mark.parametrize(
    "poison",
    [
        "",
        "null",
        "[]",
        "{",
        "\x00",
        '{"node": "anvil"}',
        "[" * 100_000,
        '{"node":"anvil","kind":"dance",STAMP,"body":"{}","signature":""}',
        '{"node":"anvil","kind":"result",STAMP,"body":"{}","signature":"é"}',
        '{"node":"anvil","kind":"result",STAMP,"body":"{}","signature":"00","version":99}',
        '{"node":"nobody","kind":"result",STAMP,"body":"{}","signature":"00"}',
        '{"node":"' + "x" * 100_000 + '","kind":"result",STAMP,"body":"{}","signature":"00"}',
        '{"node":"a\\u0000b","kind":"result",STAMP,"body":"{}","signature":"00"}',
        '{"node":"\\ud800","kind":"result",STAMP,"body":"{}","signature":"00"}',
        "x" * 5_000_000,
    ],
)
def test_poison_is_dropped(recorder, poison):
    stamp = f'"stamp":{{"session":1,"number":1,"at":{time.time()}}}'
    assert recorder.apply(poison.replace("STAMP", stamp) if isinstance(poison, str) else poison) is Outcome.refused


def test_a_signed_body_that_does_not_fit_its_kind_is_dropped(world, recorder):
    report = NodeReport((), 1, draining=False, facts={}, at=0.0)
    envelope = json.loads(sealed(world, Kind.node, report))
    for kind in ("result", "claimed"):
        assert recorder.apply(json.dumps({**envelope, "kind": kind})) is Outcome.refused
    right_signature = json.loads(sealed(world, Kind.heartbeat, report))
    assert recorder.apply(json.dumps(right_signature)) is Outcome.refused


def test_a_signature_is_checked_before_the_body_is_read(world, recorder, caplog):
    stamp = {"session": 1, "number": 1, "at": time.time()}
    envelope = {"node": "anvil", "kind": "result", "stamp": stamp, "body": "{", "signature": "00"}
    assert recorder.apply(json.dumps(envelope)) is Outcome.refused
    assert "the signature is not this node's" in caplog.text


def test_a_text_that_the_database_does_not_take_ends_one_message_and_not_the_recorder(world, recorder):
    report = NodeReport((), 1, draining=False, facts={"nul": "\x00"}, at=0.0)
    assert recorder.apply(sealed(world, Kind.node, report)) in {Outcome.applied, Outcome.refused}
    healthy = NodeReport((), 1, draining=False, facts={}, at=0.0)
    assert recorder.apply(sealed(world, Kind.node, healthy)) is Outcome.applied


def test_a_message_waits_while_the_database_does_not_answer(world, monkeypatch):
    monkeypatch.setattr(module, "DATABASE_PAUSE_S", 0.0)
    away = Database("postgresql://nobody@127.0.0.1:1/nothing")
    task = make_recorder(world.config, away).tasks["record"]
    said = sealed(world, Kind.node, NodeReport((), 1, draining=False, facts={}, at=0.0))
    with pytest.raises(OperationalError):
        Recorder(away, world.config).apply(said)
    with pytest.raises(Reject) as rejected:
        task.run(said)
    assert rejected.value.requeue
    away.dispose()


def test_it_acknowledges_only_what_is_recorded(world):
    assert make_recorder(world.config, world.database).tasks["record"].acks_late


def test_a_transaction_that_failed_leaves_nothing_behind(world, recorder, monkeypatch):
    def broken(session, _envelope, **_options):
        session.execute(text("UPDATE nodes SET slots = 77"))
        raise ZeroDivisionError

    monkeypatch.setattr(module, "record", broken)
    report = NodeReport((), 1, draining=False, facts={}, at=0.0)
    assert recorder.apply(sealed(world, Kind.node, report)) is Outcome.refused
    with world.database.reading() as session:
        assert session.query(Node.slots).scalar() == 1
