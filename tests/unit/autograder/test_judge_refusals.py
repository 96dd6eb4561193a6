"""What no device would take is refused where no device ran it; what some device might take is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.assignment import Assignment, load_assignment
from autograder.contract import CompiledFor, CompiledKernel, GradeRequest, Lane, Language, Mode, Verdict
from autograder.judge import compiled, grade, refusals
from autograder.judge.compiled import REFUSED, Checked
from autograder.sandbox.process import ProcessSandbox
from autograder.scores import score

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "assignments" / "vector_add"
VECTOR_ADD = load_assignment(FOLDER)
HEAD = "import os, sys\nimport torch, triton, triton.language as tl\n"
KERNELS = """
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)

@triton.jit
def tiny(x_ptr, y_ptr, out_ptr, n, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]
    x, y = tl.load(x_ptr + i, mask=i < n, other=0.0), tl.load(y_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, tl.dot(x, y), mask=i < 0)

@triton.jit
def bounded(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK <= 1024)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)
"""
ENTRY = "\ndef vector_add(x, y, out, n):\n"
LAUNCH = "    add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)\n"
TINY = "tiny[(1,)](x, y, out, n, SIDE=2)\n"
"""A product that is too small for a tensor core; the interpreter takes it."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is not how busy the machine is."""
    monkeypatch.setitem(compiled.BUDGET_S, Language.triton, 120.0)  # type: ignore[arg-type] -- a dict behind a Mapping.
    monkeypatch.setattr(compiled, "DEADLINE_S", 200.0)


def asked(source: str, lane: Lane = Lane.cpu) -> GradeRequest:
    return GradeRequest("vector_add", "", Language.triton, lane, Mode.run, source, "mine.py")


def of_one_case(*targets: str) -> Assignment:
    case = next(case for case in VECTOR_ADD.cases if case.name == "gpu_ranked")
    return dataclasses.replace(VECTOR_ADD, cases=(case,), compile_for=targets)


def refused(sandbox: ProcessSandbox, body: str, kernels: str = KERNELS) -> tuple[int, ...]:
    """Numbers of the cases that the first target would refuse."""
    with compiled.Compilation(of_one_case("sm_90a"), asked(HEAD + kernels + ENTRY + body), sandbox) as compilation:
        return compilation.finish()["sm_90a"].refused


# --- which calls would fail ------------------------------------------------------------------------------------------


def test_a_call_fails_whose_kernel_the_target_does_not_take(sandbox: ProcessSandbox) -> None:
    assert refused(sandbox, LAUNCH) == ()
    assert refused(sandbox, f"{LAUNCH}    {TINY}") == (0,)


def test_host_code_that_has_another_way_is_refused_nothing(sandbox: ProcessSandbox) -> None:
    body = f"    try:\n        {TINY}    except triton.CompilationError:\n    {LAUNCH}"
    assert refused(sandbox, body) == ()


def test_an_autotuner_leaves_out_what_is_too_large_and_fails_only_if_nothing_is_left(sandbox: ProcessSandbox) -> None:
    def tuned(*blocks: int) -> str:
        configs = ", ".join(f'triton.Config({{"BLOCK": {block}}})' for block in blocks)
        plain, decorated = (
            "@triton.jit\ndef bounded",
            f'@triton.autotune([{configs}], key=["n"])\n@triton.jit\ndef bounded',
        )
        return KERNELS.replace(plain, decorated)

    body = '    bounded[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)\n'
    assert refused(sandbox, body, tuned(2048, 64)) == ()
    assert refused(sandbox, body, tuned(2048, 4096)) == (0,)


def test_an_error_of_the_host_code_is_no_refusal(sandbox: ProcessSandbox) -> None:
    assert refused(sandbox, "    raise ValueError(n)\n") == ()
    assert (
        refused(
            sandbox, f"    try:\n        {TINY}    except Exception as error:\n        raise ValueError from error\n"
        )
        == ()
    )


# --- what is made of it ----------------------------------------------------------------------------------------------


def told(target: str, *, refuses: bool, uses: tuple[tuple[int, int], ...] = ((0, 0),), **fields: bool) -> Checked:
    message = f"{REFUSED} run for {target}: line 7: too much." if refuses else ""
    kernel = CompiledKernel("k", "gpu_ranked", 0, "", "", message=message)
    return Checked(CompiledFor(target, (kernel,)), (uses,), ("gpu_ranked",), refused=(0,) * refuses, **fields)


BOTH = of_one_case("sm_90a", "sm_100a")


def test_what_every_target_refuses_is_a_case_of_its_own_group() -> None:
    found = {target: told(target, refuses=True) for target in BOTH.compile_for}
    (case,) = refusals.as_cases(BOTH, found)
    assert (case.name, case.verdict, case.group) == ("gpu_ranked", Verdict.compile_error, BOTH.cases[0].group)
    assert case.message.startswith("Would not run for sm_90a: line 7: too much. It runs here, on the CPU")


def test_what_one_target_takes_or_nobody_looked_at_is_refused_by_nobody() -> None:
    yes = told("sm_90a", refuses=True)
    assert refusals.as_cases(BOTH, {"sm_90a": yes, "sm_100a": told("sm_100a", refuses=False)}) == ()
    assert refusals.as_cases(BOTH, {"sm_90a": yes}) == ()
    assert refusals.as_cases(BOTH, {}) == ()
    stopped = Checked(CompiledFor("sm_100a", message="The compiler did not end in time."))
    assert refusals.as_cases(BOTH, {"sm_90a": yes, "sm_100a": stopped}) == ()
    # A case that is said to fail for a kernel which is not shown, or was not refused, is no refusal.
    assert refusals.as_cases(of_one_case("sm_90a"), {"sm_90a": told("sm_90a", refuses=True, uses=())}) == ()


@pytest.mark.parametrize(("claim", "left"), [("[0, 0, 5, -1, 2**40]", (0,)), ("[1]", ())])
def test_numbers_of_cases_that_there_are_not_are_no_cases(
    sandbox: ProcessSandbox, claim: str, left: tuple[int, ...]
) -> None:
    forged = (
        "    from autograder.compile_checks import parts\n"
        f"    parts.fitting.__code__ = (lambda told, course, code: dict(kernels=[], left_out=0, fault=None, case='', "
        f"refused={claim})).__code__\n"
    )
    assert refused(sandbox, forged) == left


# --- a whole grading -------------------------------------------------------------------------------------------------


def test_on_the_cpu_lane_it_is_the_verdict_and_costs_its_group(sandbox: ProcessSandbox) -> None:
    source = HEAD + KERNELS + ENTRY + f"{LAUNCH}    {TINY}"
    result = grade(asked(source), assignment_folder=FOLDER, reference_folder=None, sandbox=sandbox)
    assert result.verdict is Verdict.compile_error, result.explanation
    failed = [case for case in result.cases if case.verdict is not Verdict.passed]
    assert {case.verdict for case in failed} == {Verdict.compile_error}
    assert "gpu_ranked" in {case.name for case in failed}
    assert len({case.name for case in result.cases}) == len(result.cases)
    assert "It runs here, on the CPU" in result.explanation
    assert result.error is not None
    assert result.error.kind == "CompilationError"
    earned = score(VECTOR_ADD, result, Lane.cpu)
    assert 0 < earned.correctness_points < VECTOR_ADD.points.correctness
    assert earned.speed_points == 0
