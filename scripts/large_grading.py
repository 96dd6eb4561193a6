"""What the students of a large course handed in, and what was found: submissions, attempts, results, cases, samples.

The rows are as grading leaves them, and obey what `server.reconciliation` checks. Kernels get faster from version to
version, more is handed in near the due date, and most first versions are wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import func, select, update

from autograder import codec
from autograder.assignment import Assignment as Manifest
from autograder.assignment import Case, content_hash
from autograder.contract import (
    CaseResult,
    GradeResult,
    Lane,
    Language,
    Measurement,
    Mode,
    Pair,
    Review,
    State,
    Verdict,
    Visibility,
    Work,
)
from autograder.samples import PooledCase
from autograder.scores import FORMULA_VERSION, Speed, score, speed_fraction, speed_over
from scripts.large_course import Cast, Rung, Size
from server.courses.courses import spec_of
from server.models import (
    Attempt,
    AttemptState,
    CaseRow,
    ChangeReason,
    Comment,
    CommentText,
    Forecast,
    GradeChange,
    Line,
    Node,
    RegradeMessage,
    RegradeRequest,
    RequestState,
    Result,
    Sampling,
    Submission,
)
from server.models.staff import Showing

_WRONG = (Verdict.wrong_answer, Verdict.compile_error, Verdict.runtime_error, Verdict.illegal_access,
          Verdict.time_limit)  # fmt: skip
_WRONG_WEIGHTS = (55, 20, 12, 6, 7)
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = 7
_WAITING = 25
"""So many of the newest wait for their turn."""
_RUN_OF = 6
"""One of so many is practice."""


@dataclass(frozen=True)
class Handed:
    """One submission to be."""

    at: datetime
    user: int
    rung: Rung
    mode: Mode
    lane: Lane


@dataclass(frozen=True)
class Found:
    """What an attempt found."""

    verdict: Verdict
    measurements: tuple[Measurement, ...]
    speed: Speed | None
    correctness_points: float
    speed_points: float


class Grading:
    """Makes everything that was handed in in a course."""

    def __init__(self, cast: Cast, size: Size) -> None:
        self._cast, self._size, self._bulk, self._dice = cast, size, cast.bulk, cast.dice
        self._skill: dict[tuple[int, int], float] = {}
        self._numbers: Counter[tuple[int, int, Mode]] = Counter()
        self._nodes = {lane: self._node(lane) for lane in Lane}

    def make(self) -> None:
        """Everything, oldest first."""
        handed = sorted(self._handed(), key=lambda item: item.at)
        waiting = len(handed) - min(_WAITING, len(handed) // 20)
        for place, item in enumerate(handed):
            self._one(item, waits=place >= waiting)
            self._bulk.flush()
        self._bulk.flush(all_of_it=True)
        # Submissions and results point at each other: what counts is the newest.
        newest = select(func.max(Result.id)).where(Result.submission_id == Submission.id).scalar_subquery()
        here = update(Submission).where(Submission.course_id == self._cast.course.id).values(result_id=newest)
        self._bulk.session.execute(here.execution_options(synchronize_session=False))

    def _node(self, lane: Lane) -> int:
        return self._bulk.add(
            Node, name=f"large-{lane.value}", granted_lanes=[lane.value], lanes=[lane.value], slots=1,
            works=[work.value for work in Work], draining=False, quarantine=False, facts={}, suspect_handled=True,
            created_at=self._cast.now - timedelta(days=120), last_seen_at=self._cast.now,
        )  # fmt: skip

    def _handed(self) -> Iterator[Handed]:
        """Some students do much, some little; nobody hands in after it is closed."""
        dice, cast = self._dice, self._cast
        users = dice.choices(cast.students, [dice.lognormvariate(0, 0.5) for _ in cast.students],
                             k=self._size.submissions)  # fmt: skip
        for user in users:
            rung = dice.choice(cast.rungs)
            yield Handed(self._time(rung), user, rung, self._mode(), self._lane(rung))

    def _mode(self) -> Mode:
        return Mode.run if self._dice.randrange(_RUN_OF) == 0 else Mode.submission

    def _lane(self, rung: Rung) -> Lane:
        offered = [lane for lane in (Lane.h200, Lane.cpu) if spec_of(rung.version).policy(lane)]
        return offered[0] if self._cast.happens(0.6) else offered[-1]

    def _time(self, rung: Rung) -> datetime:
        """Nearer and nearer to the due date; one of twelve is late."""
        if self._cast.happens(1 / 12):
            return min(self._cast.between(rung.due_at, rung.late_until), self._cast.now)
        whole = (rung.due_at - rung.open_at).total_seconds()
        before = min(self._dice.expovariate(4 / whole), whole)
        at = rung.due_at - timedelta(seconds=before)
        return at if at < self._cast.now else self._cast.between(rung.open_at, self._cast.now)

    def _one(self, item: Handed, *, waits: bool) -> None:
        self._numbers[key := (item.user, item.rung.row.id, item.mode)] += 1
        number = self._numbers[key]
        source = _source(item, number)
        found = None if waits else self._found(item, number)
        ours = not waits and self._cast.happens(0.002)
        review = self._review(item, found)
        final = State.queued if waits else State.failed if ours else State.done
        at, took = item.at, timedelta(seconds=self._dice.expovariate(1 / 90) + 6)
        values: dict[str, Any] = {
            "public_id": self._id(at), "number": number, "course_id": self._cast.course.id,
            "assignment_id": item.rung.row.id, "version_id": item.rung.version.id, "user_id": item.user,
            "mode": item.mode, "lane": item.lane, "language": Language("triton"),
            "filename": f"{item.rung.row.slug}.py", "source": source, "source_hash": content_hash(source),
            "trace": f"{self._dice.getrandbits(128):032x}", "uploaded_at": at, "state": final, "review": review,
            "line": Line.run if item.mode is Mode.run else Line.submission, "work": Work.all, "place_at": at,
            "suspect": False, "attempts_made": 0 if waits else 3 if ours else 1, "remeasured": 0, "confirmations": 0,
            "revision": 3, "finished_at": None if waits else at + took,
            "verdict": None if waits else Verdict.grader_error if ours else found.verdict if found else None,
        }  # fmt: skip
        if item.mode is Mode.submission:
            values["pool"] = content_hash(f"{item.user} {item.rung.row.id} {number}".encode())
        submission = self._bulk.add(Submission, **values)
        row = self._bulk.last(Submission)
        if ours:
            for fence in (1, 2, 3):
                self._attempt(submission, item, fence, at + took, AttemptState.failed)
        elif found is not None:
            self._graded(submission, row, item, found, at + took)

    def _review(self, item: Handed, found: Found | None) -> Review:
        if found is None or found.speed is None or item.lane is Lane.cpu or item.mode is Mode.run:
            return Review.none
        return self._dice.choices((Review.none, Review.held, Review.cleared, Review.rejected), (985, 5, 8, 2))[0]

    def _graded(self, submission: int, row: dict[str, Any], item: Handed, found: Found, ended: datetime) -> None:
        attempts = 2 if found.speed and item.lane is not Lane.cpu and self._cast.happens(0.05) else 1
        for fence in range(1, attempts + 1):
            attempt = self._attempt(submission, item, fence, ended, AttemptState.finished)
            self._result(submission, attempt, item, found, ended)
        row["confirmations"] = attempts - 1
        if item.mode is Mode.run:
            return
        counts = row["review"] in {Review.none, Review.cleared}
        row["points"] = found.correctness_points + (found.speed_points if counts else 0.0)
        self._bulk.add(
            GradeChange, submission_id=submission, at=ended, reason=ChangeReason.graded, before=None,
            after=row["points"], formula_version=FORMULA_VERSION,
        )  # fmt: skip
        took_s = (ended - item.at).total_seconds()
        self._bulk.add(
            Forecast, submission_id=submission, lane=item.lane, made_at=item.at, position=1, low_s=took_s / 2,
            likely_s=took_s, high_s=took_s * 2, scale_low=1.0, scale_high=1.0, came_s=took_s,
        )  # fmt: skip
        if self._cast.happens(0.03):
            self._comment(submission, item, ended)
        if self._cast.happens(0.005) and found.verdict is Verdict.passed:
            self._request(submission, row, item, ended)

    def _comment(self, submission: int, item: Handed, at: datetime) -> None:
        author, text = self._dice.choice(self._cast.staff), "This load is not coalesced: *neighbours* should be read."
        comment = self._bulk.add(
            Comment, course_id=self._cast.course.id, assignment_id=item.rung.row.id, user_id=item.user,
            submission_id=submission, section="", first_line=3, last_line=4, author_id=author, text=text,
            showing=Showing.at_once, created_at=at, revision=1,
        )  # fmt: skip
        self._bulk.add(CommentText, comment_id=comment, number=1, text=text, actor_id=author, at=at)

    def _request(self, submission: int, row: dict[str, Any], item: Handed, at: datetime) -> None:
        state = self._dice.choice(tuple(RequestState))
        answered = state in {RequestState.accepted, RequestState.declined}
        request = self._bulk.add(
            RegradeRequest, course_id=self._cast.course.id, assignment_id=item.rung.row.id, submission_id=submission,
            user_id=item.user, state=state, free=False,
            retime={}, points_before=row["points"], created_at=at, revision=1,
            answered_by_id=self._cast.staff[-1] if answered else None, answered_at=at if answered else None,
        )  # fmt: skip
        self._bulk.add(
            RegradeMessage, request_id=request, author_id=item.user, by_staff=False, at=at,
            text="It was faster on my own machine. Could you time it again?",
        )  # fmt: skip

    def _attempt(self, submission: int, item: Handed, fence: int, ended: datetime, state: AttemptState) -> int:
        begun = ended - timedelta(seconds=5)
        return self._bulk.add(
            Attempt, public_id=self._id(begun), submission_id=submission, node_id=self._nodes[item.lane], fence=fence,
            lane=item.lane, line=Line.run if item.mode is Mode.run else Line.submission, work=Work.all, state=state,
            dispatched_at=begun, claimed_at=begun, heartbeat_at=ended, lease_expires_at=ended, finished_at=ended,
            reason="" if state is AttemptState.finished else "The GPU fell off the bus.", sequence=9,
            phases=[{"phase": "preparing", "at": 0.0}, {"phase": "checking", "at": 1.5}], live_cases=[],
        )  # fmt: skip

    def _result(self, submission: int, attempt: int, item: Handed, found: Found, at: datetime) -> None:
        rung, speed = item.rung, found.speed
        cases, payload = _template(_of(rung), item.lane, found.verdict)
        result = self._bulk.add(
            Result, attempt_id=attempt, submission_id=submission, verdict=found.verdict,
            explanation="All cases passed." if found.verdict is Verdict.passed else "A case did not pass.",
            payload={**payload, "measurements": [codec.to_json(item) for item in found.measurements]},
            ratio=speed.ratio if speed else None, ratio_low=speed.low if speed else None,
            ratio_high=speed.high if speed else None, time_us=speed.time_us if speed else None,
            pooled=[_pooled(item) for item in found.measurements], pooled_attempts=1 if speed else 0,
            correctness_points=found.correctness_points, speed_points=found.speed_points,
            formula_version=FORMULA_VERSION, settled=True, held=False, created_at=at,
        )  # fmt: skip
        for index, case in enumerate(cases):
            self._bulk.add(
                CaseRow, result_id=result, index=index, name=case.name, category=case.category, group=case.group,
                visibility=case.visibility, verdict=case.verdict,
            )  # fmt: skip
        for measured in found.measurements if item.mode is Mode.submission else ():
            self._bulk.add(
                Sampling, attempt_id=attempt, pool=content_hash(f"{item.user} {rung.row.id}".encode()),
                case=measured.case, measurement=codec.to_json(measured), created_at=at,
            )  # fmt: skip

    def _found(self, item: Handed, number: int) -> Found:
        manifest = spec_of(item.rung.version)
        if not self._cast.happens(0.3 + 0.5 * min(number, 8) / 8):
            verdict = self._dice.choices(_WRONG, _WRONG_WEIGHTS)[0]
            return Found(verdict, (), None, _correctness(_of(item.rung), item.lane, verdict), 0.0)
        policy = manifest.policy(item.lane)
        ranked = [case for case in manifest.cases_for(item.lane) if case.ranked]
        measured = tuple(self._measured(case, self._ratio(item, number)) for case in ranked)
        speed = speed_over(measured) if measured else None
        fraction = speed_fraction(policy, speed.ratio) if policy and speed else 0.0
        return Found(Verdict.passed, measured, speed, manifest.points.correctness, manifest.points.speed * fraction)

    def _ratio(self, item: Handed, number: int) -> float:
        skill = self._skill.setdefault((item.user, item.rung.row.id), self._dice.lognormvariate(0.6, 0.5))
        return 0.75 + 0.6 * skill * math.exp(-0.08 * number) * self._dice.lognormvariate(0, 0.05)

    def _measured(self, case: Case, ratio: float) -> Measurement:
        reference_us, spread = 150.0 + len(case.name) * 20, self._dice.uniform(0.001, 0.02)
        pairs = tuple(self._pair(reference_us, ratio, spread) for _ in range(_PAIRS))
        time_us = reference_us * ratio
        return Measurement(
            case=case.name, clock="event", ratio=ratio, ratio_low=ratio * (1 - spread), ratio_high=ratio * (1 + spread),
            time_us=time_us, time_low_us=time_us * (1 - spread), time_high_us=time_us * (1 + spread),
            reference_us=reference_us, flops=1e9, bytes_moved=1e9, pairs=pairs,
        )  # fmt: skip

    def _pair(self, reference_us: float, ratio: float, spread: float) -> Pair:
        theirs = reference_us * (1 + self._dice.uniform(-spread, spread))
        ours = reference_us * ratio * (1 + self._dice.uniform(-spread, spread))
        return Pair(ours, ours + 20.0, theirs, theirs + 20.0)

    def _id(self, at: datetime) -> str:
        value = int(at.timestamp() * 1000) << 80 | self._dice.getrandbits(80)
        return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))


def _of(rung: Rung) -> _Of:
    return _Of(rung.version.id, spec_of(rung.version))


def _pooled(item: Measurement) -> Any:
    return codec.to_json(
        PooledCase(
            case=item.case, ratio=item.ratio, ratio_low=item.ratio_low, ratio_high=item.ratio_high,
            time_us=item.time_us, time_low_us=item.time_low_us, time_high_us=item.time_high_us,
            reference_us=item.reference_us, attempts=1, pairs=_PAIRS,
        )
    )  # fmt: skip


def _source(item: Handed, number: int) -> bytes:
    """Every version is another kernel, of some two kilobytes."""
    lines = "".join(f"    t{i} = tl.load(p + {i} * BLOCK + offsets, mask=mask)  # {item.user}\n" for i in range(24))
    start = item.rung.version.starters.get(Language("triton").value, "")
    return f"{start}\n\ndef version_{number}(p, offsets, mask):\n{lines}".encode()


@dataclass(frozen=True)
class _Of:
    """A version's manifest; its id says whether it is the same."""

    version: int
    manifest: Manifest = field(compare=False)


