"""Compile a translated `.cu` file with g++ to a shared library."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from autograder.emulator.translate import translate

INCLUDE = Path(__file__).parent / "include"
COMPILE_S = 60.0
MAX_MESSAGE_CHARS = 8000

_FLAGS = (
    "-std=c++17", "-O1", "-g", "-shared", "-fPIC",
    # Each library has an emulator of its own, however many of them one process loads.
    "-fno-gnu-unique", "-Wl,-Bsymbolic",
    # Kernels look at floats as float4 and at bits as numbers; nvcc lets them.
    "-fno-strict-aliasing",
    # What is right on the GPU by IEEE rules is right here by the same.
    "-fno-fast-math", "-ffp-contract=off",
    # `#pragma unroll`, parameters of names that start with two underscores, and other things that are usual in CUDA.
    "-Wno-unknown-pragmas", "-w",
)  # fmt: skip
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")


class CompileError(Exception):
    """The compiler refused the file; the message names the student's own lines."""


@dataclass(frozen=True)
class Library:
    """A compiled file; `sanitized` ones need libasan loaded before anything else (`sanitizer_library`)."""

    path: Path
    sanitized: bool


def build(source: str, folder: Path, *, filename: str = "kernel.cu", sanitize: bool = False) -> Library:
    """Translate and compile `source` into `folder`; errors name `filename` and its own lines.

    Raises:
        UnsupportedError, MalformedError: the translation refused it.
        CompileError: the compiler did.
    """
    translated = folder / "translated.cpp"
    # Names come from the student: nothing in them may end the string.
    shown = filename.replace("\\", "_").replace('"', "_").replace("\n", "_")
    translated.write_text(f'#line 1 "{shown}"\n{translate(source)}', encoding="utf-8")
    library = folder / ("kernel-sanitized.so" if sanitize else "kernel.so")
    command = [compiler(), *_FLAGS, *(_SANITIZERS if sanitize else ()), "-I", str(INCLUDE)]
    # The header comes first as nvcc's does, whether or not the file asks for it.
    command += ["-include", "cuda_runtime.h", "-o", str(library), str(translated)]
    # Plain quotation marks and English, whatever this process was started with.
    environ = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=COMPILE_S, check=False, env=environ
    )
    if done.returncode != 0:
        raise CompileError(done.stderr.replace(str(translated), shown)[:MAX_MESSAGE_CHARS])
    return Library(library, sanitize)


def compiler() -> str:
    """The path of g++.

    Raises:
        CompileError: there is none on this machine.
    """
    path = shutil.which("g++")
    if path is None:
        raise CompileError("there is no g++ on this machine; CUDA C++ on the CPU lane needs it")
    return path


def sanitizer_library() -> Path:
    """What `LD_PRELOAD` has to name where a sanitized library is loaded into another program."""
    done = subprocess.run([compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).resolve()
