"""Read an assignment: `assignments/<slug>` (public) and `reference/<slug>` (staff only).

An assignment is data. Everything that differs between two rungs stands in their folders; nothing in the harness, the
server or the pages names one. Standard library only: the server and the worker read manifests too.

    assignments/<slug>/assignment.toml     Assignment
    assignments/<slug>/README.md           the handout
    assignments/<slug>/problem.py          make_inputs, expected, error_scale: plain torch, run by the judge only
    assignments/<slug>/adapter.py          where a module is handed in: the functions that the judge calls, which use it
    assignments/<slug>/starters/<language>.<ext>
    assignments/<slug>/starters/reading.py         the same in plain PyTorch, to read
    assignments/<slug>/given/<name>.<ext>          right kernels that students get to work on, where the rung has such
    assignments/<slug>/milestones/<name>.<ext>     published baselines, slowest first by name
    reference/<slug>/hidden.toml           families of hidden cases
    reference/<slug>/solutions/<language>.<ext>    the staff kernel: the reference that speed is measured against
    reference/<slug>/mutants.toml          edits of the staff kernel that must fail
    reference/<slug>/submissions/<verdict>_<what>.<ext>
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import io
import keyword
import math
import operator
import re
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from autograder import languages
from autograder.compile_checks.targets import TARGETS
from autograder.contract import Lane, Language, Verdict, Visibility
from autograder.counters import COUNTED_BY, FIGURES
from autograder.errors import ContractError
from autograder.lanes import expanded, of_target
from autograder.manifest import Reader

EXTENSIONS: Mapping[Language, str] = {language: languages.of(language).extension for language in Language}
"""Of a language's new files, and of those that the names of a rung's files end with."""
ADAPTER = "adapter.py"
GIVEN = "given"
"""The folder of kernels that a rung gives to its students, who may hand in parts of them."""
READING = "reading.py"
"""Among the starters: what they do in plain PyTorch, to read beside them. It is called as they are, and is wrong."""
DTYPE_BYTES: Mapping[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "bool": 1,
}  # fmt: skip

REQUIRED = ("registers", "stack_bytes", "spills", "shared_bytes", "wgmma", "imma", "tcgen05", "tma", "ldg128")
"""What a requirement on compiled kernels may compare."""
EXECUTED = (
    "launches", "library_kernels", "traffic", "tensor", "tma", "async_copy", "global_load_128",
    "global_store_128",
)  # fmt: skip
"""What a requirement on a profiled call may compare."""
ROLES = ("input", "output", "size", "stride", "scalar")
SCALAR_DTYPES = ("float32", "int64")
TOLERANCE_KINDS = ("exact", "bounded", "checked")
WRITEUP_FORMATS = ("pdf", "md", "txt")
MOST_WRITEUP_MIB = 5
"""The server reads no request that is much larger."""
MOST_R_ZERO = 100.0
"""The judge's `Rules.max_ratio_for_full_sampling`: what is slower earns no speed points, and is measured less."""
PLURALS = {name: f"{name}s" for name in ("function", "argument", "case", "lane", "requirement", "run_requirement")}
"""Fields of an assignment by the keys that its file has for one of each: `[[case]]`."""
MUTANT_VERDICTS = tuple(v.value for v in Verdict if v not in {Verdict.passed, Verdict.grader_error})


