"""Which mistake a failed check looks like: small functions over what its public cases show, tried in one order.

A clue reads a `Scene` and says what it sees, about which case, and what to do next; or nothing. Some look at what wrong
outputs hold, the others at which cases fail. An explanation takes the first clue that says something, with its step,
and adds what the first one of the other kind says. Hidden cases are in no scene.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from autograder.assignment import Assignment, Case
from autograder.contract import CaseResult, Pattern, Verdict
from autograder.judge.correctness import explain
from autograder.judge.correctness.facts import Facts, Values
from autograder.misconceptions import Misconception

TOLD = frozenset({Verdict.wrong_answer, Verdict.nondeterministic, Verdict.illegal_access})
"""Verdicts of which a pattern across cases says something."""
_TILES = tuple(1 << power for power in range(2, 17))
_SEVERAL = 2
_BLOCK = 8
"""The smallest block whose rest is told from chance."""
_SMALL_ERROR = 2**-5
_NARROW_ERRORS = (2**-16.5, 2**-6)
"""Relative errors of sums that were kept in 16 bits, or of products of TF32."""
_NUMBER = re.compile(r"\b(\d+)\b")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CaseRun:
    """A public case that was run, and what is known of it."""

    case: Case
    result: CaseResult
    facts: Facts

    @property
    def failed(self) -> bool:
        """Whether something was found."""
        return self.result.verdict is not Verdict.passed

    @property
    def padded(self) -> bool:
        """Whether rows of one of its tensors lie further apart than they are long."""
        return any(layout.pad for layout in self.case.layout.values())

    @property
    def shifted(self) -> bool:
        """Whether one of its tensors begins at an odd place."""
        return any(layout.offset for layout in self.case.layout.values())

    @property
    def elements(self) -> int:
        """How many elements its wrong outputs have."""
        return sum(values.total for values in self.facts.outputs)


@dataclass(frozen=True)
class Scene:
    """All public cases that were run, in order, and the source."""

    assignment: Assignment
    seen: tuple[CaseRun, ...]
    source: str = ""
    misconceptions: tuple[Misconception, ...] = ()

    @property
    def failed(self) -> tuple[CaseRun, ...]:
        """Those in which something was found."""
        return tuple(one for one in self.seen if one.failed)

    @property
    def passed(self) -> tuple[CaseRun, ...]:
        """The others."""
        return tuple(one for one in self.seen if not one.failed)

    @property
    def telling(self) -> tuple[CaseRun, ...]:
        """Those that passed, without what has size 1 throughout: that is often right by chance."""
        return tuple(one for one in self.passed if max(one.case.size.values(), default=0) > 1)

    def wrong(self) -> Iterator[tuple[CaseRun, Values]]:
        """Every wrong output, those of cases that can be looked through first: small, but not of a single element."""
        ordered = sorted(self.failed, key=lambda one: (one.elements <= 1, one.elements))
        yield from ((one, values) for one in ordered for values in one.facts.outputs)


@dataclass(frozen=True)
class Observation:
    """What a clue says: in which case it is seen, what it is, what to do next, where to read on.

    Attributes:
        size: the name of the size that it is about; `""` where it is about none.
    """

    about: CaseRun
    says: str
    step: str
    section: str = ""
    size: str = ""


class Kind(StrEnum):
    """What a clue looks at."""

    values = "values"
    cases = "cases"


@dataclass(frozen=True)
class Clue:
    """One line of the table."""

    name: str
    kind: Kind
    find: Callable[[Scene], Observation | None] = field(repr=False)


def first_of(
    scene: Scene, kind: Kind | None = None, *, sizes: Collection[str] | None = None
) -> tuple[Clue, Observation] | None:
    """The first clue that says something, of one kind or of any; about one of these sizes, where they are given."""
    tried = ((clue, _found(clue, scene)) for clue in TABLE if kind in {None, clue.kind})
    fits = ((clue, told) for clue, told in tried if told is not None and (sizes is None or told.size in sizes))
    return next(fits, None)


def _found(clue: Clue, scene: Scene) -> Observation | None:
    """What it says; nothing where it breaks: a fault in what explains a verdict costs nobody the verdict."""
    try:
        return clue.find(scene)
    except (ArithmeticError, LookupError, ValueError):
        logger.exception("the clue %s breaks", clue.name)
        return None


# --- what an author knows ---------------------------------------------------------------------------------------------


def _misconception(scene: Scene) -> Observation | None:
    return next((told for one in scene.misconceptions if (told := _as_told(one, scene))), None)


def _as_told(one: Misconception, scene: Scene) -> Observation | None:
    """A misconception of which all holds, about the first case that it names, else the first in which it shows."""
    failed = {seen.case.name: seen for seen in scene.failed}
    run = {seen.case.name for seen in scene.seen}
    named = [failed[name] for name in one.fails if name in failed]
    if any(name in run and name not in failed for name in one.fails) or any(name in failed for name in one.passes):
        return None
    if (one.fails and not named) or not _outputs_fit(one, named or scene.failed):
        return None
    found = next((clue.find(scene) for clue in TABLE if clue.name == one.clue), None)
    if one.clue and found is None:
        return None
    about = named[0] if named else found.about if found else _answered(one, scene)
    return Observation(about, one.says, one.step, one.section, one.size)


def _answered(one: Misconception, scene: Scene) -> CaseRun:
    return next((seen for seen, values in scene.wrong() if one.name in values.answers), scene.failed[0])


def _outputs_fit(one: Misconception, cases: Sequence[CaseRun]) -> bool:
    """Whether the output that is named is wrong in these cases and, where there is a formula, is what that gives."""
    wrong = [values for seen in cases for values in seen.facts.outputs if one.output in {"", values.output}]
    if one.output and len(wrong) < len(cases):
        return False
    return not one.answer or (bool(wrong) and all(one.name in values.answers for values in wrong))


# --- what wrong outputs hold ------------------------------------------------------------------------------------------


def _order(scene: Scene) -> Observation | None:
    seen = next((one for one in scene.failed if one.facts.order), None)
    if seen is None:
        return None
    says = "" if "depends on the order" in seen.result.message else "The answer is not the same in every call."
    step = (
        "Look for two threads or programs that change the same element, for atomics whose order matters, and for "
        "values that are kept between calls."
    )
    return Observation(seen, says, step if says else "")


def _barrier(scene: Scene) -> Observation | None:
    """The sentence of the mismatch says it all."""
    seen = next((one for one in scene.failed if one.result.mismatch and _names_a_barrier(one)), None)
    step = "Put a `__syncthreads()` between the writes to shared memory and the reads."
    return Observation(seen, "", step) if seen else None


def _names_a_barrier(seen: CaseRun) -> bool:
    return seen.result.mismatch is not None and explain.says_what_is_missing(seen.result.mismatch)


def _race(scene: Scene) -> Observation | None:
    races = (one for one in scene.failed if one.result.error and one.result.error.kind == "DataRace")
    seen = next(races, None)
    if seen is None:
        return None
    if "thread (" in seen.result.message:
        step = (
            "Put a `__syncthreads()` between the two where one needs what the other wrote, or let all of them add with "
            "`atomicAdd`."
        )
        return Observation(seen, "", step)
    step = (
        "Each program has to write its own elements: mask the store, so that none goes past its part. To add to a "
        "shared element, use `tl.atomic_add`."
    )
    return Observation(seen, "", step)


def _written_outside(scene: Scene) -> Observation | None:
    """Where a write went says what is wrong with its address."""
    seen = next((one for one in scene.failed if one.facts.outside), None)
    if seen is None or (outside := seen.facts.outside) is None:
        return None
    if outside.between:
        step = (
            f"Rows of `{outside.name}` are padded: go from row to row by the stride of `{outside.name}`, and mask what "
            "is past the last column."
        )
        return Observation(seen, "", step)
    if outside.before:
        return Observation(
            seen, "", "An offset is negative: look for a subtraction, or an index that is too large for int32."
        )
    if block := _rest_of(outside.after, outside.shape):
        says = f"That is exactly the rest of the last block of {block}."
        return Observation(seen, says, f"Mask the stores to `{outside.name}`: nothing may be stored past its end.")
    says = "That is not the rest of one block, so a mask alone will not help."
    step = (
        f"Check the address of each store to `{outside.name}`: rows and columns, and which stride belongs to which "
        "tensor."
    )
    return Observation(seen, says, step)


def _rest_of(after: int, shape: tuple[int, ...]) -> int:
    """The block that would be filled by so many elements behind a tensor's end; 0 where there is none."""
    lengths = {math.prod(shape), shape[-1]} if shape else set[int]()
    for block in _TILES:
        if block >= _BLOCK and after and any(after == -length % block for length in lengths):
            return block
    return 0


