"""A real server on a port of its own, with the demo course and a node that does what a test tells it.

For browser tests and for the screenshots. The web tier, the database, the queue of record and the signed envelopes are
the real ones; only the judge is a script.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import httpx
import uvicorn
from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import (
    AttemptEvent,
    AttemptResult,
    CaseFinished,
    CaseResult,
    Claim,
    Envelope,
    Event,
    GradeResult,
    GradeTask,
    Kind,
    Lane,
    Language,
    Mode,
    NodeReport,
    Phase,
    PhaseStarted,
)
from autograder.listings import PREFIX, Listings, pack
from broker.envelope import Message, seal
from broker.identity import NodeKey, Sender
from server import ids, migrations
from server.app import create_app
from server.config import REPOSITORY, Config, load_config
from server.courses import courses, demo
from server.db import Database
from server.grading.artefacts import store_artefact
from server.grading.interface import Outcome, claim_next, record
from server.models import Assignment, Attempt, Submission, User
from server.nodes import nodes
from server.submissions import submissions
from tests.doubles.machines import make_node

PASSWORD = "correct horse battery staple"
NODE = "anvil"
STARTED_S = 20.0
FOREVER_S = 7 * 86_400.0
"""The node counts as alive however long the tests take, and at the times that they pretend it is."""


@dataclass
class Stage:
    """The server's address and everything behind it."""

    url: str
    config: Config
    database: Database
    key: NodeKey
    ago_s: float = 0.0
    """By how much the node's clock is behind, as the recorder's is."""
    sequence: int = field(default=0)

    def __post_init__(self) -> None:
        self.sender = Sender(NODE, self.key, clock=lambda: time.time() - self.ago_s)

    @property
    def course_url(self) -> str:
        return f"{self.url}/courses/{demo.SLUG}"

    def assignment_url(self, slug: str = "vector_add") -> str:
        return f"{self.course_url}/assignments/{slug}"

    def submit(
        self,
        source: str,
        *,
        email: str = "alice@example.org",
        slug: str = "vector_add",
        mode: Mode = Mode.submission,
        ago: timedelta = timedelta(),
        lane: Lane = Lane.cpu,
        filename: str = "",
    ) -> str:
        """Hand something in as a person would, some time ago; its public id."""
        with self.database.transaction() as session:
            user = session.scalars(select(User).where(User.email == email)).one()
            submission = submissions.submit(
                session,
                membership=courses.membership(session, user, demo.SLUG),
                assignment=slug,
                mode=mode,
                lane=lane,
                language=Language("triton"),
                filename=filename or f"{slug}.py",
                source=source.encode(),
                config=self.config,
                now=datetime.now(UTC) - ago,
                trace=ids.trace_id(),
            )
            return submission.public_id

    def claim(self, *, ago: timedelta = timedelta()) -> GradeTask:
        """Give the node what is next in the queue."""
        task = self.next_task(ago=ago)
        assert task is not None
        return task

    def next_task(self, *, ago: timedelta = timedelta()) -> GradeTask | None:
        """What is next in the queue, which the node then has; `None`: nothing waits for it."""
        with self.database.transaction() as session:
            node = nodes.find_node(session, name=NODE)
            task = claim_next(session, node_id=node.id, now=datetime.now(UTC) - ago, config=self.config)
        if task is not None:
            self.send(Kind.claimed, Claim(task.attempt, task.fence, time.time()), ago=ago)
        return task

    def phase(self, task: GradeTask, phase: Phase, *, ago: timedelta = timedelta()) -> None:
        """The node begins a phase."""
        at = (datetime.now(UTC) - ago).timestamp()
        self._event(task, Event(phase=PhaseStarted(phase, at)), ago)

    def case(self, task: GradeTask, case: CaseResult, *, index: int = 0, total: int = 1) -> None:
        """The node has finished a case."""
        self._event(task, Event(case=CaseFinished(index, total, case)), timedelta())

    def finish(self, task: GradeTask, result: GradeResult, *, ago: timedelta = timedelta()) -> None:
        """The node has a result."""
        outcome = self.send(Kind.result, AttemptResult(task.attempt, task.fence, result), ago=ago)
        assert outcome is Outcome.applied, outcome

    def grade(self, result: GradeResult, source: str, *, ago: timedelta = timedelta(), **given: object) -> str:
        """Hand in, claim and finish, as if it had taken some seconds."""
        public_id = self.submit(source, ago=ago, **given)  # type: ignore[arg-type]
        task = self.claim(ago=ago - timedelta(seconds=0.2))
        assert self._submission_of(task) == public_id, "something else waits, and was next"
        for seconds, phase in ((0.4, Phase.preparing), (0.9, Phase.compiling), (1.3, Phase.checking)):
            self.phase(task, phase, ago=ago - timedelta(seconds=seconds))
        self.finish(task, result, ago=ago - timedelta(seconds=2.6))
        return public_id

    def _submission_of(self, task: GradeTask) -> str:
        with self.database.reading() as session:
            query = select(Submission.public_id).join(Attempt, Attempt.submission_id == Submission.id)
            return session.scalars(query.where(Attempt.public_id == task.attempt)).one()

    def serve(self, *lanes: Lane) -> None:
        """The node says that it grades these lanes."""
        report = NodeReport(lanes, 4, draining=False, facts={}, at=time.time())
        self.send(Kind.node, report)

    def measure(self, check: GradeResult, *measured: GradeResult, source: str, **given: object) -> str:
        """Hand in on a lane that measures apart: its check, then one attempt for each of these times."""
        public_id = self.submit(source, lane=Lane.h200, **given)  # type: ignore[arg-type]
        for result in (check, *measured):
            self.finish(self.claim(), result)
        return public_id

    def leave(self, public_id: str, *files: Listings) -> None:
        """The newest attempt at this submission has left the machine code of these targets."""
        with self.database.transaction() as session:
            query = select(Attempt).join(Submission, Submission.id == Attempt.submission_id)
            newest = query.where(Submission.public_id == public_id).order_by(Attempt.fence.desc()).limit(1)
            attempt, node = session.scalars(newest).one(), nodes.find_node(session, name=NODE)
            for one in files:
                store_artefact(
                    session, node, attempt=attempt.public_id, fence=attempt.fence, name=f"{PREFIX}{one.target}",
                    data=pack(one), now=datetime.now(UTC),
                )  # fmt: skip

    def send(self, kind: Kind, message: Message, *, ago: timedelta = timedelta()) -> Outcome:
        """What the node sends, as the recorder applies it."""
        self.ago_s = ago.total_seconds()
        text = seal(self.sender, kind, message)
        with self.database.transaction() as session:
            envelope = codec.loads(Envelope, text)
            return record(session, envelope, now=datetime.now(UTC) - ago, config=self.config)

    def _event(self, task: GradeTask, event: Event, ago: timedelta) -> None:
        self.sequence += 1
        self.send(Kind.event, AttemptEvent(task.attempt, task.fence, self.sequence, event), ago=ago)


