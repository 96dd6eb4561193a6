"""What a run counted: attempts, waiting, and how long it took to recover."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from server.models import AttemptState, State
from tests.chaos.checks import Books
from tests.chaos.faults import Injected
from tests.chaos.load import Load
from tests.chaos.supervisor import Supervisor


@dataclass(frozen=True)
class Spread:
    """Seconds: half of them took no longer than `p50_s`."""

    count: int
    p50_s: float
    p95_s: float
    max_s: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of these."""
        if not values:
            return cls(0, 0.0, 0.0, 0.0)
        ordered = sorted(values)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        return cls(len(ordered), round(statistics.median(ordered), 2), round(p95, 2), round(ordered[-1], 2))


@dataclass(frozen=True)
class Measures:
    """Counts and times of one run.

    Attributes:
        accepted: receipts.
        resent: requests that were sent again because no answer came, or none that settled it.
        in_doubt: submissions that never got an answer, and how many of them are stored.
        submissions, attempts: by state.
        reasons: why attempts ended without a result, how often.
        deaths: how often a process of each role ended and was started again.
        wait: upload to the end of grading.
        lost_after: dispatch of an attempt to its end without a result.
        back_after: the end of a fault to the next result that was recorded.
        drained_s: the end of all faults to the last result.
    """

    accepted: int
    resent: int
    in_doubt: int
    in_doubt_stored: int
    lost_answers: int
    statuses: dict[int, int]
    submissions: dict[str, int]
    superseded: int
    taken_back: int
    attempts: dict[str, int]
    attempts_per_submission: dict[int, int]
    reasons: dict[str, int]
    deaths: dict[str, int]
    faults: dict[str, int]
    skipped: dict[str, str]
    wait: Spread
    lost_after: Spread
    back_after: Spread
    drained_s: float


def measure(
    books: Books, load: Load, injected: Sequence[Injected], supervisor: Supervisor, healed_at: float
) -> Measures:
    """Count everything."""
    rows = list(books.rows.values())
    attempts = [attempt for many in books.attempts.values() for attempt in many]
    ended = [item for item in attempts if item.state in {AttemptState.lost, AttemptState.failed}]
    results = sorted(result.created_at.timestamp() for many in books.results.values() for result in many)
    kept = dict.fromkeys(promise.step.key for promise, _ in books.kept())
    doubtful = [item for item in load.promises if item.sent_at and not item.receipt and not item.refused]
    return Measures(
        accepted=sum(bool(promise.receipt) for promise in load.promises),
        resent=sum(max(0, promise.tries - 1) for promise in load.promises),
        in_doubt=len(doubtful),
        in_doubt_stored=sum(item.step.key in kept for item in doubtful),
        lost_answers=load.lost_answers,
        statuses=dict(sorted(load.statuses.items())),
        submissions=_counted(row.state for row in rows),
        superseded=sum(row.superseded_by_id is not None for row in rows),
        taken_back=sum(promise.cancelled for promise in load.promises),
        attempts=_counted(attempt.state for attempt in attempts),
        attempts_per_submission=dict(sorted(Counter(len(many) for many in books.attempts.values()).items())),
        reasons=dict(Counter(item.reason[:80] for item in ended).most_common()),
        deaths=dict(Counter(program.role for program in supervisor.programs for _ in program.deaths)),
        faults=_counted(fault.kind for fault in injected if not fault.skipped),
        skipped={fault.kind: fault.skipped for fault in injected if fault.skipped},
        wait=Spread.of(
            [
                (row.finished_at - row.uploaded_at).total_seconds()
                for row in rows
                if row.finished_at is not None and row.state is State.done
            ]
        ),
        lost_after=Spread.of(
            [(item.finished_at - item.dispatched_at).total_seconds() for item in ended if item.finished_at is not None]
        ),
        back_after=Spread.of(_recoveries(injected, results)),
        drained_s=round(max(0.0, results[-1] - healed_at), 1) if results else 0.0,
    )


def _counted(values: object) -> dict[str, int]:
    return dict(sorted(Counter(str(value) for value in values).items()))  # type: ignore[attr-defined]


def _recoveries(injected: Sequence[Injected], results: Sequence[float]) -> list[float]:
    """For each fault, how long after its end the next result was recorded."""
    found = []
    for fault in injected:
        later = next((at for at in results if at >= fault.ended_at), None)
        if not fault.skipped and later is not None:
            found.append(later - fault.ended_at)
    return found