@dataclass(frozen=True)
class Argument:
    """One argument of the entry function, in order.

    Attributes:
        role: `input` and `output` are tensors; `size` is an integer of the case; `stride` is that of `of` along `dim`,
            in elements; `scalar` is a number that every call draws anew, passed by value.
        shape: per dimension a size's name, an integer, or a formula of them such as `batch + 1`; for tensors.
        dtype: `"case"` takes the case's dtype; a scalar's is one of `SCALAR_DTYPES`.
        about: what the page says about it.
    """

    name: str
    role: str
    shape: tuple[str, ...] = ()
    dtype: str = "case"
    of: str = ""
    dim: int = 0
    about: str = ""


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in memory.

    Attributes:
        pad: elements between the end of one row and the start of the next (rank ≥ 2).
        offset: elements before the first, so that the pointer is not aligned.
    """

    pad: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Cost:
    """Formulas over the sizes and `e`, bytes per element: useful work and compulsory memory traffic."""

    flops: str
    bytes: str


@dataclass(frozen=True)
class Function:
    """One of several functions that a source has to define.

    Attributes:
        arguments: names of the manifest's arguments, in the function's order.
        cost: of one call.
        about: what the page says it is for.
        by_kernels: kernels compute its answers; where they do not, nothing is said of answers that come without them.
    """

    name: str
    arguments: tuple[str, ...]
    cost: Cost
    about: str = ""
    by_kernels: bool = True


@dataclass(frozen=True)
class Case:
    """One input size and distribution.

    Attributes:
        size: the sizes by name.
        dtype: of tensors whose own is `case`.
        distribution: which inputs `make_inputs` draws.
        group: the correctness group whose points it decides with others.
        ranked: it is timed, and its time counts.
        lanes: that run it; empty for all.
        layout: by tensor, where it is not contiguous and aligned.
        category: what it is about, in words.
        visibility: whether its sizes and name are shown.
        function: the one that is called, where a source defines several.
    """

    name: str
    size: dict[str, int]
    dtype: str
    distribution: str = "default"
    group: str = "public"
    ranked: bool = False
    lanes: tuple[Lane, ...] = ()
    layout: dict[str, Layout] = field(default_factory=dict)
    category: str = ""
    visibility: Visibility = Visibility.public
    function: str = ""


@dataclass(frozen=True)
class Draw:
    """How a hidden family draws one number: exactly one way is given.

    Attributes:
        choose: one of these.
        near: one of these, plus or minus one, never below 1.
        between: any integer from the first to the second, both included.
        prime: a prime from the first to the second.
    """

    choose: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    prime: tuple[int, ...] = ()


@dataclass(frozen=True)
class Family:
    """A family of hidden cases, from which every attempt draws its own.

    Attributes:
        category: all that a student sees of it, with pass or fail.
        size: each name with how it is drawn.
        distributions: of which each case gets one.
        group: the correctness group.
        draws: how many cases an attempt draws.
        pad, offset: drawn per tensor named in `layout`.
        function: the one that is called, where a source defines several.
    """

    category: str
    size: dict[str, Draw]
    dtype: str
    distributions: tuple[str, ...] = ("default",)
    group: str = "hidden"
    draws: int = 1
    lanes: tuple[Lane, ...] = ()
    layout: tuple[str, ...] = ()
    pad: Draw | None = None
    offset: Draw | None = None
    function: str = ""


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from the oracle.

    `kind = "exact"` asks for equality. `"bounded"` allows `factor · eps(dtype) · error_scale` per element, where
    `problem.error_scale` gives the oracle's own bound (Σ|a||b| for a product), and `row_factor · eps(dtype)` times the
    root mean square of that scale for the root mean square of a row's errors, so that many small errors in one row do
    not hide. `"checked"` leaves it to `problem.check`, where more than one answer is right.
    """

    kind: str
    factor: float = 0.0
    row_factor: float = 0.0


MOST_TOTAL_S = 300.0
"""Of any rung: whoever waits for an attempt has to wait longer, or a submission that uses it all is nobody's fault."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Attributes:
        import_s, call_s, total_s: seconds of its own time, for loading (compilers included), one call, and all calls.
        memory_mib: of the host's memory.
        processes: at once.
        output_kib: of what it prints.
        tmp_mib: of its folder for files.
    """

    import_s: float = 60.0
    call_s: float = 10.0
    total_s: float = 120.0
    memory_mib: int = 2048
    processes: int = 64
    output_kib: int = 256
    tmp_mib: int = 256


@dataclass(frozen=True)
class Requirement:
    """What the kernels of one case have to look like, compiled for one target or counted; shown by its name.

    Each of the numbers is compared as its text says, `"> 0"` or `"== 0"`. With `>` or `>=`, at least one launch of the
    case has to satisfy it; with `==`, `<` or `<=` every launch. Of an autotuned launch one candidate is enough.

    Attributes:
        about: what the page says it is for.
        target: one of `compile_for`, or what counts calls of the case: `emulator` or `interpreter`.
        case: a public case.
        group: the correctness group that it is part of; without one it is for information, and fails nobody.
        registers, stack_bytes: per thread.
        spills: loads and stores of the stack in the machine code.
        shared_bytes: per block.
        wgmma, imma, tcgen05, tma, ldg128: instructions of each kind in the machine code; `imma` are those for integers
            on tensor cores, wgmma's among them; the last are loads of global memory, of 128 bits or more.
        launches, traffic, bank_conflicts: of the whole call, as it is counted; the traffic in per cent of `cost.bytes`.
        points: speed points for it, where it is counted and no lane of the course gives them for a time.
    """

    name: str
    about: str
    target: str
    case: str
    group: str = ""
    points: float = 0.0
    launches: str = ""
    traffic: str = ""
    bank_conflicts: str = ""
    registers: str = ""
    stack_bytes: str = ""
    spills: str = ""
    shared_bytes: str = ""
    wgmma: str = ""
    imma: str = ""
    tcgen05: str = ""
    tma: str = ""
    ldg128: str = ""

    @property
    def bounds(self) -> dict[str, tuple[str, int]]:
        """Comparison and number, by what is compared."""
        return {name: parsed for name in (*REQUIRED, *FIGURES) if (parsed := comparison(getattr(self, name)))}


@dataclass(frozen=True)
class RunRequirement:
    """What a profiled call of a case has to have done; for information, as counters are claims.

    Each of the numbers is of the whole call, and compared as its text says, `"> 0"` or `"== 1"`.

    Attributes:
        about: what the page says it is for.
        case: a public case of a lane with a GPU.
        launches: of kernels, torch's own included.
        library_kernels: launches of kernels that libraries are known by.
        traffic: bytes from and to the device's memory, of the least possible.
        tensor, tma, async_copy, global_load_128, global_store_128: instructions of each kind that warps executed.
    """

    name: str
    about: str
    case: str
    launches: str = ""
    library_kernels: str = ""
    traffic: str = ""
    tensor: str = ""
    tma: str = ""
    async_copy: str = ""
    global_load_128: str = ""
    global_store_128: str = ""

    @property
    def bounds(self) -> dict[str, tuple[str, int]]:
        """Comparison and number, by what is compared."""
        return {name: parsed for name in EXECUTED if (parsed := comparison(getattr(self, name)))}