@cache
def _template(of: _Of, lane: Lane, verdict: Verdict) -> tuple[Sequence[CaseResult], dict[str, Any]]:
    """The cases of a result with this verdict, and all of its payload but the measurements."""
    manifest = of.manifest
    fails = {} if verdict is Verdict.passed else {len(manifest.cases_for(lane)) // 2: verdict}
    public = [
        CaseResult(
            name=case.name, category=case.category, group=case.group, visibility=Visibility.public, ranked=case.ranked,
            verdict=fails.get(index, Verdict.passed), message="Every element is right.", seconds=0.2,
        )
        for index, case in enumerate(manifest.cases_for(lane))
    ]  # fmt: skip
    hidden = [
        CaseResult(
            name=f"hidden {index} of 8", category="odd sizes", group="hidden", visibility=Visibility.hidden,
            ranked=False, verdict=Verdict.passed if not fails else None, message="Every element is right.",
        )
        for index in range(1, 9)
    ]  # fmt: skip
    cases = (*public, *hidden)
    return cases, codec.to_json(GradeResult(verdict, "…", cases))


@cache
def _correctness(of: _Of, lane: Lane, verdict: Verdict) -> float:
    cases, _ = _template(of, lane, verdict)
    return score(of.manifest, GradeResult(verdict, "", tuple(cases)), lane).correctness_points
