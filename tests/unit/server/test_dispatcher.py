from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from sqlalchemy.exc import OperationalError

from autograder import codec
from autograder.contract import MAX_SOURCE_BYTES, AttemptFailure, GradeTask, Kind
from broker.app import make_app
from server import dispatcher as module
from server.dispatcher import Dispatcher, run
from server.models import AttemptState, State
from server.nodes import service as nodes
from tests.doubles.world import World


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path, now=datetime.now(UTC))
    yield world
    world.database.dispose()


def sent(config):
    """The tasks that lie in the folder of the broker, by queue."""
    app = make_app("test", config.broker_url)
    found = []
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue("grade.anvil")
        while queue.qsize():
            message = queue.get(timeout=1)
            message.ack()
            found.append(message)
        queue.close()
    return found


def test_a_free_slot_gets_the_next_submission_as_json_on_its_own_queue(world):
    submission = world.submit()
    dispatcher = Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)
    assert (dispatcher.step(), dispatcher.step()) == (1, 0)
    (message,) = sent(world.config)
    assert message.content_type == "application/json"
    assert message.headers["task"] == "grade"
    assert message.headers["expires"] is not None
    task = codec.loads(GradeTask, message.payload[1]["task"])
    assert task.trace == world.submission(submission).trace
    assert world.state_of(submission) is State.running


def test_every_free_slot_is_filled(world):
    world.add_node("wide", slots=3)
    for _ in range(5):
        world.submit()
    dispatcher = Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)
    assert [dispatcher.step() for _ in range(4)] == [2, 1, 1, 0]


def test_a_message_that_cannot_be_sent_leaves_the_attempt_to_the_sweeper(world):
    submission = world.submit()
    # A port on which nobody listens.
    app = make_app("test", "redis://127.0.0.1:1/0")
    dispatcher = Dispatcher(world.database, app, world.config)
    assert dispatcher.step() == 1
    assert [attempt.state for attempt in world.attempts(submission)] == [AttemptState.dispatched]
    world.wait(world.config.lease_s + 1)
    assert world.sweep() == 1
    assert world.state_of(submission) is State.queued


def test_a_submission_that_fits_into_no_message_keeps_nobody_else_waiting(world):
    world.add_node("wide", slots=3)
    poison = world.submit(source=b"\x01" * MAX_SOURCE_BYTES)
    others = [world.submit(source=b"\\" * MAX_SOURCE_BYTES), world.submit()]
    dispatcher = Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)
    assert [dispatcher.step() for _ in range(3)] == [2, 1, 0]
    assert {world.state_of(item) for item in [poison, *others]} == {State.running}
    world.wait(world.config.lease_s + 1)
    assert world.sweep() == 3
    assert world.attempts(poison)[0].state is AttemptState.lost


def test_why_a_node_rests_is_logged_once(world, caplog):
    world.add_node("sick", slots=3)
    with world.database.transaction() as session:
        nodes.set_disabled(session, name="anvil", disabled=True, now=world.now)
    for _ in range(3):
        world.submit()
    for task in [world.take("sick") for _ in range(3)]:
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the GPU fell off the bus"), "sick")
    dispatcher = Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)
    assert [dispatcher.step() for _ in range(3)] == [0, 0, 0]
    (line,) = [text for text in caplog.messages if "rests" in text]
    assert "node sick" in line
    assert "the GPU fell off the bus" in line


def test_it_sweeps_about_once_a_second(world, monkeypatch):
    dispatcher = Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    swept = []
    monkeypatch.setattr(dispatcher, "sweep", lambda: swept.append(clock[0]))
    for clock[0] in (100.0, 100.5, 101.1, 101.5, 102.2):
        dispatcher.step()
    assert swept == [100.0, 101.1, 102.2]


def test_a_database_that_does_not_answer_is_asked_again(world, monkeypatch):
    stop = threading.Event()
    asked = []

    def step(_self):
        asked.append(1)
        if len(asked) == 3:
            stop.set()
        raise OperationalError("select", {}, Exception("gone"))

    monkeypatch.setattr(Dispatcher, "step", step)
    monkeypatch.setattr(module, "DATABASE_PAUSE_S", 0.01)
    run(world.config, stop)
    assert len(asked) == 3