def _unset(scene: Scene) -> Observation | None:
    seen = next((one for one in scene.failed if one.facts.unset), None)
    if seen is None:
        return None
    name = seen.facts.unset
    says = (
        f"Over zeros the same call gives numbers: your kernel adds to `{name}`, or reads it, before anything was set "
        "there."
    )
    return Observation(
        seen, says, f"Set `{name}` to zero first, in the function that starts the kernel or in a kernel of its own."
    )


def _nothing_written(scene: Scene) -> Observation | None:
    """In no case that was compared: where some of it is written in another case, that says more."""
    compared = {one.result.mismatch.pattern: one for one in reversed(scene.failed) if one.result.mismatch}
    found = compared.get(Pattern.untouched) if len(compared) == 1 else None
    return Observation(found, "", explain.HINTS[Pattern.untouched]) if found else None


def _never_written(scene: Scene) -> Observation | None:
    found = next(((seen, values) for seen, values in scene.wrong() if values.unwritten), None)
    if found is None:
        return None
    seen, values = found
    where = values.unwritten.split(" (")[0] + (" of every row" if values.unwritten.startswith("column") else "")
    says = f"Your kernel never writes there: {where}."
    step = (
        "Check where each program, or loop round, begins: its number times the elements of one block, no more."
        if values.skipped
        else "Count how many elements all programs and loop rounds reach: round the grid or the loop up, not down, and "
        "let the mask cut off the rest."
    )
    return Observation(seen, says, step)


