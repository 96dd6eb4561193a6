"""What comes after a result: it counts, its times are taken, they are taken again, or a person has to look."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.contract import GradeResult, Verdict
from autograder.counters import doubt_of
from server import alerts
from server.courses import courses
from server.courses.deadlines import deadlines_of
from server.grading.grades import set_points
from server.grading.regrade_attempts import give_up, settle, withdraw
from server.grading.remeasure_requests import end_retime, fail_retime
from server.grading.sample_sets import keep_floor
from server.grading.states import FINAL, submission_moves
from server.grading.supersede import give_back, supersede_measuring
from server.models import (
    AlertKind,
    Assignment,
    AssignmentVersion,
    Attempt,
    ChangeReason,
    Line,
    Mode,
    RegradeItem,
    RegradeRequest,
    Result,
    Review,
    State,
    Submission,
    Work,
)

MOST_REMEASURED = 2
"""So many measurements of a submission may ask to be taken again; what the next one asks is a person's matter."""


class Next(Enum):
    """What comes after a result."""

    over = "over"
    measuring = "measuring"
    """It passed its check, and its times are to come."""
    again = "again"
    """Its times have to be taken again."""
    failed = "failed"
    """Its times could not be taken on any node, which is ours."""
    refuted = "refuted"
    """It had its grade, and did not pass when it was graded once more."""


@dataclass(frozen=True)
class Graded:
    """An attempt that ended with a result; its submission's row is locked."""

    session: Session
    submission: Submission
    attempt: Attempt
    manifest: Manifest
    now: datetime
    item: RegradeItem | None = None
    """The item of a proposal that the attempt was made for."""
    request: RegradeRequest | None = None
    """The request that its times are taken once more for."""

    @property
    def is_ranked(self) -> bool:
        """It is no practice, and its lane has a leaderboard: its times matter."""
        policy = self.manifest.policy(self.submission.lane)
        return policy is not None and policy.ranks and self.submission.mode is Mode.submission

    @property
    def is_counted(self) -> bool:
        """Counters give its speed points."""
        version_id = self.item.version_id if self.item is not None else self.submission.version_id
        version = self.session.get_one(AssignmentVersion, version_id)
        assignment = self.session.get_one(Assignment, self.submission.assignment_id)
        return courses.is_counted(assignment, version, self.submission.lane)

    @property
    def is_once_more(self) -> bool:
        """It had its grade, and is to be confirmed, or its student asked for its times to be taken again."""
        return self.attempt.line is Line.confirm or self.request is not None

    @property
    def gives_speed(self) -> bool:
        """Its times give points; where they give none, nobody is held for them, and nothing is measured again."""
        policy = self.manifest.policy(self.submission.lane)
        return self.is_ranked and policy is not None and policy.speed_points


def next_after(  # one answer each
    graded: Graded, result: GradeResult, whole: GradeResult, max_attempts: int
) -> Next:
    """What comes now. Whether a measurement that asks to be taken again is too many is said here, not by its judge."""
    if whole.verdict is not Verdict.passed:
        return Next.refuted if graded.is_once_more else Next.over
    if not graded.is_ranked:
        return Next.over
    if graded.attempt.work is Work.check:
        return Next.measuring
    if not graded.gives_speed:
        return Next.over
    if result.gpu is not None and result.gpu.trouble:
        # Trouble of a node uses up attempts, which are ours; nobody is held for it.
        return Next.again if graded.submission.attempts_made < max_attempts else Next.failed
    return Next.again if asks_again(graded, result, whole) and not asked_enough(graded) else Next.over


def asks_again(graded: Graded, result: GradeResult, whole: GradeResult) -> bool:
    """Whether its times would have to be taken again; what its judge holds, a person looks at."""
    return bool(result.remeasure) and not whole.held and graded.gives_speed


def asked_enough(graded: Graded) -> bool:
    """Whether what is still to be taken again is a person's matter by now."""
    return graded.submission.remeasured >= MOST_REMEASURED


def go_on(graded: Graded, row: Result, after: Next, result: GradeResult) -> None:
    """Let it count as far as it does, and send its submission where it goes."""
    if graded.item is not None:
        _go_on_for_a_proposal(graded, graded.item, row, after, result)
        return
    submission = graded.submission
    match after:
        case Next.measuring:
            _count_for_now(graded, row)
            submission.attempts_made = 0  # A new piece of work has all its attempts.
            _wait_for_times(graded)
        case Next.again:
            _count_for_now(graded, row)
            _ask_again(graded, result)
        case Next.refuted:
            _hold_refuted(graded, row)
            _end(graded, State.done)
        case Next.failed:
            _count_for_now(graded, row)
            _end_untimed(graded)
        case Next.over:
            _count(graded, row)
            submission.confirmations += graded.attempt.line is Line.confirm
            submission.avoid_node_id = None
            _end(graded, State.done)
    if graded.request is None or submission.state not in FINAL:
        return
    if after is Next.failed:
        fail_retime(graded.request)
    else:
        end_retime(graded.session, graded.request, submission, graded.attempt, row.verdict)


