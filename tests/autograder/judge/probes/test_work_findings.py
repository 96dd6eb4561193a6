"""Whose work an output is: launches, library operations, and what is left when the kernels do nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autograder import codec
from autograder.assignment import load_assignment
from autograder.contract import (
    FindingKind,
    GradeRequest,
    GradeResult,
    Lane,
    Language,
    Launch,
    Measurement,
    Mode,
    Verdict,
)
from autograder.judge import grade
from autograder.judge.correctness.checker import CallResult
from autograder.judge.probes.work_findings import (
    MAX_COUNT,
    WorkRecord,
    exercise_operations,
    findings,
    timed_work_differs,
)
from autograder.judge.protocol.runner_client import CallReply
from tests.autograder.grading_bench import Bench

ROOT = Path(__file__).parents[4]
DOUBLE = load_assignment(ROOT / "tests" / "fixtures" / "assignments" / "double")
RIGHT, WRONG = CallResult(Verdict.passed, "", unaided=1.0), CallResult(Verdict.wrong_answer, "")
KERNEL = """
import torch, triton, triton.language as tl

@triton.jit
def {name}(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    {store}

def vector_add(x, y, out, n):
    {name}[(triton.cdiv(n, 4096),)](x, y, out, n, BLOCK=4096)
    {after}
"""
PART = """
import triton, triton.language as tl
{before}

@triton.jit
def _add(x_ptr, y_ptr, out_ptr, m, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < m
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)

def vector_add(x, y, out, n):
    {work}
    _add[(1,)](x, y, out, m, BLOCK=triton.next_power_of_2(m))
"""
HONEST = """
import torch, triton, triton.language as tl

@triton.jit
def _add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)

def vector_add(x, y, out, n):
    {before}
    _add[(triton.cdiv(n, 4096),)](x, y, {into}, n, BLOCK=4096)
    {after}
