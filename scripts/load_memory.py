"""What the processes of an installation weigh: proportional set size, so that what they share is counted once."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import KERNEL, SLUG, Figure
from client.account import Account
from client.api import Api
from client.local import seed, up

_PSS = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)


def pss_mib(pid: int) -> float:
    """Of one process, MiB; 0 if it has ended."""
    try:
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_bytes())
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


def tree(pid: int) -> Iterator[int]:
    """A process and everything below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text(encoding="ascii").split():
            yield from tree(int(child))


def installed() -> list[Figure]:
    """The processes of `ladder up`, after a grading."""
    folder = Path(tempfile.mkdtemp(prefix="ladder-load-"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    try:
        with up.serving(folder, lambda _: None, clean) as served:
            _grade_one(served)
            return [_figure(pid) for pid in _services(served.supervisor.pid)]
    finally:
        shutil.rmtree(folder)


def _grade_one(served: up.Serving) -> None:
    password = served.accounts.password if served.accounts else ""
    with Api(Account(served.url, "")) as api:
        token = api.create_token("alice@example.org", password, "load")["token"]
    source = KERNEL.read_text(encoding="utf-8")
    content = {"mode": "submission", "lane": "cpu", "language": "triton", "filename": "kernel.py", "source": source}
    with Api(Account(served.url, token)) as api:
        final = list(api.follow(api.submit(seed.COURSE, SLUG, content)["public_id"]))[-1]
    if final["verdict"] != "passed":
        raise SystemExit(f"the kernel got {final['verdict']}: {final['explanation']}")


def _services(supervisor: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text("ascii").split()]


def _figure(pid: int) -> Figure:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    name = words[words.index(b"client") + 1].decode()
    everything = [pss_mib(below) for below in tree(pid)]
    how = f"PSS after one grading; {len(everything)} processes, {pss_mib(pid):.0f} MiB of it its own"
    return Figure(f"memory of {name} (one machine)", f"{sum(everything):.0f} MiB", how)
