"""Compile a translated `.cu` file with g++ to a shared library that checks every access to memory.

The compiler is asked for the calls that a sanitizer would make (`-fsanitize=thread,alignment,bounds`), and the
emulator answers them itself: no sanitizer's runtime has to be loaded before everything else, and a message can speak of
threads, blocks and arguments.

What does not depend on the file is made ahead (`prepare`): the machine behind the headers, compiled, and the headers as
g++ reads them fastest. That takes a build from 1.2 s to half a second.

g++ reads the file twice: as the preprocessor, whose output is translated, and then as the compiler. The first takes a
fiftieth of a second, and leaves nothing to guess: what a macro hides is there, and what no condition lets through is
gone.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from autograder.emulator import refusals
from autograder.emulator.translate import CHECKS, ENTRY_FILE, translate, with_its_own_lines
from autograder.languages.cpp_text import shown_name
from autograder.languages.cuda import headers

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
HEADER = "cuda_runtime.h"
AHEAD = "kernel_ladder_ahead.h"
"""What is precompiled: a file of its own name, as g++ takes nothing else for an `#include` of the name it found."""
CLOSED = "cuda_emulator/unchecked.h"
"""What is read last before the student's file."""
CUTE = "cuda_emulator/cute.h"
"""What is read before that for a file that includes CuTe, where its headers are installed."""
READ = "kernel_ladder_read.ii"
"""The student's file, preprocessed and translated."""
MAX_MESSAGE_CHARS = 64_000
MAX_LIBRARY_HEADERS = 32
"""Headers of libraries that one file may include: each of them lets the preprocessor run once more."""
COMPILER_BYTES = 1536 * 2**20
"""Address space of the compiler: what needs more is told so, before the memory of the whole runner is used up."""

_COMMON = ("-std=c++17", "-g1", "-fPIC", "-I", str(INCLUDE))
_FLAGS = (
    *_COMMON, "-O1",
    # Each library has an emulator of its own, however many of them one process loads.
    "-fno-gnu-unique",
    # Kernels look at floats as float4 and at bits as numbers; nvcc lets them.
    "-fno-strict-aliasing",
    # What is right on the GPU by IEEE rules is right here by the same.
    "-fno-fast-math", "-ffp-contract=off",
    # A call before every access, and other ones for what is volatile.
    f"-fsanitize={','.join(CHECKS)}", "--param", "tsan-distinguish-volatile=1",
    # `#pragma unroll`, parameters of names that start with two underscores, and other things that are usual in CUDA.
    "-Wno-unknown-pragmas", "-w",
    "-fdiagnostics-plain-output", "-fmax-errors=20",
    # In a kernel `new` gives nothing where there is no more memory.
    "-fcheck-new",
)  # fmt: skip
_INCLUDES_CUTE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]cute/', re.MULTILINE)
_MACHINE = ("machine.cpp", "races.cpp", "counters.cpp")
_HEAP = tuple(
    f"--redefine-sym={name}=cuda_emulator_{name}"
    for name in ("malloc", "free", "_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm")
)
"""malloc, new, free and delete of the student's file are the machine's: in a kernel they are of the kernels' heap."""


class CompileError(Exception):
    """The compiler refused the file; the message is its own, with the student's file name and lines."""


class NoCompilerError(Exception):
    """There is no g++ on this machine."""


@dataclass(frozen=True)
class Prepared:
    """A folder with the compiled machine and the precompiled headers."""

    folder: Path

    @property
    def machine(self) -> tuple[Path, ...]:
        """The object files."""
        return tuple(self.folder / Path(name).with_suffix(".o") for name in _MACHINE)

    @property
    def headers(self) -> Path:
        """The precompiled headers; g++ finds them by this name."""
        return self.folder / f"{AHEAD}.gch"


def prepare(folder: Path) -> Prepared:
    """Compile into `folder` what every build needs; takes about two seconds.

    Raises:
        NoCompilerError: there is no g++.
        CompileError: it does not compile the emulator.
    """
    made = Prepared(folder)
    for name, compiled in zip(_MACHINE, made.machine, strict=True):
        _compile([*_COMMON, "-O2", "-c", str(HERE / name), "-o", str(compiled)], folder)
    # A file that includes the header, rather than the header: so it knows that the student's #include comes second.
    (folder / AHEAD).write_text(f"#include <{HEADER}>\n", encoding="utf-8")
    _compile([*_FLAGS, "-x", "c++-header", str(folder / AHEAD), "-o", str(made.headers)], folder)
    return made