def _read_outside(scene: Scene) -> Observation | None:
    found = next((seen for seen, values in scene.wrong() if values.outside), None)
    says = "These NaN lie past the ends of the input rows, and your kernel reads them."
    step = "Check the address and the mask of each load, and give masked elements a neutral value with `other`."
    return Observation(found, says, step) if found else None


def _nan(scene: Scene) -> Observation | None:
    """In the case that has the largest share of them."""
    found = [(seen, values) for seen, values in scene.wrong() if values.nan or values.infinite]
    if not found:
        return None
    seen, values = max(found, key=lambda one: (one[1].nan + one[1].infinite) / one[1].total)
    what = "NaN" if values.nan else "infinite"
    are = "value is" if (values.nan or values.infinite) == 1 else "values are"
    says = (
        f"{values.nan or values.infinite} {are} {what} where a number is expected: a value is too large for its type, "
        "or is divided by zero."
    )
    step = (
        "Look for an `exp`, a square or a sum that gets too large for its type, for inf - inf, and for 0 / 0; scale or "
        "shift the values first."
    )
    return Observation(seen, says, step)


_FORMULAS = {
    "other axis": (
        "These are the right numbers for the other axis: along columns instead of rows, or the other way round.",
        "Swap them: which index runs inside a program, and which one numbers the programs?",
    ),
    "turned": (
        "These are the right numbers, but stored transposed.",
        "Swap row and column, or the two strides, in the address of the store or of the load.",
    ),
    "shifted": (
        "These are the right numbers, but one position off.",
        "Look for an offset that is off by one. In a running sum, check whether it includes its own element.",
    ),
    "shifted rows": (
        "These are the right rows, but one row off.",
        "Look for a row number that is off by one.",
    ),
    "copied": (
        "The output is a copy of an input.",
        "Check what is stored: the value that was loaded, or the one that was computed?",
    ),
}


