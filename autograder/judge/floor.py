"""The least time that a device needs by its data sheet: nobody moves bytes or multiplies faster than it can.

A margin is left, because an event clock is read to some per mille and honestly beating a library is no crime; and what
fits into the L2 cache need not have reached memory when a call ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from autograder.assignment import Assignment, Case
from autograder.contract import Lane

MARGIN = 0.97
"""Of the computed time."""


@dataclass(frozen=True)
class Facts:
    """A device by its data sheet: dense rates without sparsity.

    Attributes:
        memory_tb_s: memory bandwidth, 1e12 bytes per second.
        l2_bytes: size of the L2 cache.
        tflops: the fastest way there is to multiply numbers of a dtype, 1e12 operations per second; for float32 that is
            TF32 on the tensor cores, which no exercise has to allow.
    """

    memory_tb_s: float
    l2_bytes: int
    tflops: dict[str, float]


_HOPPER = {"float16": 989.4, "bfloat16": 989.4, "float32": 494.7, "float64": 66.9, "int8": 1978.9}

FACTS: dict[Lane, Facts] = {
    # NVIDIA H100 Tensor Core GPU data sheet, SXM5; "H100 architecture" white paper, table 3 (L2: 50 MB).
    Lane.h100: Facts(3.35, 50 * 10**6, _HOPPER),
    # NVIDIA H200 Tensor Core GPU data sheet, SXM; computes as an H100.
    Lane.h200: Facts(4.8, 50 * 10**6, _HOPPER),
    # NVIDIA HGX B200 data sheet, an eighth of the board's figures; L2 as the driver reports it on a B200, 126 MB.
    Lane.b200: Facts(
        8.0, 126 * 10**6, {"float16": 2250.0, "bfloat16": 2250.0, "float32": 1125.0, "float64": 40.0, "int8": 4500.0}
    ),
}


def floor_us(assignment: Assignment, case: Case, lane: Lane) -> float:
    """Microseconds below which a time of the case is held; 0 where nothing is known of the lane's device."""
    facts = FACTS.get(lane)
    if facts is None:
        return 0.0
    flops, moved = assignment.cost_of(case)
    traffic = max(moved - facts.l2_bytes, 0.0) / facts.memory_tb_s / 1e6
    rate = facts.tflops.get(case.dtype)
    arithmetic = flops / rate / 1e6 if rate else 0.0
    return MARGIN * max(traffic, arithmetic)