@contextmanager
def stage(home: Path, **settings: str) -> Iterator[Stage]:
    """A running server in a folder of its own; `settings` are environment variables without their prefix."""
    port = _free_port()
    environ = {
        "LADDER_HOME": str(home),
        "LADDER_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "LADDER_ASSIGNMENTS": str(REPOSITORY / "assignments"),
        "LADDER_REFERENCE": str(REPOSITORY / "reference"),
        "LADDER_POLL_S": "0.05",
        # Tests hand in faster than people do.
        "LADDER_RUN_QUOTA_PER_MINUTE": "1000",
        "LADDER_SUBMIT_QUOTA_PER_MINUTE": "1000",
        "LADDER_PERSON_REQUESTS_PER_S": "0",
        "LADDER_LEASE_S": "86400",
        **{f"LADDER_{name.upper()}": value for name, value in settings.items()},
    }
    config = load_config(environ)
    migrations.upgrade(config.database_url)
    database = Database(config.database_url)
    with database.transaction() as session:
        demo.seed(session, config, password=PASSWORD, renew=False)
        key = _node(session)
        _forget_the_last_date(session)
    with mock.patch.object(nodes, "SILENCE_S", FOREVER_S), _serving(config, port):
        yield Stage(config.public_url, config, database, key)
    database.dispose()


def _node(session: Session) -> NodeKey:
    node, key = make_node(session, name=NODE, now=datetime.now(UTC))
    report = NodeReport((Lane.cpu,), 4, draining=False, facts={}, at=time.time())
    nodes.apply_report(node, report, now=datetime.now(UTC))
    return key


def _forget_the_last_date(session: Session) -> None:
    """One rung without a due date, which pages show too."""
    rows = list(session.scalars(select(Assignment).order_by(Assignment.rung)))
    rows[-1].due_at = rows[-1].late_until = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def _serving(config: Config, port: int) -> Iterator[None]:
    settings = uvicorn.Config(
        create_app(config), host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, name="web", daemon=True)
    thread.start()
    try:
        _wait_for(config.public_url)
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=STARTED_S)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + STARTED_S
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/login", timeout=60).raise_for_status()
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"{url} did not answer within {STARTED_S} s")
