"""One life of a runner that compiles a Triton submission: for every target in a process of its own."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.compile_checks import absent, dry, faults, launches, parts
from autograder.compile_checks.launches import Kernel, Launches
from autograder.compile_checks.messages import MOST_KERNELS, Compile, DryCase, Part
from autograder.compile_checks.targets import TARGETS
from autograder.contract import Language
from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.languages import touch
from autograder.runner.report import SubmissionError, describe


def warm() -> None:
    """A first tensor without memory brings what a dry call imports, a first compilation what triton sets up."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    touch.compile_ahead()
    with dry.without_memory():
        torch.empty(1, device="cpu").add_(1)


def serve(channel: socket.socket) -> None:
    """Run until the judge hangs up."""
    _use_own_folder()
    parts.serve(channel, lambda request, text: lambda part, code: compile_part(request, part, text, code))


def _use_own_folder() -> None:
    """Triton settled where its cache is before this runner had a folder."""
    from triton import knobs  # noqa: PLC0415

    knobs.cache.dir = str(Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "triton")


def compile_part(request: Compile, part: Part, text: str, code: int) -> dict[str, Any]:
    """Load, call and compile for one target; `messages.Compiled` as it travels."""
    absent.stand_in(TARGETS[part.target])
    kept = Launches(min(request.most, MOST_KERNELS), request.budget_s)
    launches.install(kept)
    load = Load(text, request.filename, Language.triton, request.entry, request.arguments)
    with dry.without_memory():
        course = _walk(load, part, kept)
    told = _told(kept.kernels, request.filename)
    return {"target": part.target, **parts.fitting(told, course, code)}


def _walk(load: Load, part: Part, kept: Launches) -> parts.Course:
    """Load the source and call its entry on every case; what ended the first that did not end by itself."""
    from triton.runtime.jit import KernelInterface  # noqa: PLC0415

    try:
        entry, _ = source.find_entry(source.execute(load), load, (KernelInterface,))
    except SubmissionError as error:
        return parts.Course(fault=describe(error, load.filename, ()))
    except BaseException as error:  # noqa: BLE001 -- the student's code: SystemExit and KeyboardInterrupt too.
        return parts.Course(fault=faults.of_host(error, load.filename))
    faults_of: list[tuple[dict[str, Any], str]] = []
    refused: list[int] = []
    for number, case in enumerate(part.cases):
        kept.begin(number)
        try:
            dry.call(entry, load.arguments, case)
        except BaseException as error:  # noqa: BLE001 -- the same.
            faults_of.append((faults.of_host(error, load.filename), case.name))
        if kept.any_failed() and _is_refused(entry, load, case, kept):
            refused.append(number)
    fault, name = faults_of[0] if faults_of else (None, "")
    return parts.Course(kept.left_out, fault, name, refused)


def _is_refused(entry: Any, load: Load, case: DryCase, kept: Launches) -> bool:
    """Whether a call that gets the errors that a device would give ends with one; host code may have another way."""
    kept.resists = True
    try:
        dry.call(entry, load.arguments, case)
    except BaseException as error:  # noqa: BLE001 -- the student's code.
        return kept.raised(error)
    return False


def _told(kernels: list[Kernel], filename: str) -> Iterator[parts.Told]:
    for kernel in kernels:
        fault = faults.of_kernel(kernel.error, kernel.function, filename) if kernel.error else None
        fields = {
            "kernel": kernel.name,
            "uses": [list(use) for use in kernel.uses],
            "config": kernel.config,
            "arguments": kernel.arguments,
            "shared_bytes": kernel.shared_bytes,
            "fault": fault,
        }
        yield parts.Told(fields, kernel.code, kernel.ptx)