@dataclass(frozen=True)
class Points:
    """What a rung is worth; correctness is shared equally by the groups."""

    correctness: float
    speed: float
    quiz: float = 0.0


@dataclass(frozen=True)
class Writeup:
    """A text that a rung asks for beside the kernel. A person reads it and gives its points.

    Attributes:
        title: what it is about, as the page says it.
        about: what it has to say.
        formats: which of `WRITEUP_FORMATS` are taken.
        max_mib: how large a file may be.
    """

    title: str
    points: float
    about: str = ""
    formats: tuple[str, ...] = ("pdf", "md", "txt")
    max_mib: int = 5


@dataclass(frozen=True)
class LanePolicy:
    """What a lane gives. Without speed points its times are practice: they rank nobody's grade and hold nobody.

    Attributes:
        ranks: the lane has a leaderboard.
        speed_points: the lane's ratio gives speed points.
        r_full, r_zero: ratio to the reference at which speed points are full, and gone.
        pairs: how many timed pairs the first stage takes.
        apart: correctness is found in an attempt of its own, and what passed is measured in another.
    """

    ranks: bool = True
    speed_points: bool = False
    r_full: float = 1.2
    r_zero: float = 10.0
    pairs: int = 7
    apart: bool = False


@dataclass(frozen=True)
class Assignment:
    """One rung of the ladder, as `assignment.toml` says it.

    Attributes:
        slug: its name in URLs, and its folder's.
        title: its name for people.
        rung: its place on the ladder.
        summary: one sentence for the list of assignments.
        techniques: what is learned.
        prerequisites: slugs of rungs below.
        languages: what may be handed in.
        arguments: of the entry function, in order.
        cases: the public ones; `hidden.toml` has families of others.
        tolerance: by output.
        points: what it is worth.
        lanes: what each lane gives; a lane without an entry does not grade the rung.
        entry: the function that a source has to define; left out where it defines several.
        cost: of a call of `entry`; tests compare the formulas with a counted run.
        functions: several instead of `entry`; every case calls one of them, with that one's arguments (`part`).
        limits: what a submission may use.
        bitwise: two calls on the same inputs have to agree bit for bit; otherwise both stay within the tolerance.
        library_operations: operators that would do the exercise, `aten.mm` with all its overloads; staff see which ran.
        library_kernels: the same of device kernels, by parts of their names, beside the known libraries'.
        compile_for: targets that every passing submission is compiled for, device or not.
        requirements: structure that kernels have to have, as compiled or as counted.
        run_requirements: what a profiled call has to have done, for information.
        writeup: a text to hand in beside the kernel.
        challenge: no honest kernel passes it, so whoever does has found a hole in the judge. It is no rung: a course
            shows it when staff say so.
        adapter: the text of `adapter.py`; no key of the manifest. Where there is one it defines the functions, in the
            runner, after a source in Python was executed.
    """

    slug: str
    title: str
    rung: int
    summary: str
    techniques: tuple[str, ...]
    prerequisites: tuple[str, ...]
    languages: tuple[Language, ...]
    arguments: tuple[Argument, ...]
    cases: tuple[Case, ...]
    tolerance: dict[str, Tolerance]
    points: Points
    lanes: dict[str, LanePolicy]
    entry: str = ""
    cost: Cost = Cost("", "")
    functions: tuple[Function, ...] = ()
    limits: Limits = field(default_factory=Limits)
    bitwise: bool = True
    library_operations: tuple[str, ...] = ()
    library_kernels: tuple[str, ...] = ()
    compile_for: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    run_requirements: tuple[RunRequirement, ...] = ()
    writeup: Writeup | None = None
    challenge: bool = False
    adapter: str = ""

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """Its input tensors, in order."""
        return tuple(argument for argument in self.arguments if argument.role == "input")

    @property
    def scalars(self) -> tuple[Argument, ...]:
        """Its numbers that are passed by value, in order."""
        return tuple(argument for argument in self.arguments if argument.role == "scalar")

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """Its output tensors, in order."""
        return tuple(argument for argument in self.arguments if argument.role == "output")

    @property
    def parts(self) -> tuple[Assignment, ...]:
        """The rung function by function, each with its own arguments, outputs and cases; itself, where it has one."""
        return tuple(self._part(function) for function in self.functions) or (self,)

    def part(self, case: Case) -> Assignment:
        """The rung as a case meets it: with one function."""
        return next((self._part(one) for one in self.functions if one.name == case.function), self)

    def _part(self, function: Function) -> Assignment:
        known = {argument.name: argument for argument in self.arguments}
        arguments = tuple(known[name] for name in function.arguments)
        outputs = {argument.name for argument in arguments if argument.role == "output"}
        return dataclasses.replace(
            self,
            entry=function.name,
            cost=function.cost,
            functions=(),
            arguments=arguments,
            cases=tuple(case for case in self.cases if case.function == function.name),
            tolerance={name: tolerance for name, tolerance in self.tolerance.items() if name in outputs},
        )

    def signature(self) -> str:
        """The functions as a student writes them, `vector_add(x, y, out, n)`, one a line."""
        return "\n".join(f"{one.entry}({', '.join(it.name for it in one.arguments)})" for one in self.parts)

    def policy(self, lane: Lane) -> LanePolicy | None:
        """What the lane gives, `None` where the rung is not graded on it."""
        return self.lanes.get(lane.value)

    def cases_for(self, lane: Lane) -> tuple[Case, ...]:
        """The public cases that the lane runs."""
        return tuple(case for case in self.cases if not case.lanes or lane in case.lanes)

    def signatures(self, lane: Lane) -> tuple[tuple[str, ...], ...]:
        """What the arguments are in the lane's public cases, as `protocol.Load.signatures` has it."""
        return tuple(dict.fromkeys(self.signature_in(case) for case in self.cases_for(lane)))

    def signature_in(self, case: Case) -> tuple[str, ...]:
        """What the arguments are in one case."""
        return tuple(
            "integer" if argument.role in {"size", "stride"} else f"{argument.role} {self.dtype_of(argument, case)}"
            for argument in self.part(case).arguments
        )

    def dtype_of(self, argument: Argument, case: Case) -> str:
        """The tensor's dtype in this case, as torch names it."""
        return case.dtype if argument.dtype == "case" else argument.dtype

    def shape_of(self, argument: Argument, case: Case) -> tuple[int, ...]:
        """The tensor's shape in this case."""
        return tuple(int(evaluate(length, case.size)) for length in argument.shape)

    def cost_of(self, case: Case) -> tuple[float, float]:
        """FLOPs and bytes of this case by the manifest's formulas."""
        names = {**{name: float(value) for name, value in case.size.items()}, "e": float(DTYPE_BYTES[case.dtype])}
        cost = self.part(case).cost
        return evaluate(cost.flops, names), evaluate(cost.bytes, names)


