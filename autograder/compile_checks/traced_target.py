"""What runners have in common that compile a language of `runner.languages.traced`.

The entry is called with the layouts of each case, as a runner of a GPU lane calls it, and compiled for the target.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autograder.compile_checks import parts
from autograder.compile_checks.messages import MOST_KERNELS, MOST_USES, Compile, DryCase, DryTensor, Part
from autograder.compile_checks.targets import TARGETS, Target
from autograder.contract import Language
from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.languages.traced import VECTOR_BYTES, CompileError, Compiler, Launch, Layout, Program
from autograder.runner.report import cut, describe

_MOST_TEXT = 300
_WIDTHS = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}

Fault = dict[str, Any]


@dataclass(frozen=True)
class Making:
    """What makes a compiler.

    Attributes:
        language: its id.
        compiler: of an entry, what was loaded, a target, and a folder of its own.
    """

    language: str
    compiler: Callable[[Callable[..., Any], Load, str, str], Compiler]


@dataclass
class _Kernel:
    """A kernel as it is launched: one function of one program.

    Attributes:
        fields: as `messages.ClaimedKernel` has them.
        program: that it is in; none where it is refused.
        uses: numbers of case and launch.
    """

    fields: dict[str, Any]
    program: Program | None
    uses: list[list[int]] = field(default_factory=list)


class TracedTarget:
    """One target, in a process of its own."""

    def __init__(self, request: Compile, part: Part, text: str, making: Making) -> None:
        self._request = request
        self._part = part
        self._text = text
        self._making = making
        self._folder = tempfile.mkdtemp()
        # Of processors: a busy machine leaves no case out.
        self._times = os.times
        self._end = sum(self._times()[:4]) + request.budget_s
        self._kernels: dict[tuple[Any, ...], _Kernel] = {}
        self._refused: list[dict[str, Any]] = []
        self._left_out = 0

    def told(self, code: int) -> dict[str, Any]:
        """`messages.Compiled` as it travels."""
        fault, case = self._compile()
        most = min(self._request.most, MOST_KERNELS)
        kernels = list(self._told())
        left_out = self._left_out + max(0, len(kernels) - most)
        course = parts.Course(left_out, fault, case, self._refused)
        return {"target": self._part.target, **parts.fitting(kernels[:most], course, code)}

    def _compile(self) -> tuple[Fault | None, str]:
        """Compile every case; what ended the host code of the first that did not end by itself."""
        request = self._request
        signature = self._part.cases[0].signature
        load = Load(
            self._text, request.filename, Language(self._making.language), request.entry, request.arguments,
            signatures=(signature,),
        )  # fmt: skip
        try:
            entry, _ = source.find_entry(source.execute(load), load)
        except BaseException as error:  # noqa: BLE001 -- the student's code: SystemExit and KeyboardInterrupt too.
            return describe(error, request.filename, ()), ""
        compiler = self._making.compiler(entry, load, self._part.target, self._folder)
        ended: tuple[Fault | None, str] = (None, "")
        for number, one in enumerate(self._part.cases):
            if sum(self._times()[:4]) > self._end:
                self._left_out += 1
                continue
            fault = self._case(compiler, number, one)
            ended = ended if ended[0] or fault is None else (fault, one.name)
        return ended

    def _case(self, compiler: Compiler, number: int, case: DryCase) -> Fault | None:
        """Compile for the layouts of a case; what ended its host code, if it was that."""
        values = {one.name: _layout(one) for one in case.tensors} | case.scalars
        arguments: list[Any] = [values[name] for name in self._request.arguments]
        try:
            program = compiler.program(
                [arguments[place] for place in compiler.given], [int(arguments[place]) for place in compiler.fixed]
            )
        except CompileError as error:
            return self._refuse(number, error.kernel, error.told)
        except BaseException as error:  # noqa: BLE001 -- the same.
            return self._refuse(number, compiler.kernel, error)
        given = zip(self._request.arguments, arguments, strict=True)
        said = ", ".join(_argument(name, one) for name, one in given if isinstance(one, Layout))
        for launch_number, launch in enumerate(program.launches):
            self._launched(number, launch_number, launch, program, said)
        return None

    def _refuse(self, case: int, kernel: str, error: BaseException) -> Fault | None:
        """Keep why a kernel is not taken; the fault itself where no kernel was being traced."""
        fault = describe(error, self._request.filename, ())
        if not kernel:
            return fault
        self._keep(_fields(kernel, "", "", fault), None, case, 0)
        self._refused.append({"case": case, "kernel": kernel, "fault": fault})
        return None

    def _launched(self, case: int, number: int, launch: Launch, program: Program, arguments: str) -> None:
        words = [f"block {parts.shape_text(launch.block)}"] if launch.block else []
        words += [f"{launch.shared_bytes} B dynamic"] if launch.shared_bytes else []
        fault = _over(launch, TARGETS[self._part.target])
        fields = _fields(launch.kernel, ", ".join(words), arguments, fault)
        self._keep(fields | {"shared_bytes": launch.shared_bytes, "function": launch.kernel}, program, case, number)
        if fault:
            self._refused.append({"case": case, "kernel": launch.kernel, "fault": fault})

    def _keep(self, fields: dict[str, Any], program: Program | None, case: int, number: int) -> None:
        code = program.code if program else b""
        key = (fields["kernel"], fields["config"], fields["arguments"], code, bool(fields["fault"]))
        uses = self._kernels.setdefault(key, _Kernel(fields, program)).uses
        if len(uses) < MOST_USES:
            uses.append([case, number])

    def _told(self) -> Iterator[parts.Told]:
        for kernel in self._kernels.values():
            fields, made = kernel.fields | {"uses": kernel.uses}, kernel.program
            yield parts.Told(fields, made.code, made.ptx.encode()) if made else parts.Told(fields)


def _fields(kernel: str, config: str, arguments: str, fault: Fault | None) -> dict[str, Any]:
    return {
        "kernel": cut(kernel, _MOST_TEXT), "config": config, "arguments": cut(arguments, _MOST_TEXT), "fault": fault,
    }  # fmt: skip


def _over(launch: Launch, target: Target) -> Fault | None:
    """What the device would say of a launch that asks for more than a block may have."""
    said = ""
    if (threads := math.prod(launch.block)) > target.threads:
        said = f"the block has {threads} threads; there may be {target.threads}"
    elif launch.shared_bytes > target.shared_bytes:
        said = f"the block asks for {launch.shared_bytes} B of shared memory; there are {target.shared_bytes} B"
    return {"kind": "OutOfResources", "message": said, "frames": []} if said else None


def _layout(tensor: DryTensor) -> Layout:
    width = _WIDTHS.get(tensor.dtype, 1)
    aligned = VECTOR_BYTES if tensor.offset * width % VECTOR_BYTES == 0 else width
    return Layout(tensor.dtype, tensor.shape, tensor.stride, aligned)


def _argument(name: str, layout: Layout) -> str:
    """`x: bfloat16 (16384, 8192):(8192, 1) ÷16`, as CuTe writes a layout."""
    shape, stride = ("(" + ", ".join(map(str, sizes)) + ")" for sizes in (layout.shape, layout.stride))
    return f"{name}: {layout.dtype} {shape}:{stride} ÷{layout.aligned}"
