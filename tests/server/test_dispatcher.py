from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from autograder import codec
from autograder.contract import MAX_SOURCE_BYTES, AttemptFailure, GradeTask, Kind
from broker.app import make_app
from server import alerts
from server import dispatcher as module
from server.dispatcher import Dispatcher, run
from server.grading.interface import end_attempt
from server.models import AlertKind, AttemptState, Service, State
from server.nodes import nodes
from server.recorder import Recorder
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
    # Celery would compare our clock with the node's.
    assert message.headers["expires"] is None
    task = codec.loads(GradeTask, message.payload[1]["task"])
    assert task.trace == world.submission(submission).trace
    assert world.state_of(submission) is State.running


def test_every_free_slot_is_filled_from_one_look(world):
    world.add_node("wide", slots=3)
    for _ in range(5):
        world.submit()
    dispatcher = Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)
    assert [dispatcher.step() for _ in range(2)] == [4, 0]


def test_a_message_that_cannot_be_sent_leaves_the_attempt_to_the_sweeper(world):
    submission = world.submit()
    # A port on which nobody listens.
    app = make_app("test", "redis://127.0.0.1:1/0")
    dispatcher = Dispatcher(world.database, app, world.config)
    assert dispatcher.step() == 1
    assert [attempt.state for attempt in world.attempts(submission)] == [AttemptState.dispatched]
    world.wait(world.config.lease_s + 60)
    assert world.sweep() == 1
    assert world.state_of(submission) is State.queued


def test_a_submission_that_fits_into_no_message_keeps_nobody_else_waiting(world):
    world.add_node("wide", slots=3)
    poison = world.submit(source=b"\x01" * MAX_SOURCE_BYTES)
    others = [world.submit(source=b"\\" * MAX_SOURCE_BYTES), world.submit()]
    dispatcher = Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)
    assert dispatcher.step() == 2
    assert (world.state_of(poison), world.attempts(poison)) == (State.failed, [])
    assert {world.state_of(item) for item in others} == {State.running}


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
    dispatcher.watch()
    (line,) = [text for text in caplog.messages if "rests up to" in text]
    assert "Node sick" in line
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
    monkeypatch.setattr(module, "PAUSE_S", 0.01)
    run(world.config, stop)
    assert len(asked) == 3


# --- what goes wrong with one keeps nobody else waiting --------------------------------------------------------------


@pytest.fixture
def dispatcher(world):
    return Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)


def open_alerts(world):
    with world.database.reading() as session:
        return {(row.kind, row.subject): row.count for row in alerts.open_alerts(session)}


def test_a_node_that_cannot_be_served_keeps_no_other_waiting(world, dispatcher, monkeypatch):
    world.add_node("forge")
    submissions = [world.submit(), world.submit(person="Bob")]
    fill = module.fill_slots

    def fill_slots(session, *, node_id, **options):
        if node_id == 1:
            raise ZeroDivisionError
        return fill(session, node_id=node_id, **options)

    monkeypatch.setattr(module, "fill_slots", fill_slots)
    assert dispatcher.step() == 1
    assert sorted(world.state_of(name) for name in submissions) == [State.queued, State.running]
    assert (AlertKind.queue_stuck, "dispatcher:node anvil") in open_alerts(world)


@pytest.mark.parametrize("broken", ["sweep", "make_tick", "forget_silent", "look_at_all"])
def test_whatever_breaks_is_told_and_the_dispatcher_goes_on(world, dispatcher, monkeypatch, broken):
    world.submit()

    def fail(*_arguments, **_options):
        raise KeyError(broken)

    monkeypatch.setattr(module, broken, fail)
    sent = dispatcher.step()
    assert sent == (0 if broken == "look_at_all" else 1)
    (alert,) = [subject for kind, subject in open_alerts(world) if kind is AlertKind.queue_stuck]
    assert alert.startswith("dispatcher:")
    dispatcher.step()


def test_a_database_that_is_away_is_everybodys_matter(dispatcher, monkeypatch):
    def away(*_arguments, **_options):
        raise OperationalError("select", {}, Exception("gone"))

    monkeypatch.setattr(module, "sweep", away)
    with pytest.raises(OperationalError):
        dispatcher.step()


