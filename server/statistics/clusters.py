"""Failures that are the same: one announcement answers forty students.

Of each student the newest submission to an assignment is looked at, if it failed. Failures are the same where the
verdict is, and with it what was seen: the pattern of wrong elements, or the kind of error on the same line of one's own
code, without its names. Of hidden cases only the category is told: the page can be shown to the class.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import CaseResult, GradeResult, Language, Pattern, StudentError, Verdict, Visibility
from server.courses.courses import AssignmentDetail, Membership
from server.courses.kept import Kept
from server.models import Enrolment, Mode, Result, Role, Submission, User
from server.similarity.reduced import reduce

MOST = 500
"""Newest submissions that are looked at."""
EXAMPLES = 5
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Signature:
    """What makes failures the same.

    Attributes:
        pattern: of the wrong elements; `""` where nothing was compared.
        error: its kind; `""` where there was none.
        line: of one's own code, without its names.
        category: of the case that failed first.
        hidden: that case is hidden.
    """

    verdict: Verdict
    pattern: str
    error: str
    line: str
    category: str
    hidden: bool


@dataclass(frozen=True)
class Failure:
    """What one result says: what makes it the same as others, one's own line as it is, and where it was wrong."""

    signature: Signature
    line: str
    where: str


_READ: Kept[Failure] = Kept(20_000)


@dataclass(frozen=True)
class Example:
    """One of those who failed so."""

    user_id: int
    name: str
    submission: str
    number: int
    line: str


@dataclass(frozen=True)
class Cluster:
    """Students whose newest submission failed in the same way.

    Attributes:
        where: what the judge says of the pattern, of the first example with a public case.
    """

    signature: Signature
    user_ids: tuple[int, ...]
    examples: tuple[Example, ...]
    where: str

    @property
    def count(self) -> int:
        """How many students."""
        return len(self.user_ids)


@dataclass(frozen=True)
class Clusters:
    """The failures of an assignment, the most frequent first.

    Attributes:
        failing: students whose newest submission failed; `passing`: whose did not.
    """

    clusters: tuple[Cluster, ...]
    failing: int
    passing: int


def clusters_of(session: Session, member: Membership, detail: AssignmentDetail) -> Clusters:
    """Group what failed.

    Raises:
        ForbiddenError: to a student.
    """
    member.require_staff()
    rows = _newest(session, member.course.id, detail.row.id)
    failed = [(row, name) for row, name in rows if row.verdict not in {None, Verdict.passed, Verdict.grader_error}]
    failures = _failures(session, [row for row, _ in failed])
    groups: dict[Signature, list[tuple[Submission, str, Failure]]] = {}
    for row, name in failed:
        failure = failures.get(row.id)
        if failure is not None:
            groups.setdefault(failure.signature, []).append((row, name, failure))
    found = [_cluster(one, members) for one, members in groups.items()]
    found.sort(key=lambda cluster: (-cluster.count, cluster.signature.verdict.value, cluster.signature.error))
    return Clusters(tuple(found), len(failed), sum(row.verdict is Verdict.passed for row, _ in rows))


def signature(graded: GradeResult, language: Language) -> Signature:
    """What is the same in all failures of this kind."""
    case = _blamed(graded)
    hidden = case is not None and case.visibility is Visibility.hidden
    error = _error(graded, case)
    pattern = case.mismatch.pattern.value if case is not None and case.mismatch is not None else ""
    return Signature(
        verdict=graded.verdict,
        # The pattern of a hidden case says nothing of its sizes.
        pattern=pattern,
        error=error.kind if error else "",
        line=normal_line(error.frames[-1].code, language) if error and error.frames else "",
        category=case.category if case is not None else "",
        hidden=hidden,
    )


def normal_line(code: str, language: Language) -> str:
    """A line without its names, numbers and layout: `V=tl.load(V+V)` may stand in forty files."""
    return _NUMBERS.sub("0", reduce(code.strip(), language.value).text)[:200]


def _blamed(graded: GradeResult) -> CaseResult | None:
    """The case that failed first: public ones stand first."""
    return next((case for case in graded.cases if case.verdict not in {None, Verdict.passed}), None)


def _error(graded: GradeResult, case: CaseResult | None) -> StudentError | None:
    """What was raised; of a hidden case only what its student may read of it."""
    if case is None:
        return graded.error
    return case.for_student().error if case.visibility is Visibility.hidden else case.error or graded.error


def _cluster(one: Signature, members: Sequence[tuple[Submission, str, Failure]]) -> Cluster:
    examples = tuple(
        Example(row.user_id, name, row.public_id, row.number, failure.line) for row, name, failure in members
    )
    return Cluster(
        one,
        tuple(example.user_id for example in examples),
        examples[:EXAMPLES],
        next((failure.where for *_, failure in members if failure.where), ""),
    )


def _own_line(graded: GradeResult) -> str:
    error = _error(graded, _blamed(graded))
    return error.frames[-1].code.strip()[:200] if error and error.frames else ""


def _where(graded: GradeResult) -> str:
    case = _blamed(graded)
    is_public = case is not None and case.visibility is Visibility.public
    return case.mismatch.where if case is not None and is_public and case.mismatch is not None else ""


def _newest(session: Session, course_id: int, assignment_id: int) -> Sequence[tuple[Submission, str]]:
    """Each student's newest submission with a verdict, and their name."""
    newest = (
        select(func.max(Submission.id))
        .join(Enrolment, Enrolment.user_id == Submission.user_id)
        .where(
            Submission.assignment_id == assignment_id,
            Submission.mode == Mode.submission,
            Submission.verdict.is_not(None),
            Enrolment.course_id == course_id,
            Enrolment.role == Role.student,
            Enrolment.dropped_at.is_(None),
        )
        .group_by(Submission.user_id)
    )
    query = (
        select(Submission, User.name)
        .join(User, User.id == Submission.user_id)
        .where(Submission.id.in_(newest))
        .order_by(Submission.id.desc())
        .limit(MOST)
    )
    return [(row[0], row[1]) for row in session.execute(query)]


def _failures(session: Session, rows: Sequence[Submission]) -> dict[int, Failure]:
    """By submission. What a result says never changes, so it is read once."""
    keys = {row.id: f"{row.public_id} {row.result_id}" for row in rows if row.result_id is not None}
    found = {number: failure for number, key in keys.items() if (failure := _READ.peek(key)) is not None}
    languages = {row.id: row.language for row in rows}
    unread = [row.result_id for row in rows if row.id in keys and row.id not in found]
    query = select(Result.submission_id, Result.payload).where(Result.id.in_(unread))
    for number, payload in session.execute(query) if unread else ():
        found[number] = _READ.get(keys[number], partial(_read, payload, languages[number]))
    return found


def _read(payload: dict[str, Any], language: Language) -> Failure:
    graded = codec.from_json(GradeResult, payload)
    return Failure(signature(graded, language), _own_line(graded), _where(graded))


PATTERNS: dict[str, str] = {
    Pattern.everywhere: "wrong everywhere",
    Pattern.untouched: "nothing was written",
    Pattern.all_nan: "all NaN",
    Pattern.tail: "wrong only in the tail",
    Pattern.rows_from: "wrong from one row on",
    Pattern.columns_from: "wrong from one column on",
    Pattern.every_kth_row: "every k-th row wrong",
    Pattern.every_kth_column: "every k-th column wrong",
    Pattern.rows: "some rows wrong",
    Pattern.columns: "some columns wrong",
    Pattern.tile: "wrong only in one tile",
    Pattern.scattered: "scattered elements wrong",
}
"""What a pattern is called beside a number of students."""
