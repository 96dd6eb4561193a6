"""What an outage of the recorder, of the broker or of a node costs: time, and no attempt."""

from __future__ import annotations

import shutil
import signal
import time

import pytest

from server import alerts
from server.models import AlertKind, AttemptState, State
from tests.broker.test_broker_outages import PrivateRedis
from tests.e2e.test_pipeline import PATIENCE_S, made_pipeline, nodes_alive, until

LEASE_S = "4"


@pytest.fixture
def private(tmp_path):
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server")
    made = PrivateRedis(tmp_path)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def on_redis(tmp_path, postgres_url, private):
    """With PostgreSQL and a Redis of its own."""
    with made_pipeline(tmp_path, postgres_url, private.url, lease_s=LEASE_S) as made:
        yield made


@pytest.fixture(
    params=["sqlite-folder", pytest.param("postgresql-redis", marks=[pytest.mark.postgres, pytest.mark.redis])]
)
def pipeline(request, tmp_path):
    if request.param == "postgresql-redis":
        yield request.getfixturevalue("on_redis")
        return
    url = request.getfixturevalue("sqlite_url")
    with made_pipeline(tmp_path, url, f"filesystem://{tmp_path / 'broker'}", lease_s=LEASE_S) as made:
        yield made


def kill(pipeline, name):
    pipeline.started[name].kill()
    pipeline.started[name].wait()


def steady(pipeline):
    """Ticks have been heard for a whole lease: what expires from now on, expires."""
    pipeline.start_all()
    until(lambda: bool(nodes_alive(pipeline.world)), "a node's report")
    time.sleep(float(LEASE_S) + 3)


def one_attempt(pipeline, submission):
    pipeline.wait_for(submission)
    assert pipeline.state(submission) is State.done
    assert [item.state for item in pipeline.world.attempts(submission)] == [AttemptState.finished]
    assert len(pipeline.world.results(submission)) == 1


def test_a_recorder_that_is_away_for_several_leases_costs_no_attempt(pipeline):
    steady(pipeline)
    submission = pipeline.submit("sleep 6")
    pipeline.wait_running(submission)
    kill(pipeline, "server.recorder")
    time.sleep(3 * float(LEASE_S))
    assert [item.state for item in pipeline.world.attempts(submission)] == [AttemptState.running]
    pipeline.start("server.recorder")
    one_attempt(pipeline, submission)


def test_staff_are_told_of_a_recorder_that_is_away_while_work_goes_on(pipeline):
    steady(pipeline)
    submission = pipeline.submit("sleep 25")
    pipeline.wait_running(submission)
    kill(pipeline, "server.recorder")

    def kinds():
        with pipeline.world.database.reading() as session:
            return {alert.kind for alert in alerts.open_alerts(session)}

    until(lambda: AlertKind.recorder_behind in kinds(), "an alert")
    pipeline.start("server.recorder")
    until(lambda: AlertKind.recorder_behind not in kinds(), "its end")
    one_attempt(pipeline, submission)


@pytest.mark.postgres
@pytest.mark.redis
def test_a_redis_that_is_killed_and_started_again_costs_no_attempt(on_redis, private):
    steady(on_redis)
    submission = on_redis.submit("sleep 5")
    on_redis.wait_running(submission)
    private.kill()
    time.sleep(2 * float(LEASE_S))
    private.start()
    one_attempt(on_redis, submission)


@pytest.mark.postgres
@pytest.mark.redis
def test_a_result_that_the_broker_forgot_is_said_again(on_redis, private):
    steady(on_redis)
    submission = on_redis.submit("sleep 2")
    on_redis.wait_running(submission)
    kill(on_redis, "server.recorder")
    until(lambda: "ended after" in on_redis.log("worker"), "the end of the attempt")
    private.client().flushall()
    on_redis.start("server.recorder")
    one_attempt(on_redis, submission)


@pytest.mark.postgres
@pytest.mark.redis
def test_a_task_that_the_broker_forgot_costs_no_attempt(on_redis, private):
    steady(on_redis)
    on_redis.started["worker"].send_signal(signal.SIGSTOP)
    submission = on_redis.submit()
    until(lambda: bool(on_redis.world.attempts(submission)), "a claim")
    time.sleep(0.5)
    private.client().flushall()
    on_redis.started["worker"].send_signal(signal.SIGCONT)
    on_redis.wait_for(submission)
    row = on_redis.world.submission(submission)
    assert (row.state, row.attempts_made) == (State.done, 1)


def test_a_node_that_is_told_to_stop_twice_hands_its_attempt_back_at_no_cost(pipeline):
    pipeline.start_all()
    submission = pipeline.submit("silent")
    pipeline.wait_running(submission)
    worker = pipeline.started["worker"]
    worker.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_S) == 0
    until(lambda: pipeline.state(submission) is State.queued, "its return to the queue")
    (attempt,) = pipeline.world.attempts(submission)
    assert (attempt.state, attempt.reason) == (AttemptState.failed, "the node was stopped")
    assert pipeline.world.submission(submission).attempts_made == 0


def test_a_node_whose_patience_ends_hands_its_attempt_back(pipeline):
    for name in ("server.recorder", "server.dispatcher"):
        pipeline.start(name)
    pipeline.start("worker", LADDER_DRAIN_S="1")
    submission = pipeline.submit("silent")
    pipeline.wait_running(submission)
    pipeline.started["worker"].send_signal(signal.SIGTERM)
    assert pipeline.started["worker"].wait(PATIENCE_S) == 0
    until(lambda: pipeline.state(submission) is State.queued, "its return to the queue")
    assert pipeline.world.submission(submission).attempts_made == 0


def test_a_second_worker_of_one_folder_does_not_start(pipeline):
    pipeline.start_all()
    until(lambda: "ready" in pipeline.log("worker") or bool(nodes_alive(pipeline.world)), "the first worker")
    assert pipeline.start("second worker", module="worker").wait(PATIENCE_S) == 2
    assert "belongs to another worker" in pipeline.log("second worker")
    assert pipeline.started["worker"].poll() is None
