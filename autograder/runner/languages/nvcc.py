"""nvcc: where it is, what it is called with, and a file for it. It runs in the runner's sandbox and own folder."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from autograder.emulator.build import followed_by
from autograder.languages.cpp_text import shown_name
from autograder.languages.cuda import headers
from autograder.protocol import Load
from autograder.runner.languages import cuda_entry, cuda_messages
from autograder.runner.report import cut

COMPILER_BYTES = 6 * 2**30
"""Address space of each of the compiler's processes."""
LANGUAGE = ("-std=c++17", "--expt-relaxed-constexpr", "-lineinfo", *headers.flags("-isystem"))
"""What machine code depends on, beside the architecture. In CuTe, kernels call constexpr functions of the host's."""
LIBRARY = (
    "-shared", "-Xcompiler", "-fPIC",
    # Every launch goes through one of a few C functions, which the linker leads to ours.
    *(f"-Xlinker=--wrap={name}" for name in cuda_entry.WRAPPED),
    "-Xlinker=-Bsymbolic",
)  # fmt: skip
"""How a file becomes a library whose launches are counted."""

LIBRARY_NAME = "kernel.so"

_PLACES = ("/usr/local/cuda/bin", "/usr/local/bin", "/usr/bin")
_MAX_LOG = 8000


def find_nvcc() -> str:
    """The path of nvcc: of this process's own `PATH`, or where CUDA is usually installed.

    Raises:
        RuntimeError: there is none.
    """
    found = shutil.which("nvcc") or next((path for place in _PLACES if (path := shutil.which("nvcc", path=place))), "")
    if not found:
        raise RuntimeError("there is no nvcc on this node; CUDA C++ on a GPU lane needs it")
    return found


def version(nvcc: str) -> str:
    """As it says itself."""
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"\bV(\d[\d.]*)", said)
    return release[1] if release else "unknown"


def code_for(target: str) -> list[str]:
    """The flags by which nvcc makes machine code for a target."""
    return ["-gencode", f"arch=compute_{target.removeprefix('sm_')},code={target}"]


def known_targets(path: str, targets: Iterable[str]) -> frozenset[str]:
    """Those that this nvcc compiles for. It is asked without a file, so that nothing a student wrote has a part in it.

    `--list-gpu-code` leaves out the names that end in `a`; a dry run takes what a compilation takes.
    """
    asked = {target: [path, "--dryrun", *code_for(target), "-cubin", "-x", "cu", os.devnull] for target in targets}
    done = {target: subprocess.run(command, capture_output=True, check=False) for target, command in asked.items()}
    return frozenset(target for target, process in done.items() if process.returncode == 0)


def architecture(path: str, capability: tuple[int, int]) -> str:
    """What is compiled for, on a device of this compute capability.

    Raises:
        RuntimeError: this nvcc does not know it. That is the node's, and no error of anybody's file.
    """
    wanted = f"sm_{capability[0]}{capability[1]}a"
    if not known_targets(path, [wanted]):
        raise RuntimeError(f"the nvcc of this node, {version(path)}, does not know {wanted}; its GPU needs a newer one")
    return wanted


def write_source(load: Load, folder: Path) -> str:
    """Put the source, with what the harness compiles behind it, in a folder of its own; the file's name."""
    folder.mkdir(parents=True, exist_ok=True)
    name = shown_name(load.filename.rpartition("/")[2])
    (folder / name).write_text(followed_by(load.source, cuda_entry.text(load)), encoding="utf-8")
    return name


def compiled(load: Load, folder: Path, nvcc: str, architecture: str) -> Path:
    """Compile the source in `folder` to a shared library.

    Raises:
        SubmissionError: the compiler refused it.
    """
    student, library = folder / "student", folder / LIBRARY_NAME
    name = write_source(load, student)
    done = subprocess.run(
        [nvcc, f"-arch={architecture}", *LANGUAGE, "-O3", *LIBRARY, "-cudart", "static", "-o", str(library), "-x", "cu",
         name],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        env={**os.environ, "LC_ALL": "C"}, cwd=student, preexec_fn=lambda: limit_memory(COMPILER_BYTES),
    )  # fmt: skip
    if done.returncode != 0:
        said = done.stdout + done.stderr
        print(cut(said, _MAX_LOG), file=sys.stderr)  # noqa: T201 -- the student's log.
        raise cuda_messages.from_compiler(said, name, load.source)
    return library


def limit_memory(most: int) -> None:
    """Of this process and those that it starts, at most what they may have already."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
