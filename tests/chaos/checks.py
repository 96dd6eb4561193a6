"""Is everything accounted for? `examine` shows what is wrong; at the end of a run nothing may be.

It looks from outside: at what the server promised its students, at the rows, and at what the double says a source is
worth. The server's own accounts (`server.reconciliation`) are asked as well.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, undefer

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.assignment import content_hash
from autograder.contract import GradeRequest, GradeResult, Mode, Review, Verdict, Work
from autograder.scores import score
from server.grading.interface import FINAL, LIVE
from server.grading.merge_results import merged
from server.models import Assignment, Attempt, AttemptState, Node, Result, State, Submission
from server.reconciliation.runs import examine as examine_accounts
from tests.chaos.plan import REAL
from tests.chaos.promises import Promise
from tests.doubles import judge

CLOCK_S = 0.5
"""Two clocks of one machine are read one after the other."""


@dataclass(frozen=True)
class Broken:
    """A promise that was not kept.

    Attributes:
        rule: which.
        subject: the receipt number, or what else it is about.
    """

    rule: str
    subject: str
    detail: str


@dataclass
class Books:
    """Everything there is at the end, read once.

    Attributes:
        requeued: public ids of what staff put back in the queue at the end.
        excused: public ids of real submissions whose runner or judge was hit: their verdict may differ.
    """

    promises: Sequence[Promise]
    rows: Mapping[str, Submission]
    attempts: Mapping[int, list[Attempt]]
    results: Mapping[int, list[Result]]
    nodes: Mapping[int, Node]
    max_attempts: int
    accounts: Sequence[str] = ()
    requeued: frozenset[str] = frozenset()
    excused: frozenset[str] = frozenset()
    orphans: Sequence[str] = ()

    @classmethod
    def read(cls, session: Session, promises: Sequence[Promise], max_attempts: int) -> Books:
        """Read the tables; the session may end."""
        rows = session.scalars(
            select(Submission).options(
                undefer(Submission.source), joinedload(Submission.user), joinedload(Submission.version),
                joinedload(Submission.assignment).joinedload(Assignment.course),
            )
        ).all()  # fmt: skip
        attempts: dict[int, list[Attempt]] = defaultdict(list)
        for attempt in session.scalars(select(Attempt).order_by(Attempt.submission_id, Attempt.fence)):
            attempts[attempt.submission_id].append(attempt)
        results: dict[int, list[Result]] = defaultdict(list)
        for result in session.scalars(select(Result).options(undefer(Result.payload)).order_by(Result.id)):
            results[result.submission_id].append(result)
        nodes = {node.id: node for node in session.scalars(select(Node))}
        accounts = examine_accounts(session, deep=True)
        problems = [f"{item.check}: {item.count} ({', '.join(item.examples)})" for item in accounts.problems]
        if accounts.received != accounts.final + accounts.in_flight:
            problems.append(f"received {accounts.received}, final {accounts.final}, in flight {accounts.in_flight}")
        session.expunge_all()
        return cls(promises, {row.public_id: row for row in rows}, attempts, results, nodes, max_attempts, problems)

    def kept(self) -> Iterator[tuple[Promise, Submission]]:
        """Promises and the rows that keep them; one whose answer was lost is found by its key."""
        by_key = {row.request_key: row for row in self.rows.values()}
        for promise in self.promises:
            row = self.rows.get(promise.public_id) or by_key.get(promise.step.key)
            if row is not None:
                yield promise, row


Rule = Callable[[Books], Iterable[Broken]]


def examine(books: Books) -> list[Broken]:
    """Everything that is wrong."""
    return [broken for rule in RULES for broken in rule(books)]


# --- accepted means stored -------------------------------------------------------------------------------------------


def accepted_is_stored(books: Books) -> Iterator[Broken]:
    """Every receipt has its row, whole: number, owner, assignment, and the bytes."""
    for promise in books.promises:
        if not promise.receipt:
            continue
        row = books.rows.get(promise.public_id)
        if row is None:
            yield Broken("accepted_is_stored", promise.public_id, "there is no such submission")
        elif (wrong := _differences(promise, row)) != "":
            yield Broken("accepted_is_stored", promise.public_id, wrong)


def _differences(promise: Promise, row: Submission) -> str:
    step = promise.step
    pairs = {
        "number": (promise.receipt["number"], row.number),
        "hash": (promise.receipt["source_hash"], row.source_hash),
        "bytes": (content_hash(step.source.encode()), content_hash(row.source)),
        "owner": (f"s{step.student}@example.org", row.user.email),
        "assignment": ((step.course, step.assignment), (row.assignment.course.slug, row.assignment.slug)),
        "mode": (step.mode, row.mode),
        "lane": (step.lane, row.lane),
    }
    return ", ".join(f"{name}: promised {a}, stored {b}" for name, (a, b) in pairs.items() if a != b)


def stored_once(books: Books) -> Iterator[Broken]:
    """However often it was sent, a submission is stored once, and only what was sent is stored."""
    sent = {promise.step.key for promise in books.promises if promise.sent_at}
    for key, count in Counter(row.request_key for row in books.rows.values()).items():
        if count > 1:
            yield Broken("stored_once", str(key), f"stored {count} times")
        if key not in sent:
            yield Broken("stored_once", str(key), "nobody sent this")


def nobody_refused(books: Books) -> Iterator[Broken]:
    """Nothing in the plan may be refused: a quota that refuses counted something of ours."""
    for promise in books.promises:
        if promise.refused:
            yield Broken("nobody_refused", promise.step.key, promise.refused)


# --- graded once, and rightly ----------------------------------------------------------------------------------------


def all_final(books: Books) -> Iterator[Broken]:
    """Everything is graded, unless its student took it back or every judge dies of it."""
    for promise, row in books.kept():
        asked_back = promise.cancelled or promise.cancel_in_doubt
        expected = {State.cancelled} if promise.cancelled else {State.done}
        if promise.cancel_in_doubt:
            expected = {State.cancelled, State.done}
        if promise.step.verdict is Verdict.grader_error:
            expected = {State.failed} | ({State.cancelled} if asked_back else set())
        if row.state not in expected:
            yield Broken("all_final", row.public_id, f"is {row.state}, not {' or '.join(sorted(expected))}")


def graded_once(books: Books) -> Iterator[Broken]:
    """One result counts. Every attempt that ended otherwise found nothing; each piece of work was found once."""
    for row in books.rows.values():
        results = {result.attempt_id: result for result in books.results.get(row.id, [])}
        finished = [attempt for attempt in books.attempts.get(row.id, []) if attempt.state is AttemptState.finished]
        if row.state is State.done and row.result_id not in {result.id for result in results.values()}:
            yield Broken("graded_once", row.public_id, "is done, and the result that counts is not its own")
        if row.state is not State.done and row.result_id is not None:
            yield Broken("graded_once", row.public_id, f"is {row.state} and has a result that counts")
        works = Counter(attempt.work for attempt in finished)
        if any(count > 1 for count in works.values()) or (works[Work.all] and len(finished) > 1):
            yield Broken("graded_once", row.public_id, f"was graded {dict(works)}")
        if set(results) != {attempt.id for attempt in finished}:
            yield Broken("graded_once", row.public_id, "has results of attempts that did not finish, or the reverse")


def graded_rightly(books: Books) -> Iterator[Broken]:
    """The grade is what the source is worth, whatever happened on the way."""
    for promise, row in books.kept():
        if row.state is not State.done or row.result_id is None:
            continue
        if promise.step.assignment == REAL:
            if row.verdict is not promise.step.verdict and row.public_id not in books.excused:
                yield Broken("graded_rightly", row.public_id, f"{row.verdict}, expected {promise.step.verdict}")
        elif (found := grade_of(row)) != (expected := expected_grade(row)):
            yield Broken("graded_rightly", row.public_id, f"{found}, expected {expected}")


Grade = tuple[str, float | None]
"""Verdict and points."""


def grade_of(row: Submission) -> Grade:
    """What a submission got."""
    return str(row.verdict), row.points


def expected_grade(row: Submission) -> Grade:
    """What the double finds in it, and what the formula makes of that."""
    request = GradeRequest("", "", row.language, row.lane, row.mode, row.source.decode(), row.filename)
    result = judge.result(request)
    if row.mode is Mode.run:
        return str(result.verdict), None
    manifest = codec.from_json(Manifest, row.version.manifest)
    scored = score(manifest, result, row.lane)
    speed = 0.0 if result.held else scored.speed_points
    return str(result.verdict), scored.correctness_points + speed


def payloads_whole(books: Books) -> Iterator[Broken]:
    """Every result is word for word what the double says of that source and that piece of work."""
    for promise, row in books.kept():
        if promise.step.assignment == REAL:
            continue
        attempts = {attempt.id: attempt for attempt in books.attempts.get(row.id, [])}
        for result in books.results.get(row.id, []):
            work = attempts[result.attempt_id].work if result.attempt_id in attempts else Work.all
            if codec.from_json(GradeResult, result.payload) != _said(row, work):
                yield Broken("payloads_whole", row.public_id, "its result is not what the double says of its source")


def _said(row: Submission, work: Work) -> GradeResult:
    """What the double says of it; what is measured apart is written together with its check."""
    request = GradeRequest("", "", row.language, row.lane, row.mode, row.source.decode(), row.filename, work)
    if work is not Work.measure:
        return judge.result(request)
    return merged(judge.result(dataclasses.replace(request, work=Work.check)), judge.result(request))


# --- nothing is charged ----------------------------------------------------------------------------------------------


def not_charged(books: Books) -> Iterator[Broken]:
    """No failure of ours costs a number, a place, or a late day."""
    for promise, row in books.kept():
        uploaded = row.uploaded_at.timestamp()
        answered = promise.answered_at or float("inf")
        # The server subtracts what it waited from the database's clock. If the database's answer is late, the upload
        # counts as earlier by that much, in the student's favour, and never as later.
        if not promise.sent_at - (answered - promise.sent_at) - CLOCK_S <= uploaded <= answered + CLOCK_S:
            between = f"sent at {promise.sent_at:.2f}, answered at {promise.answered_at:.2f}"
            yield Broken("not_charged", row.public_id, f"uploaded at {uploaded:.2f}, {between}")
        if row.place_at > row.uploaded_at and row.public_id not in books.requeued:
            yield Broken("not_charged", row.public_id, f"its place is of {row.place_at}, after its upload")
        if row.state is State.failed and row.points is not None:
            yield Broken("not_charged", row.public_id, "a failure of ours has points")
    yield from _gaps(books)


def _gaps(books: Books) -> Iterator[Broken]:
    numbers: dict[tuple[str, int, Mode], list[Submission]] = defaultdict(list)
    for row in books.rows.values():
        numbers[row.user.email, row.assignment_id, row.mode].append(row)
    for whose, rows in numbers.items():
        rows.sort(key=lambda row: row.number)
        if [row.number for row in rows] != list(range(1, len(rows) + 1)):
            yield Broken("not_charged", str(whose), f"numbers {[row.number for row in rows]}")


# --- superseding -----------------------------------------------------------------------------------------------------


def superseded_rightly(books: Books) -> Iterator[Broken]:
    """Only a student's own newer submission supersedes one, of the same assignment, lane and lateness."""
    by_id = {row.id: row for row in books.rows.values()}
    for row in books.rows.values():
        if row.superseded_by_id is None:
            continue
        newer = by_id.get(row.superseded_by_id)
        if newer is None:
            yield Broken("superseded_rightly", row.public_id, "by one that is not there")
        elif (wrong := _wrongly_superseded(row, newer)) != "":
            yield Broken("superseded_rightly", row.public_id, wrong)