def build(source: str, folder: Path, prepared: Prepared, *, filename: str = "kernel.cu", entry: str = "") -> Path:
    """Translate and compile `source` in `folder`; errors name `filename` and its own lines.

    Args:
        entry: C++ that follows the file, such as the function by which the harness calls it.

    Returns:
        The shared library.

    Raises:
        UnsupportedError, MalformedError: the translation refused it.
        CompileError: the compiler did.
    """
    student, compiled, library = folder / "student", folder / "kernel.o", folder / "kernel.so"
    student.mkdir(exist_ok=True)
    # By this name, relative to where the compiler runs, errors and the debugger's lines speak of the file.
    name = shown_name(filename)
    (student / name).write_text(followed_by(with_its_own_lines(source), entry), encoding="utf-8")
    flags = ["-I", str(prepared.folder), *_FLAGS]
    # The header comes first as nvcc's does, whether or not the file asks for it.
    ahead = ["-include", AHEAD, *_cute(source), "-include", CLOSED]
    try:
        read = _preprocess([*flags, *ahead], name, student)
        (student / READ).write_text(translate(read, name), encoding="utf-8")
        _compile([*flags, "-fpreprocessed", "-x", "c++", "-c", READ, "-o", str(compiled)], student)
    except CompileError as error:
        refusals.raise_for(str(error), name, source)
        raise
    _run([_tool("objcopy"), *_HEAP, str(compiled)], student)
    link = ["-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-o", str(library), str(compiled), *map(str, prepared.machine)]
    _compile(link, student)
    return library


def _cute(source: str) -> tuple[str, ...]:
    found = headers.flags("-idirafter") if _INCLUDES_CUTE.search(source) else ()
    return (*found, "-include", CUTE) if found else ()


def _preprocess(flags: list[str], name: str, student: Path) -> str:
    """The file as g++ reads it, with nothing for the headers of libraries that are not here."""
    empty = student / "empty"
    command = ["-E", "-fpch-preprocess", *flags, "-idirafter", str(empty), "-x", "c++", name]
    for _ in range(MAX_LIBRARY_HEADERS):
        try:
            return _compile(command, student)
        except CompileError as error:
            header = refusals.unused_header(str(error), name)
            if not header:
                raise
            (empty / header).parent.mkdir(parents=True, exist_ok=True)
            (empty / header).touch()
    return _compile(command, student)


def followed_by(source: str, entry: str) -> str:
    """The student's file, and C++ that belongs to the harness behind it."""
    # Two ends of line: a backslash that ends the file takes the first of them away.
    return f'{source}\n\n#line 1 "{ENTRY_FILE}"\n{entry}\n'


def line_of(library: Path, code: int, filename: str) -> int:
    """The line of `filename` that the instruction at `code` in `library` comes from, 0 if none does.

    What is inlined there is followed outwards, from our headers to the student's line that used them.
    """
    command = ["addr2line", "-i", "-e", str(library), hex(code)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    name = re.escape(shown_name(filename).rpartition("/")[2])
    found = re.search(rf"(?:^|/){name}:(\d+)", done.stdout, re.MULTILINE)
    return int(found[1]) if found else 0


def compiler() -> str:
    """The path of g++.

    Raises:
        NoCompilerError: there is none on this machine.
    """
    return _tool("g++")


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NoCompilerError(f"there is no {name} on this machine; CUDA C++ on the CPU lane needs it")
    return path


def _compile(arguments: list[str], folder: Path) -> str:
    return _run([compiler(), *arguments], folder)


def _run(command: list[str], folder: Path) -> str:
    """What it wrote to its output.

    Raises:
        CompileError: it refused.
    """
    # Plain quotation marks and English, whatever this process was started with.
    environ = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        check=False, env=environ, cwd=folder,
        preexec_fn=_limit_memory,
    )  # fmt: skip
    if done.returncode != 0:
        raise CompileError(done.stderr[:MAX_MESSAGE_CHARS])
    return done.stdout


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = COMPILER_BYTES if hard == resource.RLIM_INFINITY else min(COMPILER_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
