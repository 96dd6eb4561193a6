"""Compile a translated `.cu` file with g++ to a shared library that checks every access to memory.

The compiler is asked for the calls that a sanitizer would make (`-fsanitize=kernel-address,alignment,bounds`), and the
emulator answers them itself: no sanitizer's runtime has to be loaded before everything else, and a message can speak of
threads, blocks and arguments.

What does not depend on the file is made ahead (`prepare`): the machine behind the headers, compiled, and the headers as
g++ reads them fastest. That takes a build from 1.2 s to half a second.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from autograder.emulator.translate import translate

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
HEADER = "cuda_runtime.h"
AHEAD = "kernel_ladder_ahead.h"
"""What is precompiled: a file of its own name, as g++ takes nothing else for an `#include` of the name it found."""
CLOSED = "cuda_emulator/unchecked.h"
"""What is read last before the student's file."""
MAX_MESSAGE_CHARS = 64_000
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
    # A call before every access, and none of the layout that a sanitizer would give to stacks and variables.
    "-fsanitize=kernel-address,alignment,bounds",
    "--param", "asan-instrumentation-with-call-threshold=0", "--param", "asan-stack=0", "--param", "asan-globals=0",
    # `#pragma unroll`, parameters of names that start with two underscores, and other things that are usual in CUDA.
    "-Wno-unknown-pragmas", "-w",
    "-fdiagnostics-plain-output", "-fmax-errors=20",
)  # fmt: skip


class CompileError(Exception):
    """The compiler refused the file; the message is its own, with the student's file name and lines."""


class NoCompilerError(Exception):
    """There is no g++ on this machine."""


@dataclass(frozen=True)
class Prepared:
    """A folder with the compiled machine and the precompiled headers."""

    folder: Path

    @property
    def machine(self) -> Path:
        """The object file."""
        return self.folder / "machine.o"

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
    _compile([*_COMMON, "-O2", "-c", str(HERE / "machine.cpp"), "-o", str(made.machine)], folder)
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
    (student / name).write_text(followed_by(translate(source), entry), encoding="utf-8")
    # The header comes first as nvcc's does, whether or not the file asks for it.
    command = [
        "-I",
        str(prepared.folder),
        *_FLAGS,
        "-include",
        AHEAD,
        "-include",
        CLOSED,
        "-x",
        "c++",
        "-c",
        name,
        "-o",
        str(compiled),
    ]
    _compile(command, student)
    link = ["-shared", "-Wl,-Bsymbolic", "-Wl,-z,defs", "-o", str(library), str(compiled), str(prepared.machine)]
    _compile(link, student)
    return library


ENTRY_FILE = "<entry>"
"""What errors call the text that follows the student's file."""


def followed_by(source: str, entry: str) -> str:
    """The student's file, and C++ that belongs to the harness behind it."""
    # Two ends of line: a backslash that ends the file takes the first of them away.
    return f'{source}\n\n#line 1 "{ENTRY_FILE}"\n{entry}\n'


def shown_name(filename: str) -> str:
    """A plain file name for the student's file: names come from students, and this one is written to a folder."""
    name = re.sub(r"[^\w.-]", "_", filename, flags=re.ASCII)
    return name if re.match(r"\w", name) else f"_{name}"


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
    path = shutil.which("g++")
    if path is None:
        raise NoCompilerError("there is no g++ on this machine; CUDA C++ on the CPU lane needs it")
    return path


def _compile(arguments: list[str], folder: Path) -> None:
    # Plain quotation marks and English, whatever this process was started with.
    environ = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        [compiler(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
        check=False, env=environ, cwd=folder,
        preexec_fn=_limit_memory,
    )  # fmt: skip
    if done.returncode != 0:
        raise CompileError(done.stderr[:MAX_MESSAGE_CHARS])


def _limit_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = COMPILER_BYTES if hard == resource.RLIM_INFINITY else min(COMPILER_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
