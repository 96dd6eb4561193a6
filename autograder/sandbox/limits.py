"""The limits that the kernel keeps for every process of a runner, in both sandboxes: this table and no other.

Names are Docker's, which are the kernel's without `RLIMIT_`.

    core      1 byte: the kernel keeps a crash from a program that it pipes core files to, which runs as root outside of
              every sandbox, at this value and at no other; 0 is no limit to it. So seccomp refuses to change it.
    nofile    descriptors
    fsize     of one file
    memlock   nothing is locked in memory
    msgqueue  no POSIX queue outlives the runner
"""

from __future__ import annotations

from collections.abc import Mapping

_DESCRIPTORS = 1024


def of_a_runner(tmp_bytes: int) -> Mapping[str, int]:
    """Soft and hard limits, the same for both, by name.

    Args:
        tmp_bytes: what its own folder may hold.
    """
    return {"core": 1, "nofile": _DESCRIPTORS, "fsize": tmp_bytes, "memlock": 0, "msgqueue": 0}