def _formula(scene: Scene) -> Observation | None:
    found = next(((seen, values.formula) for seen, values in scene.wrong() if values.formula), None)
    return Observation(found[0], *_FORMULAS[found[1]]) if found else None


def _sums(scene: Scene) -> Observation | None:
    found = next(((seen, values) for seen, values in scene.wrong() if values.sums), None)
    if found is None:
        return None
    seen, values = found
    says = f"`{values.output}` is the sum of the {values.sums} elements: the others are left out."
    return Observation(
        seen, says, "Check the mask, the grid, and how partial results are combined: each element counts once."
    )


def _narrow(scene: Scene) -> Observation | None:
    """Errors as narrow sums and products leave them."""
    low, high = _NARROW_ERRORS
    wrong = list(scene.wrong())
    for seen, values in wrong:
        if values.narrow:
            says = f"All values of `{values.output}` are only as exact as {values.narrow}."
            return Observation(seen, says, _wider(scene, values.dtype))
    wide = [(seen, values) for seen, values in wrong if values.dtype == "float32"]
    close = [(seen, values) for seen, values in wide if low <= values.error <= high]
    # Where such a sum overflows, the error is large; a formula that is wrong is seldom so near in two cases.
    if not close or len(close) < _SEVERAL <= len(wide) or any(values.factor for _, values in close):
        return None
    seen, values = max(close, key=lambda one: one[1].error)
    name = "sums in float16 or products in TF32" if values.error < 2**-9.5 else "bfloat16 or long float16 sums"
    power = round(math.log2(values.error))
    says = f"The values are close to the right ones: the relative error is about 2^{power}, as with {name}."
    return Observation(seen, says, _wider(scene, values.dtype))


def _wider(scene: Scene, dtype: str) -> str:
    if dtype == "float32" and "tl.dot" in scene.source and "ieee" not in scene.source:
        return 'Give `tl.dot` the option `input_precision="ieee"`, and keep its sum in float32.'
    return "Load into float32, add and multiply there, and round once, at the store."


def _rounding(scene: Scene) -> Observation | None:
    """Errors of outputs that are narrow themselves."""
    wrong = [(seen, values) for seen, values in scene.wrong() if 0 < values.error < _SMALL_ERROR]
    if not wrong or len(wrong) < sum(1 for _ in scene.wrong()):
        return None
    seen, values = wrong[-1]
    says = f"The values are close to the right ones: the relative error is about 2^{round(math.log2(values.error))}."
    step = "Look for early rounding, a sum in a narrow type, or a small term that is lost beside a large one."
    return Observation(seen, says, step)


def _factor(scene: Scene) -> Observation | None:
    for seen, values in scene.wrong():
        if values.error < _NARROW_ERRORS[1]:
            continue
        if values.factor:
            says = f"All values of `{values.output}` are {values.factor:.4g} times the right ones."
            return Observation(
                seen, says, "Look for a factor that is missing or used twice: a scale, a count, or a mean's divisor."
            )
        if values.factors:
            says = (
                f"In each {values.factors} all values are off by the same factor, but not by the same in every "
                f"{values.factors}."
            )
            return Observation(seen, says, _LINES[values.factors])
        if values.differences:
            says = f"In each {values.differences} all values are off by the same number."
            step = (
                f"What is added to a whole {values.differences} is wrong or missing: a mean, a bias, or what came "
                "before."
            )
            return Observation(seen, says, step)
    return None


_LINES = {
    "row": "Each row is divided or multiplied by a wrong value: its sum, its mean or its scale. Check how it is "
    "computed.",
    "column": "Each column is multiplied by a wrong value, such as a weight, or by none. Check its index.",
}


# --- which cases fail -------------------------------------------------------------------------------------------------


def _apart(failed: Sequence[CaseRun], passed: Sequence[CaseRun], has: Callable[[CaseRun], bool]) -> bool:
    """Whether all that failed have something that none that passed has."""
    return bool(failed and passed) and all(map(has, failed)) and not any(map(has, passed))


def _told_of(scene: Scene) -> tuple[CaseRun, ...]:
    """What failed, where a pattern of cases may explain it; else nothing."""
    failed = scene.failed
    return failed if all(one.result.verdict in TOLD for one in failed) else ()


