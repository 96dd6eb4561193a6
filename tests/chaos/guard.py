"""The outermost process: it adopts whatever the run leaves behind, and ends it, even if the run itself was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from worker.processes import adopt_orphans, children, kill_tree

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 60.0
_ROUNDS = 100


class StoppedError(BaseException):
    """Somebody asked the run to stop."""


def guarded(run: Callable[[Path, int], int]) -> int:
    """Run `run(folder, guard)` in a child; afterwards nothing that it started is left, and no mount.

    Args:
        run: gets a folder of its own and this process's id, which adopts what lost its parent.

    Returns:
        Its exit status; 130 if it was asked to stop.
    """
    adopt_orphans()
    guard = os.getpid()
    folder = Path(tempfile.mkdtemp(prefix=f"ladder-chaos-of-{guard}-"))
    # PostgreSQL runs as another user and has to pass.
    folder.chmod(0o711)
    child = os.fork()
    if child == 0:
        os._exit(_in_child(run, folder, guard))
    try:
        return _wait(child)
    finally:
        end_everything()
        unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _in_child(run: Callable[[Path, int], int], folder: Path, guard: int) -> int:
    for number in _SIGNALS:
        signal.signal(number, _stop)
    try:
        return run(folder, guard)
    except StoppedError:
        return 130
    except SystemExit as error:
        print(error)
        return 1


def _stop(_number: int, _frame: FrameType | None) -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise StoppedError


def _wait(child: int) -> int:
    """Its exit status; requests to stop are passed on, and enforced after a while.

    Who was asked to stop says 130 however it ended: an exception out of a signal's handler is lost where Python calls
    back (a finaliser, say), and then the run goes on until it is killed.
    """
    asked_at: list[float] = []

    def pass_on(_number: int, _frame: FrameType | None) -> None:
        asked_at.append(time.monotonic())
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)

    for number in _SIGNALS:
        signal.signal(number, pass_on)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return 130 if asked_at else os.waitstatus_to_exitcode(status)
        if asked_at and time.monotonic() - asked_at[0] > PATIENCE_S:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.5)
        _reap(child)


def _reap(spared: int) -> None:
    """Bury what was adopted and has ended."""
    for pid in children(os.getpid()):
        if pid != spared:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def end_everything() -> None:
    """End every process below this one; each of them was started by the run."""
    for _ in range(_ROUNDS):
        left = children(os.getpid())
        if not left:
            return
        for pid in left:
            kill_tree(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.05)


def unmount_below(folder: Path) -> None:
    """Undo mounts of the run."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for path in mounts:
        if path.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", path], check=False)
