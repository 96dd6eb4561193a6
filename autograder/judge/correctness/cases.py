"""Which cases an attempt meets: the public ones, and hidden ones drawn from the assignment's families."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

from autograder.assignment import Assignment, Case, Draw, Family, Layout, load_families
from autograder.contract import Lane, Visibility
from autograder.errors import ManifestError

SYSTEM_RANDOM = random.SystemRandom()


def hidden_cases(folder: Path, assignment: Assignment, lane: Lane, source: random.Random) -> tuple[Case, ...]:
    """Draw an attempt's hidden cases from the families in `folder/hidden.toml`, in their order.

    Raises:
        ManifestError: a family does not set a size, names a tensor that is none, or cannot be drawn from.
    """
    cases: list[Case] = []
    for family in load_families(folder):
        _check(family, assignment, folder / "hidden.toml")
        if not family.lanes or lane in family.lanes:
            cases.extend(_drawn(family, source, folder / "hidden.toml"))
    return tuple(cases)


def draw(how: Draw, source: random.Random) -> int:
    """Draw one number; `ValueError` where there is none to draw."""
    if how.choose:
        return source.choice(how.choose)
    if how.near:
        return max(1, source.choice(how.near) + source.choice((-1, 1)))
    low, high = how.between or how.prime
    return source.randint(low, high) if how.between else _prime(low, high, source)


def is_prime(number: int) -> bool:
    """Whether `number` is prime, by trial division: sizes are small."""
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _prime(low: int, high: int, source: random.Random) -> int:
    """The first prime at or after a drawn start, going round once."""
    start = source.randint(low, high)
    for number in itertools.chain(range(start, high + 1), range(low, start)):
        if is_prime(number):
            return number
    raise ValueError(f"there is no prime from {low} to {high}")


def _drawn(family: Family, source: random.Random, path: Path) -> Iterator[Case]:
    for number in range(1, family.draws + 1):
        try:
            size = {name: draw(how, source) for name, how in family.size.items()}
            layout = {name: _layout(family, source) for name in family.layout}
        except ValueError as error:
            raise ManifestError(path, f"family {family.category!r}", str(error)) from None
        yield Case(
            name=f"{family.category} {number}: {', '.join(f'{name}={value}' for name, value in size.items())}",
            size=size,
            dtype=family.dtype,
            distribution=source.choice(family.distributions),
            group=family.group,
            lanes=family.lanes,
            layout=layout,
            category=family.category,
            visibility=Visibility.hidden,
            function=family.function,
        )


def _layout(family: Family, source: random.Random) -> Layout:
    return Layout(
        pad=draw(family.pad, source) if family.pad else 0,
        offset=draw(family.offset, source) if family.offset else 0,
    )


def _check(family: Family, assignment: Assignment, path: Path) -> None:
    mine = [case for case in assignment.cases if case.function == family.function]
    if not mine:
        raise ManifestError(path, f"family {family.category!r}", f"calls {family.function!r}, which is no function")
    sizes = {name for case in mine for name in case.size}
    if missing := sorted(sizes - set(family.size)):
        raise ManifestError(path, f"family {family.category!r}", f"does not set the size {missing[0]!r}")
    part = assignment.part(mine[0])
    tensors = {argument.name for argument in (*part.inputs, *part.outputs)}
    if unknown := sorted(set(family.layout) - tensors):
        raise ManifestError(path, f"family {family.category!r}", f"{unknown[0]!r} in `layout` is no tensor")
