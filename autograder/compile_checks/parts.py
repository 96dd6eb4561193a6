"""What runners that compile have in common: a process for every target, and what came of it made fit for a packet."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from autograder import codec
from autograder.compile_checks.messages import CODE_BYTES, Compile, Part, Precompile, Precompiled
from autograder.protocol import MAX_PACKET
from autograder.runner import wire

CompilePart = Callable[[Part, int], dict[str, Any]]
"""Compile for one target, leave machine code in the descriptor; `messages.Compiled` as it travels."""

Prepare = Callable[[Compile, str], CompilePart]
"""What is done once, before there is a process for each target; it must not run the student's code."""

Fill = Callable[[Precompile, str, int, Sequence[int]], None]
"""Compile ahead, and leave a pack in the descriptor; this process must not run the student's code."""

_pwrite: Callable[[int, bytes, int], int] = os.pwrite


@dataclass(frozen=True)
class Told:
    """One kernel: the fields of `messages.ClaimedKernel` but for the places of its machine code and PTX."""

    fields: dict[str, Any]
    code: bytes = b""
    ptx: bytes = b""


def serve(channel: socket.socket, prepare: Prepare, fill: Fill | None = None) -> None:
    """Run until the judge hangs up."""
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    line = wire.Wire(channel)
    received = line.receive()
    if received is None:
        return
    fields, (text, *others) = received
    if fields.pop("is") == Precompile.__name__ and fill is not None:
        ahead = codec.from_json(Precompile, fields)
        fill(ahead, os.pread(text, ahead.source_bytes, 0).decode(), others[0], others[1:])
        line.send(Precompiled.__name__, {})
    else:
        request = codec.from_json(Compile, fields)
        _compile(line, request, prepare(request, os.pread(text, request.source_bytes, 0).decode()), others)
    line.receive()


def _compile(line: wire.Wire, request: Compile, compile_part: CompilePart, codes: Sequence[int]) -> None:
    pairs = zip(request.parts, codes, strict=True)
    started = [(part.target, _started(line, compile_part, part, code)) for part, code in pairs]
    for target, pid in started:
        line.send("Ended", {"target": target, **ended(os.waitpid(pid, 0)[1])})


def _started(line: wire.Wire, compile_part: CompilePart, part: Part, code: int) -> int:
    """Have a process of its own do it: what libraries are told of a device holds for a whole process."""
    return forked(lambda: line.send("Compiled", compile_part(part, code)))


def forked(work: Callable[[], object]) -> int:
    """The number of a process that does this and ends, whatever comes of it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return pid


def ended(waited: int) -> dict[str, int | None]:
    """How a process ended, as `messages.Ended` has it."""
    if os.WIFSIGNALED(waited):
        return {"code": None, "signal": os.WTERMSIG(waited)}
    return {"code": os.WEXITSTATUS(waited), "signal": None}


def shape_text(sizes: tuple[int, ...]) -> str:
    """`32×8`: the sizes of a block or a cluster, without the ones at its end."""
    last = max((place for place, size in enumerate(sizes) if size != 1), default=0)
    return "×".join(map(str, sizes[: last + 1]))


@dataclass(frozen=True)
class Course:
    """How the dry calls went: what `messages.Compiled` says beside its kernels."""

    left_out: int = 0
    fault: dict[str, Any] | None = None
    case: str = ""
    refused: Sequence[dict[str, Any]] = ()


def fitting(told: Iterable[Told], course: Course, code: int) -> dict[str, Any]:
    """As many kernels as fit the packet and the room for machine code; code that several share is there once."""
    kept: list[dict[str, Any]] = []
    said = {"fault": course.fault, "case": course.case, "refused": list(course.refused)}
    room, left = _Room(code), MAX_PACKET - len(wire.to_text(said)) - 1024
    beyond = 0
    for kernel in told:
        places = room.places(kernel) if not beyond else None
        fields = kernel.fields | places if places else {}
        left -= len(wire.to_text(fields)) + 1
        if not fields or left < 0:
            beyond += 1
            continue
        kept.append(fields)
    return {"kernels": kept, "left_out": course.left_out + beyond, **said}


def nothing(part: Part, why: str, code: int) -> dict[str, Any]:
    """Nothing was compiled, and the file has no part in it."""
    fault = {"kind": why, "message": "", "frames": []}
    return {"target": part.target, **fitting((), Course(fault=fault), code)}


class _Room:
    """The memory for machine code and PTX of one target."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._end = 0
        self._known: dict[bytes, int] = {}

    def places(self, kernel: Told) -> dict[str, int] | None:
        """Where both are now; nothing if there is no room."""
        new = [text for text in (kernel.code, kernel.ptx) if text not in self._known]
        if self._end + sum(map(len, new)) > CODE_BYTES:
            return None
        for text in new:
            self._known[text] = self._end
            _pwrite(self._descriptor, text, self._end)
            self._end += len(text)
        return {
            "offset": self._known[kernel.code], "bytes": len(kernel.code),
            "ptx_offset": self._known[kernel.ptx], "ptx_bytes": len(kernel.ptx),
        }  # fmt: skip