@dataclass(frozen=True)
class Mutant:
    """An edit of the staff kernel that must fail.

    Attributes:
        find, replace: the edit; `find` occurs exactly once in the source.
        killed_by: name of the public case, or category of the hidden family, that must fail first or among others.
        verdict: what it must get.
        misconception: the name of the one of `misconceptions.toml` that it has to be told as; `""` for any words.
    """

    name: str
    language: Language
    find: str
    replace: str
    killed_by: str
    why: str
    verdict: str = "wrong_answer"
    misconception: str = ""


def load_assignment(folder: Path) -> Assignment:
    """Read `folder/assignment.toml`.

    Raises:
        ManifestError: with the key, its line and the nearest key that exists.
    """
    reader = Reader(folder / "assignment.toml", what="an assignment", plurals=PLURALS)
    reader.data = expanded(reader.data)
    assignment = reader.read(Assignment)
    if assignment.adapter:
        raise reader.error("adapter", f"is no key of a manifest: it is the text of {ADAPTER}")
    if (path := folder / ADAPTER).is_file():
        assignment = dataclasses.replace(assignment, adapter=path.read_text(encoding="utf-8"))
    _check(assignment, reader)
    if assignment.slug != folder.name:
        raise reader.error("slug", f"says {assignment.slug!r}, the folder is {folder.name!r}")
    return assignment


def load_families(folder: Path) -> tuple[Family, ...]:
    """Read `folder/hidden.toml`, the families of hidden cases of `reference/<slug>`."""
    reader = Reader(folder / "hidden.toml", what="a family of hidden cases", plurals={"family": "families"})
    reader.data = expanded(reader.data)
    families = reader.read(_Hidden).families
    for index, family in enumerate(families):
        _check_family(family, f"family[{index}]", reader)
    return families


def load_mutants(folder: Path) -> tuple[Mutant, ...]:
    """Read `folder/mutants.toml`, the edits of the staff kernel of `reference/<slug>` that must fail."""
    reader = Reader(folder / "mutants.toml", what="a mutant", plurals={"mutant": "mutants"})
    mutants = reader.read(_Mutants).mutants
    names = [mutant.name for mutant in mutants]
    for index, mutant in enumerate(mutants):
        where = f"mutant[{index}]"
        if mutant.name in names[:index]:
            raise reader.error(f"{where}.name", f"two mutants have the name {mutant.name!r}")
        if mutant.verdict not in MUTANT_VERDICTS:
            hint = reader.nearest(mutant.verdict, MUTANT_VERDICTS)
            raise reader.error(f"{where}.verdict", f"{mutant.verdict!r} is no verdict that a mutant can get", hint)
        if not mutant.find:
            raise reader.error(f"{where}.find", "is empty: say what of the staff kernel is replaced")
    return mutants


