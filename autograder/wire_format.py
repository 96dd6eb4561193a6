"""One packet of a runner's channel: a JSON object with its class's name under `"is"`, capped, of a kind that belongs.

Whatever a runner says is hostile: nothing but `ContractError` may come of a packet that is not right. Standard library
only.
"""

from __future__ import annotations

import json
from typing import TypeVar

from autograder import codec
from autograder.errors import ContractError
from autograder.protocol import MAX_PACKET

Message = TypeVar("Message")


def encode(message: object) -> bytes:
    """One packet."""
    data = json.dumps({"is": type(message).__name__, **codec.to_json(message)}, separators=(",", ":")).encode()
    if len(data) > MAX_PACKET:
        raise ContractError(f"a packet may have {MAX_PACKET} bytes, this one has {len(data)}")
    return data


def decode(packet: bytes, *wanted: type[Message]) -> Message:
    """Parse a packet that may only be one of `wanted`; raise `ContractError` for anything else."""
    if len(packet) > MAX_PACKET:
        raise ContractError("the packet is too long")
    try:
        data = json.loads(packet)
    except (ValueError, RecursionError):
        raise ContractError("the packet is not JSON") from None
    said = data.pop("is", None) if isinstance(data, dict) else None
    # Compared, not looked up: what is said may be of any type.
    kind = next((kind for kind in wanted if kind.__name__ == said), None)
    if kind is None:
        raise ContractError("the packet is of no kind that belongs here")
    return codec.from_json(kind, data)
