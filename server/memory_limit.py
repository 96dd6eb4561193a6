"""Room in memory: what asks for too much gets an error, and is not the end of its process.

In a container the kernel kills whoever outgrows its memory. For a consumer of messages that is worse than an error: the
message was not acknowledged, comes again, and kills the next one. A limit of one's own below the container's is a
`MemoryError` instead, which costs one message.
"""

from __future__ import annotations

import resource
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
FILES = ("memory.max", "memory/memory.limit_in_bytes")
"""Where a container finds its limit, by version 2 and 1 of control groups."""
SHARE = 0.8
"""Of the container's memory; the rest is for code, stacks and files, which no limit on data counts."""
LIMITLESS_BYTES = 2**50
"""Version 1 says a number of this size where there is no limit."""


def keep_within_the_container(cgroup: Path = CGROUP) -> int | None:
    """Limit this process's data to a share of its container's memory; how many bytes, `None` where it has no limit."""
    for name in FILES:
        try:
            text = (cgroup / name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if not text.isdigit() or int(text) >= LIMITLESS_BYTES:
            return None
        wanted = int(SHARE * int(text))
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))
        return allowed
    return None
