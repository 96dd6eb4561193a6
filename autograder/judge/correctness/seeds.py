"""Seeds: 64 bits from the system for every call, expanded into the whole state of torch's generator.

torch's CPU generator keeps 32 bits of what `manual_seed` is given: who sees one input could search them all and know
the rest of the draw. Here SHAKE-256 turns the 64 bits into all 624 words of the Mersenne twister instead.
"""

from __future__ import annotations

import hashlib
import os
import struct

import torch

from autograder.errors import HarnessError

KNOWN_SEED = 0
"""What every call gets where a test has switched fresh inputs off."""

_CPU = torch.device("cpu")
_WORDS = 624
_HEADER = struct.Struct("<QiiQ")
"""The state's first fields: seed as given, draws left before the next twist, seeded, next word."""
_STATE_BYTES = 5056
_PURPOSE = b"kernel-ladder inputs"


def fresh_seed() -> int:
    """64 bits from the system; no seed is kept, so none is used twice."""
    return int.from_bytes(os.urandom(8), "little")


def generator(seed: int, where: torch.device = _CPU) -> torch.Generator:
    """A generator whose whole state follows from `seed`, 64 bits of it; on a GPU they are the key of Philox."""
    made = torch.Generator(where)
    if where.type != "cpu":
        return made.manual_seed(seed)
    state = made.get_state()
    if state.numel() != _STATE_BYTES:
        raise HarnessError(f"this torch keeps {state.numel()} bytes of generator state, {_STATE_BYTES} are known")
    stream = hashlib.shake_256(_PURPOSE + seed.to_bytes(8, "little")).digest(4 * _WORDS)
    words = struct.unpack(f"<{_WORDS}I", stream)
    header = _HEADER.pack(0, 1, 1, 0)
    body = struct.pack(f"<{_WORDS}Q", *words)
    tail = bytes(_STATE_BYTES - len(header) - len(body))
    made.set_state(torch.frombuffer(bytearray(header + body + tail), dtype=torch.uint8))
    return made