def slugs(root: Path, lane: Lane | None = None) -> tuple[str, ...]:
    """The rungs under `root`, in their order; those that a lane grades, where one is given."""
    rungs = (assignment for assignment in _all(root) if not assignment.challenge)
    return tuple(rung.slug for rung in rungs if lane is None or rung.policy(lane))


def challenges(root: Path) -> tuple[str, ...]:
    """The assignments under `root` that no honest kernel passes."""
    return tuple(assignment.slug for assignment in _all(root) if assignment.challenge)


def _all(root: Path) -> list[Assignment]:
    folders = (path.parent for path in root.glob("*/assignment.toml"))
    return sorted(map(load_assignment, folders), key=lambda assignment: assignment.rung)


def comparison(text: str) -> tuple[str, int] | None:
    """`("<=", 128)` of `"<= 128"`; `None` where it is no comparison with a number."""
    found = re.fullmatch(r"(==|<=|>=|<|>)\s*(\d{1,9})", text.strip())
    return (found[1], int(found[2])) if found else None


def evaluate(formula: str, names: Mapping[str, float]) -> float:
    """Evaluate `+ - * / // **`, numbers, `ceil`, `log2`, `min`, `max` and the given names; nothing else."""
    try:
        return _evaluate(ast.parse(formula, mode="eval").body, names)
    except (ArithmeticError, TypeError) as error:
        raise ValueError(f"{formula!r} has no value: {error}") from None


def pack(folders: Mapping[str, Path], *, only: Mapping[str, Collection[str]] | None = None) -> bytes:
    """Pack folders into one tar whose bytes depend on names and contents only (no times, owners or modes).

    Args:
        folders: where each comes from, by its name in the tar.
        only: by that name, the files and folders at a folder's top that are packed; all, where nothing is said.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for prefix, folder in sorted(folders.items()):
            for path in sorted(_files(folder)):
                if only and prefix in only and path.relative_to(folder).parts[0] not in only[prefix]:
                    continue
                info = tarfile.TarInfo(f"{prefix}/{path.relative_to(folder).as_posix()}")
                info.size = path.stat().st_size
                info.mode = 0o644
                tar.addfile(info, io.BytesIO(path.read_bytes()))
    return buffer.getvalue()


def unpack(bundle: bytes, folder: Path) -> None:
    """Unpack what `pack` made.

    Python 3.11.2, which Debian 12 has, knows no extraction filters: what they would refuse is refused here.

    Raises:
        ContractError: it is no tar, or has links, devices or paths that leave `folder`; nothing more is written then.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(bundle), mode="r:") as tar:
            for member in tar:
                _unpack_file(tar, member, folder)
    except tarfile.TarError as error:
        raise ContractError(f"the bundle is no tar: {error}") from None


def _unpack_file(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    name = PurePosixPath(member.name)
    content = tar.extractfile(member) if member.isreg() else None
    if content is None or name.is_absolute() or ".." in name.parts or "\\" in member.name:
        raise ContractError(f"the bundle may hold files only, not {member.name!r}")
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.read())


