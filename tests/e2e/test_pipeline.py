"""Dispatcher, recorder and worker as real processes between a real database and a real broker.

The judge is the double at the process boundary, so that every grade is known before.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from socket import create_server

import pytest
import redis
import uvicorn

from autograder.contract import Review, Verdict
from broker.identity import NodeKey
from server.app import create_app
from server.models import AttemptState, State
from server.nodes import nodes
from server.submissions.submissions import FINAL
from tests.doubles.world import World

REPOSITORY = Path(__file__).parents[2]
DOUBLE = REPOSITORY / "tests" / "doubles" / "judge.py"
PATIENCE_S = 90.0
REDIS_DATABASE = 9


def until(found: Callable[[], bool], what: str) -> None:
    """Wait for something that has to happen."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < give_up_at, f"waited in vain for: {what}"
        time.sleep(0.05)


def nodes_alive(world: World) -> list[str]:
    """The nodes that would get work now."""
    with world.database.reading() as session:
        return [node.name for node in nodes.working_nodes(session, now=datetime.now(UTC))]


@dataclass
class Pipeline:
    """The processes and what they work on."""

    world: World
    environ: dict[str, str]
    stack: ExitStack
    logs: Path
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, *, module: str | None = None, **environ: str) -> subprocess.Popen[bytes]:
        """Start one process; it is killed at the end of the test."""
        log = self.stack.enter_context((self.logs / f"{name}.log").open("ab"))
        command = [sys.executable, "-m", module or name]
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env={**os.environ, **self.environ, **environ}, stdout=log, stderr=log
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        self.started[name] = process
        return process

    def start_all(self) -> None:
        """The three processes of a single machine."""
        for name in ("server.recorder", "server.dispatcher", "worker"):
            self.start(name)

    def submit(self, *directives: str, person: str = "Alice", **changes: object) -> str:
        """Submit a source that tells the double what to do."""
        # A statement beside the comments: what differs by comments only is one kernel, whose samples are pooled.
        source = "".join(f"# judge: {line}\n" for line in directives) + f"WHAT = {directives!r}\n"
        self.world.now = datetime.now(UTC)
        return self.world.submit(person, source=source.encode(), **changes)

    def state(self, submission: str) -> State:
        return self.world.submission(submission).state

    def wait_for(self, *submissions: str) -> None:
        """Until they are final."""
        until(lambda: all(self.state(name) in FINAL for name in submissions), f"the end of {submissions}")

    def wait_running(self, submission: str) -> None:
        """Until a node works on its newest attempt."""

        def running() -> bool:
            attempts = self.world.attempts(submission)
            return bool(attempts) and attempts[-1].state is AttemptState.running

        until(running, f"a running attempt of {submission}")

    def log(self, name: str) -> str:
        return (self.logs / f"{name}.log").read_text(encoding="utf-8", errors="replace")


@contextmanager
def serving(world: World) -> Iterator[str]:
    """The real web tier in a thread: nodes fetch bundles from it."""
    listener = create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(world.config), log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def made_pipeline(tmp_path: Path, database_url: str, broker_url: str, **settings: str) -> Iterator[Pipeline]:
    with ExitStack() as stack:
        world = World.make(database_url, tmp_path, now=datetime.now(UTC), broker_url=broker_url, **settings)
        stack.callback(world.database.dispose)
        world.hear(None)  # Nothing is sent before a worker says that it is there.
        url = stack.enter_context(serving(world))
        environ = {
            "LADDER_HOME": str(tmp_path),
            "LADDER_DATABASE_URL": database_url,
            "LADDER_BROKER_URL": broker_url,
            "LADDER_SERVER_URL": url,
            "LADDER_NODE_NAME": "anvil",
            "LADDER_NODE_KEY_FILE": world.key_file("anvil"),
            "LADDER_JUDGE": f"{sys.executable} {DOUBLE}",
            "PYTHONPATH": str(REPOSITORY),
            **{f"LADDER_{name.upper()}": value for name, value in settings.items()},
        }
        yield Pipeline(world, environ, stack, tmp_path)