def test_a_message_that_could_not_be_sent_is_sent_when_the_broker_is_back(world, dispatcher, monkeypatch):
    world.add_node("forge")
    first, second = world.submit(), world.submit(person="Bob")
    broker = []
    away = [True]

    def send(_app, task, queue, text):
        if away[0]:
            raise BrokerError("gone")
        broker.append((task, queue))

    monkeypatch.setattr(module, "send", send)
    dispatcher.step()
    assert dispatcher.waits_for_the_broker
    claimed = len(world.attempts(first)) + len(world.attempts(second))
    for _ in range(3):
        assert dispatcher.step() == 0
    assert len(world.attempts(first)) + len(world.attempts(second)) == claimed
    away[0] = False
    dispatcher.step()
    assert not dispatcher.waits_for_the_broker
    assert sorted(queue for task, queue in broker if task == "grade") == ["grade.anvil", "grade.forge"]


def test_a_message_whose_attempt_ended_meanwhile_is_not_sent(world, dispatcher, monkeypatch):
    submission = world.submit()

    def send(*_arguments):
        raise BrokerError("gone")

    monkeypatch.setattr(module, "send", send)
    dispatcher.step()
    with world.database.transaction() as session:
        (attempt,) = world.attempts(submission)
        end_attempt(session, attempt.public_id, "gone", now=world.now, config=world.config, free=True)
        nodes.set_disabled(session, name="anvil", disabled=True, now=world.now)
    dispatcher.step()
    dispatcher.step()
    assert not dispatcher.waits_for_the_broker


# --- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump_s", [-3600, -3, 3, 3600])
def test_a_clock_that_jumps_is_told_of_and_no_lease_expires_for_one_lease(world, dispatcher, monkeypatch, jump_s):
    offset, mine = [0.0], [5000.0]
    real = module.now
    monkeypatch.setattr(module, "now", lambda session: real(session) + timedelta(seconds=offset[0]))
    swept = []
    monkeypatch.setattr(module, "sweep", lambda *_a, **_o: swept.append(1) or 0)
    dispatcher.sweep()
    offset[0] = jump_s
    dispatcher.sweep()
    dispatcher.sweep()
    assert len(swept) == 1
    assert open_alerts(world)[AlertKind.clock_jumped, "database"] == 1
    monkeypatch.setattr(module.time, "monotonic", lambda: mine[0])
    dispatcher._calm_at = mine[0] - 1
    dispatcher._clock = module.Clock()
    dispatcher.sweep()
    assert len(swept) == 2


def test_a_clock_that_only_goes_on_does_not_jump_however_slow_the_answers(world, monkeypatch):
    clock = module.Clock()
    mine, theirs = [0.0], [world.now]

    def slow(_session):
        mine[0] += 30
        theirs[0] += timedelta(seconds=30)
        return theirs[0] - timedelta(seconds=29)

    monkeypatch.setattr(module.time, "monotonic", lambda: mine[0])
    monkeypatch.setattr(module, "now", slow)
    assert [clock.jump_s(None) for _ in range(4)] == [0.0] * 4
    theirs[0] += timedelta(seconds=90)
    assert clock.jump_s(None) > 0


def test_ticks_go_through_the_results_queue_and_are_heard(world, dispatcher, monkeypatch):
    monkeypatch.setattr(module, "now", lambda _session: world.now)  # Else the second is due on a busy machine.
    dispatcher.tick()
    dispatcher.tick()
    recorder = Recorder(world.database, world.config)
    with dispatcher._app.connection_for_read() as connection:
        queue = connection.SimpleQueue("results")
        message = queue.get(timeout=60)
        message.ack()
        assert queue.qsize() == 0
        queue.close()
    assert message.headers["task"] == "tick"
    assert recorder.hear(message.payload[1]["nonce"])
    assert not recorder.hear(message.payload[1]["nonce"])


def test_it_says_that_it_is_alive_and_that_it_ends(world, dispatcher):
    def kinds():
        with world.database.reading() as session:
            return session.scalars(select(Service.kind)).all()

    dispatcher.step()
    assert kinds() == ["dispatcher"]
    dispatcher.leave()
    assert kinds() == []


def test_it_ends_within_a_moment_even_while_its_database_hangs(tmp_path):
    """A server that takes connections and never answers, as one does that was stopped."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing"
        environ = {**os.environ, "LADDER_DATABASE_URL": url, "LADDER_HOME": str(tmp_path)}
        log = (tmp_path / "log").open("wb")
        with log, subprocess.Popen([sys.executable, "-m", "server.dispatcher"], env=environ, stderr=log) as process:
            connection, _ = silent.accept()
            process.terminate()
            assert process.wait(60) == 0
            connection.close()
