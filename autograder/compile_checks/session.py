"""One life of a runner that compiles a submission: for every target in a process of its own, beside each other."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder import codec
from autograder.compile_checks import absent, dry, faults, launches
from autograder.compile_checks.launches import Kernel, Launches
from autograder.compile_checks.messages import CODE_BYTES, MOST_KERNELS, Compile, Part
from autograder.compile_checks.targets import TARGETS
from autograder.contract import Language
from autograder.protocol import MAX_PACKET, Load
from autograder.runner import source, wire
from autograder.runner.report import SubmissionError, describe

_pwrite: Callable[[int, bytes, int], int] = os.pwrite


def warm() -> None:
    """Triton and torch came with this module; a first tensor without memory brings the rest that a dry call imports."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    with dry.without_memory():
        torch.empty(1, device="cpu").add_(1)


def serve(channel: socket.socket) -> None:
    """Run until the judge hangs up."""
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    _use_own_folder()
    line = wire.Wire(channel)
    received = line.receive()
    if received is None:
        return
    fields, (text, *codes) = received
    fields.pop("is")
    request = codec.from_json(Compile, fields)
    started = [
        (part.target, _started(line, request, part, text, code))
        for part, code in zip(request.parts, codes, strict=True)
    ]
    for target, pid in started:
        line.send("Ended", {"target": target, **_ended(os.waitpid(pid, 0)[1])})
    line.receive()


def _started(line: wire.Wire, request: Compile, part: Part, text: int, code: int) -> int:
    """Have a process of its own do it: what triton and torch are told of a device holds for a whole process."""
    pid = os.fork()
    if pid == 0:
        try:
            line.send("Compiled", compile_part(request, part, text, code))
        finally:
            os._exit(0)
    return pid


def _ended(waited: int) -> dict[str, int | None]:
    if os.WIFSIGNALED(waited):
        return {"code": None, "signal": os.WTERMSIG(waited)}
    return {"code": os.WEXITSTATUS(waited), "signal": None}


def _use_own_folder() -> None:
    """Triton settled where its cache is before this runner had a folder."""
    from triton import knobs  # noqa: PLC0415

    knobs.cache.dir = str(Path(os.environ.get("TMPDIR", tempfile.gettempdir())) / "triton")


def compile_part(request: Compile, part: Part, text: int, code: int) -> dict[str, Any]:
    """Load, call and compile for one target; `messages.Compiled` as it travels."""
    absent.stand_in(TARGETS[part.target])
    kept = Launches(min(request.most, MOST_KERNELS), request.budget_s)
    launches.install(kept)
    load = Load(
        os.pread(text, request.source_bytes, 0).decode(), request.filename, Language.triton, request.entry,
        request.arguments,
    )  # fmt: skip
    with dry.without_memory():
        fault, case = _walk(load, part, kept)
    return {"target": part.target, **_fitting(kept, fault, case, code, request.filename)}


def _walk(load: Load, part: Part, kept: Launches) -> tuple[dict[str, Any] | None, str]:
    """Load the source and call its entry on every case; what ended the first that did not end by itself."""
    from triton.runtime.jit import KernelInterface  # noqa: PLC0415

    try:
        entry, _ = source.find_entry(source.execute(load), load, (KernelInterface,))
    except SubmissionError as error:
        return describe(error, load.filename, ()), ""
    except BaseException as error:  # noqa: BLE001 -- the student's code: SystemExit and KeyboardInterrupt too.
        return faults.of_host(error, load.filename), ""
    ended: tuple[dict[str, Any] | None, str] = (None, "")
    for number, case in enumerate(part.cases):
        kept.begin(number)
        try:
            dry.call(entry, load.arguments, case)
        except BaseException as error:  # noqa: BLE001 -- the same.
            ended = ended if ended[0] else (faults.of_host(error, load.filename), case.name)
    return ended


def _fitting(kept: Launches, fault: dict[str, Any] | None, case: str, code: int, filename: str) -> dict[str, Any]:
    """As many kernels as fit the packet and the room for machine code."""
    told: list[dict[str, Any]] = []
    offset, left = 0, MAX_PACKET - len(wire.to_text({"fault": fault, "case": case})) - 1024
    for kernel in kept.kernels:
        fields = _fields(kernel, offset, filename)
        size = len(wire.to_text(fields)) + 1
        left_here = kernel.code + kernel.ptx
        if size > left or offset + len(left_here) > CODE_BYTES:
            break
        _pwrite(code, left_here, offset)
        told.append(fields)
        offset, left = offset + len(left_here), left - size
    left_out = kept.left_out + len(kept.kernels) - len(told)
    return {"kernels": told, "left_out": left_out, "fault": fault, "case": case}


def _fields(kernel: Kernel, offset: int, filename: str) -> dict[str, Any]:
    fault = faults.of_kernel(kernel.error, kernel.function, filename) if kernel.error else None
    return {
        "kernel": kernel.name,
        "uses": [list(use) for use in kernel.uses],
        "config": kernel.config,
        "arguments": kernel.arguments,
        "shared_bytes": kernel.shared_bytes,
        "offset": offset,
        "bytes": len(kernel.code),
        "ptx_bytes": len(kernel.ptx),
        "fault": fault,
    }