def _strides(scene: Scene) -> Observation | None:
    failed = _told_of(scene)
    if not _apart(failed, scene.passed, lambda one: one.padded):
        return None
    step = (
        "Check the strides. Each tensor has its own step from row to row, which is not its number of columns: use the "
        "stride of the tensor that the address belongs to."
    )
    return Observation(failed[0], "Only cases with padded rows fail; all others pass.", step)


def _alignment(scene: Scene) -> Observation | None:
    failed = _told_of(scene)
    if not _apart(failed, scene.passed, lambda one: one.shifted):
        return None
    step = (
        "Wide loads need an address that is a multiple of their size: check that first, and load single elements "
        "otherwise."
    )
    return Observation(failed[0], "Only cases with a misaligned tensor fail.", step)


def _multiple(scene: Scene) -> Observation | None:
    """Fails exactly where some size is no multiple of a number."""
    failed, passed = _told_of(scene), scene.telling
    written = {int(number) for number in _NUMBER.findall(scene.source)}
    fits = [
        (tile, name)
        for name in _sizes(scene)
        for tile in _TILES
        if _apart(failed, passed, partial(_has_a_rest, name, tile))
        and (tile in written or len(passed) >= _SEVERAL <= len(failed))
    ]
    if not fits:
        return None
    tile, name = max(fits, key=lambda fit: (fit[0] in written, -fit[0]))
    step = (
        f"Look at the last, partly filled tile along `{name}`: load a neutral value past the end, and store nothing "
        "there."
    )
    return Observation(
        _smallest(failed), f"It fails exactly where `{name}` is not a multiple of {tile}.", step, size=name
    )


def _has_a_rest(name: str, tile: int, one: CaseRun) -> bool:
    return one.case.size[name] % tile != 0


def _is_no_power(name: str, one: CaseRun) -> bool:
    return one.case.size[name].bit_count() != 1


def _power(scene: Scene) -> Observation | None:
    """Fails exactly where some size is no power of two."""
    failed, passed = _told_of(scene), scene.telling
    for name in _sizes(scene):
        powers = _apart(failed, passed, partial(_is_no_power, name))
        if powers and len(failed) >= _SEVERAL:
            step = (
                f"Block sizes are powers of two; `{name}` need not be: mask what lies past the last element, in loads, "
                "stores and counts."
            )
            says = f"It fails exactly where `{name}` is not a power of two."
            return Observation(_smallest(failed), says, step, size=name)
    return None


def _from_size(scene: Scene) -> Observation | None:
    """Fails exactly from some size on."""
    failed, passed = _told_of(scene), scene.telling
    if not failed or not passed:
        return None
    found: list[tuple[float, str, int, int]] = []
    for name in _sizes(scene):
        smallest_failing = min(one.case.size[name] for one in failed)
        largest_passing = max(one.case.size[name] for one in passed)
        if smallest_failing > largest_passing:
            found.append(
                (
                    smallest_failing / largest_passing if largest_passing else 0.0,
                    name,
                    smallest_failing,
                    largest_passing,
                )
            )
    if not found:
        return None
    _, name, smallest_failing, largest_passing = max(found)
    about = next(one for one in failed if one.case.size[name] == smallest_failing)
    if not largest_passing:
        says = f"It passes where `{name}` is 0, and fails from {smallest_failing} on."
        return Observation(about, says, f"Look at what the kernel does with `{name}`.", size=name)
    step = (
        f"Look at what begins between these two sizes of `{name}`: a second round of a loop, a second block, or a grid "
        "or a buffer that is too small."
    )
    return Observation(
        about,
        f"It passes with `{name}` up to {largest_passing}, and fails from {smallest_failing} on.",
        step,
        size=name,
    )


def _dtype(scene: Scene) -> Observation | None:
    failed = _told_of(scene)
    if not failed or not _apart(failed, scene.passed, lambda one: one.case.dtype == failed[0].case.dtype):
        return None
    step = (
        "Check the types: load, compute in float32, and round once, at the store; a wide load has more elements there."
    )
    return Observation(failed[0], f"Only cases of {failed[0].case.dtype} fail.", step)


