"""One life of a runner that compiles a CUDA C++ submission.

nvcc compiles the file for every target, then there is a process for each: the launcher is called with addresses that
nothing stands behind, on a runtime that launches nothing and writes everything down. What the launcher does with values
of the device cannot be followed.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from autograder.compile_checks import cuda_compiler, machine_code, parts
from autograder.compile_checks.child import Child, Said, Say
from autograder.compile_checks.cuda_compiler import Compiler, Made, Refusal
from autograder.compile_checks.dry_library import FIRST_ADDRESS, DryRuntime, Launch, build
from autograder.compile_checks.messages import (
    MOST_USES,
    NO_COMPILER,
    NO_TARGET,
    OUT_OF_TIME,
    Compile,
    DryCase,
    Part,
    Reading,
)
from autograder.compile_checks.targets import NVIDIA, TARGETS, of_vendor
from autograder.contract import Language
from autograder.languages.cuda import LANGUAGE
from autograder.protocol import Load
from autograder.runner.languages import cuda_entry, nvcc
from autograder.runner.languages.cuda_library import Library
from autograder.runner.report import SubmissionError, cut, describe

FOLLOW_S = 10.0
"""How long the host code of all cases may take for one target."""

_MOST_TEXT = 300
_PAGE = 2 * 2**20
_ITEM_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}

Fault = dict[str, Any]


@dataclass
class Toolchain:
    """What the zygote found and made.

    Attributes:
        path: of nvcc; `""` where there is none.
        runtime: the stand-in for CUDA's, as a library's bytes.
        targets: that it compiles for; nvcc before 12.8 does not know Blackwell.
    """

    path: str = ""
    runtime: bytes = b""
    targets: frozenset[str] = frozenset()


def warm() -> Toolchain:
    """Look for nvcc; where it is, ask what it compiles for, and compile the stand-in for its runtime."""
    try:
        path = nvcc.find_nvcc()
    except RuntimeError:
        return Toolchain()
    with tempfile.TemporaryDirectory() as folder:
        return Toolchain(path, build(path, Path(folder)), nvcc.known_targets(path, of_vendor(NVIDIA)))


def warmed() -> Callable[[socket.socket], None]:
    """What serves a channel with what is found here."""
    toolchain = warm()
    return lambda channel: serve(channel, toolchain)


def serve(channel: socket.socket, toolchain: Toolchain) -> None:
    """Run until the judge hangs up."""
    parts.serve(channel, lambda request, text: _prepared(request, text, toolchain))


def _prepared(request: Compile, text: str, toolchain: Toolchain) -> parts.CompilePart:
    """Compile for every target that nvcc knows, which runs nothing of the file."""
    if not toolchain.path:
        return lambda part, code: parts.nothing(part, NO_COMPILER, code)
    folder = Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "nvcc"
    folder.mkdir()
    (folder / "dry.so").write_bytes(toolchain.runtime)
    signatures = tuple(dict.fromkeys(case.signature for part in request.parts for case in part.cases))
    load = Load(text, request.filename, Language(LANGUAGE.id), request.entry, request.arguments, signatures=signatures)
    compiler = Compiler(load, folder, toolchain.path, request.budget_s)
    made = {part.target: compiler.compile(part.target) for part in request.parts if part.target in toolchain.targets}

    def compile_part(part: Part, code: int) -> dict[str, Any]:
        if part.target not in made:
            return parts.nothing(part, NO_TARGET, code)
        return _Target(load, part, made[part.target], compiler.library, folder).told(code, request.most)

    return compile_part


@dataclass
class _Kernel:
    """A kernel as it is launched: one function with one shape of block and one amount of dynamic shared memory."""

    launch: Launch
    uses: list[tuple[int, int]] = field(default_factory=list)


class _Target:
    """One target, in a process of its own."""

    def __init__(self, load: Load, part: Part, made: Made, library: Path | None, folder: Path) -> None:
        self._load = load
        self._part = part
        self._made = made
        self._library = library
        self._runtime = DryRuntime(folder / "dry.so", TARGETS[part.target])
        self._used: dict[str, Reading] = {}

    def told(self, code: int, most: int) -> dict[str, Any]:
        """`messages.Compiled` as it travels."""
        course = parts.Course(fault=_fault(OUT_OF_TIME, "") if self._made.stopped else None)
        kernels: list[parts.Told] = list(self._refused())
        if kernels and self._made.is_refused:
            # Launches decide nothing: they follow from what the stand-in says, which is not all that a device says.
            course = replace(course, refused=self._everywhere(kernels[0]))
        if self._made.cubin:
            self._used = machine_code.resources_of_all(self._made.cubin)
            launches, course = self._follow()
            seen = [self._launched(kernel) for kernel in _kernels(launches)]
            # What was not seen to be launched is shown where the launches could not all be seen.
            launched = {launch.function for _, _, launch in launches}
            unseen = [self._unseen(name) for name in self._used if course.fault and name not in launched]
            course = replace(course, left_out=max(0, len(seen) + len(unseen) - most))
            kernels += [*seen, *unseen][:most]
        return {"target": self._part.target, **parts.fitting(kernels, course, code)}

    # --- what the compiler refuses -----------------------------------------------------------------------------------

    def _refused(self) -> Iterator[parts.Told]:
        """The file, or the kernels of it, that do not compile: then no launch of any case is compiled."""
        uses = [[number, 0] for number in range(len(self._part.cases))]
        if self._made.error is not None:
            fault = describe(self._made.error, self._load.filename, ())
            yield parts.Told({**self._fields(self._load.entry, "", ""), "uses": uses, "fault": fault})
        for function, refusal in _first_of_each(self._made.refusals).items():
            name, arguments = _name_of(self._runtime.plain(function)) if function else (self._load.entry, "")
            frames = [{"line": refusal.line, "function": name, "code": ""}] if refusal.line else []
            fault = {"kind": "PTXASError", "message": refusal.text, "frames": frames}
            ptx = cuda_compiler.of_entry(self._made.ptx, function) if function else ""
            yield parts.Told({**self._fields(name, "", arguments), "uses": uses, "fault": fault}, ptx=ptx.encode())

    def _everywhere(self, told: parts.Told) -> list[dict[str, Any]]:
        """`messages.RefusedCall` of every case: what does not compile is called by none."""
        kernel, fault = told.fields["kernel"], told.fields["fault"]
        return [{"case": number, "kernel": kernel, "fault": fault} for number in range(len(self._part.cases))]

    # --- what is launched --------------------------------------------------------------------------------------------

    def _launched(self, kernel: _Kernel) -> parts.Told:
        launch = kernel.launch
        fault = {"kind": launch.kind, "message": launch.refusal, "frames": []} if launch.refusal else None
        name, arguments = _name_of(self._runtime.plain(launch.function))
        fields = self._fields(name, _config(launch), arguments)
        fields |= {"uses": [list(use) for use in kernel.uses], "shared_bytes": launch.shared_bytes, "fault": fault}
        return self._with_code(fields, launch.function)

    def _unseen(self, function: str) -> parts.Told:
        name, arguments = _name_of(self._runtime.plain(function))
        return self._with_code(self._fields(name, "no launch was seen", arguments), function)

    def _with_code(self, fields: dict[str, Any], function: str) -> parts.Told:
        ptx = cuda_compiler.of_entry(self._made.ptx, function)
        return parts.Told(fields | {"function": function}, self._made.cubin, ptx.encode())

    def _fields(self, name: str, config: str, arguments: str) -> dict[str, Any]:
        return {
            "kernel": cut(name, _MOST_TEXT), "uses": [], "config": cut(config, _MOST_TEXT),
            "arguments": cut(arguments, _MOST_TEXT), "shared_bytes": 0, "fault": None,
        }  # fmt: skip

    # --- the host code -----------------------------------------------------------------------------------------------

    def _follow(self) -> tuple[list[tuple[int, int, Launch]], parts.Course]:
        """Every launch with its case and number, and how the calls went."""
        lacking = self._lacking()
        if lacking:
            message = f"the host code needs {', '.join(lacking)}, which the stand-in for CUDA's runtime does not have"
            return [], parts.Course(fault=_fault("NotFollowed", message))
        said, ended = _in_a_child(self._run_host_code)
        launches: list[tuple[int, int, Launch]] = []
        fault, case = None, ""
        for one in said:
            if one.get("fault"):
                fault, case = (fault, case) if fault else (one["fault"], one["case"])
            for number, launch in enumerate(one.get("launches", ())):
                launches.append((int(one["number"]), number, _launch(launch)))
        if ended is not None and fault is None:
            running = len(said)
            fault = ended
            case = self._part.cases[running].name if running < len(self._part.cases) else ""
        return launches, parts.Course(fault=fault, case=case)

    def _lacking(self) -> list[str]:
        """CUDA's functions that the library asks for and the stand-in has not."""
        done = subprocess.run(
            ["nm", "-uD", str(self._library)], capture_output=True, text=True, errors="replace", check=False
        )
        names = [line.split()[-1].partition("@")[0] for line in done.stdout.splitlines() if line.split()]
        return [name for name in names if name.startswith(("cu", "__cuda")) and self._runtime.lacks(name)]

    def _run_host_code(self, say: Say) -> None:
        """Load the library and call its launcher on every case. From here on the student's code runs."""
        for name, reading in self._used.items():
            self._runtime.know(name, reading)
        try:
            library = Library(Path(str(self._library)), self._load, prefix="kernel_ladder")
            words = cuda_entry.Words(self._load, cuda_entry.taken(self._load, library.takes))
        except SubmissionError as error:
            say({"number": 0, "fault": describe(error, self._load.filename, ()), "case": ""})
            return
        for number, case in enumerate(self._part.cases):
            fault = self._called(library, words, case)
            launches = [vars(one) for one in self._runtime.launches()]
            if fault and fault["kind"] == "LauncherError" and any(one["refusal"] for one in launches):
                # It is told of the launch already.
                fault = None
            say({"number": number, "launches": launches, "fault": fault, "case": case.name})

    def _called(self, library: Library, words: cuda_entry.Words, case: DryCase) -> Fault | None:
        self._runtime.begin()
        try:
            library.call(words.of(_values(self._load.arguments, case)))
        except SubmissionError as error:
            return describe(error, self._load.filename, ())
        if self._runtime.looked():
            return _fault("NotFollowed", "it copies values from the device, and without a device they are zeros")
        return None


