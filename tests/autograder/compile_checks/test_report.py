"""The terminal's report of compiled kernels and requirements."""

from __future__ import annotations

from autograder.contract import CompiledFor, CompiledKernel, GradeResult, RequirementResult, Verdict
from autograder.report import render

PLAIN = CompiledKernel("add", "ranked", 0, "BLOCK=64", "x_ptr: *fp32", registers=25, shared_bytes=16)
SPILLS = CompiledKernel("dot", "ranked", 1, "BLOCK=128", "", registers=255, spills=7, stack_bytes=16, wgmma=8)
REFUSED = CompiledKernel("big", "ranked", 2, "BLOCK=9", "", message="Would not compile for sm_90a: line 3: no\x1b[2J.")


def rendered(*found: CompiledFor, requirements: tuple[RequirementResult, ...] = ()) -> str:
    return render(GradeResult(Verdict.passed, "All passed.", (), compiled=found, requirements=requirements))


def test_kernels_are_a_table_per_target() -> None:
    text = rendered(CompiledFor("sm_90a", (PLAIN, SPILLS)), CompiledFor("sm_100a", (PLAIN,)))
    first, second = text.split("compiled for ")[1:]
    assert first.startswith("sm_90a, without such a device and not measured:")
    rows = [line.split() for line in first.splitlines()[1:4]]
    assert rows[0] == ["kernel", "case", "configuration", "registers", "spills", "shared", "wgmma"]
    assert rows[1] == ["add", "ranked", "BLOCK=64", "25", "0", "16", "B", "0"]
    assert rows[2] == ["dot", "ranked", "BLOCK=128", "255", "7", "(16", "B)", "0", "B", "8"]
    assert "wgmma" not in second


def test_what_does_not_compile_is_said_without_steering_the_terminal() -> None:
    text = rendered(CompiledFor("sm_90a", (REFUSED,), left_out=3, message="The host code looks at values."))
    assert "  big (BLOCK=9): Would not compile for sm_90a: line 3: no�[2J." in text
    assert "  The host code looks at values." in text
    assert "  3 more launches were not compiled." in text
    assert "configuration" not in text


def test_nothing_launched_is_nothing_to_say() -> None:
    assert rendered(CompiledFor("sm_90a")) == rendered()


def test_requirements_say_whether_and_why() -> None:
    asked = RequirementResult("tensor cores", "about", "sm_90a", "wgmma > 0", met=None, message="No launch was seen.")
    text = rendered(requirements=(asked,))
    assert "  tensor cores (sm_90a: wgmma > 0): could not be checked. No launch was seen." in text