def content_hash(data: bytes) -> str:
    """The name of bytes: `sha256:` and their digest."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class _Hidden:
    families: tuple[Family, ...] = ()


@dataclass(frozen=True)
class _Mutants:
    mutants: tuple[Mutant, ...] = ()


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _check(assignment: Assignment, reader: Reader) -> None:
    """What types cannot say."""
    _check_names(assignment, reader)
    _check_functions(assignment, reader)
    _check_adapter(assignment, reader)
    _check_numbers(assignment, reader)
    names = [argument.name for argument in assignment.arguments]
    tensors = {argument.name for argument in (*assignment.inputs, *assignment.outputs)}
    sizes = {name for case in assignment.cases for name in case.size}
    for function in {case.function: None for case in assignment.cases}:
        _check_sizes(assignment, function, reader)
    for index, argument in enumerate(assignment.arguments):
        _check_argument(argument, f"argument[{index}]", names, sizes, reader)
    for index, case in enumerate(assignment.cases):
        where = f"case[{index}]"
        _check_dtype(case.dtype, where, reader)
        if unknown := sorted(set(case.layout) - tensors):
            hint = reader.nearest(unknown[0], sorted(tensors))
            raise reader.error(f"{where}.layout", f"{unknown[0]!r} in `layout` is no tensor", hint)
        if case.name in {other.name for other in assignment.cases[:index]}:
            raise reader.error(f"{where}.name", f"two cases have the same name, {case.name!r}")
    _check_tolerance(assignment, reader)
    _check_lanes(assignment, reader)
    _check_requirements(assignment, reader)
    _check_writeup(assignment, reader)
    _check_cost(assignment, sizes, reader)


def _check_names(assignment: Assignment, reader: Reader) -> None:
    """The functions and their arguments are names in Python."""
    named = [(f"function[{index}].name", one.name) for index, one in enumerate(assignment.functions)]
    named += [("entry", assignment.entry)] if assignment.entry or not assignment.functions else []
    named += [(f"argument[{index}].name", argument.name) for index, argument in enumerate(assignment.arguments)]
    for where, name in named:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise reader.error(where, f"{name!r} cannot be a name in Python")


def _check_functions(assignment: Assignment, reader: Reader) -> None:
    """One function by `entry`, or several by `[[function]]`, of which every case names one and each has a case."""
    names = [function.name for function in assignment.functions]
    if names and assignment.entry:
        raise reader.error("entry", "is one function, and there are others by `[[function]]`", "Give one or the other.")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise reader.error(f"function[{index}].name", f"two functions have the name {name!r}")
    called = [case.function for case in assignment.cases]
    for index, name in enumerate(called):
        if name not in (names or [""]):
            hint = reader.nearest(name, names) if names else ""
            raise reader.error(f"case[{index}].function", f"{name!r} is none of the functions", hint)
    for index, function in enumerate(assignment.functions):
        _check_function(function, f"function[{index}]", assignment, reader)
        if function.name not in called:
            raise reader.error(f"function[{index}].name", f"no case calls {function.name!r}")


def _check_adapter(assignment: Assignment, reader: Reader) -> None:
    """What there cannot be beside functions that the source does not define, or not alone."""
    # A dry call has tensors without memory, for which an op's own fake kernel answers.
    if assignment.compile_for and (assignment.functions or assignment.adapter):
        raise reader.error("compile_for", "needs a single entry that the source itself defines")
    for index, language in enumerate(assignment.languages if assignment.adapter else ()):
        if EXTENSIONS[language] != ADAPTER.rpartition(".")[2]:
            raise reader.error(f"languages[{index}]", f"{language} is not written in Python, as {ADAPTER} is")


def _check_function(function: Function, where: str, assignment: Assignment, reader: Reader) -> None:
    known = {argument.name: argument for argument in assignment.arguments}
    for index, name in enumerate(function.arguments):
        if name not in known:
            raise reader.error(
                f"{where}.arguments[{index}]", f"there is no {name!r}", reader.nearest(name, list(known))
            )
    if not any(known[name].role == "output" for name in function.arguments):
        raise reader.error(f"{where}.arguments", f"{function.name!r} has no output")
    for name in function.arguments:
        if (of := known[name].of) and of not in function.arguments:
            raise reader.error(f"{where}.arguments", f"{name!r} is a stride of {of!r}, which {function.name!r} lacks")


def _check_limits(limits: Limits, reader: Reader) -> None:
    for limit in dataclasses.fields(Limits):
        if getattr(limits, limit.name) <= 0:
            raise reader.error(f"limits.{limit.name}", "has to be above 0")
    if limits.total_s > MOST_TOTAL_S:
        raise reader.error("limits.total_s", f"has to be {MOST_TOTAL_S:g} or less")


def _check_numbers(assignment: Assignment, reader: Reader) -> None:
    _check_limits(assignment.limits, reader)
    for share in dataclasses.fields(Points):
        if not 0 <= getattr(assignment.points, share.name) < float("inf"):
            raise reader.error(f"points.{share.name}", "has to be 0 or more")
    for lane, policy in assignment.lanes.items():
        if policy.pairs < 1:
            raise reader.error(f"lane.{lane}.pairs", "has to be 1 or more")
    for index, case in enumerate(assignment.cases):
        for name, value in case.size.items():
            if value < 0:
                raise reader.error(f"case[{index}].size", f"{name!r} cannot be below 0")


def _check_sizes(assignment: Assignment, function: str, reader: Reader) -> None:
    """All cases of a function set the same sizes, and every one that its arguments need.

    Where they do not, what few cases set is the mistake, else what some do not set.
    """
    mine = [(index, case) for index, case in enumerate(assignment.cases) if case.function == function]
    sizes = {name for _, case in mine for name in case.size}
    for index, case in mine:
        for name in sorted(case.size):
            setting = sum(name in other.size for _, other in mine)
            if 2 * setting < len(mine):
                hint = reader.nearest(name, sorted(sizes - {name}))
                raise reader.error(f"case[{index}].size", f"case {case.name!r} sets {name!r}, as few others do", hint)
    for index, case in mine:
        needed = _needed(assignment.part(case)) if function else set()
        if missing := sorted((sizes | needed) - set(case.size)):
            raise reader.error(f"case[{index}].size", f"case {case.name!r} does not set {missing[0]!r}")


def _needed(part: Assignment) -> set[str]:
    """The sizes that a function's arguments are, or have."""
    named = {argument.name for argument in part.arguments if argument.role == "size"}
    return named | {name for argument in part.arguments for name in argument.shape if not name.isdigit()}


def _check_dtype(dtype: str, where: str, reader: Reader) -> None:
    if dtype not in DTYPE_BYTES:
        hint = reader.alike(dtype, DTYPE_BYTES)
        raise reader.error(f"{where}.dtype", f"{dtype!r} is none of {', '.join(DTYPE_BYTES)}", hint)


