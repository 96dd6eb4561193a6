"""The chaos run's checks bite: each thing broken on purpose, in the rows or in the code, is caught by its rule."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, select, update

from autograder import codec
from autograder.contract import (
    AttemptResult,
    Claim,
    Envelope,
    GradeRequest,
    GradeTask,
    Kind,
    Lane,
    Language,
    Mode,
    NodeReport,
    Verdict,
)
from broker.envelope import seal
from broker.identity import Sender
from server.config import load_config
from server.courses import courses
from server.db import Database
from server.grading import after_result
from server.grading import record as recording
from server.grading import results as writing
from server.grading.interface import claim_next, record
from server.models import Attempt, AttemptState, CaseRow, Result, State, Submission, User
from server.nodes import nodes
from server.submissions import submissions
from tests.chaos import checks, course
from tests.chaos.checks import Books, examine
from tests.chaos.plan import APART, COURSES, DOUBLE_LANES, DUE, OPEN, Step, make_faults, make_steps
from tests.chaos.plan import QUICK as SCALE
from tests.chaos.promises import Promise
from tests.doubles import judge
from tests.doubles.machines import make_node

NODE = "double0"
LANE = next(lane for lane in DOUBLE_LANES if lane is not APART)
ENTRY = "def double(a, out, negative, m, n, a_row): ...\n"


@dataclass
class Evening:
    """A few students, one node, and the promises that were made; what the processes do is done here by hand."""

    database: Database
    config: object
    token: str = ""
    promises: list[Promise] = field(default_factory=list)

    def submit(
        self, source: str, *, student: int = 0, mode: Mode = Mode.submission, assignment: str = OPEN, lane: Lane = LANE
    ) -> str:
        """Submit over the service, as the API does; the receipt number."""
        step = Step(0, f"k{len(self.promises)}", student, COURSES[0], assignment, lane, mode, source + ENTRY)
        promise = Promise(step, sent_at=time.time(), tries=1)
        with self.database.transaction() as session:
            user = session.scalars(select(User).where(User.handle == f"s{student}")).one()
            row = submissions.submit(
                session, membership=courses.membership(session, user, step.course), assignment=assignment, mode=mode,
                lane=step.lane, language=Language.triton, filename="kernel.py", source=step.source.encode(),
                config=self.config, now=datetime.now(UTC), trace="0" * 32, request_key=step.key,
            )  # fmt: skip
            promise.receipt = {
                "public_id": row.public_id, "number": row.number, "source_hash": row.source_hash,
            }  # fmt: skip
        promise.answered_at = time.time()
        self.promises.append(promise)
        return promise.public_id

    def claim(self) -> GradeTask | None:
        with self.database.transaction() as session:
            node = nodes.find_node(session, name=NODE)
            nodes.apply_report(
                node, NodeReport(DOUBLE_LANES, 8, draining=False, facts={}, at=time.time()), now=datetime.now(UTC)
            )
            return claim_next(session, node_id=node.id, now=datetime.now(UTC), config=self.config)

    def finish(self, task: GradeTask) -> None:
        for kind, message in (
            (Kind.claimed, Claim(task.attempt, task.fence, time.time())),
            (Kind.result, AttemptResult(task.attempt, task.fence, judge.result(task.request))),
        ):
            text = seal(self.sender, kind, message)
            with self.database.transaction() as session:
                record(session, codec.loads(Envelope, text), now=datetime.now(UTC), config=self.config)

    def grade_all(self) -> None:
        while (task := self.claim()) is not None:
            self.finish(task)

    def lose(self, task: GradeTask) -> None:
        """Its node falls silent, and the sweeper sees it."""
        with self.database.transaction() as session:
            session.execute(
                update(Attempt)
                .where(Attempt.public_id == task.attempt)
                .values(lease_expires_at=datetime.now(UTC) - timedelta(minutes=1))
            )

    def change(self, table: type, name: str | None = None, **values: object) -> None:
        """Change rows behind everybody's back; of one submission, or all."""
        query = update(table).values(**values)
        with self.database.transaction() as session:
            session.execute(query.where(table.public_id == name) if name else query)

    def rules(self, **changes: object) -> set[str]:
        """The names of the rules that are broken."""
        with self.database.reading() as session:
            books = Books.read(session, self.promises, 3)
        return {broken.rule for broken in examine(dataclasses.replace(books, **changes))}


