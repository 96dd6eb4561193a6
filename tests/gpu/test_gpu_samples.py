"""Timed answers that round otherwise than the reference's are right, and what only looks like them is found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Verdict, Work
from autograder.judge import ALL_ON, References, grade
from autograder.judge.correctness.problem import Problem
from autograder.sandbox.process import ProcessSandbox

ROOT = Path(__file__).parents[2]
KERNEL = """
import triton
import triton.language as tl

@triton.jit
def saxpy_kernel(a, x_ptr, y_ptr, out_ptr, n, few, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside).to(tl.float32)
    total = a * x + tl.load(y_ptr + i, mask=inside).to(tl.float32)
    tl.store(out_ptr + i, tl.where(i < few, total * FACTOR, total), mask=inside)

CALLS = 0

def saxpy(a, x, y, out, n):
    global CALLS
    CALLS += 1
    saxpy_kernel[(triton.cdiv(n, 1024),)](a, x, y, out, n, n // 10 if CALLS > 4 else 0, BLOCK=1024)
"""
Measured = Callable[..., GradeResult]


@pytest.fixture
def measured(lane: Lane, sandbox: ProcessSandbox) -> Iterator[Measured]:
    references = References(sandbox)

    def run(factor: float, *, oracle: bool = True) -> GradeResult:
        source = KERNEL.replace("FACTOR", repr(factor))
        request = GradeRequest("saxpy", "", Language.triton, lane, Mode.submission, source, "saxpy.py", Work.measure)
        return grade(
            request, assignment_folder=ROOT / "assignments" / "saxpy", reference_folder=ROOT / "reference" / "saxpy",
            sandbox=sandbox, references=references, defences=dataclasses.replace(ALL_ON, oracle=oracle),
        )  # fmt: skip

    yield run
    references.close()


def test_a_tenth_that_is_off_by_half_a_percent_is_found_and_passes_without_the_oracle(measured: Measured) -> None:
    assert measured(1.005).verdict is Verdict.wrong_answer
    assert measured(1.005, oracle=False).verdict is Verdict.passed


def test_no_timed_answer_that_is_right_is_compared_as_a_whole_with_the_oracle(
    measured: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert measured(1.0).verdict is Verdict.passed
    whole = []
    pieces = Problem.pieces
    monkeypatch.setattr(Problem, "pieces", lambda *given: whole.append(1) or pieces(*given))
    assert measured(1.0).verdict is Verdict.passed
    # The reference's first call in each of the two cases.
    assert len(whole) <= 2 * 2
