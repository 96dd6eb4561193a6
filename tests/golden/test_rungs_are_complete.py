"""Nothing is missing in an assignment, nothing leaks, no shortcut passes, and its formulas are right."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from autograder import languages
from autograder.assignment import DTYPE_BYTES, Argument, Assignment, Case, challenges, load_assignment
from autograder.contract import Lane, Language
from autograder.judge.correctness import seeds
from autograder.judge.correctness.problem import load_problem
from autograder.judge.protocol.tensors import Tensors
from autograder.verify import gaps, shortcuts
from server.pages.markdown import handout_html
from tests.golden.rungs import ASSIGNMENTS, REFERENCE, ROOT, SLUGS, facts, folders

_LISTED = r"^\| (\d+) \| `(\w+)` \| ([^|]*) \| ([\d, ]*) ?\|$"
"""A row of the table of rungs: number, slug, languages, numbers of the prerequisites."""


each_rung = pytest.mark.parametrize("slug", SLUGS)


@each_rung
def test_nothing_is_missing_and_nothing_leaks(slug: str) -> None:
    assert gaps.find(*folders(slug)) == ()


@each_rung
def test_no_shortcut_and_no_lower_precision_passes(slug: str) -> None:
    assert shortcuts.find(ASSIGNMENTS / slug) == ()


@each_rung
def test_every_formula_of_the_handout_becomes_mathml(slug: str) -> None:
    text = (ASSIGNMENTS / slug / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    formulas = re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", prose, re.DOTALL)
    html = handout_html(text)
    assert formulas
    assert html.count("<math") == len(formulas)
    assert "$" not in re.sub(r"<[^>]*>", "", html)


@each_rung
def test_prerequisites_are_rungs_below(slug: str) -> None:
    assignment = load_assignment(ASSIGNMENTS / slug)
    below = [load_assignment(ASSIGNMENTS / other) for other in assignment.prerequisites]
    assert all(other.rung < assignment.rung for other in below)


def test_the_page_of_the_ladder_lists_the_rungs_that_there_are() -> None:
    text = (ROOT / "docs" / "ladder.md").read_text(encoding="utf-8")
    listed = re.findall(_LISTED, text[text.index("## Rungs") :], re.MULTILINE)
    rungs = {slug: load_assignment(ASSIGNMENTS / slug) for slug in SLUGS}
    number = {slug: str(one.rung) for slug, one in rungs.items()}
    names = {language: languages.of(language).title for language in Language}
    there = {
        (
            number[slug],
            slug,
            ", ".join(names[one] for one in rung.languages),
            ", ".join(number[one] for one in rung.prerequisites),
        )
        for slug, rung in rungs.items()
    }
    assert {(rung, slug, languages.strip(), below.strip()) for rung, slug, languages, below in listed} == there


@each_rung
def test_a_gpu_lane_gives_speed_points_where_there_are_any_and_the_cpu_lane_gives_none(slug: str) -> None:
    rung = load_assignment(ASSIGNMENTS / slug)
    paid = {name for name, policy in rung.lanes.items() if policy.speed_points}
    assert paid == ({"h100", "h200", "b200"} if rung.points.speed else set())
    assert {policy.ranks for policy in rung.lanes.values()} == {rung.points.speed > 0}


@each_rung
def test_the_cpu_lane_is_spared_what_its_interpreter_gets_wrong(slug: str) -> None:
    cases = load_assignment(ASSIGNMENTS / slug).cases_for(Lane.cpu)
    assert {case.dtype for case in cases} <= {"float32", "float16", "int32", "int8"}


@each_rung
def test_bytes_flops_and_steps_are_those_of_the_oracle(slug: str) -> None:
    """In the public cases that a CPU computes; those for GPUs have the same formulas.

    Not counted are bytes that no answer depends on, `unread`; nor costs where more than sizes decides them, `DRAWN`.
    """
    known, assignment = facts(slug), load_assignment(ASSIGNMENTS / slug)
    problem = load_problem(assignment, ASSIGNMENTS / slug)
    cases = assignment.cases_for(Lane.cpu)
    assert cases
    for case in cases:
        inputs, part = problem.part(case).inputs(case, seeds.fresh_seed()), assignment.part(case)
        outputs, flops = _counted(slug, case, inputs)
        once = sum(_bytes(assignment, argument, case) for argument in (*part.inputs, *part.outputs))
        once -= known.unread(**inputs) if hasattr(known, "unread") else 0
        assert assignment.cost_of(case) == (flops, once) or case.name in getattr(known, "DRAWN", ()), case
        truth, dtype = problem.part(case).truth(case, inputs), getattr(torch, case.dtype)
        eps = torch.finfo(dtype).eps if dtype.is_floating_point else 0.0
        assert set(outputs) == set(truth.expected), case
        for name, value in outputs.items():
            if part.tolerance[name].kind == "checked":
                continue
            wrong = f"{name} of {case.name}: {{}}".format
            torch.testing.assert_close(
                value.double(), truth.expected[name].double(), rtol=eps, atol=1e-12, equal_nan=True, msg=wrong
            )


def test_the_staff_folder_has_no_rung_of_its_own() -> None:
    staffs = sorted(path.name for path in REFERENCE.iterdir() if path.is_dir())
    assert staffs == sorted([*SLUGS, *challenges(ASSIGNMENTS)])


class _Elementwise(TorchDispatchMode):
    """Counts the elements that operations named in `counted` work on."""

    def __init__(self, counted: frozenset[str]) -> None:
        super().__init__()
        self.counted = counted
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in self.counted:
            self.elements += max(value.numel() for value in args if isinstance(value, torch.Tensor))
        return func(*args, **(kwargs or {}))


def _counted(slug: str, case: Case, inputs: Tensors) -> tuple[Tensors, int]:
    """What the rung's arithmetic, written out step by step, gives, and its operations."""
    known, function = facts(slug), {"function": case.function} if case.function else {}
    with _Elementwise(known.COUNTED) as steps, FlopCounterMode(display=False) as products:
        outputs = known.oracle(**function, **inputs)
    return outputs, steps.elements + int(products.get_total_flops())


def _bytes(assignment: Assignment, argument: Argument, case: Case) -> int:
    return math.prod(assignment.shape_of(argument, case)) * DTYPE_BYTES[assignment.dtype_of(argument, case)]
