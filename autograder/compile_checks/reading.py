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
    # Kernels that share machine code share the reading of it.
    places = list(dict.fromkeys(request.places))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        read = dict(zip(places, pool.map(lambda place: _all(codes[place[0]], *place[1:]), places), strict=True))
    pairs = zip(request.places, request.functions, strict=True)
    line.send("Readings", {"kernels": _written([_one(read[place], function) for place, function in pairs], room)})
    line.receive()


def _all(code: int, offset: int, size: int) -> dict[str, tuple[Reading, str]]:
    return machine_code.all_disassembled(os.pread(code, size, offset)) if size else {}


def _one(read: dict[str, tuple[Reading, str]], function: str) -> tuple[Reading, bytes]:
    name = function or next(iter(read), "")
    reading, text = read.get(name, (Reading(readable=False), ""))
    return reading, text.encode()


def _written(found: list[tuple[Reading, bytes]], room: int) -> list[dict[str, Any]]:
    """The readings, with their texts left in the room as far as there is any."""
    told, offset = [], 0
    for read, text in found:
        kept = text if offset + len(text) <= TEXT_BYTES else b""
        os.pwrite(room, kept, offset)
        told.append(codec.to_json(dataclasses.replace(read, text_offset=offset, text_bytes=len(kept))))
        offset += len(kept)
    return told