def _go_on_for_a_proposal(graded: Graded, item: RegradeItem, row: Result, after: Next, result: GradeResult) -> None:
    """Nothing counts yet; once all of it is known the item says what would."""
    if after in {Next.measuring, Next.again} and item.stopped:
        withdraw(item, graded.submission, now=graded.now)
    elif after is Next.measuring:
        graded.submission.attempts_made = 0
        _wait_for_times(graded)
    elif after is Next.again:
        _ask_again(graded, result)
    elif after is Next.failed:
        give_up(item, graded.submission, "Every node that tried to measure it had a problem.", now=graded.now)
    else:
        settle(graded.session, item, graded.submission, row, now=graded.now)


def awaits_measuring(session: Session, submission: Submission) -> bool:
    """Whether what counts has no speed that stands: its times are still to come, or could not be measured."""
    if submission.result_id is None:
        return False
    query = select(Attempt.work, Result.verdict, Result.settled).join(Result, Result.attempt_id == Attempt.id)
    counts = session.execute(query.where(Result.id == submission.result_id)).one()
    checked = submission.work is Work.measure and counts.work is Work.check and counts.verdict is Verdict.passed
    return checked or not counts.settled


def keeps_its_result(session: Session, submission: Submission) -> bool:
    """Whether a whole result counts, which stays if no other comes: a check without its times is half of one."""
    return submission.result_id is not None and not awaits_measuring(session, submission)


def measuring_work(manifest: Manifest, submission: Submission) -> Work:
    """What an attempt does that takes the times of a submission."""
    policy = manifest.policy(submission.lane)
    return Work.measure if policy is not None and policy.apart else Work.all


def _end(graded: Graded, state: State) -> None:
    graded.submission.state = submission_moves(graded.submission.state, state)
    graded.submission.finished_at = graded.now


def _wait_for_times(graded: Graded) -> None:
    """Back to the queue with its place."""
    submission = graded.submission
    submission.work = measuring_work(graded.manifest, submission)
    superseded = submission.superseded_by_id is not None and submission.line is not Line.regrade
    submission.state = submission_moves(submission.state, State.superseded if superseded else State.queued)
    if submission.line is Line.submission:
        submission.line = Line.measuring
        assignment = graded.session.get_one(Assignment, submission.assignment_id)
        dates = deadlines_of(graded.session, assignment, submission.user_id)
        supersede_measuring(graded.session, submission, dates=dates)


def _ask_again(graded: Graded, result: GradeResult) -> None:
    """For other times, by another node where there is one."""
    submission = graded.submission
    submission.avoid_node_id = graded.attempt.node_id
    if not (result.gpu is not None and result.gpu.trouble):
        submission.remeasured += 1
        submission.attempts_made = 0
    _wait_for_times(graded)


def _count_for_now(graded: Graded, row: Result) -> None:
    """Let it count unless something does already: a result from before keeps its grade until there is a whole one."""
    result_id = graded.submission.result_id
    before = graded.session.get(Result, result_id) if result_id is not None else None
    if before is None or not before.settled or (before.ratio is None and row.ratio is not None):
        _count(graded, row)


def _keep_floor(graded: Graded, row: Result) -> None:
    """What a regrade left standing goes on to stand where it is graded once more."""
    result_id = graded.submission.result_id
    if graded.is_once_more and result_id is not None and row.verdict is Verdict.passed:
        row.speed_floor = graded.session.get_one(Result, result_id).speed_floor
        keep_floor(row)


def _count(graded: Graded, row: Result) -> None:
    _keep_floor(graded, row)
    submission = graded.submission
    submission.verdict = row.verdict
    submission.result_id = row.id
    if row.held and submission.review is Review.none:
        submission.review = Review.held
        found = codec.from_json(GradeResult, row.payload)
        why = found.held_reason or found.remeasure or doubt_of(found)
        message = f"The speed of {submission.public_id} is held for your review. {why}"
        _alert(graded, AlertKind.result_held, message)
    if graded.manifest.challenge and row.verdict is Verdict.passed and submission.mode is Mode.submission:
        message = f"Submission {submission.public_id} passed {graded.manifest.slug}, which no honest kernel can pass."
        _alert(graded, AlertKind.judge_beaten, message)
    set_points(graded.session, submission, row, ChangeReason.graded, now=graded.now)


def _hold_refuted(graded: Graded, row: Result) -> None:
    """It had passed, and did not: its correctness stands as it was, the rest waits until a person has looked."""
    submission = graded.submission
    if submission.review is Review.none:
        submission.review = Review.held
    counts = graded.session.get_one(Result, submission.result_id)
    set_points(graded.session, submission, counts, ChangeReason.reviewed, now=graded.now)
    message = (
        f"Submission {submission.public_id} had passed; graded once more it got {row.verdict}: {row.explanation[:500]} "
        "It is held: its speed points and its place wait for your review."
    )
    _alert(graded, AlertKind.confirmation_failed, message)


def _end_untimed(graded: Graded) -> None:
    """Nobody could take its times: it has failed, unless a whole result from before still counts."""
    submission = graded.submission
    kept = keeps_its_result(graded.session, submission)
    _end(graded, State.done if kept else State.failed)
    if not kept:
        give_back(graded.session, submission, skip_locked=True)
    message = (
        f"Submission {submission.public_id} could not be measured, which is our fault: every node that tried had a "
        f"problem.{' It keeps the result it had.' if kept else ''}"
    )
    _alert(graded, AlertKind.submission_failed, message)


def _alert(graded: Graded, kind: AlertKind, message: str) -> None:
    alerts.raise_alert(graded.session, kind, f"submission:{graded.submission.public_id}", message, graded.now)
