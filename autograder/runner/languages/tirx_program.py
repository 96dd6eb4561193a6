"""What becomes of a submission in TIRx: its entry returns a kernel for every layout of its tensors.

The entry is called with descriptions of tensors, which have no values, and returns what `T.prim_func` made. TVM lowers
it to CUDA C++ and to host code that launches it; nvcc compiles the former, in the runner's own sandbox.

Written against apache-tvm 0.26.0; `install` fails loudly if a name is gone.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from autograder.protocol import Load
from autograder.runner.languages import nvcc
from autograder.runner.languages.traced import KIND, LAUNCH_KIND, CompileError, Launch, Layout, Program, places
from autograder.runner.report import SubmissionError, cut

ASSEMBLER_KIND = "PTXASError"
PIPELINE = "kernel_ladder"
"""By this name TVM knows its own pipeline with a look at what comes out of it."""

_ENVIRONMENT = {
    # Otherwise tvm-ffi looks for a library of its own, and has a C++ compiler make it where there is none.
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",
}
_FLAGS = (
    "-std=c++17", "-O3", "-w", "--expt-relaxed-constexpr",
    # TVM's own level. Its other default, fast math, is left out: it turns subnormal numbers into zeros.
    "--ptxas-options=--register-usage-level=10",
)  # fmt: skip
_AXES = ("x", "y", "z")
_DYNAMIC = "tirx.use_dyn_shared_memory"
_SAID = re.compile(r"\Aerror: (?P<text>.*?)(?:\n --> (?P<file>[^\n]*?):(?P<line>\d+):\d+\n.*)?\Z", re.DOTALL)
"""A message of TVM's parser, with the place in the file."""
_REFUSED = re.compile(
    r"^(?:[^\s(:]+(?:\((?P<line>\d+)\)|:(?P<included>\d+):\d+): |ptxas .*?)?"
    r"(?:fatal error|catastrophic error|error|fatal)\s*: (?P<text>.*)$",
    re.MULTILINE,
)
"""What nvcc says of generated code, and its assembler of a kernel."""
_BODY = re.compile(r'^extern "C" __global__ [^;{]*\{', re.MULTILINE)
"""Where the body of a generated kernel begins."""
_MOST_TEXT = 600


@dataclass(frozen=True)
class Tensor:
    """What an entry is told of a tensor.

    Attributes:
        dtype: as TIRx writes it.
        strides: in elements.
        layout: of TIRx, by which a buffer of it finds an element.
        itemsize: bytes of an element.
        alignment: bytes that its address is a multiple of.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    layout: Any
    itemsize: int
    alignment: int


@dataclass(frozen=True)
class Number:
    """What an entry is told of an argument that is a number of every call's own."""

    dtype: str


@dataclass(frozen=True)
class Lowered:
    """A kernel as TVM lowers it.

    Attributes:
        run: TVM's module of the host.
        text: CUDA C++.
    """

    run: Any
    text: str
    launches: tuple[Launch, ...]


class Toolchain:
    """TVM's own functions, as they are before a submission can replace one.

    Attributes:
        compile_text: makes machine code of CUDA C++ where TVM asks for it, which it does where it finds a device.
    """

    def __init__(self) -> None:
        self.version = ""
        self.compile_text: Callable[[str], bytes] = lambda _: b""
        self._launches: tuple[Launch, ...] = ()

    def install(self) -> None:
        """Import TVM; to be called before a submission is loaded.

        Raises:
            ModuleNotFoundError: it is not installed.
        """
        os.environ.update(_ENVIRONMENT)
        self._tvm: Any = import_module("tvm")
        self._tirx: Any = import_module("tvm.tirx")
        self._layouts: Any = import_module("tvm.tirx.layout")
        pipelines: Any = import_module("tvm.tirx.compilation_pipeline")
        self.version = str(self._tvm.__version__)
        self._compile, self._module, self._target = self._tvm.compile, self._tvm.IRModule, self._tvm.target.Target
        self._visit = self._tirx.stmt_functor.post_order_visit
        self.refusal: type[BaseException] = self._tvm.error.DiagnosticError
        pipelines.register_tir_pipeline(PIPELINE, lambda: self._watched(*pipelines.tirx_pipeline()))
        ffi: Any = import_module("tvm_ffi")
        ffi.register_global_func("tvm_callback_cuda_compile", self._asked, override=True)

    def _asked(self, text: str) -> bytes:
        return self.compile_text(text)

    def _watched(self, pipeline: Any, *finalizers: Any) -> tuple[Any, ...]:
        def watched(module: Any, _context: Any) -> Any:
            lowered = pipeline(module)
            self._launches = tuple(self._launches_of(lowered))
            return lowered

        return (self._tvm.transform.module_pass(watched, opt_level=0), *finalizers)

    def is_kernel(self, made: Any) -> bool:
        """Whether it is what `T.prim_func` makes."""
        return isinstance(made, self._tirx.PrimFunc)

    def described(self, layout: Layout) -> Tensor:
        """A tensor as an entry is told of it."""
        layouts = self._layouts
        made = layouts.TileLayout(layouts.S[layout.shape : layout.stride])
        itemsize = (int(self._tvm.DataType(layout.dtype).bits) + 7) // 8
        return Tensor(layout.shape, layout.stride, layout.dtype, made, itemsize, layout.aligned)

    def lowered(self, kernel: Any, target: str) -> Lowered:
        """Lower a kernel for a target.

        Raises:
            BaseException: TVM refuses it.
        """
        device = self._target({"kind": "cuda", "arch": target})
        self._launches = ()
        made = self._compile(self._module({"main": kernel}), target=device, tir_pipeline=PIPELINE)
        text = "".join(str(one.inspect_source()) for one in made.mod.imports if one.kind == "cuda")
        return Lowered(made, text, self._launches)

    def _launches_of(self, module: Any) -> Iterator[Launch]:
        """What host code launches, in order."""
        parameters: dict[str, list[str]] = {}
        for function in module.functions.values():
            if "tirx.kernel_launch_params" in function.attrs:
                words = [str(word) for word in function.attrs["tirx.kernel_launch_params"]]
                parameters[str(function.attrs["global_symbol"])] = words
        seen: list[Launch] = []

        def visit(node: Any) -> None:
            arguments = list(getattr(node, "args", ()))
            name = str(getattr(arguments[0], "value", "")) if arguments else ""
            if name in parameters:
                words = parameters[name]
                values = [getattr(one, "value", None) for one in arguments[len(arguments) - len(words) :]]
                seen.append(_launch(name, dict(zip(words, values, strict=True))))

        for function in module.functions.values():
            if str(function.attrs.get("global_symbol", "")) not in parameters:
                self._visit(function.body, visit)
        return iter(seen)


