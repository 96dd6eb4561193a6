"""A course under load: its students, what they handed in, and what they send. For `scripts/load.py`."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import content_hash
from autograder.contract import (
    AttemptEvent,
    AttemptResult,
    CaseResult,
    Claim,
    Envelope,
    Event,
    GradeResult,
    GradeTask,
    Kind,
    Lane,
    Language,
    Measurement,
    Mode,
    Pair,
    Phase,
    PhaseStarted,
    Verdict,
    Visibility,
)
from broker.envelope import Message, seal
from broker.identity import NodeKey, Sender
from load_client import Request, bearer, cookie, get, post
from server import ids
from server.config import Config
from server.courses import courses, sync
from server.db import Database
from server.grading.interface import Outcome, claim_next, record
from server.models import ApiToken, Enrolment, LoginSession, Node, Role, Submission, User
from server.nodes import nodes
from server.submissions import submissions

COURSE = "gpu"
SLUG = "vector_add"
KERNEL = Path(__file__).resolve().parent / "demo" / "passed_correct.py"
NODES = ("anvil", "bellows", "crucible")
SLOTS = nodes.MAX_SLOTS
_API = f"/api/v1/courses/{COURSE}/assignments/{SLUG}"
_PAGE = f"/courses/{COURSE}/assignments/{SLUG}"


@dataclass(frozen=True)
class Student:
    """A person with the secrets that their browser and their command line hold."""

    user_id: int
    login: str
    token: str


class Course:
    """The course in the database, through the same services as in production."""

    def __init__(self, database: Database, config: Config) -> None:
        self._database = database
        self._config = config
        self._senders: dict[str, Sender] = {}
        self._tasks: dict[str, tuple[str, GradeTask]] = {}
        self._kernel = KERNEL.read_text(encoding="utf-8")
        self._number = itertools.count(1)
        self.students: list[Student] = []
        self.watched: list[str] = []
        """Public ids; those at odd places run, the others wait."""
        self.sequence = 0
        """Of the next event that nodes send."""

    def make(self, students: int, graded: int) -> None:
        """The course, everybody in it, nodes, a leaderboard with so many entries, and as many that are watched."""
        now = datetime.now(UTC)
        with self._database.transaction() as session:
            course = courses.create_course(session, slug=COURSE, title="GPU programming")
            sync.sync_assignments(session, self._config, course)
            self.students = _people(session, students, course.id, now)
            for name in NODES:
                key = NodeKey.generate()
                everything = nodes.Grant(frozenset(Lane))
                nodes.create_node(session, name=name, identity=key.identity, grant=everything, now=now)
                self._senders[name] = Sender(name, key)
        for student in self.students[:graded]:
            public_id = self.submit(student)
            self._take()
            self.send(public_id, _result(random.Random(student.user_id)))  # noqa: S311  # made-up times
        running = [self.submit(student) for student in self.students[graded::2][: graded // 2]]
        self.start(running)
        waiting = [self.submit(student) for student in self.students[graded + 1 :: 2][: graded - graded // 2]]
        self.watched = [public_id for pair in zip(waiting, running, strict=False) for public_id in pair]

    def source(self) -> str:
        """A kernel like no other."""
        return f"{self._kernel}\n# {next(self._number)}\n"

    def submit(self, student: Student) -> str:
        """Hand something in without HTTP; its public id."""
        with self._database.transaction() as session:
            member = courses.membership(session, session.get_one(User, student.user_id), COURSE)
            made = submissions.submit(
                session, membership=member, assignment=SLUG, mode=Mode.submission, lane=Lane.cpu,
                language=Language("triton"), filename="kernel.py", source=self.source().encode(), config=self._config,
                now=datetime.now(UTC), trace=ids.trace_id(),
            )  # fmt: skip
            return made.public_id

    def start(self, public_ids: list[str]) -> None:
        """Give these, the only ones in the queue, to nodes."""
        for _ in public_ids:
            self._take()
        for public_id in public_ids:
            self.send(public_id, None)

    def _take(self) -> None:
        now = datetime.now(UTC)
        with self._database.transaction() as session:
            session.execute(update(Node).values(lanes=[Lane.cpu.value], slots=SLOTS, last_seen_at=now))
            for node_id, name in session.execute(select(Node.id, Node.name).order_by(Node.id)).all():
                task = claim_next(session, node_id=node_id, now=now, config=self._config)
                if task is not None:
                    found = select(Submission.public_id).where(Submission.trace == task.trace)
                    self._tasks[session.scalars(found).one()] = (name, task)
                    return
        raise SystemExit("no node takes what was handed in")

    def step(self, public_id: str, sequence: int) -> None:
        """What a node says when the next phase begins."""
        phase = list(Phase)[min(sequence, len(Phase) - 1)]
        event = Event(phase=PhaseStarted(phase, datetime.now(UTC).timestamp()))
        _name, task = self._tasks[public_id]
        self._send(public_id, Kind.event, AttemptEvent(task.attempt, task.fence, sequence, event))

    def send(self, public_id: str, result: GradeResult | None) -> None:
        """What a node says when it has the task, and when it has a result."""
        _name, task = self._tasks[public_id]
        if result is None:
            self._send(public_id, Kind.claimed, Claim(task.attempt, task.fence, 0.0))
        else:
            self._send(public_id, Kind.result, AttemptResult(task.attempt, task.fence, result))

    def _send(self, public_id: str, kind: Kind, message: Message) -> None:
        name, _task = self._tasks[public_id]
        envelope = codec.loads(Envelope, seal(self._senders[name], kind, message))
        with self._database.transaction() as session:
            outcome = record(session, envelope, now=datetime.now(UTC), config=self._config)
        if outcome is not Outcome.applied:
            raise SystemExit(f"the recorder did not take a {kind}: {outcome}")

    def submitting(self) -> Iterator[Request]:
        """Submissions by the API without end, each by another student until everybody had a turn."""
        for student in itertools.cycle(self.students):
            source = self.source()
            content = {"mode": "submission", "filename": "kernel.py", "source": source}
            yield post("submit", f"{_API}/submissions", bearer(student.token), content, content_hash(source.encode()))

    def reading(self, public_ids: list[str]) -> Iterator[Request]:
        """Pages without end: an assignment, a leaderboard and a submission in turn, by the owners of these."""
        owned = [(self.owner_of(public_id), public_id) for public_id in public_ids]
        for owner, public_id in itertools.cycle(owned):
            yield get("assignment page", _PAGE, cookie(owner.login))
            yield get("leaderboard page", f"{_PAGE}/leaderboard", cookie(owner.login))
            yield get("submission page", f"/submissions/{public_id}", cookie(owner.login))

    def owner_of(self, public_id: str) -> Student:
        """Who handed this in."""
        with self._database.reading() as session:
            user_id = session.scalars(select(Submission.user_id).where(Submission.public_id == public_id)).one()
        return next(student for student in self.students if student.user_id == user_id)

    def watching(self, public_id: str, *, page: bool) -> bytes:
        """The request of one who watches: a browser's page, or a command line."""
        owner = self.owner_of(public_id)
        if page:
            return get("", f"/submissions/{public_id}/live", cookie(owner.login)).data
        return get("", f"/api/v1/submissions/{public_id}/events", bearer(owner.token)).data

    def missing(self, accepted: dict[str, str]) -> list[str]:
        """The public ids of which the database does not hold exactly the bytes that were accepted."""
        with self._database.reading() as session:
            rows = session.execute(select(Submission.public_id, Submission.source)).all()
        stored = {public_id: content_hash(source) for public_id, source in rows}
        return [public_id for public_id, wanted in accepted.items() if stored.get(public_id) != wanted]

    def count(self) -> int:
        """How many submissions there are."""
        with self._database.reading() as session:
            return len(session.scalars(select(Submission.id)).all())