def _check_tolerance(assignment: Assignment, reader: Reader) -> None:
    if set(assignment.tolerance) != {argument.name for argument in assignment.outputs}:
        raise reader.error("tolerance", "needs one entry per output and no other")
    for name, tolerance in assignment.tolerance.items():
        if tolerance.kind not in TOLERANCE_KINDS:
            hint = reader.nearest(tolerance.kind, TOLERANCE_KINDS)
            raise reader.error(f"tolerance.{name}", f"{tolerance.kind!r} is no kind of tolerance", hint)
        if tolerance.kind == "bounded" and tolerance.factor <= 0:
            raise reader.error(f"tolerance.{name}", "is bounded and needs a `factor` above 0")


def _check_family(family: Family, where: str, reader: Reader) -> None:
    _check_dtype(family.dtype, where, reader)
    for name, draw in [*family.size.items(), ("pad", family.pad), ("offset", family.offset)]:
        if draw and sum(bool(way) for way in (draw.choose, draw.near, draw.between, draw.prime)) != 1:
            raise reader.error(f"{where}.{name}", "give exactly one of choose, near, between and prime")


def _check_requirements(assignment: Assignment, reader: Reader) -> None:
    for index, target in enumerate(assignment.compile_for):
        if target not in TARGETS:
            hint = reader.alike(target, TARGETS)
            raise reader.error(f"compile_for[{index}]", f"{target!r} is none of {', '.join(TARGETS)}", hint)
    names = {case.name for case in assignment.cases}
    for index, requirement in enumerate(assignment.requirements):
        where = f"requirement[{index}]"
        if requirement.name in names:
            raise reader.error(f"{where}.name", f"two cases or requirements have the name {requirement.name!r}")
        names.add(requirement.name)
        check = _check_counted if requirement.target in COUNTED_BY else _check_requirement
        check(requirement, where, assignment, reader)
    for by in sorted({one.target for one in assignment.requirements if one.points}):
        worth = math.fsum(one.points for one in assignment.requirements if one.target == by)
        if not math.isclose(worth, assignment.points.speed):
            problem = f"requirements that the {by} counts give {worth:g} points"
            raise reader.error("requirement", problem, f"They have to give all {assignment.points.speed:g} for speed.")
    _check_run_requirements(assignment, reader)


def _check_run_requirements(assignment: Assignment, reader: Reader) -> None:
    public = {case.name for lane in Lane if lane is not Lane.cpu for case in assignment.cases_for(lane)}
    for index, requirement in enumerate(assignment.run_requirements):
        where = f"run_requirement[{index}]"
        if requirement.case not in public:
            problem = f"{requirement.case!r} is no public case of a lane with a GPU"
            raise reader.error(f"{where}.case", problem, reader.nearest(requirement.case, sorted(public)))
        _check_bounds(requirement, EXECUTED, where, reader)


def _check_writeup(assignment: Assignment, reader: Reader) -> None:
    asked = assignment.writeup
    if asked is None:
        return
    if asked.points < 0:
        raise reader.error("writeup.points", "cannot be below 0")
    if not 1 <= asked.max_mib <= MOST_WRITEUP_MIB:
        raise reader.error("writeup.max_mib", f"has to be from 1 to {MOST_WRITEUP_MIB}")
    for index, name in enumerate(asked.formats):
        if name not in WRITEUP_FORMATS:
            hint = reader.alike(name, WRITEUP_FORMATS)
            raise reader.error(f"writeup.formats[{index}]", f"{name!r} is none of {', '.join(WRITEUP_FORMATS)}", hint)
    if not asked.formats:
        raise reader.error("writeup.formats", "names no format")


def _check_counted(requirement: Requirement, where: str, assignment: Assignment, reader: Reader) -> None:
    """Only what nothing that a kernel does besides makes better: totals, from above."""
    public = {case.name for case in assignment.cases_for(Lane.cpu)}
    if requirement.case not in public:
        problem = f"{requirement.case!r} is no public case of the lane cpu"
        raise reader.error(f"{where}.case", problem, reader.nearest(requirement.case, sorted(public)))
    if requirement.group:
        raise reader.error(f"{where}.group", "what is counted gives `points`, and belongs to no group")
    given = [name for name in (*REQUIRED, *FIGURES) if getattr(requirement, name)]
    if not given or any(name in REQUIRED for name in given):
        raise reader.error(f"{where}.target", f"{requirement.target!r} counts {', '.join(FIGURES)} and nothing else")
    for name in given:
        if requirement.bounds.get(name, ("", 0))[0] not in {"<", "<=", "=="}:
            raise reader.error(f"{where}.{name}", 'has to be a bound from above, such as "<= 110"')


def _check_requirement(requirement: Requirement, where: str, assignment: Assignment, reader: Reader) -> None:
    if requirement.target not in assignment.compile_for:
        raise reader.error(f"{where}.target", f"{requirement.target!r} is not in `compile_for`")
    public = {case.name for lane in of_target(requirement.target) for case in assignment.cases_for(lane)}
    if requirement.case not in public:
        problem = f"{requirement.case!r} is no public case of a lane of {requirement.target}"
        raise reader.error(f"{where}.case", problem, reader.nearest(requirement.case, sorted(public)))
    if requirement.points or any(getattr(requirement, name) for name in FIGURES):
        raise reader.error(
            f"{where}.target", f"what is counted, and its `points`, needs one of {', '.join(COUNTED_BY)}"
        )
    _check_bounds(requirement, REQUIRED, where, reader)


