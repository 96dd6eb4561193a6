"""Packets to and from the judge, by functions that were taken before the submission was loaded.

A submission that patches `json`, `socket` or `time` changes the modules, not these references: its replies still
leave. (It can forge them; the judge treats every one as hostile.) `autograder.protocol` says what the packets mean.
"""

from __future__ import annotations

import _socket
import json
import os
import struct
import time
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

from autograder import protocol
from autograder.contract import Language

_quote: Callable[[str], str] = encode_basestring_ascii
_parse: Callable[[str], Any] = json.JSONDecoder().decode
_unpack = struct.Struct(f"{protocol.MAX_DESCRIPTORS}i").unpack_from
_INT = struct.calcsize("i")
_ANCILLARY = _socket.CMSG_SPACE(protocol.MAX_DESCRIPTORS * _INT)
_Socket = _socket.socket
_clock = time.monotonic
_STOPPED_S = 0.0002


class Wire:
    """The runner's end of the channel."""

    def __init__(self, channel: _Socket) -> None:
        self._channel = channel
        self._send = _Socket.send
        self._receive = _Socket.recvmsg

    def send(self, name: str, fields: Mapping[str, Any]) -> None:
        """Send one message by its class's name."""
        self._send(self._channel, to_text({"is": name, **fields}).encode("ascii"))

    def receive(self, meanwhile: Callable[[], object] | None = None) -> tuple[dict[str, Any], list[int]] | None:
        """The next message and its descriptors, `None` when the judge has hung up.

        Args:
            meanwhile: instead of sleeping, look again and again: the judge's clock starts with this message. This is
                called first, and whenever the process was stopped for a while.
        """
        flags = _socket.MSG_DONTWAIT if meanwhile else 0
        looked = 0.0
        while True:
            try:
                packet, ancillary, _, _ = self._receive(self._channel, protocol.MAX_PACKET, _ANCILLARY, flags)
                break
            except BlockingIOError:
                if meanwhile and _clock() > looked + _STOPPED_S:
                    meanwhile()
                looked = _clock()
        if not packet:
            return None
        message: dict[str, Any] = _parse(packet.decode())
        return message, [number for *_, data in ancillary for number in _numbers(data)]


def _numbers(data: bytes) -> tuple[int, ...]:
    padded = data + bytes(protocol.MAX_DESCRIPTORS * _INT - len(data))
    return _unpack(padded)[: len(data) // _INT]


def to_text(value: Any) -> str:
    """JSON text of what a runner says: dicts, lists, tuples, texts, whole numbers, true, false and none."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{_quote(key)}:{to_text(item)}" for key, item in value.items()]) + "}"
    return "[" + ",".join([to_text(item) for item in value]) + "]"


def to_load(message: Mapping[str, Any], descriptors: list[int]) -> protocol.Load:
    """A `Load` from its parsed packet; the judge is trusted."""
    size = message.get("source_bytes", 0)
    return protocol.Load(
        source=os.pread(descriptors[2], size, 0).decode() if size else message["source"],
        filename=message["filename"],
        language=Language(message["language"]),
        entry=message["entry"],
        arguments=tuple(message["arguments"]),
        ghost=message.get("ghost", False),
        signatures=tuple(map(tuple, message.get("signatures", ()))),
        packs=message.get("packs", 0),
        functions=tuple(
            protocol.Function(one["name"], tuple(one["arguments"]), tuple(map(tuple, one["signatures"])))
            for one in message.get("functions", ())
        ),
        adapter=message.get("adapter", ""),
    )


def to_call(message: Mapping[str, Any]) -> protocol.Call:
    """A `Call` from its parsed packet; the judge is trusted, and this runs while its clock does."""
    return protocol.Call(
        nonce=message["nonce"],
        tensors=tuple(protocol.TensorSpec(**spec) for spec in message["tensors"]),
        scalars=message["scalars"],
        record=message.get("record", True),
        trace=message.get("trace", False),
        function=message.get("function", ""),
        count=message.get("count", False),
    )


def to_arm(message: Mapping[str, Any]) -> protocol.Arm:
    """An `Arm` from its parsed packet."""
    return protocol.Arm(
        nonce=message["nonce"],
        calls=message["calls"],
        tensors=tuple(protocol.TensorSpec(**spec) for spec in message["tensors"]),
        scalars=message["scalars"],
        together=message.get("together", 1),
        function=message.get("function", ""),
    )


def to_reveal(message: Mapping[str, Any]) -> protocol.Reveal:
    """A `Reveal` from its parsed packet; this runs while the judge's clock does."""
    return protocol.Reveal(nonce=message["nonce"], drawn=tuple(message["drawn"]))


def close(descriptors: list[int], *, _close: Callable[[int], None] = os.close) -> None:
    """Close descriptors that were received."""
    for descriptor in descriptors:
        _close(descriptor)