def _launch(fields: Mapping[str, Any]) -> Launch:
    """A launch as it came through the pipe, of which every word is the student's."""
    function, kind, refusal = (str(fields[name]) for name in ("function", "kind", "refusal"))
    block, cluster = (tuple(int(size) for size in fields[name]) for name in ("block", "cluster"))
    return Launch(function, block, cluster, int(fields["shared_bytes"]), kind, refusal)


def _first_of_each(refusals: Sequence[Refusal]) -> Mapping[str, Refusal]:
    found: dict[str, Refusal] = {}
    for refusal in refusals:
        found.setdefault(refusal.function, refusal)
    return found


def _kernels(launches: Sequence[tuple[int, int, Launch]]) -> list[_Kernel]:
    """Launches of the same kernel in the same form are one."""
    found: dict[Launch, _Kernel] = {}
    for case, number, launch in launches:
        kernel = found.setdefault(launch, _Kernel(launch))
        if len(kernel.uses) < MOST_USES:
            kernel.uses.append((case, number))
    return list(found.values())


def _config(launch: Launch) -> str:
    """`block 32×8, cluster 4, 65536 B dynamic`."""
    words = [f"block {parts.shape_text(launch.block)}"]
    words += [f"cluster {parts.shape_text(launch.cluster)}"] if any(launch.cluster) else []
    words += [f"{launch.shared_bytes} B dynamic"] if launch.shared_bytes else []
    return ", ".join(words)