def _check_bounds(
    requirement: Requirement | RunRequirement, names: tuple[str, ...], where: str, reader: Reader
) -> None:
    for name in names:
        text = getattr(requirement, name)
        if text and comparison(text) is None:
            raise reader.error(f"{where}.{name}", f'{text!r} is no comparison, such as "> 0", "== 0" or "<= 128"')
    if not requirement.bounds:
        raise reader.error(f"{where}.name", f"{requirement.name!r} requires none of {', '.join(names)}")


def _check_lanes(assignment: Assignment, reader: Reader) -> None:
    for lane, policy in assignment.lanes.items():
        if lane not in list(Lane):
            hint = reader.alike(lane, list(Lane))
            raise reader.error(f"lane.{lane}", f"is none of {', '.join(Lane)}", hint)
        if not 0 < policy.r_full < policy.r_zero < float("inf"):
            raise reader.error(f"lane.{lane}.r_full", "has to be above 0 and below r_zero, which has to be a number")
        if policy.r_zero > MOST_R_ZERO:
            problem = f"cannot be above {MOST_R_ZERO:g}: what is slower than that is measured less carefully"
            raise reader.error(f"lane.{lane}.r_zero", problem, "Speed points have to end at or below it.")
        if policy.apart:
            _check_apart(assignment, Lane(lane), policy, reader)


def _check_apart(assignment: Assignment, lane: Lane, policy: LanePolicy, reader: Reader) -> None:
    """An attempt that only measures needs something to measure."""
    if not policy.ranks:
        raise reader.error(f"lane.{lane}.apart", "needs `ranks`: there is nothing to measure apart")
    if not any(case.ranked for case in assignment.cases_for(lane)):
        raise reader.error(f"lane.{lane}.apart", "needs a ranked case: there is nothing to measure apart")


def _check_cost(assignment: Assignment, sizes: set[str], reader: Reader) -> None:
    if assignment.functions:
        for index, part in enumerate(assignment.parts):
            sizes = {name for case in part.cases for name in case.size}
            _check_formulas(part.cost, f"function[{index}].cost", sizes, reader)
    elif assignment.cost == Cost("", ""):
        raise reader.error("", "'cost' is missing")
    else:
        _check_formulas(assignment.cost, "cost", sizes, reader)


def _check_formulas(cost: Cost, where: str, sizes: set[str], reader: Reader) -> None:
    for key, formula in ((f"{where}.flops", cost.flops), (f"{where}.bytes", cost.bytes)):
        try:
            evaluate(formula, {**dict.fromkeys(sizes, 1.0), "e": 4.0})
        except (ValueError, SyntaxError) as error:
            raise reader.error(key, f"cannot be evaluated: {error}") from None


def _check_argument(argument: Argument, where: str, names: list[str], sizes: set[str], reader: Reader) -> None:
    if argument.role not in ROLES:
        hint = reader.alike(argument.role, ROLES)
        raise reader.error(f"{where}.role", f"{argument.role!r} is none of {', '.join(ROLES)}", hint)
    if argument.role == "scalar" and (argument.dtype not in SCALAR_DTYPES or argument.shape):
        problem = f"the scalar {argument.name!r} needs {' or '.join(SCALAR_DTYPES)}, no shape"
        raise reader.error(f"{where}.dtype", problem)
    if argument.role in {"input", "output"} and argument.dtype != "case":
        _check_dtype(argument.dtype, where, reader)
    if argument.role == "size" and argument.name not in sizes:
        hint = reader.nearest(argument.name, sorted(sizes))
        raise reader.error(f"{where}.name", f"{argument.name!r} is a size that no case sets", hint)
    if argument.role == "stride" and argument.of not in names:
        hint = reader.nearest(argument.of, names)
        raise reader.error(f"{where}.of", f"{argument.of!r} is not an argument", hint)
    for length in argument.shape:
        for name in re.findall(r"[A-Za-z_]\w*", length):
            if name not in sizes:
                hint = reader.nearest(name, sorted(sizes))
                raise reader.error(f"{where}.shape", f"{name!r} is a size that no case sets", hint)
        try:
            evaluate(length, dict.fromkeys(sizes, 1.0))
        except (SyntaxError, ValueError) as error:
            raise reader.error(f"{where}.shape", f"cannot be evaluated: {error}") from None


ARITHMETIC: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"ceil": math.ceil, "log2": math.log2, "min": min, "max": max}


def _evaluate(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            return float(ARITHMETIC[type(op)](_evaluate(left, names), _evaluate(right, names)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluate(operand, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return float(_FUNCTIONS[name](*(_evaluate(argument, names) for argument in arguments)))
    raise ValueError(f"{ast.unparse(node)!r} is not allowed in a formula")
