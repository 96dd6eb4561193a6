"""User ids for runners: from a range that nothing else uses, each held by one runner at a time on the whole machine."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

from autograder.errors import SandboxError
from autograder.sandbox import tree

FIRST_UID = 61_000
LAST_UID = 62_999


class Uid:
    """One user id, held until `release`.

    Other judges on this machine see that it is taken by the name of an abstract socket, which the kernel gives back
    when its holder dies.
    """

    def __init__(self, number: int, lock: socket.socket) -> None:
        self.number = number
        self._lock = lock

    def release(self) -> None:
        """Let it be used again."""
        self._lock.close()


def take() -> Uid:
    """A user id that no judge holds and no process has."""
    busy = _in_use()
    start = random.randrange(LAST_UID - FIRST_UID + 1)  # noqa: S311 -- only to spread, not to hide.
    for step in range(LAST_UID - FIRST_UID + 1):
        number = FIRST_UID + (start + step) % (LAST_UID - FIRST_UID + 1)
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with suppress(OSError):
            lock.bind(f"\0kernel-ladder-uid-{number}")
            if number not in busy:
                return Uid(number, lock)
        lock.close()
    raise SandboxError(f"all user ids from {FIRST_UID} to {LAST_UID} are in use")


def _in_use() -> set[int]:
    every = (tree.status_fields(pid) for pid in tree.processes())
    return {int(fields["Uid"].split()[0]) for fields in every if fields}