"""
BACK = "out.copy_(wide)"
STORE = "tl.store(out_ptr + offsets, x + y, mask=mask)"


def recorded(launches: tuple[Launch, ...] = (), operations: dict[str, int] | None = None) -> WorkRecord:
    record = WorkRecord()
    record.add(CallResult(Verdict.passed, "", finished=CallReply((), 1.0, 1.0, launches, operations or {}, ())))
    return record


def kinds(record: WorkRecord, *, complete: bool = True, **replays: CallResult) -> list[FindingKind]:
    return [finding.kind for finding in findings(DOUBLE, record, replays, complete=complete)]


def test_counts_that_no_number_holds_still_travel() -> None:
    record = recorded(tuple(Launch("k", (1,), 2**64 - 1) for _ in range(3)), {"aten.add": 2**64 - 1})
    record.add(CallResult(Verdict.passed, "", finished=CallReply((), 1.0, 1.0, (Launch("k", (1,), -(2**63)),), {}, ())))
    result = GradeResult(Verdict.passed, "", (), launches=record.as_launches())
    assert codec.loads(GradeResult, codec.dumps(result)).launches == (Launch("k", (1,), MAX_COUNT),)
    assert record.operations == {"aten.add": MAX_COUNT}


def test_work_by_the_students_kernel_is_no_finding() -> None:
    assert kinds(recorded((Launch("k", (4,), 1),), {"aten.empty": 2}), small=WRONG) == []


def test_without_a_launch_there_is_no_kernel() -> None:
    assert kinds(recorded(), small=RIGHT) == [FindingKind.no_kernel]


def test_an_output_that_is_right_without_the_kernels_was_decorated() -> None:
    assert kinds(recorded((Launch("k", (4,), 1),)), small=WRONG, large=RIGHT) == [FindingKind.decoration]


@pytest.mark.parametrize(("unaided", "is_found"), [(0.1, False), (0.11, True), (0.99, True)])
def test_a_part_that_is_right_without_the_kernels_is_shown(unaided: float, is_found: bool) -> None:
    part = CallResult(Verdict.wrong_answer, "", unaided=unaided)
    found = findings(DOUBLE, recorded((Launch("k", (4,), 1),)), {"small": part}, complete=True)
    assert [one.kind for one in found] == [FindingKind.decoration] * is_found
    assert not found or found[0].evidence["right without the kernels"] == f"small ({unaided:.0%})"


def test_a_replay_that_ended_early_is_said() -> None:
    launched = recorded((Launch("k", (4,), 1),))
    assert kinds(launched, complete=False) == [FindingKind.no_replay]
    assert kinds(launched, complete=False, small=RIGHT) == [FindingKind.decoration]


def test_a_listed_operation_is_found_with_its_evidence() -> None:
    record = recorded((Launch("k", (4,), 1),), {"aten.mul.Tensor": 3, "aten.empty": 1})
    (finding,) = findings(DOUBLE, record, {}, complete=True)
    assert finding.kind is FindingKind.library_call
    assert finding.evidence["operations"] == "aten.empty × 1, aten.mul.Tensor × 3"


def test_operations_are_listed_with_or_without_their_overload() -> None:
    operations = {"aten.add.out": 1, "aten.add_": 1, "aten.addmm": 1, "aten.mm.out": 1}
    assert exercise_operations(["aten.add", "aten.mm.out"], operations) == ["aten.add.out", "aten.mm.out"]


def test_records_of_many_calls_are_added_up() -> None:
    record = recorded((Launch("k", (4,), 1), Launch("other", (4,), 1)), {"aten.add": 1})
    record.add(
        CallResult(Verdict.passed, "", finished=CallReply((), 1.0, 1.0, (Launch("k", (4,), 2),), {"aten.add": 2}, ()))
    )
    record.add(CallResult(Verdict.time_limit, ""))
    assert record.as_launches() == (Launch("k", (4,), 3), Launch("other", (4,), 1))
    assert record.operations == {"aten.add": 3}


def graded(bench: Bench, source: str) -> GradeResult:
    return grade(
        GradeRequest("vector_add", "", Language.triton, Lane.cpu, Mode.submission, source, "add.py"),
        assignment_folder=ROOT / "assignments" / "vector_add",
        reference_folder=ROOT / "reference" / "vector_add",
        sandbox=bench.sandbox,
        references=bench.references,
    )


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (KERNEL.format(name="add", store=STORE, after="return"), set()),
        (
            KERNEL.format(name="looks_busy", store="x + y", after="torch.add(x, y, out=out)"),
            {FindingKind.decoration, FindingKind.library_call},
        ),
        (  # Numpy does all but a hundredth.
            PART.format(
                before="import numpy",
                work="m = max(1, n // 100)\n    numpy.add(x.numpy()[m:], y.numpy()[m:], out=out.numpy()[m:])",
            ),
            {FindingKind.decoration},
        ),
        (  # Operations of torch's that no list names do all but one element.
            PART.format(
                before="import torch",
                work="m = 1\n    out[m:] = torch.index_add(x, 0, torch.arange(n), y)[m:]",
            ),
            {FindingKind.decoration},
        ),
        (HONEST.format(before="out.zero_()", into="out", after="return"), set()),
        (HONEST.format(before="out.copy_(x)", into="out", after="return"), set()),
        (HONEST.format(before="wide = torch.zeros(n)", into="wide", after=BACK), set()),
        (
            HONEST.format(before="x, y, wide = x.float(), y.float(), out.float()", into="wide", after=BACK),
            set(),
        ),
        (
            "import torch\ndef vector_add(x, y, out, n):\n    torch.add(x, y, out=out)\n",
            {FindingKind.no_kernel, FindingKind.library_call},
        ),
    ],
    ids=["kernel", "decoration", "numpy", "unlisted", "zeros", "copy", "scratch", "cast", "library"],
)
def test_a_real_submission_passes_and_staff_see_whose_work_it_is(
    bench: Bench, source: str, expected: set[FindingKind]
) -> None:
    result = graded(bench, source)
    assert result.verdict is Verdict.passed, result.explanation
    assert {finding.kind for finding in result.findings} == expected
    assert bool(result.launches) == (FindingKind.no_kernel not in expected)


@pytest.mark.parametrize(
    ("timed_us", "traced_us", "is_found"),
    [
        (100.0, 0.0, False),  # Nothing was traced.
        (100.0, 99.0, False),
        (100.0, 134.0, False),
        (100.0, 136.0, True),
        (5.0, 14.0, False),  # A first launch after tracing was switched on.
        (5.0, 30.0, True),
    ],
)
def test_who_worked_longer_when_looked_at_than_when_timed_is_shown(
    timed_us: float, traced_us: float, is_found: bool
) -> None:
    found = Measurement("large", "event", 1.0, 1.0, 1.0, timed_us, timed_us, timed_us, 100.0, 1.0, 1.0, ())
    shown = timed_work_differs(replace(found, traced_us=traced_us))
    assert (shown is not None) == is_found
    assert shown is None or shown.kind is FindingKind.timed_otherwise
