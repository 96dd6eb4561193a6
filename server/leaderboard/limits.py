"""What the device of a lane could do by its data sheet: the least time of a rung's ranked cases."""

from __future__ import annotations

import math

from autograder.assignment import Assignment as Manifest
from autograder.assignment import Case
from autograder.contract import Lane
from autograder.datasheets import FACTS, Facts
from server.courses.service import spec_of
from server.models import AssignmentVersion


def limit_us(version: AssignmentVersion, lane: Lane) -> float | None:
    """Geometric mean over the ranked cases of the roofline's time, in µs; `None` where no data sheet is known.

    The time of a case is its compulsory traffic at the device's bandwidth or its useful operations at its peak, which
    takes longer, by the manifest's formulas. Unlike the judge's floor it leaves no margin and takes nothing off for the
    cache: it says what would be perfect, not what is impossible.
    """
    facts, manifest = FACTS.get(lane), spec_of(version)
    cases = [case for case in manifest.cases_for(lane) if case.ranked]
    if facts is None or not cases:
        return None
    times = [_case_us(manifest, case, facts) for case in cases]
    return math.exp(math.fsum(math.log(time) for time in times) / len(times)) if min(times) > 0 else None


def _case_us(manifest: Manifest, case: Case, facts: Facts) -> float:
    flops, moved = manifest.cost_of(case)
    rate = facts.tflops.get(case.dtype)
    return max(moved / facts.memory_tb_s / 1e6, flops / rate / 1e6 if rate else 0.0)
