"""What is shown of a submission, and that nothing hidden reaches a student."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event

from autograder import codec
from autograder.contract import (
    CaseResult,
    Finding,
    FindingKind,
    Frame,
    GradeResult,
    Lane,
    Measurement,
    Mismatch,
    Mode,
    Pair,
    Pattern,
    Phase,
    PhaseTime,
    StudentError,
    Verdict,
    Visibility,
)
from server.api.schemas import SubmissionRead
from server.grading.snapshots import Snapshots
from server.models import Attempt, AttemptState, Course, Node, Result, Review, State, Submission
from server.submissions import submissions

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
MARK = "HIDDEN-MARKER"


def _case(name, verdict, *, hidden=False, **parts):
    return CaseResult(
        name=f"{MARK} {name}" if hidden else name,
        category="odd sizes" if hidden else "",
        group="hidden" if hidden else "public",
        visibility=Visibility.hidden if hidden else Visibility.public,
        ranked=False,
        verdict=verdict,
        message=f"{MARK} n = 1009" if hidden else "All of it is right.",
        seconds=0.25,
        **parts,
    )


def _measurement(case):
    return Measurement(case, "sealed", 2.0, 1.9, 2.1, 10.0, 9.0, 11.0, 5.0, 1e6, 1e6, (Pair(1.0, 2.0, 1.0, 2.0),))


MISMATCH = Mismatch("out", (1009,), "float32", 9, 1009, Pattern.tail, MARK, (1000,), MARK, MARK, "0")
ERROR = StudentError("ValueError", MARK, (Frame(1, "caller", MARK), Frame(2, "add_one", "raise ValueError")))
HIDDEN_FAILURE = GradeResult(
    verdict=Verdict.wrong_answer,
    explanation=f"{MARK}: element 1000 is wrong",
    cases=(
        _case("small", Verdict.passed),
        _case("n=1009", Verdict.wrong_answer, hidden=True, mismatch=MISMATCH, error=ERROR),
    ),
    error=ERROR,
    measurements=(_measurement("small"), _measurement(f"{MARK} n=1009")),
    findings=(Finding(FindingKind.library_call, MARK),),
    held=True,
    held_reason=MARK,
    log="hello",
    phases=(PhaseTime(Phase.checking, 1.0, 2.0),),
    environment={"triton": "3.9.0"},
)
PUBLIC_FAILURE = GradeResult(
    verdict=Verdict.runtime_error,
    explanation="The kernel raised ValueError.",
    cases=(_case("small", Verdict.runtime_error), _case("n=1009", None, hidden=True)),
    error=StudentError("ValueError", "no", (Frame(2, "add_one", "raise ValueError('no')"),)),
)


@dataclass
class Grading:
    """Puts attempts and results into the database as the recorder would."""

    database: object

    def attempt(self, submission, *, fence=1, **values):
        with self.database.transaction() as session:
            node = session.query(Node).first() or Node(
                name="n", granted_lanes=["cpu"], lanes=["cpu"], facts={}, created_at=NOW
            )
            session.add(node)
            session.flush()
            attempt = Attempt(
                public_id=f"{submission.id:020}{fence:06}", submission_id=submission.id, node_id=node.id, fence=fence,
                lane=submission.lane, line=submission.line, work=submission.work,
                state=AttemptState.running, dispatched_at=NOW, lease_expires_at=NOW + timedelta(minutes=1),
                **{"phases": [], "live_cases": [], **values},
            )  # fmt: skip
            session.add(attempt)
            row = session.get(Submission, submission.id)
            row.attempts_made, row.state = fence, State.running
            session.flush()
            return attempt.id

    def result(self, submission, graded):
        attempt_id = self.attempt(submission)
        with self.database.transaction() as session:
            result = Result(
                attempt_id=attempt_id, submission_id=submission.id, verdict=graded.verdict,
                explanation=graded.explanation, payload=codec.to_json(graded), created_at=NOW,
                correctness_points=60.0, speed_points=30.0,
            )  # fmt: skip
            session.add(result)
            session.flush()
            row = session.get(Submission, submission.id)
            row.result_id, row.state, row.verdict = result.id, State.done, graded.verdict
            row.finished_at, row.revision = NOW, row.revision + 1


@pytest.fixture
def grading(database):
    return Grading(database)


@pytest.fixture
def look(database):
    def call(submission, *, staff=False):
        with database.reading() as session:
            return submissions.view(session, session.get(Submission, submission.id), staff=staff)

    return call


@pytest.fixture
def waiting(database):
    """A submission's view with what its lane's forecast says of it."""

    def call(submission):
        with database.reading() as session:
            row = session.get(Submission, submission.id)
            return submissions.view(session, row, staff=False, wait=Snapshots().wait_of(session, row))

    return call


def test_a_waiting_submission_says_how_many_are_before_it(people, submit, waiting):
    first = submit(people.alice, now=NOW)
    practice = submit(people.alice, now=NOW, mode=Mode.run)
    elsewhere = submit(people.alice, now=NOW, lane=Lane.h200)
    second = submit(people.bob, now=NOW + timedelta(seconds=1))
    assert [waiting(item).position for item in (first, second, practice, elsewhere)] == [0, 1, 2, 0]
    assert not waiting(first).wait.has_node


def test_without_a_forecast_there_is_no_place(people, submit, look):
    assert look(submit(people.alice)).position is None


def test_one_that_was_superseded_names_the_newer(database, people, submit, look):
    old, new = submit(people.alice), submit(people.alice)
    with database.transaction() as session:
        session.get(Submission, old.id).superseded_by_id = new.id
    assert (look(old).superseded_by, look(new).superseded_by) == (new.number, None)


def test_a_running_submission_shows_its_phases_and_the_cases_so_far(people, submit, grading, look):
    made = submit(people.alice)
    grading.attempt(
        made,
        phases=[{"phase": "preparing", "at": 1.5}, {"phase": "checking", "at": 2.5}],
        live_cases=[codec.to_json(_case("small", Verdict.passed))],
    )
    view = look(made)
    assert view.position is None
    assert view.phases == ((Phase.preparing, 1.5), (Phase.checking, 2.5))
    assert [case.name for case in view.cases] == ["small"]
    assert (view.verdict, view.score, view.is_final) == (None, None, False)


def test_staff_see_everything(people, submit, grading, look):
    made = submit(people.alice)
    grading.result(made, HIDDEN_FAILURE)
    view = look(made, staff=True)
    assert view.cases == HIDDEN_FAILURE.cases
    assert view.findings == HIDDEN_FAILURE.findings
    assert view.error == ERROR
    assert len(view.measurements) == 2
    assert view.author == "Alice"


def test_nothing_hidden_reaches_the_student_by_any_field(people, submit, grading, look):
    made = submit(people.alice)
    grading.result(made, HIDDEN_FAILURE)
    view = look(made)
    assert MARK not in repr(view)
    assert MARK not in SubmissionRead.of(view).model_dump_json()
    assert view.explanation == "A hidden case failed (odd sizes): The output is wrong."
    assert [(case.name, case.verdict, case.seconds) for case in view.cases] == [
        ("small", Verdict.passed, 0.25),
        ("odd sizes", Verdict.wrong_answer, None),
    ]
    assert [item.case for item in view.measurements] == ["small"]
    assert view.log == "hello"


def test_what_is_redacted_stays_redacted_when_it_is_redacted_again(people, submit, grading, look):
    made = submit(people.alice)
    grading.result(made, HIDDEN_FAILURE)
    view = look(made)
    assert view.for_student() == view == look(made, staff=True).for_student()


def test_an_error_in_a_public_case_is_shown_whole(people, submit, grading, look):
    made = submit(people.alice)
    grading.result(made, PUBLIC_FAILURE)
    view = look(made)
    assert view.explanation == "The kernel raised ValueError."
    assert view.error == PUBLIC_FAILURE.error
    assert MARK not in repr(view)


@pytest.mark.parametrize(
    ("lane", "review", "speed", "speed_max"),
    [
        (Lane.h200, Review.none, 30.0, 40.0),
        (Lane.h200, Review.held, 0.0, 40.0),
        (Lane.h200, Review.rejected, 0.0, 40.0),
        (Lane.h200, Review.cleared, 30.0, 40.0),
        (Lane.cpu, Review.none, 30.0, 0.0),
    ],
)
def test_speed_points_wait_for_a_review(*, database, people, submit, grading, look, lane, review, speed, speed_max):
    made = submit(people.alice, lane=lane)
    grading.result(made, HIDDEN_FAILURE)
    with database.transaction() as session:
        session.get(Submission, made.id).review = review
    score = look(made).score
    assert (score.correctness, score.correctness_max) == (60.0, 60.0)
    assert (score.speed, score.speed_max) == (speed, speed_max)
    assert score.total == 60.0 + speed


def test_a_run_counts_for_nothing(people, submit, grading, look):
    made = submit(people.alice, mode=Mode.run)
    grading.result(made, PUBLIC_FAILURE)
    assert look(made).score is None


def test_our_failures_are_named_as_ours(database, people, submit, grading, look):
    made = submit(people.alice, now=NOW)
    first = grading.attempt(made)
    assert look(made).trouble == ""
    with database.transaction() as session:
        attempt, row = session.get(Attempt, first), session.get(Submission, made.id)
        attempt.state, attempt.finished_at = AttemptState.lost, NOW + timedelta(minutes=14)
        row.state = State.queued
        session.get(Course, row.course_id).timezone = "Europe/Berlin"
    kept = "Our node failed at 13:14. Your place, your quota and your late days were kept. Attempt 2 of 3"
    assert look(made).trouble == f"{kept} comes next."
    grading.attempt(made, fence=2)
    assert look(made).trouble == f"{kept}."
    with database.transaction() as session:
        session.get(Submission, made.id).state = State.failed
    view = look(made)
    assert view.is_final
    assert "not in your code. It used no quota and no late days." in view.trouble


def test_a_failure_on_another_day_says_which(database, people, submit, grading, look):
    made = submit(people.alice, now=NOW)
    first = grading.attempt(made)
    with database.transaction() as session:
        attempt, row = session.get(Attempt, first), session.get(Submission, made.id)
        attempt.state, attempt.finished_at = AttemptState.failed, NOW + timedelta(hours=13)
        row.state = State.queued
    assert "failed on 2 November at 01:00." in look(made).trouble


def test_late_is_when_it_was_uploaded(database, people, submit, look):
    made = submit(people.alice, now=NOW)
    with database.transaction() as session:
        session.get(
            Submission, made.id, options=[submissions.joinedload(Submission.assignment)]
        ).assignment.due_at = NOW
    assert not look(made).is_late
    later = submit(people.alice, now=NOW + timedelta(seconds=1))
    assert look(later).is_late


def test_the_view_asks_the_database_a_fixed_number_of_times(database, people, submit, grading, look):
    made = submit(people.alice)
    grading.result(made, HIDDEN_FAILURE)
    statements = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    assert json.loads(SubmissionRead.of(look(made, staff=True)).model_dump_json())["author"] == "Alice"
    assert len([text for text in statements if text.startswith("SELECT")]) <= 5
