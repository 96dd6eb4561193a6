"""Memory that judge and runner share by its descriptor.

What a runner may fill is of a fixed size, and nobody writes it any more once that is sealed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable


def of_bytes(name: str, data: bytes) -> int:
    """A descriptor of a copy of the bytes, to be read from its start."""
    made = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        os.pwrite(made, data, 0)
    except OSError:
        os.close(made)
        raise
    return made


def close(descriptors: Iterable[int]) -> None:
    """Let go of them all."""
    for descriptor in descriptors:
        os.close(descriptor)


def of_fixed_size(name: str, size: int) -> int:
    """A descriptor of zeros, `size` bytes."""
    made = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(made, size)
        fcntl.fcntl(made, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
    except OSError:
        os.close(made)
        raise
    return made


def seal(descriptor: int) -> None:
    """Have nobody write it any more, whoever has it.

    Raises:
        OSError: somebody has it mapped to write, or has seen to it that nothing can be sealed.
    """
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