def _launch(kernel: str, values: dict[str, Any]) -> Launch:
    grid, block = (
        tuple(int(value) for axis in _AXES if (value := values.get(f"{scope}.{axis}", 1)) is not None)
        for scope in ("blockIdx", "threadIdx")
    )
    return Launch(kernel, grid, block, int(values.get(_DYNAMIC) or 0))


@dataclass(frozen=True)
class Cubins:
    """nvcc for generated code.

    Attributes:
        folder: where machine code is kept, by what it was made of.
        most_bytes: address space of each of the compiler's processes.
    """

    compiler: str
    target: str
    folder: Path
    most_bytes: int = nvcc.COMPILER_BYTES

    def made(self, text: str) -> Path:
        """Where the machine code of a text is, and beside it, by another ending, its PTX.

        Raises:
            SubmissionError: nvcc refuses it.
        """
        folder = self.folder / hashlib.sha256(f"{self.target}\n{text}".encode()).hexdigest()[:32]
        cubin = folder / "kernel.cubin"
        if not cubin.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "kernel.cu").write_text(text, encoding="utf-8")
            with tempfile.TemporaryDirectory() as work:
                self._compile(folder, Path(work), text)
        return cubin

    def _compile(self, folder: Path, work: Path, text: str) -> None:
        done = subprocess.run(
            [self.compiler, *nvcc.code_for(self.target), *_FLAGS, "-cubin", "--keep", "--keep-dir", str(work), "-o",
             "made.cubin", str(folder / "kernel.cu")],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            env={**os.environ, "LC_ALL": "C"}, cwd=work, preexec_fn=lambda: nvcc.limit_memory(self.most_bytes),
        )  # fmt: skip
        if done.returncode != 0:
            raise _refused(done.stdout + done.stderr, text)
        # What else nvcc keeps are texts with all of CUDA's headers in them.
        for ptx in work.glob("*.ptx"):
            shutil.move(ptx, folder / "kernel.ptx")
        shutil.move(work / "made.cubin", folder / "kernel.cubin")


def _refused(said: str, text: str) -> SubmissionError:
    """What nvcc says, with the line of generated code that it is about."""
    found = _REFUSED.search(said)
    if found is None:
        return SubmissionError("call", KIND, f"nvcc failed on the generated CUDA C++: {cut(said.strip(), _MOST_TEXT)}")
    if (line := found["line"] or found["included"]) is None:
        return SubmissionError("call", ASSEMBLER_KIND, cut(found["text"], _MOST_TEXT))
    lines = text.split("\n")
    generated = lines[min(int(line), len(lines)) - 1].strip()
    message = f"nvcc does not take the generated CUDA C++: {found['text']}: {generated}"
    return SubmissionError("call", KIND, cut(message, _MOST_TEXT))


