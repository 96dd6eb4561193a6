"""One life of a runner that reads machine code: what came of a submission, by a process that has not loaded it."""

from __future__ import annotations

import dataclasses
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from autograder import codec
from autograder.compile_checks import machine_code
from autograder.compile_checks.messages import TEXT_BYTES, Read, Reading
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
    *codes, room = codes
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda place: _reading(codes[place[0]], *place[1:]), request.places))
    line.send("Readings", {"kernels": _written(found, room)})
    line.receive()


def _reading(code: int, offset: int, size: int) -> tuple[Reading, bytes]:
    if not size:
        return Reading(readable=False), b""
    read, text = machine_code.disassembled(os.pread(code, size, offset))
    return read, text.encode()


def _written(found: list[tuple[Reading, bytes]], room: int) -> list[dict[str, Any]]:
    """The readings, with their texts left in the room as far as there is any."""
    told, offset = [], 0
    for read, text in found:
        kept = text if offset + len(text) <= TEXT_BYTES else b""
        os.pwrite(room, kept, offset)
        told.append(codec.to_json(dataclasses.replace(read, text_offset=offset, text_bytes=len(kept))))
        offset += len(kept)
    return told
