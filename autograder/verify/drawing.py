"""Every distribution that the manifests name is one that problem.py draws; else its line, and the nearest that is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from autograder.assignment import Case, load_assignment, load_families
from autograder.contract import Lane
from autograder.judge import seeds
from autograder.judge.problem import Problem, load_problem
from autograder.manifest import Reader

Place = tuple[str, str, str]
"""The file, the key in it, and the distribution that stands there."""


def check(assignment_folder: Path, reference_folder: Path) -> None:
    """Draw the smallest case of the CPU lane in every distribution, those of other lanes and of hidden cases too.

    Raises:
        ManifestError: problem.py raises for one of them.
        HarnessError: problem.py does not fit the manifest.
    """
    assignment = load_assignment(assignment_folder)
    problem = load_problem(assignment, assignment_folder)
    if not (small := assignment.cases_for(Lane.cpu)):
        return
    case = min(small, key=lambda case: sum(case.size.values()))
    places = tuple(_places(assignment_folder, reference_folder))
    raised = {name: _raised(problem, dataclasses.replace(case, distribution=name)) for _, _, name in places}
    drawn = [name for name, said in raised.items() if not said]
    for file, key, name in places:
        if raised[name]:
            folder = assignment_folder if file == "assignment.toml" else reference_folder
            reader = Reader(folder / file, what="a case")
            raise reader.error(key, f"problem.py does not draw {name!r}: {raised[name]}", reader.nearest(name, drawn))


def _places(assignment_folder: Path, reference_folder: Path) -> Iterator[Place]:
    for index, case in enumerate(load_assignment(assignment_folder).cases):
        yield "assignment.toml", f"case[{index}].distribution", case.distribution
    for index, family in enumerate(load_families(reference_folder)):
        for number, name in enumerate(family.distributions):
            yield "hidden.toml", f"family[{index}].distributions[{number}]", name


def _raised(problem: Problem, case: Case) -> str:
    """What problem.py raises when it is to draw this; `""` if it draws."""
    try:
        problem.inputs(case, seeds.fresh_seed())
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
