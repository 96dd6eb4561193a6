"""A small course in a database: two students, one rung, one node. For tests of what happens between the rows."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Select, delete, select, update
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import Argument, Case, Cost, LanePolicy, Points, Tolerance, content_hash, pack
from autograder.assignment import Assignment as Manifest
from autograder.contract import (
    AttemptResult,
    CaseResult,
    Claim,
    Envelope,
    GradeResult,
    GradeTask,
    Kind,
    Lane,
    Language,
    Measurement,
    Mode,
    NodeReport,
    Pair,
    Verdict,
    Visibility,
)
from broker.envelope import Message, seal
from broker.identity import NodeKey, Sender
from server import dirty_grades
from server.config import Config, load_config
from server.courses.content import grading_hash
from server.db import Database
from server.grading.interface import Outcome, claim_next, record, sweep
from server.ids import public_id, trace_id
from server.models import (
    Assignment,
    AssignmentVersion,
    Attempt,
    Base,
    Bundle,
    Course,
    Enrolment,
    Node,
    Result,
    Role,
    State,
    Submission,
    Tick,
    User,
)
from server.nodes import nodes
from server.nodes.nodes import Grant
from tests.doubles.machines import EVERYTHING, make_node

T = TypeVar("T")

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SOURCE = b"def vector_add(x, y, out, n):\n    pass\n"


def manifest(**changes: object) -> Manifest:
    """A rung that ranks on both lanes and gives speed points on a GPU."""
    plain = Manifest(
        slug="vector_add",
        title="Vector add",
        rung=1,
        summary="Add two vectors.",
        techniques=(),
        prerequisites=(),
        languages=(Language("triton"),),
        entry="vector_add",
        arguments=(
            Argument("x", "input", ("n",)),
            Argument("y", "input", ("n",)),
            Argument("out", "output", ("n",)),
            Argument("n", "size"),
        ),
        cases=(
            Case("small", {"n": 5}, "float32"),
            Case("large", {"n": 4096}, "float32", ranked=True),
        ),
        tolerance={"out": Tolerance("exact")},
        points=Points(correctness=60, speed=40),
        cost=Cost("n", "3 * n * e"),
        lanes={"cpu": LanePolicy(), "h200": LanePolicy(speed_points=True, r_full=1.25, r_zero=10.0)},
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def files(content: Manifest) -> bytes:
    """A bundle whose content depends on the manifest; nothing that could be graded."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "manifest.json").write_text(codec.dumps(content), encoding="utf-8")
        return pack({f"assignments/{content.slug}": Path(folder), f"reference/{content.slug}": Path(folder)})


def graded_by(content: Manifest) -> str:
    """The grading hash of a rung that has a manifest only."""
    with tempfile.TemporaryDirectory() as folder:
        return grading_hash(content, Path(folder), Path(folder))