@pytest.fixture
def evening(sqlite_url: str, tmp_path) -> Evening:
    environ = {
        "LADDER_HOME": str(tmp_path),
        "LADDER_DATABASE_URL": sqlite_url,
        "LADDER_ASSIGNMENTS": str(tmp_path / "assignments"),
        "LADDER_REFERENCE": str(tmp_path / "reference"),
        "LADDER_SUBMIT_QUOTA_PER_MINUTE": "1000",
    }
    config = load_config(environ)
    course.write_assignments(config)
    made = Evening(Database(sqlite_url), config)
    with made.database.transaction() as session:
        course.make_courses(session, config)
        for number in (0, 2):
            course.enrol(session, number)
        made.sender = Sender(NODE, make_node(session, name=NODE, now=datetime.now(UTC))[1])
    yield made
    made.database.dispose()


@pytest.fixture
def graded(evening: Evening) -> Evening:
    """Three submissions, one of them superseded, and a run; all graded."""
    evening.submit("# judge: ratio 2.0\n")
    evening.submit("# judge: verdict wrong_answer\n")
    evening.submit("# judge: held\n", student=2, assignment=DUE)
    evening.submit("", mode=Mode.run)
    evening.grade_all()
    return evening


def first(evening: Evening) -> str:
    return evening.promises[0].public_id


def test_a_sound_evening_breaks_no_rule(graded: Evening) -> None:
    assert graded.rules() == set()
    with graded.database.reading() as session:
        rows = session.scalars(select(Submission)).all()
        assert sum(row.superseded_by_id is not None for row in rows) == 1
        assert {row.state for row in rows} == {State.done}


def test_what_is_measured_apart_is_graded_once(evening: Evening) -> None:
    evening.submit("# judge: ratio 2.0\n", lane=APART)
    evening.grade_all()
    assert evening.rules() == set()
    with evening.database.reading() as session:
        assert len(session.scalars(select(Result)).all()) == 2


def _delete(evening: Evening) -> None:
    """The last submission of a student: no number is missing."""
    with evening.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == evening.promises[1].public_id)).one()
        session.execute(update(Submission).where(Submission.superseded_by_id == row.id).values(superseded_by_id=None))
        session.execute(update(Submission).where(Submission.id == row.id).values(result_id=None))
        ids = select(Result.id).where(Result.submission_id == row.id)
        session.execute(delete(CaseRow).where(CaseRow.result_id.in_(ids)))
        session.execute(delete(Result).where(Result.submission_id == row.id))
        session.execute(delete(Attempt).where(Attempt.submission_id == row.id))
        session.execute(delete(Submission).where(Submission.id == row.id))


def _grade_elsewhere(evening: Evening) -> None:
    with evening.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == first(evening))).one()
        row.result_id = session.scalars(select(Result.id).where(Result.submission_id != row.id)).first()


def _forge_payload(evening: Evening) -> None:
    with evening.database.transaction() as session:
        for row in session.scalars(select(Result)):
            row.payload = {**codec.to_json(judge.result(_request("# judge: ratio 3.0\n")))}


def _request(source: str):
    return GradeRequest("", "", Language.triton, LANE, Mode.submission, source, "kernel.py")


def _supersede_backwards(evening: Evening) -> None:
    with evening.database.transaction() as session:
        older, newer = session.scalars(select(Submission).order_by(Submission.id).limit(2)).all()
        older.superseded_by_id, newer.superseded_by_id = None, older.id


def _due_between(evening: Evening) -> None:
    """The one that superseded was late."""
    with evening.database.transaction() as session:
        newer = session.scalars(select(Submission).where(Submission.public_id == evening.promises[1].public_id)).one()
        assignment = session.get_one(submissions.Assignment, newer.assignment_id)
        assignment.due_at = newer.uploaded_at - timedelta(microseconds=1)


