"""What becomes of a submission in CuTe DSL: its entry is traced and compiled once for every layout of its tensors.

The entry is called while it is traced, with tensors that have a type and a layout and no values; what it launches is in
the program, which is then called as often as it takes. Sizes and strides are constants of a program.

Written against nvidia-cutlass-dsl 4.8.1; `install` fails loudly if a name is gone.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from autograder.protocol import Load
from autograder.runner.languages.traced import KIND, LAUNCH_KIND, CompileError, Launch, Layout, Program, places
from autograder.runner.report import SubmissionError

PACKAGE = "nvidia_cutlass_dsl"

# Nothing is kept between runners: a program is compiled in a tenth of a second.
_ENVIRONMENT = {"CUTE_DSL_DISABLE_FILE_CACHING": "1", "CUTE_DSL_CACHE_DIR": "/tmp"}  # noqa: S108 -- it is not used.
_DTYPES = {
    "float64": "Float64", "float32": "Float32", "float16": "Float16", "bfloat16": "BFloat16", "int64": "Int64",
    "int32": "Int32", "int16": "Int16", "int8": "Int8", "uint8": "Uint8", "bool": "Boolean",
    "float8_e4m3fn": "Float8E4M3FN", "float8_e5m2": "Float8E5M2",
}  # fmt: skip
_SHARED = re.compile(
    r"(%\d+) = llvm\.getelementptr %\d+\[0, 2\] : \(!llvm\.ptr\) -> [^\n]*\n\s*llvm\.store (%\w+), \1 : i64"
)
"""Where the host code of a program, as LLVM gets it, says how much dynamic shared memory a launch takes."""
_MEANT = {
    "cudaErrorIllegalAddress": "an illegal memory access", "cudaErrorMisalignedAddress": "misaligned address",
    "cudaErrorInvalidConfiguration": "no device takes this grid or block",
}  # fmt: skip
"""What the runtime's errors are, of which the DSL tells names only; a launch has those of kernels before it too."""
_PLACE = re.compile(r'\("([^"\n]+)":(\d+):\d+\): ([^\n]+)')
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MOST_LINKS = 16


@dataclass(frozen=True)
class Toolchain:
    """The DSL's own functions, as they are before a submission can replace one.

    Attributes:
        refusals: exceptions by which it refuses a source.
    """

    version: str
    types: Mapping[str, Callable[[Any], Any]]
    jit: Callable[..., Any]
    kernel: Callable[..., Any]
    compile: Callable[..., Any]
    fake: Callable[..., Any]
    from_dlpack: Callable[..., Any]
    refusals: tuple[type[BaseException], ...]


