"""The work of a rung's ranked cases, and the least time that a lane's device needs for it by its data sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.assignment import Assignment as Manifest
from autograder.assignment import Case
from autograder.contract import Lane
from autograder.lanes import SHEETS, TYPICAL, DataSheet
from server.courses.courses import spec_of
from server.models import AssignmentVersion


@dataclass(frozen=True)
class CaseWork:
    """What one call on the ranked cases has to do, by the manifest's formulas: geometric mean over the cases.

    A board's time is the geometric mean over the same cases, so the rate of that time is the mean of the cases' rates.

    Attributes:
        amount: bytes that have to be moved, or operations that have to be done.
        unit: `B`, or `FLOP` where arithmetic takes the device longer than the traffic.
    """

    amount: float
    unit: str

    def tera(self, time_us: float) -> float:
        """The rate, in 1e12 of the unit a second."""
        return self.amount / time_us / 1e6 if time_us else 0.0


def work_of(version: AssignmentVersion, lane: Lane) -> CaseWork | None:
    """What a board's absolute figures count; `None` where the manifest gives no formula for it."""
    manifest = spec_of(version)
    cases = ranked_cases(version, lane)
    sheet = SHEETS.get(lane)
    # A lane without a data sheet times small cases: what limits the rung shows in those of a GPU's lane.
    telling = cases if sheet else ranked_cases(version, TYPICAL) or cases
    costs = [manifest.cost_of(case) for case in cases]
    if not cases:
        return None
    by_arithmetic = sum(_is_compute_bound(manifest, case, sheet or SHEETS[TYPICAL]) for case in telling)
    is_compute = 2 * by_arithmetic > len(telling)
    amounts = [flops if is_compute else moved for flops, moved in costs]
    return CaseWork(_mean(amounts), "FLOP" if is_compute else "B") if min(amounts) > 0 else None


def ranked_cases(version: AssignmentVersion, lane: Lane) -> list[Case]:
    """The cases whose times make a board's ratio and time."""
    return [case for case in spec_of(version).cases_for(lane) if case.ranked]


def limit_us(version: AssignmentVersion, lane: Lane) -> float | None:
    """Geometric mean over the ranked cases of the roofline's time, in µs; `None` where no data sheet is known.

    The time of a case is its compulsory traffic at the device's bandwidth or its useful operations at its peak, which
    takes longer, by the manifest's formulas. Unlike the judge's floor it leaves no margin and takes nothing off for the
    cache: it says what would be perfect, not what is impossible.
    """
    sheet, manifest = SHEETS.get(lane), spec_of(version)
    cases = ranked_cases(version, lane)
    if sheet is None or not cases:
        return None
    times = [_case_us(manifest, case, sheet) for case in cases]
    return _mean(times) if min(times) > 0 else None


def _mean(values: Sequence[float]) -> float:
    """Geometric."""
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def _is_compute_bound(manifest: Manifest, case: Case, sheet: DataSheet) -> bool:
    flops, moved = manifest.cost_of(case)
    rate = sheet.tflops.get(case.dtype)
    return rate is not None and flops / rate > moved / sheet.memory_tb_s


def _case_us(manifest: Manifest, case: Case, sheet: DataSheet) -> float:
    flops, moved = manifest.cost_of(case)
    rate = sheet.tflops.get(case.dtype)
    return max(moved / sheet.memory_tb_s / 1e6, flops / rate / 1e6 if rate else 0.0)