YESTERDAY = timedelta(days=1)
BREAKS = {
    "a row is gone": (_delete, "accepted_is_stored"),
    "a byte is changed": (lambda e: e.change(Submission, first(e), source=b"x"), "accepted_is_stored"),
    "a number is changed": (lambda e: e.change(Submission, first(e), number=9), "not_charged"),
    "a key is strange": (lambda e: e.change(Submission, first(e), request_key="other"), "stored_once"),
    "it waits again": (lambda e: e.change(Submission, first(e), state=State.queued), "all_final"),
    "its result is another's": (_grade_elsewhere, "graded_once"),
    "its verdict is another": (
        lambda e: e.change(Submission, first(e), verdict=Verdict.time_limit),
        "graded_rightly",
    ),
    "its points are others": (lambda e: e.change(Submission, first(e), points=1.0), "graded_rightly"),
    "what was found is changed": (_forge_payload, "payloads_whole"),
    "its upload is later": (
        lambda e: e.change(Submission, first(e), uploaded_at=datetime.now(UTC) + YESTERDAY),
        "not_charged",
    ),
    "its place is later": (
        lambda e: e.change(Submission, first(e), place_at=datetime.now(UTC) + YESTERDAY),
        "not_charged",
    ),
    "its place is nobody's": (
        lambda e: e.change(Submission, first(e), place_at=datetime.now(UTC) - YESTERDAY),
        "places_own",
    ),
    "an older one superseded it": (_supersede_backwards, "superseded_rightly"),
    "a late one superseded it": (_due_between, "superseded_rightly"),
    "an attempt lives": (lambda e: e.change(Attempt, state=AttemptState.running), "leases_empty"),
    "an attempt is lost for no reason": (lambda e: e.change(Attempt, state=AttemptState.lost), "graded_once"),
    "a fence is skipped": (lambda e: e.change(Attempt, fence=2), "states_possible"),
    "a phase lasts": (lambda e: e.change(Submission, first(e), phase="checking"), "states_possible"),
    "ours is charged": (
        lambda e: e.change(Submission, first(e), state=State.failed, verdict=Verdict.grader_error),
        "not_charged",
    ),
    "it never ended": (lambda e: e.change(Submission, first(e), finished_at=None), "states_possible"),
}


@pytest.mark.full("slow")
@pytest.mark.parametrize("name", BREAKS)
def test_what_is_broken_in_the_rows_is_caught(graded: Evening, name: str) -> None:
    breaks, rule = BREAKS[name]
    breaks(graded)
    assert rule in graded.rules()


def test_what_was_refused_or_taken_back_and_graded_is_caught(graded: Evening) -> None:
    graded.promises[0].cancelled = True
    assert graded.rules() == {"all_final"}
    graded.promises[0].cancelled = False
    graded.promises[3].refused = "429: too many"
    assert graded.rules() == {"nobody_refused"}


def test_a_process_that_outlived_its_parent_is_caught(graded: Evening) -> None:
    assert graded.rules(orphans=["4711: judge"]) == {"no_orphans"}


def test_a_recorder_that_forgets_the_fence_is_caught(evening: Evening, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost attempt's result comes late, after another attempt's; a recorder that takes it grades twice."""
    evening.submit("# judge: ratio 2.0\n")
    late = evening.claim()
    evening.change(Attempt, state=AttemptState.lost, finished_at=datetime.now(UTC), reason="the node fell silent")
    evening.change(Submission, state=State.queued)
    evening.grade_all()
    evening.finish(late)
    assert evening.rules() == set()
    monkeypatch.setattr(recording, "LIVE", tuple(AttemptState))
    for module, name in ((writing, "attempt_moves"), (after_result, "submission_moves"), (recording, "attempt_moves")):
        monkeypatch.setattr(module, name, lambda _before, after: after)
    evening.finish(late)
    assert "graded_once" in evening.rules()


def test_a_sweeper_that_forgets_is_caught(evening: Evening) -> None:
    """Nobody sweeps here: the attempt of a node that is gone stays, and so does its submission."""
    evening.submit("# judge: ratio 2.0\n")
    evening.lose(evening.claim())
    assert evening.rules() >= {"all_final", "leases_empty", "newest_on_time_is_graded", "states_possible"}


def test_a_submission_stored_twice_is_caught(evening: Evening) -> None:
    """As a server does that knows no key: the same request again is another submission."""
    evening.submit("# judge: ratio 2.0\n")
    again = dataclasses.replace(evening.promises[0].step, key="elsewhere")
    evening.submit(again.source.removesuffix(ENTRY))
    evening.promises.pop()
    evening.grade_all()
    assert "stored_once" in evening.rules()


def test_the_same_seed_is_the_same_plan() -> None:
    examples = [(Verdict.passed, "x = 1\n")]
    assert make_steps(7, SCALE, examples) == make_steps(7, SCALE, examples) != make_steps(8, SCALE, examples)
    assert make_faults(7, SCALE, ["a", "b"]) == make_faults(7, SCALE, ["a", "b"]) != make_faults(8, SCALE, ["a", "b"])


def test_every_rule_has_a_line_that_says_what_it_promises() -> None:
    assert all(rule.__doc__ for rule in checks.RULES)