class Compiler:
    """Makes programs of one submission's entry.

    Args:
        runs: what is compiled is called: TVM finds the device. Otherwise a call does nothing.
    """

    kernel = ""

    def __init__(
        self, entry: Callable[..., Any], load: Load, toolchain: Toolchain, cubins: Cubins, *, runs: bool
    ) -> None:
        self._words = load.signatures[0]
        self.fixed, self.given = places(self._words)
        self._entry = entry
        self._load = load
        self._toolchain = toolchain
        self._cubins = cubins
        self._runs = runs
        self._refused: list[SubmissionError] = []

    def program(self, given: Sequence[Layout | int | float], fixed: Sequence[int]) -> Program:
        """Have the entry make its kernel, and compile it."""
        values: dict[int, Any] = dict(zip(self.fixed, fixed, strict=True))
        values |= {place: self._told_of(place, one) for place, one in zip(self.given, given, strict=True)}
        try:
            kernel = self._entry(*(values[place] for place in range(len(values))))
        except self._toolchain.refusal as error:
            told = _parsed(str(error), self._load.filename)
            raise CompileError(_function_at(self._load.source, told.line), told) from error
        line, name = self._placed(kernel)
        lowered = self._lowered(kernel, line, name)
        try:
            cubin = self._cubins.made(lowered.text)
        except SubmissionError as error:
            raise CompileError(name, SubmissionError(error.stage, error.kind, error.message, line)) from error
        ptx = cubin.with_suffix(".ptx")
        call = lowered.run["main"] if self._runs else _not_called
        return Program(call, lowered.launches, cubin.read_bytes(), ptx.read_text() if ptx.exists() else "")

    def _lowered(self, kernel: Any, line: int, name: str) -> Lowered:
        """As TVM lowers it; where it finds a device, it has it compiled already."""
        self._toolchain.compile_text = self._compiled
        self._refused.clear()
        try:
            lowered = self._toolchain.lowered(kernel, self._cubins.target)
        except Exception as error:
            # TVM refuses by errors of every kind, and loses that of who compiles; no code of the student's runs here.
            told = self._refused[-1] if self._refused else _parsed(str(error), self._load.filename)
            raise CompileError(name, SubmissionError("call", told.kind, told.message, told.line or line)) from error
        if not lowered.launches:
            raise CompileError(name, self._refusal("It launches no kernel: `T.device_entry()` is missing.", line))
        return lowered

    def tensor(self, tensor: Any, layout: Layout) -> Any:  # noqa: ARG002 -- as `traced.Compiler` has it.
        """The tensor: its layout is held against the kernel's by TVM's own host code."""
        return tensor

    def number(self, place: int, value: float) -> float:  # noqa: ARG002 -- as `traced.Compiler` has it.
        """The number."""
        return value

    def launch(self, program: Program, arguments: Iterable[Any]) -> None:
        """Call a program."""
        try:
            program.call(*arguments)
        except (TypeError, ValueError, RuntimeError) as error:
            raise SubmissionError("call", LAUNCH_KIND, cut(str(error), _MOST_TEXT)) from None

    def _compiled(self, text: str) -> bytes:
        try:
            return self._cubins.made(_hollow(text) if self._load.ghost else text).read_bytes()
        except SubmissionError as error:
            self._refused.append(error)
            raise

    def _told_of(self, place: int, given: Layout | float) -> Tensor | Number:
        if isinstance(given, Layout):
            return self._toolchain.described(given)
        return Number(self._words[place].rpartition(" ")[2])

    def _placed(self, kernel: Any) -> tuple[int, str]:
        """The line and the name of what an entry returned."""
        wanted = f"`{self._load.entry}` has to return the function that `T.prim_func` makes"
        if not self._toolchain.is_kernel(kernel):
            raise CompileError("", self._refusal(f"{wanted}; it returned an object of {type(kernel).__name__}."))
        name = str(kernel.attrs["global_symbol"]) if "global_symbol" in (kernel.attrs or {}) else self._load.entry
        line = _line_of(self._load.source, name)
        if (takes := len(kernel.params)) != len(self.given):
            given = ", ".join(self._load.arguments[place] for place in self.given)
            message = f"`{name}` takes {takes} arguments, and is called with {given}."
            raise CompileError(name, self._refusal(message, line))
        return line, name

    def _refusal(self, message: str, line: int = 0) -> SubmissionError:
        return SubmissionError("call", KIND, cut(message, _MOST_TEXT), line)


def _not_called(*_arguments: Any) -> None:
    """What stands for a program that no device is there for."""


def _hollow(text: str) -> str:
    """The same kernels, which do nothing: a ghost launches these, and runs all host code."""
    return _BODY.sub(lambda found: f"{found[0]}\n  return;", text)


def _parsed(said: str, filename: str) -> SubmissionError:
    """What TVM says, with the place that it says."""
    found = _SAID.match(said)
    if found is None:
        return SubmissionError("call", KIND, cut(said.strip(), _MOST_TEXT))
    line = int(found["line"]) if found["line"] and found["file"] == filename else 0
    return SubmissionError("call", KIND, cut(found["text"].strip(), _MOST_TEXT), line)


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def _function_at(text: str, line: int) -> str:
    """The name of the innermost function that a line is in."""
    around = [one for one in _functions(text) if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return max(around, key=lambda one: one.lineno).name if around else ""


def _line_of(text: str, name: str) -> int:
    """Where a function is defined; 0 where none is."""
    return next((one.lineno for one in _functions(text) if one.name == name), 0)