def _name_of(plain: str) -> tuple[str, str]:
    """A kernel's name with its template's arguments, and the types that it takes."""
    head, arguments, depth = plain, "", 0
    for place in range(len(plain) - 1, -1, -1):
        depth += (plain[place] == ")") - (plain[place] == "(")
        if plain[place] == "(" and depth == 0:
            head, arguments = plain[:place], plain[place + 1 : -1]
            break
    return head.removeprefix("void ").strip(), arguments


def _values(names: Sequence[str], case: DryCase) -> list[Any]:
    """What the launcher is called with: addresses at which nothing is, aligned as the judge would lay them out."""
    values: dict[str, Any] = dict(case.scalars)
    address = FIRST_ADDRESS
    for tensor in case.tensors:
        item = _ITEM_BYTES.get(tensor.dtype, 1)
        last = sum((length - 1) * step for length, step in zip(tensor.shape, tensor.stride, strict=True))
        begin = address + tensor.offset * item
        values[tensor.name] = SimpleNamespace(dtype=tensor.dtype, data_ptr=lambda begin=begin: begin)
        address += ((tensor.offset + last + 1) * item // _PAGE + 2) * _PAGE
    return [values[name] for name in names]


def _fault(kind: str, message: str) -> Fault:
    return {"kind": kind, "message": message, "frames": []}


# --- a process for what is the student's -----------------------------------------------------------------------------


def _in_a_child(work: Callable[[Say], None]) -> tuple[list[Said], Fault | None]:
    """Do it in a process of its own; what it said, one after the other, and how it ended if not by itself."""
    told = Child(work).work(FOLLOW_S)
    return told.said, _how_it_ended(told.ending, in_time=told.in_time)


def _how_it_ended(ending: dict[str, int | None], *, in_time: bool) -> Fault | None:
    if not in_time:
        return _fault("NotFollowed", f"it did not end within {FOLLOW_S:g} s")
    if (number := ending["signal"]) is not None:
        if number in {signal.SIGSEGV, signal.SIGBUS}:
            message = "it accessed memory that is not on the host; tensors are on the device"
            return _fault(signal.Signals(number).name, message)
        # Those for real time have no names.
        return _fault("NotFollowed", f"it was ended by signal {number}")
    return _fault("NotFollowed", f"it ended the process with exit status {ending['code']}") if ending["code"] else None
