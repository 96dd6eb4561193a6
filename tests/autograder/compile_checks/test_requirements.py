"""What a rung may ask of compiled kernels: read strictly, decided on every launch, shown like a case."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from autograder.assignment import Assignment, Requirement, comparison, load_assignment
from autograder.contract import CompiledFor, CompiledKernel, Mode, Verdict, Visibility, Work
from autograder.errors import HarnessError, ManifestError
from autograder.judge.compile import cross_compile
from autograder.judge.compile.cross_compile import REFUSED, TargetReport
from autograder.judge.compile.requirements import as_cases, evaluate, rule_of
from tests.autograder.grading_bench import GOOD, Bench, edited

ROOT = Path(__file__).parents[3]
MATMUL = load_assignment(ROOT / "assignments" / "matmul_tiled")
CASES = ("gpu_ranked", "gpu_ranked_float32")
PLAIN = Requirement("r", "about", "sm_90a", "gpu_ranked", wgmma="> 0", spills="== 0")


def rung(requirement: Requirement = PLAIN) -> Assignment:
    return dataclasses.replace(MATMUL, requirements=(requirement,))


def kernel(**numbers: int | str) -> CompiledKernel:
    return dataclasses.replace(CompiledKernel("k", "gpu_ranked", 0, "BLOCK=64", ""), **numbers)  # type: ignore[arg-type]


def told(*kernels: tuple[CompiledKernel, tuple[tuple[int, int], ...]], whole: bool = True) -> dict[str, TargetReport]:
    shown = CompiledFor("sm_90a", tuple(one for one, _ in kernels), message="" if whole else "It ended early.")
    return {"sm_90a": TargetReport(shown, tuple(uses for _, uses in kernels), CASES, whole)}


def met(checked: dict[str, TargetReport], requirement: Requirement = PLAIN) -> bool | None:
    return evaluate(rung(requirement), checked)[0].met


FIRST, SECOND, OTHER_CASE = (0, 0), (0, 1), (1, 0)


def test_one_launch_has_to_reach_a_lower_bound() -> None:
    assert met(told((kernel(wgmma=8), (FIRST,)), (kernel(), (SECOND,)))) is True
    assert met(told((kernel(), (FIRST,)), (kernel(), (SECOND,)))) is False


def test_every_launch_has_to_keep_an_upper_bound() -> None:
    assert met(told((kernel(wgmma=8), (FIRST,)), (kernel(spills=1), (SECOND,)))) is False


def test_of_the_candidates_of_one_launch_one_is_enough() -> None:
    assert met(told((kernel(wgmma=8, spills=3), (FIRST,)), (kernel(wgmma=8), (FIRST,)))) is True
    # Not two halves: wgmma with spills in one, no spills without wgmma in the other.
    assert met(told((kernel(wgmma=8, spills=3), (FIRST,)), (kernel(), (FIRST,)))) is False


def test_only_its_own_case_counts() -> None:
    assert met(told((kernel(), (FIRST,)), (kernel(wgmma=8), (OTHER_CASE,)))) is False
    assert met(told((kernel(wgmma=8), (FIRST, OTHER_CASE)), (kernel(spills=9), (OTHER_CASE,)))) is True


def test_a_kernel_that_is_refused_meets_nothing_and_says_why() -> None:
    refused = kernel(wgmma=8, message=f"{REFUSED} compile for sm_90a: line 3: no.")
    result = evaluate(rung(), told((refused, (FIRST,))))[0]
    assert (result.met, result.message) == (False, refused.message)


def test_what_was_not_compiled_leaves_it_open() -> None:
    assert met({}) is None
    assert met(told(whole=False)) is None
    assert met(told((kernel(), (FIRST,)), whole=False)) is None
    assert met(told((kernel(wgmma=8), (FIRST,)), whole=False)) is None
    # A lower bound that is reached is reached, whatever else there is.
    lower = dataclasses.replace(PLAIN, spills="")
    assert met(told((kernel(wgmma=8), (FIRST,)), whole=False), lower) is True
    # And a bound that is broken stays broken.
    assert met(told((kernel(spills=1), (FIRST,)), whole=False)) is False


def test_it_says_the_numbers_that_decided() -> None:
    right, wrong = told((kernel(wgmma=8), (FIRST,))), told((kernel(spills=4), (FIRST,)))
    assert evaluate(rung(), right)[0].message == "`k` (BLOCK=64) has spills 0, wgmma 8."
    assert evaluate(rung(), wrong)[0].message == "`k` (BLOCK=64) has spills 4 where == 0 is required."
    assert rule_of(PLAIN) == "spills == 0, wgmma > 0"


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [
        ({"wgmma": 8}, Verdict.passed),
        ({"spills": 1}, Verdict.rule_violation),
        ({"message": f"{REFUSED} compile for sm_90a: no."}, Verdict.compile_error),
    ],
)
def test_one_with_a_group_is_a_case(numbers: dict[str, int | str], verdict: Verdict) -> None:
    assignment = rung(dataclasses.replace(PLAIN, group="structure"))
    (case,) = as_cases(assignment, evaluate(assignment, told((kernel(**numbers), (FIRST,)))))
    assert (case.name, case.category, case.group, case.verdict) == ("r", "about", "structure", verdict)
    assert case.visibility is Visibility.public
    assert not case.ranked


def test_one_that_is_open_is_a_case_that_was_not_run() -> None:
    assignment = rung(dataclasses.replace(PLAIN, group="structure"))
    assert [case.verdict for case in as_cases(assignment, evaluate(assignment, told(whole=False)))] == [None]
    assert [case.verdict for case in as_cases(assignment, None)] == [None]
    assert as_cases(rung(), evaluate(rung(), told(whole=False))) == ()


def test_a_failure_of_ours_is_nobodys_lost_point() -> None:
    ours = {
        "sm_90a": TargetReport(
            CompiledFor("sm_90a", message="It could not be compiled here."), infrastructure_fault=True
        )
    }
    assert met(ours) is None
    with pytest.raises(HarnessError, match="could not be looked at"):
        met(ours, dataclasses.replace(PLAIN, group="structure"))


# --- manifests -------------------------------------------------------------------------------------------------------


def manifest(tmp_path: Path, old: str, new: str) -> Path:
    folder = tmp_path / "matmul_tiled"
    shutil.copytree(ROOT / "assignments" / "matmul_tiled", folder)
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "assignment.toml").write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('compile_for = ["sm_90a", ', 'compile_for = ["sm_90", ', "'sm_90' is none of sm_90a, sm_100a"),
        ('target = "sm_90a"', 'target = "sm_80"', "'sm_80' is not in `compile_for`"),
        ('case = "gpu_ranked"', 'case = "ranked_half"', "'ranked_half' is no public case of a lane of sm_90a"),
        ('wgmma = "> 0"', 'wgmma = "some"', "'some' is no comparison"),
        ('wgmma = "> 0"', "wgmma = 0", "has to be str, not int"),
        ('wgmma = "> 0"', 'wgma = "> 0"', "Did you mean 'wgmma'?"),
        ('wgmma = "> 0"\nspills = "== 0"', "", "requires none of registers"),
        ('name = "tcgen05 on Blackwell"', 'name = "wgmma on Hopper"', "two cases or requirements have the name"),
        ('spills = "== 0"', "points = 35", "what is counted"),
        ("points = 20", "points = 19", "requirements that the emulator counts give 34 points"),
        ('case = "ranked_ragged"', 'case = "gpu_ranked"', "'gpu_ranked' is no public case of the lane cpu"),
        ('traffic = "<= 700"', 'traffic = "> 7"', "has to be a bound from above"),
        ('traffic = "<= 700"', 'spills = "== 0"', "counts launches, traffic, bank_conflicts and nothing else"),
    ],
)
def test_a_mistake_is_refused_with_its_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    with pytest.raises(ManifestError, match=problem.replace("?", r"\?")) as caught:
        load_assignment(manifest(tmp_path, old, new))
    assert caught.value.line is not None


def test_comparisons_are_read() -> None:
    assert comparison("<= 128") == ("<=", 128)
    assert comparison(">0") == (">", 0)
    for text in ("", "0", "> -1", "> 1.5", "=> 1", "> 9999999999"):
        assert comparison(text) is None


# --- gradings --------------------------------------------------------------------------------------------------------

REQUIRES = """
[[requirement]]
name = "lean"
about = "few registers"
target = "sm_90a"
case = "small"
registers = "<= 64"
group = "structure"

