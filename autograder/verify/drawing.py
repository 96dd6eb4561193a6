"""Every distribution that the manifests name is one that problem.py draws; else its line, and the nearest that is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from autograder.assignment import Case, load_assignment, load_families
from autograder.contract import Lane
from autograder.judge.correctness import seeds
from autograder.judge.correctness.problem import Problem, load_problem
from autograder.manifest import Reader

Place = tuple[str, str, str, str]
"""The file, the key in it, the function that is called, and the distribution that stands there."""


def check(assignment_folder: Path, reference_folder: Path) -> None:
    """Draw the smallest case of the CPU lane in every distribution, those of other lanes and of hidden cases too.

    Raises:
        ManifestError: problem.py raises for one of them.
        HarnessError: problem.py does not fit the manifest.
    """
    assignment = load_assignment(assignment_folder)
    problem = load_problem(assignment, assignment_folder)
    by_size = sorted(assignment.cases_for(Lane.cpu), key=lambda case: sum(case.size.values()), reverse=True)
    smallest = {case.function: case for case in by_size}
    places = [place for place in _places(assignment_folder, reference_folder) if place[2] in smallest]
    raised = {
        (function, name): _raised(problem.part(case), dataclasses.replace(case, distribution=name))
        for _, _, function, name in places
        for case in [smallest[function]]
    }
    for file, key, function, name in places:
        if said := raised[function, name]:
            folder = assignment_folder if file == "assignment.toml" else reference_folder
            drawn = [other for (of, other), wrong in raised.items() if of == function and not wrong]
            reader = Reader(folder / file, what="a case")
            raise reader.error(key, f"problem.py does not draw {name!r}: {said}", reader.nearest(name, drawn))


def _places(assignment_folder: Path, reference_folder: Path) -> Iterator[Place]:
    for index, case in enumerate(load_assignment(assignment_folder).cases):
        yield "assignment.toml", f"case[{index}].distribution", case.function, case.distribution
    for index, family in enumerate(load_families(reference_folder)):
        for number, name in enumerate(family.distributions):
            yield "hidden.toml", f"family[{index}].distributions[{number}]", family.function, name


def _raised(problem: Problem, case: Case) -> str:
    """What problem.py raises when it is to draw this; `""` if it draws."""
    try:
        problem.inputs(case, seeds.fresh_seed())
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""
