"""A source that has to define several functions: each case calls one of them, with its own arguments and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.assignment import load_assignment
from autograder.contract import CaseResult, FindingKind, GradeRequest, GradeResult, Lane, Language, Mode, Verdict
from autograder.errors import ManifestError
from autograder.judge import grade
from autograder.misconceptions import load_misconceptions
from autograder.sandbox.process import ProcessSandbox

MANIFEST = """
slug = "two"
title = "Two"
rung = 1
summary = "Two functions."
techniques = []
prerequisites = []
languages = ["triton", "cuda"]
library_operations = ["aten.add"]
points = { correctness = 100, speed = 0 }
lane.cpu = { ranks = false }
tolerance.out = { kind = "exact" }
tolerance.most = { kind = "exact" }

[[function]]
name = "added"
arguments = ["x", "y", "out", "n"]
cost = { flops = "n", bytes = "12 * n" }

[[function]]
name = "largest"
arguments = ["x", "most", "n"]
cost = { flops = "n", bytes = "4 * n + 4" }

[[argument]]
name = "x"
role = "input"
shape = ["n"]

[[argument]]
name = "y"
role = "input"
shape = ["n"]

[[argument]]
name = "out"
role = "output"
shape = ["n"]

[[argument]]
name = "most"
role = "output"
shape = ["1"]

[[argument]]
name = "n"
role = "size"

[[case]]
name = "added_odd"
function = "added"
group = "added"
size = { n = 77 }
dtype = "int32"

[[case]]
name = "largest_odd"
function = "largest"
group = "largest"
size = { n = 77 }
dtype = "int32"
"""
FAMILIES = """
[[family]]
category = "added, odd"
function = "added"
size = { n = { prime = [3, 99] } }
dtype = "int32"

[[family]]
category = "largest, odd"
function = "largest"
group = "largest"
size = { n = { prime = [3, 99] } }
dtype = "int32"
"""
PROBLEM = """
import torch

def make_inputs(*, function, generator, dtype, distribution, n):
    names = ("x", "y") if function == "added" else ("x",)
    return {name: torch.randint(-999, 999, (n,), generator=generator, dtype=dtype) for name in names}

def expected(*, function, **inputs):
    if function == "added":
        return {"out": inputs["x"] + inputs["y"]}
    return {"most": inputs["x"].max().reshape(1)}
"""
TRITON = """
import triton
import triton.language as tl

@triton.jit
def _added(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, at < n) + tl.load(y_ptr + at, at < n), at < n)

@triton.jit
def _largest(x_ptr, most_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(most_ptr, tl.max(tl.load(x_ptr + at, at < n, other=-1000)))

def added(x, y, out, n):
    _added[(1,)](x, y, out, n, BLOCK=128)

def largest(x, most, n):
    _largest[(1,)](x, most, n, BLOCK=128)
"""
CUDA = """
#include <cstdint>

__global__ void add(const int* x, const int* y, int* out, int64_t n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i] + y[i];
}

__global__ void find(const int* x, int* most, int64_t n) {
  int found = x[0];
  for (int i = 1; i < n; ++i) found = x[i] > found ? x[i] : found;
  *most = found;
}

void largest(const int* x, int* most, int64_t n, cudaStream_t stream) { find<<<1, 1, 0, stream>>>(x, most, n); }

