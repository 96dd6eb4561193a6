"""Where a result stands between the kernel's arithmetic and the hardware's limits: the roofline of its ranked cases.

FLOPs and bytes are the manifest's formulas: useful work and compulsory traffic, the same for every solution. So a
kernel that reads something twice does not look faster for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import Assignment
from autograder.contract import Lane, Measurement, Mode, Verdict
from autograder.lanes import SHEETS, DataSheet
from autograder.samples import PooledCase
from server.models import AssignmentVersion, Result, Submission
from server.pages.labels import LANES

THIS, LAST, REFERENCE, MILESTONE = "this", "last", "reference", "milestone"


@dataclass(frozen=True)
class Dot:
    """One time of one case.

    Attributes:
        who: `this`, `last`, `reference` or `milestone`.
        label: as it stands beside the dot.
        tflops, tb_s: what the case's work in that time comes to.
    """

    who: str
    label: str
    time_us: float
    tflops: float
    tb_s: float


@dataclass(frozen=True)
class CaseLimits:
    """A ranked case against the data sheet.

    Attributes:
        flops, bytes_moved: of one call.
        limit_us: the least time that traffic or arithmetic needs.
        is_memory_bound: the traffic needs the longer of the two.
        fits_cache: its traffic is less than the L2 cache, so that memory need not be reached.
        dots: this result's first.
    """

    case: str
    dtype: str
    flops: float
    bytes_moved: float
    limit_us: float
    is_memory_bound: bool
    fits_cache: bool
    dots: tuple[Dot, ...]

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes_moved if self.bytes_moved else 0.0

    @property
    def this(self) -> Dot:
        """This result's."""
        return self.dots[0]

    @property
    def share(self) -> float:
        """Of what the limit allows; beyond 1 where the cache helps."""
        return self.limit_us / self.this.time_us


@dataclass(frozen=True)
class Roofline:
    """The ranked cases of a result, in order, with the device's limits.

    Attributes:
        peaks: dtype → 1e12 operations per second, of the cases' types.
    """

    lane: Lane
    memory_tb_s: float
    peaks: Mapping[str, float]
    cases: tuple[CaseLimits, ...]

    @property
    def device(self) -> str:
        """`H200`."""
        return LANES[self.lane]

    @property
    def calculates(self) -> bool:
        """Whether there is arithmetic to place; a transpose has none, and only its traffic can be drawn."""
        return any(case.flops for case in self.cases)

    @property
    def data(self) -> dict[str, Any]:
        """What the chart is drawn from."""
        dots = [
            {
                "case": case.case, "who": dot.who, "label": dot.label,
                "x": case.intensity, "tflops": dot.tflops, "tb": dot.tb_s,
            }
            for case in self.cases
            for dot in case.dots
        ]  # fmt: skip
        peaks = [{"dtype": dtype, "tflops": rate} for dtype, rate in self.peaks.items()]
        return {"device": self.device, "memory": self.memory_tb_s, "peaks": peaks, "dots": dots}


def roofline(
    spec: Assignment,
    lane: Lane,
    measured: Sequence[Measurement],
    *,
    last: tuple[str, Mapping[str, float]] | None = None,
    milestones: Sequence[tuple[str, float]] = (),
) -> Roofline | None:
    """The result against the lane's device; `None` where its data sheet is not known or nothing public was measured.

    Args:
        last: the name of the version before, and its microseconds by case.
        milestones: names and their ratios to the reference.
    """
    sheet = SHEETS.get(lane)
    types = {case.name: case.dtype for case in spec.cases}
    shown = [item for item in measured if item.case in types and item.time_us > 0 and item.bytes_moved > 0]
    if sheet is None or not shown:
        return None
    cases = tuple(_case(item, types[item.case], sheet, tuple(_dots(item, last, milestones))) for item in shown)
    peaks = {case.dtype: sheet.tflops[case.dtype] for case in cases if case.dtype in sheet.tflops}
    return Roofline(lane, sheet.memory_tb_s, peaks, cases)


def _case(item: Measurement, dtype: str, sheet: DataSheet, dots: tuple[Dot, ...]) -> CaseLimits:
    traffic_us = item.bytes_moved / sheet.memory_tb_s / 1e6
    peak = sheet.tflops.get(dtype)
    arithmetic_us = item.flops / peak / 1e6 if peak else 0.0
    return CaseLimits(
        case=item.case,
        dtype=dtype,
        flops=item.flops,
        bytes_moved=item.bytes_moved,
        limit_us=max(traffic_us, arithmetic_us),
        is_memory_bound=traffic_us >= arithmetic_us,
        fits_cache=item.bytes_moved < sheet.l2_bytes,
        dots=dots,
    )


def _dots(
    item: Measurement, last: tuple[str, Mapping[str, float]] | None, milestones: Sequence[tuple[str, float]]
) -> Iterator[Dot]:
    def dot(who: str, label: str, time_us: float) -> Dot:
        return Dot(who, label, time_us, item.flops / time_us / 1e6, item.bytes_moved / time_us / 1e6)

    yield dot(THIS, "this one", item.time_us)
    if last is not None and last[1].get(item.case, 0.0) > 0:
        yield dot(LAST, last[0], last[1][item.case])
    if item.reference_us > 0:
        yield dot(REFERENCE, "reference", item.reference_us)
        for name, ratio in milestones:
            yield dot(MILESTONE, name, item.reference_us * ratio)


def last_before(session: Session, submission: Submission) -> tuple[str, dict[str, float]] | None:
    """The name and the times by case of its student's newest submission before it that passed and ranks beside it."""
    hashes = select(AssignmentVersion.grading_hash).where(AssignmentVersion.id == submission.version_id)
    query = (
        select(Submission.number, Result.pooled)
        .join(Result, Result.id == Submission.result_id)
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .where(
            Submission.user_id == submission.user_id,
            Submission.assignment_id == submission.assignment_id,
            Submission.lane == submission.lane,
            Submission.mode == Mode.submission,
            Submission.id < submission.id,
            Result.verdict == Verdict.passed,
            Result.ratio.is_not(None),
            AssignmentVersion.grading_hash == hashes.scalar_subquery(),
        )
        .order_by(Submission.id.desc())
        .limit(1)
    )
    row = session.execute(query).first()
    if row is None:
        return None
    pooled = (codec.from_json(PooledCase, item) for item in row.pooled)
    return f"Submission {row.number}", {item.case: item.time_us for item in pooled}
