"""What an author knows students to get wrong: which cases fail, what they hold, and what is said of it.

    assignments/<slug>/misconceptions.toml

It names public cases only, and is public: a student's own machine explains as a node does.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from autograder.assignment import Assignment
from autograder.manifest import Reader

FILE = "misconceptions.toml"


@dataclass(frozen=True)
class Misconception:
    """A mistake with a name. Of what it asks for, all has to be so.

    Attributes:
        says: what is the matter, one or two sentences.
        step: what to do next.
        section: the anchor of the handout's section to read.
        fails: public cases that fail, those among them that were run; the first is what is told of.
        passes: public cases that pass.
        output: the output that is wrong; `""` for any.
        clue: the name of a clue of `autograder.judge.correctness.clues` that is found too.
        answer: a torch expression over inputs and right outputs, in float64, that gives the wrong output.
        size: the name of the size that it is about; `""` for none. A clue about another one is left out beside it.
    """

    name: str
    says: str
    step: str
    section: str = "common-mistakes"
    fails: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    output: str = ""
    clue: str = ""
    answer: str = ""
    size: str = ""


@dataclass(frozen=True)
class _File:
    misconceptions: tuple[Misconception, ...] = ()


def load_misconceptions(folder: Path, assignment: Assignment) -> tuple[Misconception, ...]:
    """Read `folder/misconceptions.toml`; nothing where there is none.

    Raises:
        ManifestError: it names a case or an output that the assignment has not, or asks for nothing.
    """
    if not (folder / FILE).is_file():
        return ()
    reader = Reader(folder / FILE, what="a misconception", plurals={"misconception": "misconceptions"})
    found = reader.read(_File).misconceptions
    for index, one in enumerate(found):
        _check(one, f"misconception[{index}]", assignment, reader)
    return found


def _check(one: Misconception, where: str, assignment: Assignment, reader: Reader) -> None:
    cases, outputs = [case.name for case in assignment.cases], [argument.name for argument in assignment.outputs]
    sizes = [argument.name for argument in assignment.arguments if argument.role == "size"]
    for key, names, known in (
        ("fails", one.fails, cases),
        ("passes", one.passes, cases),
        ("output", (one.output,) if one.output else (), outputs),
        ("size", (one.size,) if one.size else (), sizes),
    ):
        if unknown := [name for name in names if name not in known]:
            raise reader.error(f"{where}.{key}", f"there is no {unknown[0]!r}", reader.nearest(unknown[0], known))
    if not (one.fails or one.clue or one.answer):
        raise reader.error(where, "asks for nothing: give `fails`, `clue` or `answer`")
    if (
        one.answer
        and assignment.functions
        and len({case.function for case in assignment.cases if case.name in one.fails}) != 1
    ):
        raise reader.error(f"{where}.fails", "has to name cases of one function, of whose tensors `answer` is made")
    if one.answer and any(
        tolerance.kind == "checked" and one.output in {"", name} for name, tolerance in assignment.tolerance.items()
    ):
        raise reader.error(f"{where}.answer", "compares values, and `check` decides on this output", "Give `fails`.")
    if one.answer:
        known = ["torch", *outputs, *(argument.name for argument in (*assignment.inputs, *assignment.scalars))]
        try:
            used = [node.id for node in ast.walk(ast.parse(one.answer, mode="eval")) if isinstance(node, ast.Name)]
        except SyntaxError as error:
            raise reader.error(f"{where}.answer", f"is no expression ({error.msg})") from None
        if unknown := [name for name in used if name not in known]:
            raise reader.error(f"{where}.answer", f"there is no {unknown[0]!r}", reader.nearest(unknown[0], known))