def _wrongly_superseded(row: Submission, newer: Submission) -> str:
    same = ("user_id", "assignment_id", "lane", "mode")
    if row.mode is not Mode.submission:
        return "a practice run is superseded"
    if any(getattr(row, name) != getattr(newer, name) for name in same) or newer.number <= row.number:
        return f"by {newer.public_id}, which is no newer one of the same kind"
    if _late(row) != _late(newer):
        return f"by {newer.public_id}, whose late charge is another"
    return ""


def places_own(books: Books) -> Iterator[Broken]:
    """A place is one's own upload's, or that of an older one of the same student, assignment and lane."""
    places: dict[tuple[int, int, str], set[datetime]] = defaultdict(set)
    for row in sorted(books.rows.values(), key=lambda row: (row.mode, row.number)):
        own = places[row.user_id, row.assignment_id, row.lane]
        own |= {row.uploaded_at} if row.mode is Mode.submission else set()
        free = row.public_id in books.requeued or row.place_at == row.uploaded_at
        if not free and (row.mode is Mode.run or row.place_at not in own):
            yield Broken(
                "places_own", row.public_id, f"its place is of {row.place_at}, when its student uploaded nothing"
            )


def _late(row: Submission) -> bool:
    due_at = row.assignment.due_at
    return due_at is not None and row.uploaded_at > due_at


