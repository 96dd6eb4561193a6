"""A profile such as a node sends, for lanes that no machine here has."""

from __future__ import annotations

import dataclasses

from autograder.contract import CaseResult, GradeResult, Verdict, Visibility
from autograder.profiles import (
    Figure,
    Hint,
    LineCost,
    Mix,
    Profile,
    ProfiledKernel,
    Span,
    SpanKind,
    Stall,
    StalledFor,
    Timeline,
)

KERNEL = ProfiledKernel(
    name="add_one_kernel<float>",
    share=0.93,
    calls=1,
    figures={
        Figure.duration_us: 934.3, Figure.compute_percent: 23.3, Figure.memory_percent: 97.5,
        Figure.dram_percent: 23.6, Figure.l2_percent: 97.5, Figure.l1_percent: 41.2, Figure.dram_read_bytes: 5.4e8,
        Figure.dram_written_bytes: 5.2e8, Figure.dram_bytes_per_s: 1.13e12, Figure.l2_hit_percent: 88.0,
        Figure.global_load_sectors: 4194304.0, Figure.global_load_requests: 131072.0, Figure.registers: 24.0,
        Figure.threads: 256.0, Figure.shared_bytes: 1024.0, Figure.occupancy_percent: 89.6,
        Figure.occupancy_limit_percent: 100.0, Figure.blocks_by_registers: 10.0, Figure.blocks_by_warps: 8.0,
        Figure.waves: 3.5, Figure.instructions: 4e6, Figure.shared_load_conflicts: 1200.0,
    },
    mix={Mix.global_load_32: 4194304, Mix.integer: 9000000, Mix.floating: 4194304},
    stalls=(StalledFor(Stall.global_memory, 700), StalledFor(Stall.selected, 100), StalledFor(Stall.draining, 50)),
    lines=(LineCost(0, 10, 20), LineCost(1, 100, 700, (StalledFor(Stall.global_memory, 650),))),
    hints=(Hint("UncoalescedGlobalAccess", "This kernel has <b>uncoalesced</b> global accesses.", 77.7, "coalescing"),),
)  # fmt: skip
PROFILE = Profile(
    case="tiny",
    size="n=1,000",
    tool="Nsight Compute 2025.3.1.0",
    flops=1e9,
    bytes_moved=8e8,
    kernels=(KERNEL,),
    timeline=Timeline(
        spans=(
            Span(SpanKind.host, "cuLaunchKernelEx", 0, 30_000),
            Span(SpanKind.kernel, "add_one_kernel<float>", 28_000, 962_300),
        ),
        call_ns=962_300,
        busy_ns=934_300,
    ),
    missing={Figure.l1_hit_percent.value: "This version of the tool, or this device, does not have the counter."},
    report_bytes=7,
)


def result(**changes: object) -> GradeResult:
    """What an attempt says that made it; `changes` are of the profile."""
    case = CaseResult("tiny", "sizes", "sizes", Visibility.public, True, None, "It was profiled.")
    made = dataclasses.replace(PROFILE, **changes)  # type: ignore[arg-type]
    return GradeResult(Verdict.passed, f"One call of the case {made.case} was profiled.", (case,), profile=made)
