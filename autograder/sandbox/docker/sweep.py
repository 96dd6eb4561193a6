"""What a judge that was killed left behind: its containers, frozen ones too, and its sockets' folders.

`python -m autograder.sandbox.docker sweep` does it alone. Every judge does it when it makes its sandbox, and a worker
when its judge has ended. What belongs to a judge that lives is left alone, and so is what belongs to another process
namespace: nothing is known of that.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing, suppress
from pathlib import Path

from autograder.errors import SandboxError
from autograder.sandbox import cgroups
from autograder.sandbox.docker.engine import Engine
from autograder.sandbox.docker.settings import OWNER

_STARTED_AT = 19
"""Where `/proc/<pid>/stat` has the time at which a process began, counted after its name."""


def owner() -> str:
    """This process, told from every other one of this machine, earlier ones with its number included."""
    return f"{os.getpid()}.{_began(os.getpid())}.{_namespace()}"


def sweep(engine: Engine, folder: Path) -> list[str]:
    """Remove what is left of judges that are gone; the ids of its containers."""
    swept = []
    for found in engine.labelled(OWNER):
        if _is_gone(found.labels.get(OWNER, "")):
            _thaw(int(engine.state(found.id).get("Pid") or 0))
            engine.remove(found.id)
            swept.append(found.id)
    for sockets in folder.glob("*-*") if folder.is_dir() else ():
        if not Path("/proc", sockets.name.partition("-")[0]).exists():
            shutil.rmtree(sockets, ignore_errors=True)
    return swept


def _is_gone(label: str) -> bool:
    pid, began, namespace = (*label.split("."), "", "", "")[:3]
    return namespace == _namespace() and pid.isdecimal() and _began(int(pid)) != began


def _began(pid: int) -> str:
    """When a process began, in ticks since this machine did; `""` if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[_STARTED_AT]
    return ""


def _namespace() -> str:
    return f"{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116


def _thaw(pid: int) -> None:
    """A frozen process of version 1 dies when it is thawed."""
    if not pid:
        return
    with suppress(OSError, SandboxError):
        groups = cgroups.of(pid)
        with closing(cgroups.Freezer(groups.freezer, groups.freezer_version)) as freezer:
            freezer.thaw()
