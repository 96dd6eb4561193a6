"""Whose fault it is that a device's memory ran out: kill the submission, and see what comes back.

A submission may use scratch memory, up to a part of the device that is published. Whoever held more when the judge, or
the reference beside it, found none left gets `out_of_memory`; otherwise the fault is ours.
"""

from __future__ import annotations

import time

from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.runner_client import RunnerClient

ALLOWED_SHARE = 1 / 8
"""Of the device's memory, what a submission may hold for itself; on an H200 about 17 GiB."""

_GONE_S = 5.0
"""The driver takes its time to give back the memory of a process that was killed."""

MESSAGE = (
    "The GPU ran out of memory: your code kept too much of it. Free scratch tensors after each call, and do not keep "
    "the arguments."
)


def took_the_memory(device: Device, suspect: RunnerClient, lent_bytes: int) -> bool:
    """End the suspect; whether it held more than it may.

    Args:
        lent_bytes: of the judge's memory that was shared with it, and is still mapped there.
    """
    # What the judge itself has just given back is free when it is cleared, and must not be taken for the suspect's.
    device.wait_until_idle()
    before = device.free_bytes()
    suspect.close()
    allowed = device.memory_bytes * ALLOWED_SHARE + lent_bytes
    deadline = time.monotonic() + _GONE_S
    while device.free_bytes() - before <= allowed:
        if time.monotonic() > deadline or not device.memory_bytes:
            return False
        time.sleep(0.05)
    return True
