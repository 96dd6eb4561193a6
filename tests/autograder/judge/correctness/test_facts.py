"""What wrong outputs are seen to hold: made wrong in one way, and found to be so."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from autograder.assignment import load_assignment
from autograder.judge.correctness import facts
from autograder.judge.correctness.compare import compare
from autograder.judge.correctness.expressions import evaluate
from autograder.judge.correctness.facts import Facts, Values
from autograder.judge.correctness.problem import load_problem
from autograder.judge.protocol.tensors import Tensors
from autograder.misconceptions import Misconception

ROOT = Path(__file__).resolve().parents[4]


def looked_at(slug: str, sizes: dict[str, int], spoil: Callable[[Tensors, Tensors], None], **more: object) -> Facts:
    """Facts of right outputs that were spoiled."""
    folder = ROOT / "assignments" / slug
    assignment = load_assignment(folder)
    problem = load_problem(assignment, folder)
    case = next(one for one in assignment.cases if one.size == sizes)
    inputs = problem.inputs(case, 7)
    truth = problem.truth(case, inputs)
    types = {one.name: getattr(torch, assignment.dtype_of(one, case)) for one in assignment.outputs}
    outputs = {name: value.to(types[name]).clone() for name, value in truth.expected.items()}
    spoil(inputs, outputs)
    wrong = {
        name: compare(got, truth.expected[name], truth.scale[name], assignment.tolerance[name]).wrong
        for name, got in outputs.items()
    }
    untouched = {name: torch.zeros_like(mask) for name, mask in wrong.items()}
    return facts.gather(problem, (inputs, outputs), truth, (wrong, untouched), **more)  # type: ignore[arg-type]


def softmax(spoil: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], cols: int = 781) -> Values:
    def both(inputs: Tensors, outputs: Tensors) -> None:
        outputs["out"].copy_(spoil(inputs["x"], outputs["out"]))

    return looked_at("softmax", {"rows": {781: 3, 200: 6}[cols], "cols": cols}, both).outputs[0]


def test_one_factor_of_all_and_one_of_each_row_and_column_are_told_apart() -> None:
    assert softmax(lambda _, out: out * 0.5).factor == pytest.approx(0.5)
    rows = softmax(lambda _, out: out * torch.tensor([[2.0], [3.0], [0.5]]))
    assert (rows.factor, rows.factors) == (0.0, "row")
    columns = softmax(lambda _, out: out * torch.linspace(0.5, 2, 200), cols=200)
    assert (columns.factor, columns.factors) == (0.0, "column")
    assert softmax(lambda _, out: torch.rand_like(out)).factors == ""


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("other axis", lambda x, _: torch.softmax(x, dim=0)),
        ("turned", lambda _, out: out.T.reshape(out.shape)),
        ("shifted", lambda _, out: out.roll(1, -1)),
        ("copied", lambda x, _: x),
    ],
)
def test_a_well_known_other_formula_is_named(
    name: str, spoil: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> None:
    assert softmax(spoil).formula == name


def test_nan_and_infinities_are_counted_by_where_they_come_from() -> None:
    def spoil(_: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        out[0, :3], out[1, :2] = math.inf, math.nan
        out[2, :4] = torch.tensor([0x7FC01234], dtype=torch.int32).view(torch.float32)
        return out

    found = softmax(spoil)
    assert (found.infinite, found.nan, found.outside, found.error) == (3, 2, 4, 0.0)


def test_values_of_a_narrow_type_are_told() -> None:
    assert softmax(lambda _, out: out.half().float()).narrow == "float16"
    assert softmax(lambda _, out: out.bfloat16().float()).narrow == "bfloat16"
    assert softmax(lambda _, out: out * 1.5).narrow == ""


def test_a_part_of_a_sum_and_the_outputs_that_are_right_are_told() -> None:
    def spoil(inputs: Tensors, outputs: Tensors) -> None:
        outputs["total"].fill_(float(inputs["x"][:29].double().sum()))

    found = looked_at("reduction", {"n": 31}, spoil)
    assert found.outputs[0].sums == "first 29 of 31"
    assert found.right == ("largest",)


def test_a_misconceptions_own_formula_is_held_against_the_output() -> None:
    known = [
        Misconception("sum", "", "", answer="torch.exp(x - x.amax(dim=1, keepdim=True))"),
        Misconception("half", "", "", answer="out * 0.5"),
        Misconception("does not fit", "", "", answer="x[0:1, :-1]"),
    ]

    def spoil(_: Tensors, outputs: Tensors) -> None:
        outputs["out"].mul_(0.5)

    found = looked_at("softmax", {"rows": 3, "cols": 781}, spoil, misconceptions=known)
    assert found.outputs[0].answers == {"half"}
    assert found.outputs[0].faults == {}


def test_a_formula_with_a_fault_is_left_out_and_named() -> None:
    formulas = {"no call": "out.sum(2)(3)", "no such": "torch.sofmax(x)", "private": "x._base", "no tensor": "3"}
    known = [Misconception(name, "", "", answer=answer) for name, answer in formulas.items()]

    def spoil(_: Tensors, outputs: Tensors) -> None:
        outputs["out"].mul_(0.5)

    known.append(Misconception("half", "", "", answer="out * 0.5"))
    (output,) = looked_at("softmax", {"rows": 3, "cols": 781}, spoil, misconceptions=known).outputs
    assert output.answers == {"half"}
    assert set(output.faults) == {"no such", "private", "no tensor"}
    assert output.faults["private"] == "ValueError: '_base' is private"


def test_a_large_output_is_only_told_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "MAX_ELEMENTS", 10)
    found = softmax(lambda _, out: out * 0.5)
    assert (found.factor, found.total) == (0.0, 3 * 781)


@pytest.mark.parametrize("text", ["open('x')", "x.__class__", "[x]", "lambda: x", "y"])
def test_an_expression_holds_tensors_and_numbers_only(text: str) -> None:
    with pytest.raises(ValueError, match=r"private|no '|nothing that"):
        evaluate(text, {"x": torch.zeros(2), "torch": torch})
