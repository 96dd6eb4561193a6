"""One life of a runner that reads machine code: what came of a submission, by a process that has not loaded it."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from autograder import codec
from autograder.compile_checks import machine_code
from autograder.compile_checks.messages import Read, Reading
from autograder.runner import wire

_AT_ONCE = 4
"""Tools at a time, each a process."""


def serve(channel: socket.socket) -> None:
    """Answer the judge once, and wait until it hangs up."""
    line = wire.Wire(channel)
    received = line.receive()
    if received is None:
        return
    fields, codes = received
    fields.pop("is")
    request = codec.from_json(Read, fields)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        readings = list(pool.map(lambda place: _reading(codes[place[0]], *place[1:]), request.places))
    line.send("Readings", {"kernels": readings})
    line.receive()


def _reading(code: int, offset: int, size: int) -> dict[str, Any]:
    read = machine_code.read(os.pread(code, size, offset)) if size else Reading(readable=False)
    fields: dict[str, Any] = codec.to_json(read)
    return fields