def newest_on_time_is_graded(books: Books) -> Iterator[Broken]:
    """The newest on-time submission that its student did not take back has a grade."""
    newest: dict[tuple[int, int, str], Submission] = {}
    for row in sorted(books.rows.values(), key=lambda row: row.number):
        if row.mode is Mode.submission and row.state is not State.cancelled and not _late(row):
            newest[row.user_id, row.assignment_id, row.lane] = row
    for row in newest.values():
        if row.state not in {State.done, State.failed}:
            yield Broken("newest_on_time_is_graded", row.public_id, f"is {row.state}")


# --- no state that cannot be -----------------------------------------------------------------------------------------


def leases_empty(books: Books) -> Iterator[Broken]:
    """Nobody works on anything any more."""
    for attempts in books.attempts.values():
        for attempt in attempts:
            if attempt.state in LIVE:
                yield Broken("leases_empty", attempt.public_id, f"is {attempt.state}")


def states_possible(books: Books) -> Iterator[Broken]:
    """Columns say one thing."""
    for row in books.rows.values():
        attempts = books.attempts.get(row.id, [])
        for wrong in (*_submission_wrongs(row), *_attempts_wrongs(books, row, attempts)):
            yield Broken("states_possible", row.public_id, wrong)


def _submission_wrongs(row: Submission) -> Iterator[str]:
    if row.state not in FINAL:
        yield f"is {row.state}"
    if row.phase is not None:
        yield f"is {row.state} and in phase {row.phase}"
    if (row.verdict is None) != (row.state is State.cancelled):
        yield f"is {row.state} with verdict {row.verdict}"
    if row.state is State.failed and row.verdict is not Verdict.grader_error:
        yield f"has failed with verdict {row.verdict}"
    if row.state is not State.cancelled and row.finished_at is None:
        yield "has no time of its end"
    if row.review is Review.held and row.state is not State.done:
        yield f"is {row.state} and held"
    if row.mode is Mode.run and row.points is not None:
        yield "a practice run with points"