@pytest.fixture
def redis_url() -> Iterator[str]:
    client = redis.Redis(host="localhost", db=REDIS_DATABASE)
    try:
        client.ping()
    except redis.ConnectionError as error:
        pytest.skip(f"Redis does not answer on localhost: {error}")
    client.flushdb()
    yield f"redis://localhost:6379/{REDIS_DATABASE}"
    client.flushdb()
    client.close()


@pytest.fixture(
    params=["sqlite-folder", pytest.param("postgresql-redis", marks=[pytest.mark.postgres, pytest.mark.redis])]
)
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pipeline]:
    """Both forms: embedded, and with PostgreSQL and Redis; same code. Leases are long, unless the test is about one."""
    lease_s = getattr(request.function, "lease_s", "60")
    if request.param == "sqlite-folder":
        database_url, broker_url = request.getfixturevalue("sqlite_url"), f"filesystem://{tmp_path / 'broker'}"
    else:
        database_url, broker_url = request.getfixturevalue("postgres_url"), request.getfixturevalue("redis_url")
    with made_pipeline(tmp_path, database_url, broker_url, lease_s=lease_s) as made:
        yield made


def test_submissions_go_all_the_way_and_get_the_grades_they_deserve(pipeline):
    good = pipeline.submit("ratio 0.8")
    bad = pipeline.submit("verdict wrong_answer", person="Bob")
    held = pipeline.submit("held")
    pipeline.start_all()
    pipeline.wait_for(good, bad, held)
    rows = {name: pipeline.world.submission(name) for name in (good, bad, held)}
    assert [rows[name].verdict for name in (good, bad, held)] == [Verdict.passed, Verdict.wrong_answer, Verdict.passed]
    assert [rows[name].points for name in (good, bad, held)] == [60, 30, 60]
    assert rows[held].review is Review.held
    (attempt,) = pipeline.world.attempts(good)
    assert [item["phase"] for item in attempt.phases] == ["preparing", "checking", "measuring"]
    assert pipeline.world.results(good)[0].ratio == pytest.approx(0.8)


def with_lease(seconds: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test's pipeline another lease."""

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        vars(test)["lease_s"] = seconds
        return test

    return mark


@with_lease("5")
def test_a_worker_killed_while_it_grades_costs_an_attempt_and_nothing_else(pipeline):
    submission = pipeline.submit("sleep 2")
    pipeline.start_all()
    pipeline.wait_running(submission)
    pipeline.started["worker"].kill()
    pipeline.started["worker"].wait()
    # Not the node's own report of what it left behind, but the sweeper: the new worker has another folder.
    pipeline.start("worker", LADDER_WORK=str(pipeline.logs / "another"))
    pipeline.wait_for(submission)
    row = pipeline.world.submission(submission)
    assert (row.state, row.verdict, row.points, row.attempts_made) == (State.done, Verdict.passed, 60, 2)
    assert [(item.fence, item.state) for item in pipeline.world.attempts(submission)] == [
        (1, AttemptState.lost),
        (2, AttemptState.finished),
    ]
    assert len(pipeline.world.results(submission)) == 1


def test_a_worker_that_starts_again_says_what_it_left_unfinished(pipeline):
    submission = pipeline.submit("sleep 3")
    pipeline.start_all()
    pipeline.wait_running(submission)
    pipeline.started["worker"].kill()
    pipeline.started["worker"].wait()
    pipeline.start("worker")
    pipeline.wait_for(submission)
    first, second = pipeline.world.attempts(submission)
    assert (first.state, first.reason) == (AttemptState.failed, "the worker was killed while it graded")
    assert second.state is AttemptState.finished
    assert list((pipeline.logs / "work" / "attempts").iterdir()) == []


def test_a_worker_told_to_stop_finishes_what_it_grades_and_takes_no_more(pipeline):
    first = pipeline.submit("sleep 2")
    pipeline.start_all()
    pipeline.wait_running(first)
    second = pipeline.submit()
    pipeline.started["worker"].send_signal(signal.SIGTERM)
    assert pipeline.started["worker"].wait(PATIENCE_S) == 0
    pipeline.wait_for(first)
    assert len(pipeline.world.attempts(first)) == 1
    assert (pipeline.state(second), pipeline.world.attempts(second)) == (State.queued, [])
    pipeline.start("worker")
    pipeline.wait_for(second)


def test_a_judge_that_breaks_is_replaced_and_three_breakages_are_our_failure(pipeline):
    orphan = pipeline.logs / "orphan"
    for directive in ("die", "garbage", "ours"):
        broken = pipeline.submit(directive, f"leave_child {orphan}")
        healthy = pipeline.submit("ratio 2.0", person="Bob")
        if not pipeline.started:
            pipeline.start_all()
        pipeline.wait_for(broken, healthy)
        row = pipeline.world.submission(broken)
        assert (row.state, row.verdict, row.points) == (State.failed, Verdict.grader_error, None)
        assert [item.state for item in pipeline.world.attempts(broken)] == [AttemptState.failed] * 3
        assert pipeline.state(healthy) is State.done
        if directive != "ours":  # That judge lives on, and so does what belongs to it.
            pid = int(orphan.read_text(encoding="utf-8"))
            until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), "the end of what the judge left behind")


