"""A term's last three hours before a due date, in simulated time through the real code. For `scripts/surge.py`.

What is real: the service that takes submissions in, superseding, the policy, the claim with its locks, signed
envelopes, the recorder, and the database. What is simulated: the clock, who hands in when, and how long a node takes.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

from sqlalchemy import Row, select, update
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import (
    AttemptResult,
    Envelope,
    GradeResult,
    GradeTask,
    Kind,
    Lane,
    Language,
    Mode,
    NodeReport,
    Verdict,
)
from broker.envelope import seal
from broker.identity import NodeKey, Sender
from server.config import Config
from server.courses import courses, sync
from server.courses.courses import Membership
from server.db import Database
from server.grading.claim import fill_slots
from server.grading.interface import Outcome, record
from server.grading.policy import ANY, Look, Queue, Running, Slot, Waiting
from server.grading.queue_snapshot import look_at
from server.models import Assignment, Attempt, Enrolment, Line, Node, Role, State, Submission, User, Work
from server.nodes import nodes
from server.submissions import submissions
from server.surge.arrivals import HOURS, Arrival

START = datetime(2026, 11, 29, 21, 0, tzinfo=UTC)
HEARD_EVERY = timedelta(seconds=5)
DUE = START + timedelta(hours=HOURS)
COURSE, SLUG = "surge", "vector_add"
KERNEL = (Path(__file__).resolve().parent / "demo" / "passed_correct.py").read_text(encoding="utf-8")


class Fifo(Queue):
    """First in, first out: by id, whatever else there is to know."""

    def __init__(self, look: Look) -> None:
        super().__init__(Look(now=look.now, slots=look.slots))
        self._items = deque(sorted(look.waiting, key=lambda item: item.id))

    def next(self, slot: Slot = ANY) -> Waiting | None:
        """The oldest."""
        return next((item for item in self._items if item.work in slot.works), None)

    def take(self, item: Waiting) -> None:
        """It was claimed."""
        self._items.remove(item)

    drop = take
    hold_back = take

    def ended(self, item: Waiting | Running) -> None:
        """Nothing is counted."""


@dataclass(frozen=True)
class Order:
    """A policy to compare: how a look becomes a queue, and whether newer submissions take over older ones' places."""

    name: str
    queue: Callable[[Look], Queue]
    supersedes: bool


OURS = Order("ours", Queue, supersedes=True)
FIFO = Order("first in, first out", Fifo, supersedes=False)


@dataclass(frozen=True)
class Times:
    """How long a node takes, in seconds. The n-th submission of a student takes equally long under every order."""

    lane: Lane
    check_s: Callable[[random.Random], float]
    measure_s: Callable[[random.Random], float]
    passing: float

    def of(self, seed: int, student: int, number: int) -> tuple[float, float, bool]:
        """Check, measure, and whether it passes."""
        chosen = random.Random(f"{seed} {student} {number}")  # noqa: S311  # a simulation
        return self.check_s(chosen), self.measure_s(chosen), chosen.random() < self.passing


@dataclass(frozen=True)
class Outcomes:
    """What became of one replay; waits in seconds from upload.

    Attributes:
        verdict_s: of those that were graded at their turn, until their first verdict.
        measured_s: of those of them that passed on a lane that measures, until their times.
        later_s: of those that a newer one superseded, until the verdict that they got all the same.
        drained_s: from the due date until the last of those at their turn had all of its result.
        jobs: attempts until then; `jobs_in_all` with those of the superseded.
        unfinished: submissions that are in no final state at the end.
    """

    received: int
    verdict_s: Sequence[float]
    measured_s: Sequence[float]
    later_s: Sequence[float]
    drained_s: float
    jobs: int
    jobs_in_all: int
    unfinished: int


