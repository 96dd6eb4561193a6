"""What no device would take is refused where no device ran it; what some device might take is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import triton
from triton.runtime.errors import OutOfResources, PTXASError

from autograder.assignment import Assignment, load_assignment
from autograder.compile_checks import faults
from autograder.contract import CompiledFor, GradeRequest, Lane, Language, Mode, Verdict
from autograder.judge import grade
from autograder.judge.compile import cross_compile, target_rejections
from autograder.judge.compile.cross_compile import RejectedCase, TargetReport
from autograder.sandbox.process import ProcessSandbox
from autograder.scores import score

ROOT = Path(__file__).parents[4]
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
    monkeypatch.setitem(cross_compile.BUDGET_S, Language.triton, 120.0)  # type: ignore[arg-type] -- a dict behind a Mapping.
    monkeypatch.setattr(cross_compile, "DEADLINE_S", 200.0)


def asked(source: str, lane: Lane = Lane.cpu) -> GradeRequest:
    return GradeRequest("vector_add", "", Language.triton, lane, Mode.run, source, "mine.py")


def of_one_case(*targets: str) -> Assignment:
    case = next(case for case in VECTOR_ADD.cases if case.name == "gpu_ranked")
    return dataclasses.replace(VECTOR_ADD, cases=(case,), compile_for=targets)


def refused(sandbox: ProcessSandbox, body: str, kernels: str = KERNELS) -> tuple[str, ...]:
    """Why the first target would refuse the case, if it would."""
    with cross_compile.Compilation(of_one_case("sm_90a"), asked(HEAD + kernels + ENTRY + body), sandbox) as compilation:
        return tuple(one.message for one in compilation.finish()["sm_90a"].refused)


# --- which calls would fail ------------------------------------------------------------------------------------------


@pytest.mark.full("slow")
def test_a_call_fails_whose_kernel_the_target_does_not_take(sandbox: ProcessSandbox) -> None:
    assert refused(sandbox, LAUNCH) == ()
    (why,) = refused(sandbox, f"{LAUNCH}    {TINY}")
    assert why.startswith("`tiny`: Would not compile for sm_90a: line 14: CompilationError: Input shapes should have")


def test_host_code_that_has_another_way_is_refused_nothing(sandbox: ProcessSandbox) -> None:
    body = f"    try:\n        {TINY}    except triton.CompilationError:\n    {LAUNCH}"
    assert refused(sandbox, body) == ()


REMEMBERS = """
    if "block" not in known:
        for block in (4096, 1024):
            try:
                bounded[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)
            except triton.CompilationError:
                continue
            known["block"] = block
            return
    bounded[(triton.cdiv(n, known["block"]),)](x, y, out, n, BLOCK=known["block"])