def test_a_judge_that_is_silent_is_ended_at_the_attempts_deadline(tmp_path, sqlite_url):
    broker_url = f"filesystem://{tmp_path / 'broker'}"
    settings = {"lease_s": "4", "attempt_deadline_s": "2", "max_attempts": "1"}
    with made_pipeline(tmp_path, sqlite_url, broker_url, **settings) as pipeline:
        submission = pipeline.submit("silent")
        pipeline.start_all()
        pipeline.wait_for(submission)
        (attempt,) = pipeline.world.attempts(submission)
        assert attempt.reason == "the judge did not end before the attempt's deadline"


def test_two_dispatchers_two_recorders_and_two_nodes_grade_everything_once(pipeline):
    submissions = [pipeline.submit(f"ratio 1.{number:02}") for number in range(12)]
    pipeline.world.add_node("forge")
    pipeline.world.hear(None)
    pipeline.start_all()
    pipeline.start("second dispatcher", module="server.dispatcher")
    pipeline.start("second recorder", module="server.recorder")
    pipeline.start(
        "second worker",
        module="worker",
        LADDER_NODE_NAME="forge",
        LADDER_NODE_KEY_FILE=pipeline.world.key_file("forge"),
        LADDER_WORK=str(pipeline.logs / "forge"),
    )
    pipeline.wait_for(*submissions)
    for number, name in enumerate(submissions):
        (result,) = pipeline.world.results(name)
        assert result.ratio == pytest.approx(1 + number / 100)
        assert len(pipeline.world.attempts(name)) == 1


def test_a_node_with_a_wrong_key_is_not_believed(pipeline, tmp_path):
    submission = pipeline.submit()
    pipeline.start("server.recorder")
    NodeKey.generate().save(tmp_path / "guessed.key")
    pipeline.start("worker", LADDER_NODE_KEY_FILE=str(tmp_path / "guessed.key"))
    until(lambda: "the signature is not this node's" in pipeline.log("server.recorder"), "a refused report")
    assert pipeline.state(submission) is State.queued


def test_what_nodes_say_while_no_recorder_lives_is_recorded_by_the_next(pipeline):
    pipeline.start_all()
    until(lambda: bool(nodes_alive(pipeline.world)), "a node's report")
    pipeline.started["server.recorder"].kill()
    pipeline.started["server.recorder"].wait()
    submission = pipeline.submit()
    until(lambda: "ended after" in pipeline.log("worker"), "the end of an attempt")
    pipeline.start("server.recorder")
    pipeline.wait_for(submission)
    assert len(pipeline.world.attempts(submission)) == 1
