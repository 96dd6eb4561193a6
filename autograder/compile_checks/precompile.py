"""Fills triton's cache for a device before anybody calls there: cases are dealt to processes.

Each process loads the source and calls the entry without a device, so that triton compiles what it would compile on the
device, and keeps it under the same keys: of source, types, constants, options and target. A runner with the device that
unpacks the cache finds it there. What host code launches only after a look at values is compiled there.
"""

from __future__ import annotations

import functools
import hashlib
import os
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from triton import compiler
from triton.backends.nvidia.driver import CudaLauncher
from triton.runtime.jit import JITFunction

from autograder.compile_checks import absent, dry
from autograder.compile_checks.messages import DryCase, Precompile
from autograder.compile_checks.targets import TARGETS
from autograder.contract import Language
from autograder.protocol import Load
from autograder.runner import pack

_LOOK_S = 0.005
_EACH = 2
"""Processes for every core: a second round would take as long as the first."""


class _TakenError(Exception):
    """Another process compiles it, or has."""


class _Firsts:
    """Who came first: what several cases need is made by the process that comes first, and the others go on."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="firsts-"))

    def is_first(self, what: str) -> bool:
        """Whether nobody has asked for it."""
        try:
            (self._folder / hashlib.sha256(what.encode()).hexdigest()).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def fill(request: Precompile, text: str, room: int, packs: Sequence[int] = ()) -> None:
    """Compile what is in no pack, and pack all; of what went wrong nothing is said: it will go wrong on the device."""
    from triton import knobs  # noqa: PLC0415

    folder = Path(knobs.cache.dir)
    pack.unpack_all(packs, folder)
    deadline = time.monotonic() + request.budget_s
    firsts = _Firsts()
    absent.stand_in(TARGETS[request.part.target], _launcher(firsts))
    load = Load(text, request.filename, Language.triton, request.entry, request.arguments)
    cases = request.part.cases
    count = min(len(cases), _EACH * len(os.sched_getaffinity(0)))
    _compile_each_once(firsts)
    _wait([_begun(load, cases[first::count]) for first in range(count)], deadline)
    with suppress(Exception):
        pack.pack(folder, room)


def _launcher(firsts: _Firsts) -> type[absent.Launcher]:
    """What has the C compiler build what launches, where triton needs it to: versions before 3.7."""

    class Built(absent.Launcher):
        def __init__(self, src: Any, metadata: Any) -> None:
            if firsts.is_first(f"launcher {src.signature} {getattr(metadata, 'tensordesc_meta', None)}"):
                # Once it is built it is kept, even where it cannot be loaded for want of a driver.
                with suppress(Exception):
                    CudaLauncher(src, metadata)
            super().__init__(src, metadata)

    return Built


def _compile_each_once(firsts: _Firsts) -> None:
    """Leave a kernel that several cases launch to the process that comes first."""
    compile_it, run = compiler.compile, JITFunction.run

    def compile_or_leave(src: Any, *, options: dict[str, Any], **others: Any) -> Any:
        if not firsts.is_first(f"kernel {src.hash()} {sorted(options.items())}"):
            raise _TakenError
        return compile_it(src, options=options, **others)

    @functools.wraps(run)
    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        with suppress(_TakenError):
            return run(self, *args, **kwargs)

    # Functions of the submission's look it up when they are launched first.
    compiler.compile, JITFunction.run = compile_or_leave, launch


def _begun(load: Load, cases: Sequence[DryCase]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            _call_all(load, cases)
        finally:
            os._exit(0)
    return pid


def _call_all(load: Load, cases: Sequence[DryCase]) -> None:
    with dry.without_memory():
        entry = dry.entry_of(load)
        for case in cases:
            with suppress(BaseException):
                dry.call(entry, load.arguments, case)


def _wait(pids: Sequence[int], deadline: float) -> None:
    """Until all have ended, or the time is over; then they are ended."""
    left = set(pids)
    while left and time.monotonic() < deadline:
        left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
        time.sleep(_LOOK_S)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
