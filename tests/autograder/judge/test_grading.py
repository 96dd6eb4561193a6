"""Gradings from end to end, in a real sandbox."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder import codec, toolchain
from autograder.assignment import Case
from autograder.contract import (
    FindingKind,
    GradeRequest,
    GradeResult,
    Lane,
    Language,
    Mode,
    Pattern,
    Phase,
    Verdict,
    Visibility,
)
from autograder.errors import HarnessError
from autograder.judge import grade
from autograder.judge.__main__ import main as judge_main
from autograder.judge.correctness.checker import CallResult, Checker
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.sandbox.process import ProcessRunner, ProcessSandbox
from tests.autograder.grading_bench import ASSIGNMENT, GOOD, HEAD, REFERENCE, WORK, Bench, body, edited, kernel

PASSED, NOT_RUN = Verdict.passed, None


def verdicts(result: GradeResult) -> list[Verdict | None]:
    return [case.verdict for case in result.cases]


def test_a_right_submission_passes_every_case_and_is_measured(bench: Bench) -> None:
    result = bench.grade(GOOD)
    assert result.verdict is PASSED
    assert verdicts(result) == [PASSED] * 5
    assert result.explanation == "All 5 cases passed, 2 of them hidden."
    assert [found.case for found in result.measurements] == ["ranked"]
    assert len(result.measurements[0].pairs) == 3
    assert result.measurements[0].ratio_low <= result.measurements[0].ratio <= result.measurements[0].ratio_high
    assert not result.held


def test_phases_follow_each_other_and_every_event_can_travel(bench: Bench) -> None:
    result = bench.grade(GOOD)
    assert [entry.phase for entry in result.phases] == [
        Phase.preparing,
        Phase.compiling,
        Phase.checking,
        Phase.measuring,
        Phase.profiling,
        Phase.reporting,
    ]
    assert [event.phase.phase for event in bench.events if event.phase] == [entry.phase for entry in result.phases]
    for event in bench.events:
        assert codec.loads(type(event), codec.dumps(event)) == event
    assert codec.loads(GradeResult, codec.dumps(result)) == result


def test_the_environment_names_what_took_part(bench: Bench) -> None:
    result = bench.grade(GOOD, mode=Mode.run)
    assert {"python", "torch", "triton", "kernel", "cpu", "contract", "sandbox"} <= set(result.environment)
    assert result.environment["sandbox"] == "autograder.sandbox.process:ProcessSandbox"
    assert set(result.promises) == {promise.value for promise in bench.sandbox.promises}


def test_a_run_meets_public_cases_only_and_is_not_measured(bench: Bench) -> None:
    result = bench.grade(GOOD, mode=Mode.run)
    assert verdicts(result) == [PASSED] * 3
    assert {case.visibility for case in result.cases} == {Visibility.public}
    assert (result.measurements, result.findings) == ((), ())
    assert result.explanation == "All 3 public cases passed. Submit to run the hidden ones."


def test_a_wrong_answer_is_explained_and_the_other_cases_are_still_run(bench: Bench) -> None:
    result = bench.grade(kernel(after="if m == 32: out[30:] = -7"))
    assert result.verdict is Verdict.wrong_answer
    assert verdicts(result) == [PASSED, Verdict.wrong_answer, PASSED, PASSED, PASSED]
    found = result.cases[1].mismatch
    assert found is not None
    assert (found.pattern, found.output, found.got) == (Pattern.rows_from, "out", "-7")
    assert result.explanation.startswith(
        "Wrong answer in case `padded`. 66 of 1056 elements of `out` are wrong: rows 30"
    )
    assert result.measurements == ()


def test_a_submission_that_writes_nothing_is_told_so(bench: Bench) -> None:
    result = bench.grade(body("return a * 2"))
    assert result.verdict is Verdict.wrong_answer
    assert result.cases[0].mismatch is not None
    assert result.cases[0].mismatch.pattern is Pattern.untouched
    assert "what the function returns is ignored" in result.explanation


def test_the_second_output_is_checked_as_well(bench: Bench) -> None:
    result = bench.grade(kernel(after="negative[m - 1] += 1"))
    assert result.cases[0].mismatch is not None
    assert result.cases[0].mismatch.output == "negative"
    assert result.cases[0].mismatch.tolerance == "0"


def test_the_judges_poison_does_not_pass_for_a_nan_that_is_expected(bench: Bench, tmp_path: Path) -> None:
    folder = edited(tmp_path)
    problem = (folder / "problem.py").read_text(encoding="utf-8")
    (folder / "problem.py").write_text(problem.replace('return {"a"', 'a[0, 1] = torch.nan\n    return {"a"'))
    assert bench.grade(GOOD, assignment=folder).verdict is PASSED
    skips = kernel(before="whole, out = out, torch.empty_like(out)", after="whole[a == a] = out[a == a]")
    result = bench.grade(skips, assignment=folder, mode=Mode.run)
    assert result.cases[0].mismatch is not None
    assert (result.cases[0].mismatch.index, result.cases[0].mismatch.got) == ((0, 1), "nothing")


def test_hidden_cases_are_not_run_when_no_public_case_passed(bench: Bench) -> None:
    assert verdicts(bench.grade(body("pass")))[3:] == [NOT_RUN, NOT_RUN]


def test_of_a_hidden_failure_a_student_sees_category_and_verdict_only(bench: Bench) -> None:
    result = bench.grade(kernel(after="if n not in (5, 33, 128): out[0, 0] = 9"))
    assert result.verdict is Verdict.wrong_answer
    assert result.explanation.startswith("Wrong answer in a hidden case (odd sizes).")
    assert result.cases[3].mismatch is not None
    seen = result.for_student().cases[3]
    assert (seen.name, seen.mismatch, seen.seconds, seen.message) == ("odd sizes", None, None, "The output is wrong.")
    assert [case.visibility for case in bench.finished()] == [Visibility.public] * 3 + [Visibility.hidden] * 2


def test_hidden_cases_are_said_together_when_all_have_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Checker.case
    said_before: list[int] = []

    def checked(self: Checker, runner: RunnerClient, case: Case) -> CallResult:
        if case.visibility is Visibility.hidden:
            said_before.append(sum(finished.visibility is Visibility.hidden for finished in bench.finished()))
        return real(self, runner, case)

    monkeypatch.setattr(Checker, "case", checked)
    bench.grade(GOOD)
    assert said_before == [0, 0]


def test_of_a_hidden_exception_only_type_and_line_are_shown(bench: Bench) -> None:
    source = body(f"if n not in (5, 33, 128): raise ValueError(f'n is {{n}}')\n{_dedented(WORK)}")
    result = bench.grade(source)
    assert result.verdict is Verdict.runtime_error
    assert result.error is not None
    assert (result.error.kind, result.error.message, len(result.error.frames)) == ("ValueError", "", 1)
    sizes = [part for case in result.cases[3:] for part in case.name.split("=") if part.isdigit()]
    assert not any(f"n is {size}" in codec.dumps(result.for_student()) for size in sizes)


def test_prints_of_public_cases_are_kept_and_those_of_hidden_ones_are_not(bench: Bench) -> None:
    result = bench.grade(kernel(before="print('n is', n)"))
    assert result.log == "n is 5\nn is 5\nn is 33\nn is 33\nn is 128\nn is 128\n"


def test_a_crash_ends_its_runner_and_hidden_cases_have_their_own(bench: Bench) -> None:
    result = bench.grade(kernel(before="if n == 33: os._exit(0)"))
    assert verdicts(result) == [PASSED, Verdict.runtime_error, NOT_RUN, PASSED, PASSED]
    assert result.verdict is Verdict.runtime_error
    assert [case.name for case in bench.finished()][:2] == ["small", "padded"]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def double(a:\n", "SyntaxError"),
        ("x = 1\n", "MissingEntry"),
        ("", "MissingEntry"),
        ("def double(a, out): pass\n", "WrongSignature"),
        ("import there_is_no_such_module\n", "ModuleNotFoundError"),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_what_does_not_load_is_a_compile_error_with_the_students_frames(bench: Bench, source: str, kind: str) -> None:
    result = bench.grade(source)
    assert result.verdict is Verdict.compile_error
    assert result.error is not None
    assert result.error.kind == kind
    assert verdicts(result) == [NOT_RUN] * 5
    assert result.explanation.startswith("The file did not load: ")
    assert bench.finished() == []


def test_a_source_that_is_too_long_is_refused_before_it_runs(bench: Bench) -> None:
    result = bench.grade("#" * (2**20 + 1))
    assert result.verdict is Verdict.compile_error
    assert "1048577 bytes" in result.explanation


def test_a_source_that_fits_no_packet_is_loaded(bench: Bench) -> None:
    assert bench.grade(GOOD + "#é" * 200_000, mode=Mode.run).verdict is PASSED


def test_a_source_that_is_no_text_is_refused(bench: Bench) -> None:
    assert bench.grade(GOOD + "# \ud800").verdict is Verdict.compile_error


def test_an_exception_shows_the_students_line(bench: Bench) -> None:
    result = bench.grade(f"{HEAD}    out[m + 5] = 1\n")
    assert result.verdict is Verdict.runtime_error
    assert verdicts(result) == [Verdict.runtime_error] * 3 + [NOT_RUN] * 2
    assert result.error is not None
    assert [(frame.line, frame.code) for frame in result.error.frames] == [(2, "out[m + 5] = 1")]
    assert result.explanation.startswith("Runtime error in case `small`. line 2: IndexError")


def test_an_endless_call_is_stopped(bench: Bench, tmp_path: Path) -> None:
    result = bench.grade(body("while True: pass"), assignment=edited(tmp_path, ("call_s = 2", "call_s = 0.3")))
    assert verdicts(result) == [Verdict.time_limit] + [NOT_RUN] * 4
    assert " 0.3 s" in result.explanation


def test_an_endless_import_is_stopped(bench: Bench, tmp_path: Path) -> None:
    folder = edited(tmp_path, ("import_s = 5", "import_s = 0.3"))
    assert bench.grade("while True: pass\n", assignment=folder).verdict is Verdict.time_limit


def test_all_calls_together_have_a_limit(bench: Bench, tmp_path: Path) -> None:
    folder = edited(tmp_path, ("total_s = 20", "total_s = 0.5"))
    result = bench.grade(kernel(before="time.sleep(0.2)"), assignment=folder)
    assert result.verdict is Verdict.time_limit
    assert "All calls together" in result.explanation


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        ("os._exit(0)", Verdict.runtime_error),
        ("sys.exit(0)", Verdict.runtime_error),
        ("raise KeyboardInterrupt", Verdict.runtime_error),
        ("os.kill(os.getpid(), signal.SIGKILL)", Verdict.runtime_error),
        ("ctypes.string_at(0)", Verdict.illegal_access),
        ("raise MemoryError", Verdict.out_of_memory),
        ("while True: print('x' * 1000)", Verdict.output_limit),
        ("os.closerange(3, 64)\ntime.sleep(9)", Verdict.rule_violation),
        ("os.write(3, b'{}')\ntime.sleep(9)", Verdict.rule_violation),
    ],
)
def test_each_way_to_fail_has_its_verdict(bench: Bench, lines: str, verdict: Verdict) -> None:
    assert bench.grade(body(lines)).verdict is verdict


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("torch.as_strided(out, (1,), (1,), out.storage_offset() + m * out.stride(0) + 1).fill_(5)", "after its end"),
        ("ctypes.memset(out.data_ptr() - 4, 1, 4)", "before its start"),
        ("if m == 32: ctypes.memset(out.data_ptr() + 4 * n, 1, 4)", "between its rows"),
    ],
)
def test_a_broken_guard_band_is_illegal_access(bench: Bench, lines: str, words: str) -> None:
    result = bench.grade(kernel(after=lines))
    assert result.verdict is Verdict.illegal_access
    assert words in result.explanation


def test_writing_an_input_is_a_rule_violation(bench: Bench) -> None:
    result = bench.grade(kernel(after="a[0, 0] = 7"))
    assert result.verdict is Verdict.rule_violation
    assert "`a` was written to" in result.explanation


def test_two_calls_that_differ_in_a_bit_are_nondeterministic(bench: Bench) -> None:
    every_second = "calls.append(m)\nif len(calls) % 2 == 0: out[0, 0] = torch.nextafter(out[0, 0], out[0, 0] + 1)"
    result = bench.grade(kernel(after=every_second, top="calls = []"))
    assert result.verdict is Verdict.nondeterministic


def test_a_second_call_that_does_nothing_is_nondeterministic(bench: Bench) -> None:
    result = bench.grade(kernel(before="if m in done: return\ndone.append(m)", top="done = []"))
    assert result.verdict is Verdict.nondeterministic
    assert "The first call was right, the second on the same inputs was not." in result.explanation


def test_a_timed_call_is_a_checked_call(bench: Bench) -> None:
    lazy = kernel(before="calls[m, n] = calls.get((m, n), 0) + 1\nif calls[m, n] > 2: return", top="calls = {}")
    result = bench.grade(lazy)
    assert verdicts(result)[2] is Verdict.wrong_answer
    assert result.explanation.startswith("Wrong answer in case `ranked`. In a timed call: Nothing was written")
    assert bench.finished()[-1] == result.cases[2]


def test_no_kernel_of_the_students_is_a_finding_for_staff_only(bench: Bench) -> None:
    result = bench.grade(GOOD)
    assert FindingKind.no_kernel in {finding.kind for finding in result.findings}
    assert result.for_student().findings == ()


def test_on_a_students_machine_public_cases_are_timed_beside_the_starter(bench: Bench) -> None:
    result = bench.grade(GOOD, reference=None)
    assert verdicts(result) == [PASSED] * 3
    assert [found.case for found in result.measurements] == ["ranked"]
    assert result.explanation == "All 3 cases passed."


def test_on_a_students_machine_the_last_milestone_comes_before_the_starter(bench: Bench, tmp_path: Path) -> None:
    folder = edited(tmp_path)
    (folder / "milestones").mkdir()
    (folder / "milestones" / "1_wrong.py").write_text("raise SystemExit\n", encoding="utf-8")
    (folder / "milestones" / "2_right.py").write_text(GOOD, encoding="utf-8")
    assert bench.grade(GOOD, assignment=folder, reference=None).verdict is PASSED


@pytest.mark.parametrize("solution", [f"{HEAD}    pass\n", "raise ValueError\n", f"{HEAD}    import os; os._exit(1)\n"])
def test_a_reference_that_fails_is_our_fault(
    bench: Bench, tmp_path: Path, solution: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "double"
    shutil.copytree(REFERENCE, folder)
    (folder / "solutions" / "triton.py").write_text(solution, encoding="utf-8")
    result = bench.grade(GOOD, reference=folder)
    assert result.verdict is Verdict.grader_error
    assert "not your fault" in result.explanation
    assert str(tmp_path) not in codec.dumps(result)
    assert "HarnessError" in capsys.readouterr().err


def test_a_broken_problem_is_our_fault(bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = edited(tmp_path)
    (folder / "problem.py").write_text("def make_inputs(**_): return {}\ndef expected(**_): return {}\n")
    assert bench.grade(GOOD, assignment=folder).verdict is Verdict.grader_error
    assert "make_inputs gives no tensor 'a'" in capsys.readouterr().err


def test_after_a_failure_of_ours_the_next_grading_works(bench: Bench, tmp_path: Path) -> None:
    assert bench.grade(GOOD, assignment=tmp_path / "nothing").verdict is Verdict.grader_error
    assert bench.grade(GOOD, mode=Mode.run).verdict is PASSED


@pytest.mark.parametrize(("language", "lane"), [(Language.cuda, Lane.cpu), (Language.triton, Lane.b200)])
def test_what_an_assignment_does_not_offer_is_not_graded(bench: Bench, language: Language, lane: Lane) -> None:
    request = GradeRequest("double", "", language, lane, Mode.run, GOOD, "double.py")
    result = grade(request, assignment_folder=ASSIGNMENT, reference_folder=REFERENCE, sandbox=bench.sandbox)
    assert result.verdict is Verdict.grader_error


def test_nothing_is_graded_where_submissions_could_read_the_staffs_folder(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(toolchain, "readable", lambda: (str(REFERENCE.parent),))
    request = GradeRequest("double", "", Language.triton, Lane.cpu, Mode.run, GOOD, "double.py")
    result = grade(request, assignment_folder=ASSIGNMENT, reference_folder=REFERENCE, sandbox=bench.sandbox)
    assert result.verdict is Verdict.grader_error
    assert "which every submission may read" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="which every submission may read"):
        judge_main(["--reference", str(REFERENCE), "serve"])


def test_a_sandbox_that_cannot_start_a_runner_is_our_fault(bench: Bench) -> None:
    class Broken(ProcessSandbox):
        def start(self, *_: object, **__: object) -> ProcessRunner:
            raise HarnessError("no room")

    request = GradeRequest("double", "", Language.triton, Lane.cpu, Mode.run, GOOD, "double.py")
    broken = Broken()
    result = grade(request, assignment_folder=ASSIGNMENT, reference_folder=REFERENCE, sandbox=broken)
    broken.close()
    assert result.verdict is Verdict.grader_error


def _dedented(lines: str) -> str:
    return "".join(line.removeprefix("    ") + "\n" for line in lines.splitlines())