def case(name: str, verdict: Verdict | None = Verdict.passed, **changes: object) -> CaseResult:
    """A case's result; `hidden …` names are hidden."""
    hidden = name.startswith("hidden")
    plain = CaseResult(
        name=name,
        category="odd sizes" if hidden else "",
        group="hidden" if hidden else "public",
        visibility=Visibility.hidden if hidden else Visibility.public,
        ranked=False,
        verdict=verdict,
        message="Passed." if verdict is Verdict.passed else "The output is wrong at index 3.",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def measurement(name: str = "large", ratio: float = 1.0, spread: float = 0.02, time_us: float = 100.0) -> Measurement:
    """A ranked case's speed, with an interval of ± `spread`."""
    return Measurement(
        case=name,
        clock="event",
        ratio=ratio,
        ratio_low=ratio * (1 - spread),
        ratio_high=ratio * (1 + spread),
        time_us=time_us * ratio,
        time_low_us=time_us * ratio,
        time_high_us=time_us * ratio,
        reference_us=time_us,
        flops=4096.0,
        bytes_moved=49152.0,
        pairs=tuple(_pair(time_us * ratio * (1 + off), time_us) for off in (-spread, 0.0, spread)),
    )


def _pair(ours_us: float, reference_us: float) -> Pair:
    """Both clocks, the sealed one with an exchange on top."""
    return Pair(ours_us, ours_us + 20.0, reference_us, reference_us + 20.0)


def passed(ratio: float = 1.0, *, held: bool = False, spread: float = 0.02) -> GradeResult:
    """A result that passed everything."""
    return GradeResult(
        verdict=Verdict.passed,
        explanation="All cases passed.",
        cases=(case("small"), case("large", ranked=True), case("hidden 7 of 13")),
        measurements=(measurement("large", ratio, spread),),
        held=held,
        held_reason="Faster than the hardware." if held else "",
    )


def wrong() -> GradeResult:
    """A result whose second case failed."""
    return GradeResult(
        verdict=Verdict.wrong_answer,
        explanation="Case large: 3 of 4096 elements are wrong.",
        cases=(case("small"), case("large", Verdict.wrong_answer), case("hidden 7 of 13", Verdict.wrong_answer)),
    )


@dataclass
class World:
    """The database and what is in it; time passes only by `wait`."""

    database: Database
    config: Config
    now: datetime = START
    keys: dict[str, NodeKey] = field(default_factory=dict)
    senders: dict[str, Sender] = field(default_factory=dict)

    @classmethod
    def make(cls, url: str, home: Path, *, now: datetime = START, **settings: str) -> World:
        """Fill the tables: Alice and Bob in course `gpu`, rung `vector_add`, node `anvil` on the CPU lane."""
        environ = {"LADDER_HOME": str(home), "LADDER_DATABASE_URL": url}
        environ |= {f"LADDER_{name.upper()}": value for name, value in settings.items()}
        world = cls(Database(url), load_config(environ), now)
        Base.metadata.create_all(world.database.engine)
        with world.database.transaction() as session:
            course = Course(slug="gpu", title="Kernels", created_at=START)
            session.add(course)
            session.flush()
            for name in ("Alice", "Bob"):
                world.enrol(session, name)
            world.publish(session, manifest())
        world.add_node("anvil")
        return world

    def enrol(self, session: Session, name: str, role: Role = Role.student, **changes: object) -> User:
        """Add a person to the course."""
        user = User(email=f"{name.lower()}@example.org", name=name, handle=f"quiet-{name.lower()}", created_at=START)
        session.add(user)
        session.flush()
        course_id = session.scalars(select(Course.id)).one()
        session.add(Enrolment(course_id=course_id, user_id=user.id, role=role, created_at=START, **changes))
        dirty_grades.grades(session, course_id, user.id)
        return user

    def publish(self, session: Session, content: Manifest) -> AssignmentVersion:
        """Make `content` the rung's current version."""
        course_id = session.scalars(select(Course.id)).one()
        row = session.scalar(select(Assignment).where(Assignment.slug == content.slug))
        if row is None:
            row = Assignment(
                course_id=course_id, slug=content.slug, rung=content.rung, title=content.title, created_at=START
            )
            session.add(row)
        data = files(content)
        session.merge(Bundle(hash=content_hash(data), data=data, size=len(data), created_at=START))
        session.flush()
        number = 1 + len(
            session.scalars(select(AssignmentVersion.id).where(AssignmentVersion.assignment_id == row.id)).all()
        )
        version = AssignmentVersion(
            assignment_id=row.id,
            number=number,
            bundle_hash=content_hash(data),
            grading_hash=graded_by(content),
            manifest=codec.to_json(content),
            handout="",
            starters={},
            milestones=[],
            created_at=START,
        )
        session.add(version)
        session.flush()
        row.version_id = version.id
        dirty_grades.grades(session, course_id)
        return version

    def add_node(
        self, name: str, lanes: tuple[Lane, ...] = (Lane.cpu,), slots: int = 1, grant: Grant = EVERYTHING
    ) -> None:
        """Register a node and let it report."""
        with self.database.transaction() as session:
            node, self.keys[name] = make_node(session, name=name, now=self.now, grant=grant)
            nodes.apply_report(node, NodeReport(lanes, slots, draining=False, facts={}, at=0.0), now=self.now)

    def submit(self, person: str = "Alice", **changes: object) -> str:
        """Put a submission in the queue; its public id."""
        with self.database.transaction() as session:
            assignment = session.scalars(select(Assignment).order_by(Assignment.id).limit(1)).one()
            user = session.scalars(select(User).where(User.name == person)).one()
            before = session.scalars(select(Submission.number).where(Submission.user_id == user.id)).all()
            number = max(before, default=0) + 1
            # Another kernel each time: the samples of an identical one are pooled.
            source = SOURCE + f"VERSION = {number}\n".encode()
            values: dict[str, object] = {
                "public_id": public_id(),
                "number": number,
                "course_id": assignment.course_id,
                "assignment_id": assignment.id,
                "version_id": assignment.version_id,
                "user_id": user.id,
                "mode": Mode.submission,
                "lane": Lane.cpu,
                "language": Language("triton"),
                "filename": "kernel.py",
                "source": source,
                "source_hash": content_hash(source),
                "trace": trace_id(),
                "uploaded_at": self.now,
                "place_at": self.now,
                "state": State.queued,
            }
            submission = Submission(**{**values, **changes})
            session.add(submission)
            return submission.public_id

    def wait(self, seconds: float, *, nodes_live: bool = True) -> None:
        """Let time pass; nodes go on reporting."""
        self.now += timedelta(seconds=seconds)
        if nodes_live:
            self.hear(self.now)

    def hear(self, at: datetime | None) -> None:
        """Every node was last heard of then."""
        with self.database.transaction() as session:
            session.execute(update(Node).values(last_seen_at=at))

    def claim(self, node: str = "anvil") -> GradeTask | None:
        """What a dispatcher does for one node."""
        with self.database.transaction() as session:
            row = nodes.find_node(session, name=node)
            return claim_next(session, node_id=row.id, now=self.now, config=self.config)

    def take(self, node: str = "anvil") -> GradeTask:
        """A claim that has to succeed."""
        task = self.claim(node)
        assert task is not None
        return task

    def sweep(self, *, nodes_live: bool = True) -> int:
        """What a dispatcher does every second, where the recorder has heard everything; nodes go on reporting."""
        self.tick()
        with self.database.transaction() as session:
            swept = sweep(session, now=self.now, config=self.config)
        if nodes_live:
            self.hear(self.now)
        return swept

    def tick(self) -> None:
        """The recorder has heard everything that was said up to now, without a gap."""
        longest_s = self.config.attempt_deadline_s + self.config.lease_s
        seconds = [*range(0, int(longest_s) + 1, 10), self.config.lease_s, longest_s]
        with self.database.transaction() as session:
            session.execute(delete(Tick))
            for number, ago in enumerate(sorted(set(seconds))):
                at = self.now - timedelta(seconds=ago)
                session.add(Tick(nonce=f"{number:032x}", made_at=at, heard_at=at))

    def clock(self) -> float:
        """What nodes' clocks say."""
        return self.now.timestamp()

    def key_file(self, name: str = "anvil") -> str:
        """Where a worker finds the node's key."""
        path = self.config.home / f"node-{name}.key"
        if not path.exists():
            self.keys[name].save(path)
        return str(path)

    def sealed(self, kind: Kind, message: Message, node: str = "anvil", key: NodeKey | None = None) -> str:
        """What a node puts on the results queue."""
        if key is not None:
            return seal(Sender(node, key, clock=self.clock), kind, message)
        known = self.senders.setdefault(node, Sender(node, self.keys[node], clock=self.clock))
        return seal(known, kind, message)

    def send(self, kind: Kind, message: Message, node: str = "anvil", key: NodeKey | None = None) -> Outcome:
        """What a node sends, as the recorder applies it."""
        return self.record(self.sealed(kind, message, node, key))

    def record(self, text: str) -> Outcome:
        """An envelope, as the recorder applies it."""
        with self.database.transaction() as session:
            return record(session, codec.loads(Envelope, text), now=self.now, config=self.config)

    def claimed(self, task: GradeTask, node: str = "anvil") -> Outcome:
        """The node has the task."""
        return self.send(Kind.claimed, Claim(task.attempt, task.fence, 0.0), node)

    def finish(self, task: GradeTask, result: GradeResult | None = None, node: str = "anvil") -> Outcome:
        """The node has a result."""
        return self.send(Kind.result, AttemptResult(task.attempt, task.fence, result or passed()), node)

    def grade(self, result: GradeResult, person: str = "Alice", node: str = "anvil", **changes: object) -> str:
        """Submit, claim and finish."""
        submission = self.submit(person, **changes)
        self.finish(self.take(node), result, node)
        return submission

    def submission(self, submission: str) -> Submission:
        """The row as it is now."""
        return self._rows(select(Submission).where(Submission.public_id == submission))[0]

    def state_of(self, submission: str) -> State:
        """Where it is now."""
        return self.submission(submission).state

    def attempts(self, submission: str) -> list[Attempt]:
        """Its attempts, oldest first."""
        query = select(Attempt).join(Submission, Submission.id == Attempt.submission_id).order_by(Attempt.fence)
        return self._rows(query.where(Submission.public_id == submission))

    def results(self, submission: str) -> list[Result]:
        """Its results, oldest first."""
        query = select(Result).join(Submission, Submission.id == Result.submission_id).order_by(Result.id)
        return self._rows(query.where(Submission.public_id == submission))

    def _rows(self, query: Select[tuple[T]]) -> list[T]:
        with self.database.reading() as session:
            rows = list(session.scalars(query))
            session.expunge_all()  # A rollback would make them forget what they hold.
            return rows
