"""Fills triton's cache for a device before anybody calls there: cases are dealt to processes.

Each process loads the source and calls the entry without a device, so that triton compiles what it would compile on the
device, and keeps it under the same keys: of source, types, constants, options and target. A runner with the device that
unpacks the cache finds it there. What host code launches only after a look at values is compiled there.

What launches a kernel is built beside it, in a process of its own, where it follows from the signature.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import inspect
import os
import select
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from triton import compiler
from triton.backends.nvidia import driver as nvidia
from triton.backends.nvidia.driver import CudaLauncher
from triton.runtime import build
from triton.runtime.jit import JITFunction

from autograder.compile_checks import absent, dry
from autograder.compile_checks.messages import DryCase, Precompile
from autograder.compile_checks.parts import forked
from autograder.compile_checks.targets import TARGETS
from autograder.contract import Language
from autograder.languages.triton import LANGUAGE
from autograder.protocol import Load
from autograder.runner import compile_cache

_DESCRIPTOR = "tensordesc"
"""How the type of a tensor descriptor begins: what launches it depends on what the compiler made of it."""
_OPTIONS = "ccflags"
"""What triton calls options of the C compiler, of which it has its own first: the last one holds."""
_ARE_BUILT = hasattr(nvidia, "make_launcher")
"""Whether this triton needs a launcher for every signature."""
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
    """Compile what is in no pack, and pack that; of what went wrong nothing is said: it will go wrong on the device."""
    from triton import knobs  # noqa: PLC0415

    folder = Path(knobs.cache.dir)
    unpacked = compile_cache.unpack_all(packs, folder)
    deadline = time.monotonic() + request.budget_s
    launchers = _Launchers(firsts := _Firsts())
    absent.stand_in(TARGETS[request.part.target], launchers.after_compiling())
    load = Load(text, request.filename, Language(LANGUAGE.id), request.entry, request.arguments)
    cases = request.part.cases
    count = min(len(cases), _EACH * len(os.sched_getaffinity(0)))
    _compile_each_once(firsts, launchers)
    if not request.is_timed:
        _optimise_no_launcher()
    _all_called(load, [cases[first::count] for first in range(count)], launchers, deadline)
    with suppress(Exception):
        compile_cache.pack(folder, room, unpacked)


class _Launchers:
    """Has the C compiler build what launches, where triton needs it to: versions before 3.7."""

    def __init__(self, firsts: _Firsts) -> None:
        self._firsts = firsts
        self._pids: list[int] = []

    def begin(self, src: Any) -> None:
        """Build it while the kernel is compiled, in another process, if that can be."""
        if not _ARE_BUILT or any(str(one).startswith(_DESCRIPTOR) for one in src.signature.values()):
            return
        with suppress(OSError):  # There may be no more processes to have.
            if self._is_first(src, None):
                self._pids.append(forked(lambda: _build(src, None)))

    def wait(self) -> None:
        """Until all are built that this process has begun."""
        while self._pids:
            with suppress(ChildProcessError):
                os.waitpid(self._pids.pop(), 0)

    def after_compiling(self) -> type[absent.Launcher]:
        """What builds it when the kernel is compiled, if nobody has begun."""
        is_first = self._is_first

        class Built(absent.Launcher):
            def __init__(self, src: Any, metadata: Any) -> None:
                if is_first(src, metadata):
                    _build(src, metadata)
                super().__init__(src, metadata)

        return Built

    def _is_first(self, src: Any, metadata: Any) -> bool:
        return self._firsts.is_first(f"launcher {src.signature} {getattr(metadata, 'tensordesc_meta', None) or None}")


def _build(src: Any, metadata: Any) -> None:
    # Once it is built it is kept, even where it cannot be loaded for want of a driver.
    with suppress(Exception):
        CudaLauncher(src, metadata)


def _optimise_no_launcher() -> None:
    """Optimising would be half of what the C compiler does, for some instructions before a launch that nobody times."""
    build_it: Any = getattr(build, "_build", None)
    if build_it is None or _OPTIONS not in (signature := inspect.signature(build_it)).parameters:
        return

    @functools.wraps(build_it)
    def build_quickly(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.arguments[_OPTIONS] = [*given.arguments.get(_OPTIONS, ()), "-O0"]
        return build_it(*given.args, **given.kwargs)

    build._build = build_quickly  # noqa: SLF001 -- there is no public way.


def _compile_each_once(firsts: _Firsts, launchers: _Launchers) -> None:
    """Leave a kernel that several cases launch to the process that comes first."""
    compile_it, run = compiler.compile, JITFunction.run

    def compile_or_leave(src: Any, *, options: dict[str, Any], **others: Any) -> Any:
        if not firsts.is_first(f"kernel {src.hash()} {sorted(options.items())}"):
            raise _TakenError
        launchers.begin(src)
        return compile_it(src, options=options, **others)

    @functools.wraps(run)
    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        with suppress(_TakenError):
            return run(self, *args, **kwargs)

    # Functions of the submission's look it up when they are launched first.
    compiler.compile, JITFunction.run = compile_or_leave, launch


def _all_called(load: Load, shares: Sequence[Sequence[DryCase]], launchers: _Launchers, deadline: float) -> None:
    """Call every share in a process of its own, until all have ended, or the time is over; then they are ended.

    Each says when it is done, into a pipe that all hold: for whoever could not say it, its end is theirs.
    """
    done, say = os.pipe()
    # A collection writes to all that it looks at, and what a process writes to is copied for it.
    gc.freeze()
    first = forked(lambda: _call_as_one_of(load, shares, launchers, say))
    os.close(say)
    _wait(done, len(shares), deadline)
    os.close(done)
    os.kill(first, signal.SIGKILL)
    with suppress(ProcessLookupError):  # It has left its own group.
        os.killpg(first, signal.SIGKILL)
    os.waitpid(first, 0)


def _wait(done: int, count: int, deadline: float) -> None:
    """Until so many have said that they are done, or nobody is left to say it."""
    looked = select.poll()
    looked.register(done, select.POLLIN)
    while count > 0 and (left := deadline - time.monotonic()) > 0:
        if looked.poll(1000 * left):
            said = os.read(done, count)
            count -= len(said) or count


def _call_as_one_of(load: Load, shares: Sequence[Sequence[DryCase]], launchers: _Launchers, say: int) -> None:
    """Call one share, and leave half of the others to another process, again and again.

    A fork takes ten milliseconds, and the last of a row would wait for all. All are a group of their own.
    """
    os.setpgid(0, 0)
    while len(shares) > 1:
        half = len(shares) // 2
        shares = shares[half:] if os.fork() == 0 else shares[:half]
    with suppress(BaseException):  # The student's code.
        _call_all(load, shares[0])
    launchers.wait()
    os.write(say, b".")


def _call_all(load: Load, cases: Sequence[DryCase]) -> None:
    with dry.without_memory():
        entry = dry.entry_of(load)
        for case in cases:
            with suppress(BaseException):
                dry.call(entry, load.arguments, case)