[limits]
"""


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    return edited(
        tmp_path, ("bitwise = true\n", 'bitwise = true\ncompile_for = ["sm_90a"]\n'), ("[limits]\n", REQUIRES)
    )


@pytest.mark.full("slow")
@pytest.mark.parametrize(("registers", "verdict"), [(32, Verdict.passed), (65, Verdict.rule_violation)])
def test_a_grading_counts_it(
    bench: Bench, strict: Path, monkeypatch: pytest.MonkeyPatch, registers: int, verdict: Verdict
) -> None:
    shown = CompiledFor("sm_90a", (kernel(registers=registers, case="small"),))
    found = {"sm_90a": TargetReport(shown, ((FIRST,),), ("small",), whole=True)}
    monkeypatch.setattr(cross_compile.Compilation, "finish", lambda _: found)
    result = bench.grade(GOOD, assignment=strict, work=Work.check, mode=Mode.run)
    assert result.verdict is verdict
    assert result.compiled == (shown,)
    assert result.for_student().requirements[0].met is (verdict is Verdict.passed)
    assert (result.cases[-1].name, result.cases[-1].verdict) == ("lean", verdict)
    assert ("lean" in result.explanation) is (verdict is not Verdict.passed)


def test_what_fails_before_is_not_compiled(bench: Bench, strict: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_compile, "Compilation", lambda *_: pytest.fail("compiled"))
    result = bench.grade("def double(*a): pass", assignment=strict, mode=Mode.run)
    assert result.verdict is Verdict.wrong_answer
    assert (result.cases[-1].name, result.cases[-1].verdict) == ("lean", None)
    assert result.requirements == ()


def test_a_number_that_the_case_decides_is_compiled_as_that_case_has_it() -> None:
    attention = load_assignment(ROOT / "assignments" / "flash_attention_2")
    dry = [cross_compile.dry_case(case, attention) for case in cross_compile.cases_for("sm_90a", attention)]
    assert {case.name: case.scalars["causal"] for case in dry} == {"gpu_ranked": 1, "gpu_ranked_full": 0}
    # What is drawn anew for every call is a number that Triton does not specialise on.
    assert {case.scalars["scale"] for case in dry} == {0.5}