def _people(session: Session, count: int, course_id: int, now: datetime) -> list[Student]:
    users = [
        {"email": f"s{n}@example.org", "name": f"Student {n}", "handle": f"quiet-otter-{n}", "created_at": now}
        for n in range(count)
    ]
    user_ids = session.scalars(insert(User).returning(User.id, sort_by_parameter_order=True), users).all()
    made = [Student(user_id, ids.session_token(), ids.api_token()) for user_id in user_ids]
    enrolments = [
        {"course_id": course_id, "user_id": student.user_id, "role": Role.student, "created_at": now}
        for student in made
    ]
    session.execute(insert(Enrolment), enrolments)
    session.execute(insert(ApiToken), [_token(student, now) for student in made])
    session.execute(insert(LoginSession), [_login(student, now) for student in made])
    return made


def _token(student: Student, now: datetime) -> dict[str, object]:
    values = {"name": "load", "token_hash": ids.token_hash(student.token), "start": student.token[:10]}
    lasting = {"expires_at": now + timedelta(days=90), "scopes": "read submit"}
    return {"user_id": student.user_id, "created_at": now, **lasting, **values}


def _login(student: Student, now: datetime) -> dict[str, object]:
    times = {"created_at": now, "last_seen_at": now, "expires_at": now + timedelta(days=1)}
    values = {"token_hash": ids.token_hash(student.login), "csrf_token": ids.session_token()}
    return {"user_id": student.user_id, **values, **times}


def _result(random_: random.Random) -> GradeResult:
    """What a node finds in a right kernel: 15 cases, 2 of them ranked, with 7 pairs each."""
    ratio = random_.uniform(0.8, 3.0)
    return GradeResult(
        verdict=Verdict.passed,
        explanation="All 15 cases passed.",
        cases=tuple(_case(number) for number in range(15)),
        measurements=tuple(_measurement(name, ratio) for name in ("ranked_odd", "ranked_even")),
        environment={"torch": "2.13.0", "triton": "3.9.0", "python": "3.11.7"},
    )


def _case(number: int) -> CaseResult:
    hidden = number > 7  # noqa: PLR2004  # about half of them
    return CaseResult(
        name=f"case {number}", category="odd sizes", group="hidden" if hidden else "public",
        visibility=Visibility.hidden if hidden else Visibility.public, ranked=False, verdict=Verdict.passed,
        message="Passed.",
    )  # fmt: skip


def _measurement(name: str, ratio: float) -> Measurement:
    return Measurement(
        case=name, clock="event", ratio=ratio, ratio_low=ratio * 0.98, ratio_high=ratio * 1.02, time_us=100 * ratio,
        time_low_us=99 * ratio, time_high_us=101 * ratio, reference_us=100.0, flops=4096.0, bytes_moved=49152.0,
        pairs=(Pair(100 * ratio, 120 * ratio, 100.0, 120.0),) * 7,
    )  # fmt: skip
