"""Which device belongs to which lane: by its name and its compute capability. Standard library only."""

from __future__ import annotations

import re

from autograder.contract import Lane
from autograder.errors import GpuError

NAMES = {Lane.h100: "H100", Lane.h200: "H200", Lane.b200: "B200"}
"""The word in the name of a lane's device."""

CAPABILITIES = {Lane.h100: (9, 0), Lane.h200: (9, 0), Lane.b200: (10, 0)}

_OTHERS = re.compile(r"PCIe|NVL|MIG")
"""Cards of the same chip with other clocks or memory, and parts of one: each would need a lane of its own."""


def lane_of(name: str, capability: tuple[int, int]) -> Lane:
    """The lane of a device.

    Args:
        name: as the driver gives it, such as "NVIDIA H200".
        capability: major and minor.

    Raises:
        GpuError: it belongs to none.
    """
    lane = next((lane for lane in NAMES if _belongs(lane, name, capability)), None)
    if lane is None:
        raise GpuError(f"{name} ({capability[0]}.{capability[1]}) belongs to no lane; there are {', '.join(NAMES)}")
    return lane


def check(lane: Lane, name: str, capability: tuple[int, int]) -> None:
    """Refuse a device of another lane: results of two lanes are never mixed."""
    if not _belongs(lane, name, capability):
        raise GpuError(f"{name} ({capability[0]}.{capability[1]}) is no device of the lane {lane}")


def _belongs(lane: Lane, name: str, capability: tuple[int, int]) -> bool:
    # A whole word: a GH200 is no H200.
    named = re.search(rf"\b{NAMES[lane]}\b", name) is not None and _OTHERS.search(name) is None
    return named and capability == CAPABILITIES[lane]