def _attempts_wrongs(books: Books, row: Submission, attempts: Sequence[Attempt]) -> Iterator[str]:
    if [attempt.fence for attempt in attempts] != list(range(1, len(attempts) + 1)):
        yield f"fences {[attempt.fence for attempt in attempts]}"
    if row.state is State.cancelled and any(attempt.state is AttemptState.finished for attempt in attempts):
        yield "was taken back and graded"
    if row.attempts_made > books.max_attempts:
        yield f"{row.attempts_made} attempts, at most {books.max_attempts}"
    for attempt in attempts:
        if attempt.state not in LIVE and attempt.finished_at is None:
            yield f"attempt {attempt.fence} is {attempt.state} and has no end"
        if attempt.state in {AttemptState.lost, AttemptState.failed} and not attempt.reason:
            yield f"attempt {attempt.fence} is {attempt.state} for no reason"


def accounts_balanced(books: Books) -> Iterator[Broken]:
    """The server's own accounts say so too."""
    for problem in books.accounts:
        yield Broken("accounts_balanced", "server", problem)


def no_orphans(books: Books) -> Iterator[Broken]:
    """No judge and no runner outlived its worker."""
    for orphan in books.orphans:
        yield Broken("no_orphans", "process", orphan)


RULES: tuple[Rule, ...] = (
    accepted_is_stored,
    stored_once,
    nobody_refused,
    all_final,
    graded_once,
    graded_rightly,
    payloads_whole,
    not_charged,
    superseded_rightly,
    places_own,
    newest_on_time_is_graded,
    leases_empty,
    states_possible,
    accounts_balanced,
    no_orphans,
)