"""


def test_what_host_code_learned_while_errors_were_kept_from_it_counts_for_nothing(sandbox: ProcessSandbox) -> None:
    assert refused(sandbox, REMEMBERS, f"known = {{}}\n{KERNELS}") == ()


def tuned(*blocks: int) -> str:
    configs = ", ".join(f'triton.Config({{"BLOCK": {block}}})' for block in blocks)
    plain = "@triton.jit\ndef bounded"
    return KERNELS.replace(plain, f'@triton.autotune([{configs}], key=["n"])\n{plain}')


def test_an_autotuner_leaves_out_what_is_too_large_and_fails_only_if_nothing_is_left(sandbox: ProcessSandbox) -> None:
    body = '    bounded[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)\n'
    assert refused(sandbox, body, tuned(2048, 64)) == ()
    (why,) = refused(sandbox, body, tuned(2048, 4096))
    assert why.startswith("`bounded`: Would not compile for sm_90a: line")


def test_the_reason_is_what_the_call_ended_with(sandbox: ProcessSandbox) -> None:
    """Not the first that was refused, which may have been left out."""
    body = f'    bounded[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)\n    {TINY}'
    (why,) = refused(sandbox, body, tuned(2048, 64))
    assert why.startswith("`tiny`: ")


def test_an_error_of_the_host_code_is_no_refusal(sandbox: ProcessSandbox) -> None:
    assert refused(sandbox, "    raise ValueError(n)\n") == ()
    body = f"    try:\n        {TINY}    except Exception as error:\n        raise ValueError from error\n"
    assert refused(sandbox, body) == ()


def test_of_the_compilers_errors_only_those_of_the_file_are_refusals() -> None:
    said = (
        "Internal Triton PTX codegen error\n`ptxas` stderr:\nptxas /tmp/a.ptx, line 46; error   : Not a name of any\n"
    )
    assert faults.is_refusal(PTXASError(said))
    assert not faults.is_refusal(PTXASError("`ptxas` failed with error code -9"))
    assert not faults.is_refusal(PTXASError("`ptxas` stderr:\nptxas fatal   : Memory allocation failure\n"))
    assert faults.is_refusal(OutOfResources(300000, 232448, "shared memory"))
    assert faults.is_refusal(triton.CompilationError("", None, "numel"))
    wrapped = triton.CompilationError("", None, "")
    wrapped.__cause__ = MemoryError()
    assert not faults.is_refusal(wrapped)
    assert not faults.is_refusal(RuntimeError("a pass failed"))


# --- what is made of it ----------------------------------------------------------------------------------------------


def told(target: str, *, refuses: bool) -> TargetReport:
    refused = RejectedCase("gpu_ranked", f"`k`: Would not run for {target}: line 7: too much.", None)
    return TargetReport(CompiledFor(target), refused=(refused,) * refuses)


BOTH = of_one_case("sm_90a", "sm_100a")


def test_what_every_target_refuses_is_a_case_of_its_own_group() -> None:
    found = {target: told(target, refuses=True) for target in BOTH.compile_for}
    (case,) = target_rejections.as_cases(BOTH, found)
    assert (case.name, case.verdict, case.group) == ("gpu_ranked", Verdict.compile_error, BOTH.cases[0].group)
    assert case.message.startswith("`k`: Would not run for sm_90a: line 7: too much. It runs here on the CPU")


def test_what_one_target_takes_or_nobody_looked_at_is_refused_by_nobody() -> None:
    yes = told("sm_90a", refuses=True)
    assert target_rejections.as_cases(BOTH, {"sm_90a": yes, "sm_100a": told("sm_100a", refuses=False)}) == ()
    assert target_rejections.as_cases(BOTH, {"sm_90a": yes}) == ()
    assert target_rejections.as_cases(BOTH, {}) == ()


def test_a_rung_with_a_lane_that_it_is_not_compiled_for_refuses_nothing() -> None:
    """It might run there."""
    assert BOTH.policy(Lane.b200)
    assert target_rejections.as_cases(of_one_case("sm_90a"), {"sm_90a": told("sm_90a", refuses=True)}) == ()


ONE = "dict(case={}, kernel='k', fault=dict(kind='PTXASError', message='forged', frames=[]))"


@pytest.mark.parametrize(
    ("claim", "left"),
    [
        (f"[{', '.join(ONE.format(number) for number in ('0', '0', '5', '-1', '2**40'))}]", 1),
        (f"[{ONE.format(1)}]", 0),
        ("[0]", 0),
        ("'text'", 0),
        ("[dict(case=0)]", 0),
    ],
)
def test_what_is_no_refusal_of_a_case_that_there_is_is_none(sandbox: ProcessSandbox, claim: str, left: int) -> None:
    forged = (
        "    from autograder.compile_checks import parts\n"
        "    parts.fitting.__code__ = (lambda told, course, code: dict(kernels=[], left_out=0, fault=None, case='', "
        f"refused={claim})).__code__\n"
    )
    assert len(refused(sandbox, forged)) == left


# --- a whole grading -------------------------------------------------------------------------------------------------


def test_on_the_cpu_lane_it_is_the_verdict_and_costs_its_group(sandbox: ProcessSandbox) -> None:
    source = HEAD + KERNELS + ENTRY + f"{LAUNCH}    {TINY}"
    result = grade(asked(source), assignment_folder=FOLDER, reference_folder=None, sandbox=sandbox)
    assert result.verdict is Verdict.compile_error, result.explanation
    failed = [case for case in result.cases if case.verdict is not Verdict.passed]
    assert {case.verdict for case in failed} == {Verdict.compile_error}
    assert "gpu_ranked" in {case.name for case in failed}
    assert len({case.name for case in result.cases}) == len(result.cases)
    assert "It runs here on the CPU" in result.explanation
    assert result.error is not None
    assert result.error.kind == "CompilationError"
    earned = score(VECTOR_ADD, result, Lane.cpu)
    assert 0 < earned.correctness_points < VECTOR_ADD.points.correctness
    assert earned.speed_points == 0