def _distribution(scene: Scene) -> Observation | None:
    failed = _told_of(scene)
    kinds = {one.case.distribution for one in failed}
    if not failed or not _apart(failed, scene.passed, lambda one: one.case.distribution in kinds):
        return None
    if len({one.case.distribution for one in scene.passed}) < _SEVERAL:
        return None
    names = _listed([f"`{one.case.name}` ({one.case.category})" for one in failed])
    step = "Ask what is special about these values: very large or small ones, equal ones, negative ones or -inf."
    return Observation(failed[0], f"Only {names} fail; other values pass at the same sizes.", step)


def _outputs(scene: Scene) -> Observation | None:
    """One output is wrong in every case that fails, and another is right in all."""
    wrong = {values.output for seen in scene.failed for values in seen.facts.outputs}
    all_of_them = [argument.name for argument in scene.assignment.outputs]
    right = [name for name in all_of_them if name not in wrong]
    if not wrong or not right or not all(one.facts.outputs for one in scene.failed):
        return None
    bad = _listed([f"`{name}`" for name in sorted(wrong)])
    are, also = ("is" if len(names) == 1 else "are" for names in (right, wrong))
    says = f"{_listed([f'`{name}`' for name in right])} {are} right in all cases; only {bad} {also} wrong."
    step = f"So the inputs are read correctly: look at what is computed for {bad} only."
    return Observation(_smallest(scene.failed), says, step)


def _some(scene: Scene) -> Observation | None:
    """No pattern: how many fail, and where to begin."""
    failed = scene.failed
    if not failed or not all(one.result.mismatch for one in failed):
        return None
    about = _smallest(failed)
    mismatch = about.result.mismatch
    says = f"{len(failed)} of {len(scene.seen)} public cases fail." if scene.passed else "All public cases fail."
    return Observation(about, says, explain.HINTS[mismatch.pattern] if mismatch else "")


def _access(scene: Scene) -> Observation | None:
    """An access that was stopped, which no pattern of cases explains."""
    seen = next((one for one in scene.failed if one.result.verdict is Verdict.illegal_access), None)
    step = "Check that address: its mask, the strides in it, and whether rows and columns are exchanged."
    return Observation(seen, "", step) if seen else None


def _sizes(scene: Scene) -> list[str]:
    return list(scene.seen[0].case.size) if scene.seen else []


def _smallest(cases: Sequence[CaseRun]) -> CaseRun:
    """The case that is easiest to look through: small, but of more than one element."""
    return min(cases, key=lambda one: (one.elements <= 1, one.elements))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


MISCONCEPTION = "misconception"

TABLE: tuple[Clue, ...] = (
    Clue(MISCONCEPTION, Kind.values, _misconception),
    Clue("barrier", Kind.values, _barrier),
    Clue("order", Kind.values, _order),
    Clue("race", Kind.values, _race),
    Clue("unset", Kind.values, _unset),
    Clue("nothing written", Kind.values, _nothing_written),
    Clue("strides", Kind.cases, _strides),
    Clue("alignment", Kind.cases, _alignment),
    Clue("formula", Kind.values, _formula),
    Clue("sums", Kind.values, _sums),
    Clue("written outside", Kind.values, _written_outside),
    Clue("read outside", Kind.values, _read_outside),
    Clue("nan", Kind.values, _nan),
    Clue("never written", Kind.values, _never_written),
    Clue("multiple", Kind.cases, _multiple),
    Clue("power of two", Kind.cases, _power),
    Clue("factor", Kind.values, _factor),
    Clue("narrow", Kind.values, _narrow),
    Clue("from a size", Kind.cases, _from_size),
    Clue("rounding", Kind.values, _rounding),
    Clue("type", Kind.cases, _dtype),
    Clue("distribution", Kind.cases, _distribution),
    Clue("access", Kind.values, _access),
    Clue("outputs", Kind.cases, _outputs),
    Clue("some", Kind.cases, _some),
)
"""Every clue, the most telling first."""