void added(const int* x, const int* y, int* out, int64_t n, cudaStream_t stream) {
  add<<<1, 32, 0, stream>>>(x, y, out, n);
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    public = tmp_path / "assignments" / "two"
    public.mkdir(parents=True)
    (public / "assignment.toml").write_text(MANIFEST, encoding="utf-8")
    (public / "problem.py").write_text(PROBLEM, encoding="utf-8")
    staff = tmp_path / "reference"
    staff.mkdir()
    (staff / "hidden.toml").write_text(FAMILIES, encoding="utf-8")
    return public


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


def graded(folder: Path, sandbox: ProcessSandbox, source: str, language: Language) -> GradeResult:
    request = GradeRequest("two", "", language, Lane.cpu, Mode.submission, source, "mine")
    staff = folder.parents[1] / "reference"
    return grade(request, assignment_folder=folder, reference_folder=staff, sandbox=sandbox)


def verdicts(result: GradeResult) -> dict[str, Verdict | None]:
    def shown(case: CaseResult) -> str:
        return case.name.partition(" 1:")[0]

    return {shown(case): case.verdict for case in result.cases}


@pytest.mark.parametrize(("language", "source"), [(Language.triton, TRITON), (Language.cuda, CUDA)])
def test_every_case_calls_its_own_function(
    folder: Path, sandbox: ProcessSandbox, language: Language, source: str
) -> None:
    right = graded(folder, sandbox, source, language)
    assert right.verdict is Verdict.passed, right.explanation
    assert set(verdicts(right)) == {"added_odd", "largest_odd", "added, odd", "largest, odd"}
    assert {launch.kernel for launch in right.launches} >= ({"add", "find"} if "add<<<" in source else {"_added"})
    wrong = graded(
        folder, sandbox, source.replace("tl.max", "tl.min").replace("x[i] > found", "x[i] < found"), language
    )
    passed, failed = Verdict.passed, Verdict.wrong_answer
    assert verdicts(wrong) == {
        "added_odd": passed, "largest_odd": failed, "added, odd": passed, "largest, odd": failed
    }  # fmt: skip
    assert "`largest_odd`" in wrong.explanation


@pytest.mark.parametrize(("language", "source"), [(Language.triton, TRITON), (Language.cuda, CUDA)])
def test_a_source_without_one_of_the_functions_does_not_load(
    folder: Path, sandbox: ProcessSandbox, language: Language, source: str
) -> None:
    result = graded(folder, sandbox, source.replace("largest(", "biggest("), language)
    assert result.verdict is Verdict.compile_error
    assert "largest(" in result.explanation


def test_a_part_has_the_arguments_outputs_and_cases_of_its_function(folder: Path) -> None:
    assignment = load_assignment(folder)
    added, largest = assignment.parts
    assert assignment.signature() == "added(x, y, out, n)\nlargest(x, most, n)"
    assert ([one.name for one in largest.outputs], set(largest.tolerance)) == (["most"], {"most"})
    assert [case.name for case in added.cases] == ["added_odd"]
    assert assignment.part(assignment.cases[1]) == largest
    assert assignment.cost_of(assignment.cases[1]) == (77.0, 4 * 77 + 4)
    assert added.part(added.cases[0]) == added


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('slug = "two"', 'slug = "two"\nentry = "added"', "is one function, and there are others"),
        ('function = "largest"', 'function = "larges"', "none of the functions"),
        ('arguments = ["x", "most", "n"]', 'arguments = ["x", "mots", "n"]', "there is no 'mots'"),
        ('arguments = ["x", "most", "n"]', 'arguments = ["x", "n"]', "has no output"),
        ('name = "largest"', 'name = "added"', "two functions have the name"),
        ('bytes = "4 * n + 4"', 'bytes = "4 * m"', "cannot be evaluated"),
        ('slug = "two"', 'slug = "two"\ncompile_for = ["sm_90a"]', "needs a single entry"),
        ('slug = "two"', 'slug = "two"\nadapter = "adapter.py"', "is no key of a manifest"),
    ],
)
def test_what_does_not_fit_together_is_refused(folder: Path, old: str, new: str, said: str) -> None:
    path = folder / "assignment.toml"
    path.write_text(MANIFEST.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ManifestError, match=said):
        load_assignment(folder)


MISCONCEPTION = """
[[misconception]]
name = "smallest"
fails = ["largest_odd"]
answer = "x.min()"
says = "This is the smallest."
step = "Look for the largest."
"""


