"""The least time that a device needs by its data sheet: nobody moves bytes or multiplies faster than it can.

A margin is left, because an event clock is read to some per mille and honestly beating a library is no crime; and what
fits into the L2 cache need not have reached memory when a call ends.
"""

from __future__ import annotations

from autograder.assignment import Assignment, Case
from autograder.contract import Lane
from autograder.lanes import SHEETS

MARGIN = 0.97
"""Of the computed time."""


def floor_us(assignment: Assignment, case: Case, lane: Lane) -> float:
    """Microseconds below which a time of the case is held; 0 where nothing is known of the lane's device."""
    sheet = SHEETS.get(lane)
    if sheet is None:
        return 0.0
    flops, moved = assignment.cost_of(case)
    traffic = max(moved - sheet.l2_bytes, 0.0) / sheet.memory_tb_s / 1e6
    rate = sheet.tflops.get(case.dtype)
    arithmetic = flops / rate / 1e6 if rate else 0.0
    return MARGIN * max(traffic, arithmetic)