@dataclass
class Replay:
    """One course on so many single-slot nodes under one order."""

    database: Database
    config: Config
    order: Order
    times: Times
    slots: int
    seed: int
    users: list[int] = field(default_factory=list)
    senders: dict[str, Sender] = field(default_factory=dict)
    said_at_s: float = 0.0
    """When what nodes say is signed, in seconds since 1970."""
    free: list[str] = field(default_factory=list)
    node_ids: dict[str, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    members: dict[int, Membership] = field(default_factory=dict)
    waiting: int = 0
    heard_at: datetime = START
    events: list[tuple[float, int, object]] = field(default_factory=list)
    count: Iterator[int] = field(default_factory=itertools.count)

    def run(self, arriving: Sequence[Arrival]) -> Outcomes:
        """Everything that arrives, until nothing waits."""
        self._make(1 + max(arrival.student for arrival in arriving))
        for arrival in arriving:
            self._later(arrival.at_s, arrival)
        with _superseding(on=self.order.supersedes):
            while self.events:
                at, _, event = heapq.heappop(self.events)
                now = START + timedelta(seconds=at)
                if isinstance(event, Arrival):
                    self._submit(event, now)
                elif isinstance(event, tuple):
                    self._finish(*event, now=now)
                self._fill(at, now)
        return self._outcomes()

    def _later(self, at_s: float, event: object) -> None:
        heapq.heappush(self.events, (at_s, next(self.count), event))

    def _make(self, students: int) -> None:
        with self.database.transaction() as session:
            course = courses.create_course(session, slug=COURSE, title="Surge")
            sync.sync_assignments(session, self.config, course)
            row = session.scalars(select(Assignment).where(Assignment.slug == SLUG)).one()
            row.open_at, row.due_at, row.late_until = None, DUE, None
            people = [_user(number) for number in range(students)]
            session.add_all(people)
            session.flush()
            self.users = [user.id for user in people]
            session.add_all(
                Enrolment(course_id=course.id, user_id=user.id, role=Role.student, created_at=START) for user in people
            )
            for number in range(self.slots):
                self._add_node(session, f"gpu-{number}")

    def _add_node(self, session: Session, name: str) -> None:
        key = NodeKey.generate()
        grant = nodes.Grant(frozenset({self.times.lane}))
        node = nodes.create_node(session, name=name, identity=key.identity, grant=grant, now=START)
        report = NodeReport((self.times.lane,), 1, draining=False, facts={}, at=START.timestamp())
        nodes.apply_report(node, report, now=START)
        self.senders[name] = Sender(name, key, clock=lambda: self.said_at_s)
        self.node_ids[name] = node.id
        self.free.append(name)

    def _submit(self, arrival: Arrival, now: datetime) -> None:
        self.waiting += 1
        number = self.numbers[arrival.student] = self.numbers.get(arrival.student, 0) + 1
        with self.database.transaction() as session:
            submissions.submit(
                session, membership=self._member(session, arrival.student), assignment=SLUG, mode=Mode.submission,
                lane=self.times.lane, language=Language("triton"), filename="kernel.py",
                source=f"{KERNEL}\n# {arrival.student} {number}\n".encode(), config=self.config, now=now,
                trace=f"{arrival.student:016x}{number:016x}",
            )  # fmt: skip

    def _member(self, session: Session, student: int) -> Membership:
        if student not in self.members:
            user = session.get_one(User, self.users[student])
            self.members[student] = courses.membership(session, user, COURSE)
        return self.members[student]

    def _fill(self, at_s: float, now: datetime) -> None:
        """What the dispatcher does after each event: one look, then every free slot."""
        if not self.free or not self.waiting:
            return
        with self.database.transaction() as session:
            if now - self.heard_at > HEARD_EVERY:
                # No node falls silent here: those that do are the chaos run's.
                session.execute(update(Node).values(last_seen_at=now))
                self.heard_at = now
            look = look_at(session, self.times.lane, nodes.working_nodes(session, now=now), now=now)
            queues = {self.times.lane: self.order.queue(look)}
            for name in list(self.free):
                tasks = fill_slots(session, node_id=self.node_ids[name], queues=queues, now=now, config=self.config)
                for task in tasks:
                    self.free.remove(name)
                    self.waiting -= 1
                    self._start(at_s, name, task)
                if not tasks:
                    break

    def _start(self, at_s: float, name: str, task: GradeTask) -> None:
        student, number = int(task.trace[:16], 16), int(task.trace[16:], 16)
        check_s, measure_s, passes = self.times.of(self.seed, student, number)
        seconds = {Work.check: check_s, Work.measure: measure_s}.get(task.request.work)
        took = seconds if seconds is not None else check_s + (measure_s if passes else 0.0)
        self._later(at_s + took, (name, task, passes))

    def _finish(self, name: str, task: GradeTask, passes: bool, *, now: datetime) -> None:
        cases = ()
        result = GradeResult(Verdict.passed if passes else Verdict.wrong_answer, "Simulated.", cases)
        message = AttemptResult(task.attempt, task.fence, result)
        self.said_at_s = now.timestamp()
        envelope = codec.loads(Envelope, seal(self.senders[name], Kind.result, message))
        with self.database.transaction() as session:
            outcome = record(session, envelope, now=now, config=self.config)
        if outcome is not Outcome.applied:
            raise SystemExit(f"the recorder did not take a result: {outcome}")
        self.free.append(name)
        self.waiting += passes and task.request.work is Work.check

    def _outcomes(self) -> Outcomes:
        with self.database.reading() as session:
            rows = session.execute(
                select(Submission.id, Submission.uploaded_at, Submission.state, Submission.superseded_by_id)
            ).all()
            ends: dict[int, list[tuple[Work, Line, datetime]]] = {}
            for row in session.execute(
                select(Attempt.submission_id, Attempt.work, Attempt.line, Attempt.finished_at).order_by(Attempt.id)
            ):
                ends.setdefault(row.submission_id, []).append((row.work, row.line, row.finished_at))
        return _summed_up(rows, ends)


def _summed_up(
    rows: Sequence[Row[int, datetime, State, int | None]], ends: dict[int, list[tuple[Work, Line, datetime]]]
) -> Outcomes:
    verdict_s, measured_s, later_s, at_turn = [], [], [], []
    for row in rows:
        (_, first_line, first_end), *more = ends[row.id]
        wait = (first_end - row.uploaded_at).total_seconds()
        if first_line is Line.superseded:
            later_s.append(wait)
            continue
        verdict_s.append(wait)
        at_turn.append(first_end)
        for work, line, end in more:
            if work is Work.measure and line is not Line.superseded:
                measured_s.append((end - row.uploaded_at).total_seconds())
                at_turn.append(end)
    last = max(at_turn)
    everything = [end for each in ends.values() for _, _, end in each]
    return Outcomes(
        received=len(rows),
        verdict_s=sorted(verdict_s),
        measured_s=sorted(measured_s),
        later_s=sorted(later_s),
        drained_s=max(0.0, (last - DUE).total_seconds()),
        jobs=sum(end <= last for end in everything),
        jobs_in_all=len(everything),
        unfinished=sum(row.state is not State.done for row in rows),
    )


def _user(number: int) -> User:
    return User(email=f"s{number}@surge.example", name=f"Student {number}", handle=f"surge-{number}", created_at=START)


@contextmanager
def _superseding(*, on: bool) -> Iterator[None]:
    """Without it, the two calls that supersede do nothing; all else is the same code."""
    with ExitStack() as stack:
        if not on:
            stack.enter_context(mock.patch("server.submissions.submissions.supersede_older", return_value=[]))
            stack.enter_context(mock.patch("server.grading.after_result.supersede_measuring"))
        yield