def test_a_misconception_is_of_one_function_and_told_of_its_cases_only(folder: Path, sandbox: ProcessSandbox) -> None:
    path = folder / "misconceptions.toml"
    path.write_text(MISCONCEPTION + MISCONCEPTION.replace("largest_odd", "added_odd").replace("x.min()", "x - y"))
    both = TRITON.replace("tl.max", "tl.min").replace("at < n) + tl.load", "at < n) * tl.load")
    assert graded(folder, sandbox, both, Language.triton).verdict is Verdict.wrong_answer
    told = graded(folder, sandbox, TRITON.replace("tl.max(tl", "tl.min(tl").replace("-1000", "1000"), Language.triton)
    assert "This is the smallest." in told.explanation
    path.write_text(MISCONCEPTION.replace('["largest_odd"]', '["largest_odd", "added_odd"]'), encoding="utf-8")
    with pytest.raises(ManifestError, match="cases of one function"):
        load_misconceptions(folder, load_assignment(folder))


def test_a_function_that_no_case_calls_is_refused(folder: Path) -> None:
    path = folder / "assignment.toml"
    path.write_text(MANIFEST.replace('function = "largest"', 'function = "added"'), encoding="utf-8")
    with pytest.raises(ManifestError, match="no case calls 'largest'"):
        load_assignment(folder)


ADAPTER = """
import torch

OP = torch.ops.two.added

def added(x, y, out, n):
    out.copy_(OP(x, y))

def largest(x, most, n):
    most.copy_(x.max())
"""
MODULE = """
import torch
import triton
import triton.language as tl

@triton.jit
def _added(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, at < n) + tl.load(y_ptr + at, at < n), at < n)

def of_op(x, y):
    out = torch.empty_like(x)
    _added[(1,)](x, y, out, x.numel(), BLOCK=128)
    return out

torch.library.define("two::added", "(Tensor x, Tensor y) -> Tensor")
torch.library.impl("two::added", "cpu", of_op)

def largest(x, most, n):
    raise RuntimeError("the adapter's function is called, not this one")
"""


@pytest.fixture
def adapted(folder: Path) -> Path:
    """The rung with an adapter; of `largest`, which torch computes in it, it says that no kernel does."""
    (folder / "adapter.py").write_text(ADAPTER, encoding="utf-8")
    manifest = MANIFEST.replace(', "cuda"]', "]").replace('"4 * n + 4" }', '"4 * n + 4" }\nby_kernels = false')
    (folder / "assignment.toml").write_text(manifest, encoding="utf-8")
    return folder


def test_an_adapter_defines_the_functions_and_uses_what_the_source_registers(
    adapted: Path, sandbox: ProcessSandbox
) -> None:
    right = graded(adapted, sandbox, MODULE, Language.triton)
    assert right.verdict is Verdict.passed, right.explanation
    assert right.findings == ()
    assert {launch.kernel for launch in right.launches} == {"_added"}
    wrong = graded(adapted, sandbox, MODULE.replace("at < n) + tl", "at < n) - tl"), Language.triton)
    assert verdicts(wrong)["added_odd"] is Verdict.wrong_answer


def test_right_answers_without_kernels_are_a_finding_unless_no_kernel_computes_them(
    adapted: Path, sandbox: ProcessSandbox
) -> None:
    manifest = adapted / "assignment.toml"
    manifest.write_text(manifest.read_text().replace("by_kernels = false", "by_kernels = true"), encoding="utf-8")
    found = graded(adapted, sandbox, MODULE, Language.triton)
    assert [one.kind for one in found.findings] == [FindingKind.decoration]


def test_what_goes_wrong_under_an_adapter_is_told_by_the_sources_own_lines(
    adapted: Path, sandbox: ProcessSandbox
) -> None:
    raised = graded(adapted, sandbox, MODULE.replace("    return out", "    return out[n]"), Language.triton)
    assert raised.verdict is Verdict.runtime_error
    assert raised.error is not None
    assert [frame.code for frame in raised.error.frames] == ["return out[n]"]
    lacking = graded(adapted, sandbox, MODULE.replace("two::", "other::"), Language.triton)
    assert lacking.verdict is Verdict.compile_error


def test_an_adapter_is_for_sources_in_python(adapted: Path) -> None:
    (adapted / "assignment.toml").write_text(MANIFEST, encoding="utf-8")
    with pytest.raises(ManifestError, match="cuda is not written in Python"):
        load_assignment(adapted)