def toolchain() -> Toolchain:
    """Import the DSL. Its folder is put on the path here: pip does it for one of its distributions only.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    os.environ.update(_ENVIRONMENT)
    found = find_spec(PACKAGE)
    folders = (found.submodule_search_locations or ()) if found else ()
    sys.path += [place for folder in folders if (place := f"{folder}/dsl_packages") not in sys.path]
    cutlass: Any = import_module("cutlass")
    cute: Any = import_module("cutlass.cute")
    runtime: Any = import_module("cutlass.cute.runtime")
    refusal: type[BaseException] = import_module("cutlass.base_dsl.common").DSLBaseError
    types = {dtype: getattr(cutlass, name) for dtype, name in _DTYPES.items()}
    return Toolchain(
        cutlass.__version__, types, cute.jit, cute.kernel, cute.compile, runtime.make_fake_tensor, runtime.from_dlpack,
        (refusal,),
    )  # fmt: skip


@dataclass
class Traced:
    """What a trace has come to.

    Attributes:
        kernel: whose body is traced now, by its function's name.
    """

    launches: list[Launch] = field(default_factory=list)
    kernel: str = ""


class Hooks:
    """Around what launches a kernel.

    Attributes:
        dsl: what is hooked into.
        ghosts: kernels are not launched.
        traced: of the trace that runs.
    """

    dsl: Toolchain

    def __init__(self) -> None:
        self.ghosts = False
        self.traced = Traced()

    def install(self) -> None:
        """Import the DSL, and take the place of its own method; to be called before a submission is loaded."""
        self.dsl = toolchain()
        launcher: Any = import_module("cutlass.cutlass_dsl.cutlass").KernelLauncher
        options: Any = import_module("cutlass.base_dsl.dsl")._NameOptions  # noqa: SLF001 -- as `set_name_prefix` does.
        launch = launcher.launch

        def watched(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            name = self.traced.kernel = str(kernel.funcBody.__name__)
            if self.ghosts:
                kernel._launched = True  # noqa: SLF001 -- otherwise it is refused as forgotten.
                self.traced.kernel = ""
                return None
            # The device shows the kernel by the name that the student gave it, and a number.
            kernel._name_options = options(name, remove_cutlass_symbol=True, keep_mangled_name=False)  # noqa: SLF001
            returned = launch(kernel, *args, **kwargs)
            config = dict(zip(("grid", "block"), args, strict=False)) | kwargs
            sizes = (_known(config.get("grid")), _known(config.get("block")))
            self.traced.launches.append(Launch(str(kernel._launch_name), *sizes))  # noqa: SLF001
            self.traced.kernel = ""
            return returned

        launcher.launch = watched


def _shared_bytes(host_code: str) -> list[int]:
    """Dynamic shared memory of every launch, in order."""
    numbers = dict(re.findall(r"(%\d+) = llvm\.mlir\.constant\((\d+) : i64\)", host_code))
    return [int(numbers.get(value, 0)) for _, value in _SHARED.findall(host_code)]


def _known(sizes: Any) -> tuple[int, ...]:
    each = sizes if isinstance(sizes, list | tuple) else (sizes,)
    return tuple(size for size in each if isinstance(size, int))


class Compiler:
    """Makes programs of one submission's entry.

    Args:
        options: of the DSL's, as `cute.compile` takes them.
    """

    def __init__(self, entry: Callable[..., Any], load: Load, hooks: Hooks, options: str = "") -> None:
        words = self._words = load.signatures[0]
        self._entry = entry
        self._filename = load.filename
        self._hooks = hooks
        self._options = f"--generate-line-info {options}".rstrip()
        self.fixed, self.given = places(words)
        self._dsl = hooks.dsl

    @property
    def kernel(self) -> str:
        """As `traced.Compiler` has it."""
        return self._hooks.traced.kernel

    def program(self, given: Sequence[Layout | int | float], fixed: Sequence[int]) -> Program:
        """Trace the entry and compile what it launches."""
        numbers = dict(zip(self.fixed, fixed, strict=True))

        def program(*dynamic: Any) -> None:
            values = numbers | dict(zip(self.given, dynamic, strict=True))
            self._entry(*(values[place] for place in range(len(values))))

        traced = self._hooks.traced = Traced()
        jitted = self._dsl.jit(preprocess=False)(program)
        try:
            call = self._dsl.compile(jitted, *map(self._argument, self.given, given), options=self._options)
        except self._dsl.refusals as error:
            first = traced.launches[0].kernel if traced.launches else ""
            raise CompileError(traced.kernel or first, self.told(error, KIND)) from error
        shared = _shared_bytes(str(call.ir_module))
        if len(shared) == len(traced.launches):
            pairs = zip(traced.launches, shared, strict=True)
            traced.launches = [replace(launch, shared_bytes=size) for launch, size in pairs]
        code, ptx = call.__cubin__, call.__ptx__
        return Program(call, tuple(traced.launches), code if isinstance(code, bytes) else b"", ptx or "")

    def launch(self, program: Program, arguments: Iterable[Any]) -> None:
        """Call a program."""
        try:
            program.call(*arguments)
        except self._dsl.refusals as error:
            raise self.told(error, LAUNCH_KIND) from None

    def tensor(self, tensor: Any, layout: Layout) -> Any:
        """As `traced.Compiler` has it."""
        return self._dsl.from_dlpack(tensor, assumed_align=layout.aligned)

    def number(self, place: int, value: float) -> Any:
        """As `traced.Compiler` has it."""
        return self._dsl.types[self._words[place].rpartition(" ")[2]](value)

    def _argument(self, place: int, given: Layout | float) -> Any:
        if isinstance(given, Layout):
            dtype = self._dsl.types[given.dtype]
            return self._dsl.fake(dtype, given.shape, given.stride, assumed_align=given.aligned)
        return self.number(place, given)

    def told(self, error: BaseException, kind: str) -> SubmissionError:
        """What the DSL says, with the student's line where it says one."""
        line, seen, message = 0, error, ""
        for _ in range(_MOST_LINKS):
            # A pass that fails tells places in its text only.
            placed = _PLACE.search(str(getattr(seen, "raw_error", "")))
            if placed is not None and placed[1] == self._filename:
                line, message = int(placed[2]), placed[3]
                break
            line = _line_in(seen, self._filename) or line
            message = str(getattr(seen, "message", "")) or str(seen) or message
            following = getattr(seen, "cause", None) or seen.__cause__
            if not isinstance(following, BaseException):
                break
            seen = following
        said = _COLOURS.sub("", message).strip() or type(error).__name__
        meant = next((words for name, words in _MEANT.items() if name in said), "")
        return SubmissionError("call", kind, f"{meant}: {said}" if meant else said, line)


def _line_in(error: BaseException, filename: str) -> int:
    """Where in the student's file it says that it is, or was raised; 0 where in none."""
    if getattr(error, "filename", None) == filename and isinstance(said := getattr(error, "line", None), int):
        return said
    lines, trace = [0], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            lines.append(trace.tb_lineno)
        trace = trace.tb_next
    return lines[-1]
