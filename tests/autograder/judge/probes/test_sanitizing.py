"""A sanitizer run: a small public case, what the logs say as findings, and junk in their place."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from autograder.assignment import load_assignment
from autograder.contract import CaseResult, GradeResult, Lane, Mode, Verdict, Visibility, Work
from autograder.judge.grading import grade
from autograder.judge.phases import Phases
from autograder.judge.probes import one_call, sanitizing
from autograder.judge.probes.sanitizing import MOST_BYTES, small_case_of
from autograder.judge.protocol import devices
from autograder.profiling.asking import logs_of
from autograder.sanitizer import MOST_FINDINGS, Check
from tests.autograder.judge.probes.test_profiling import Runner, Sandbox, a_request

ROOT = Path(__file__).parents[4]
CLEAN = {
    "memcheck": b"========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
    "racecheck": b"========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
    "synccheck": b"========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
}
WRONG = b"""========= Invalid __global__ write of size 4 bytes
=========     at add\x1b[2J(float *)+0x90 in %b:%d
=========     by thread (3,0,0) in block (1,0,0)
=========
"""


class Sanitizing(Sandbox):
    """Starts one runner that sanitizes."""

    def __init__(self, logs, problems=None, checks=tuple(Check)):
        self.names = logs_of(checks)
        sizes = [len(logs.get(name, b"")) for name in self.names]
        answer = {"is": "Answer", "sizes": sizes, "problems": problems or {}, "tool": "Compute Sanitizer 2025.3"}
        super().__init__(logs, answer)

    def start(self, *_, **__):
        self.runner = Runner(self.files, self.answer, self.names)
        return self.runner


def sanitized(logs, problems=None, **changes):
    request = dataclasses.replace(a_request(**changes), mode=Mode.sanitize, work=Work.sanitize)
    sandbox = Sanitizing(logs, problems)
    result = grade(request, assignment_folder=ROOT / "assignments/vector_add", reference_folder=None, sandbox=sandbox)
    assert sandbox.runner.asked["sanitize"] == [check.value for check in Check]
    return result


def test_what_found_nothing_is_clean():
    result = sanitized(CLEAN)
    found = result.sanitized
    assert (result.verdict, found.case) == (Verdict.passed, "ranked_odd")
    assert (found.clean, found.findings, found.missing) == (tuple(Check), (), {})
    assert result.cases[0].verdict is None


def test_a_finding_names_the_line_and_is_cleaned():
    log = WRONG % (b"v.cu", 12) + CLEAN["memcheck"]
    found = sanitized({**CLEAN, "memcheck": log}).sanitized
    (one,) = found.findings
    assert (one.check, one.line, one.count) == (Check.memcheck, 12, 1)
    assert "\x1b" not in one.kernel
    assert found.clean == (Check.racecheck, Check.synccheck)


def test_so_many_findings_are_kept_and_no_more():
    log = b"".join(WRONG % (b"v.cu", line) for line in range(1, MOST_FINDINGS + 6)) + CLEAN["memcheck"]
    found = sanitized({**CLEAN, "memcheck": log}).sanitized
    assert (len(found.findings), found.left_out) == (MOST_FINDINGS, 5)


@pytest.mark.parametrize("junk", [b"", b"\xff\0\xfe" * 100, b"========= Error: Target application terminated before\n"])
def test_a_log_that_says_nothing_is_missing_and_not_clean(junk):
    found = sanitized({**CLEAN, "racecheck": junk}).sanitized
    assert Check.racecheck not in found.clean
    assert set(found.missing) == {"racecheck"}


def test_a_check_that_the_runner_says_did_not_end_is_not_clean():
    found = sanitized(CLEAN, {"synccheck": "it did not end within 55 s"}).sanitized
    assert found.clean == (Check.memcheck, Check.racecheck)
    assert found.missing["synccheck"] == "it did not end within 55 s"


@pytest.mark.parametrize("slug", ["vector_add", "gemm_tensor_core", "flash_attention_2"])
def test_the_judge_chooses_a_small_case(slug):
    assignment = load_assignment(ROOT / "assignments" / slug)
    chosen = small_case_of(assignment, dataclasses.replace(a_request(case=""), slug=slug, lane=Lane.h200))
    assert assignment.cost_of(chosen)[1] <= MOST_BYTES


def faulted(lane=Lane.h200, name="odd", verdict=Verdict.illegal_access, visibility=Visibility.public):
    """A result that says so, after the look at it, and whether there was one."""
    case = CaseResult(name, "sizes", "sizes", visibility, False, verdict, "It accessed memory that is not its own.")
    before = GradeResult(verdict, "Illegal access.", (case,))
    request = dataclasses.replace(a_request(case=""), lane=lane, mode=Mode.run, work=Work.all)
    sandbox = Sanitizing({"memcheck": WRONG % (b"v.cu", 9) + CLEAN["memcheck"]}, checks=[Check.memcheck])
    after = sanitizing.of_fault(before, request, ROOT / "assignments/vector_add", sandbox, Phases(lambda _event: None))
    assert dataclasses.replace(after, sanitized=None, phases=()) == before
    return after.sanitized, sandbox.runner is not None


def test_where_a_device_faulted_its_line_is_looked_for(monkeypatch):
    here = devices.of(Lane.cpu)
    monkeypatch.setattr(one_call.devices, "of", lambda _lane: here)
    found, asked = faulted()
    assert (asked, found.case, found.findings[0].line, found.missing) == (True, "odd", 9, {})


@pytest.mark.parametrize(
    "other",
    [
        {"lane": Lane.cpu}, {"verdict": Verdict.wrong_answer}, {"visibility": Visibility.hidden},
        {"name": "gpu_ranked"},
    ],
)  # fmt: skip
def test_nothing_is_looked_for_on_the_cpu_after_other_verdicts_in_hidden_or_large_cases(other):
    assert faulted(**other) == (None, False)
