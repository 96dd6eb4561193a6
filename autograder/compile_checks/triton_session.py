"""One life of a runner that compiles a Triton submission: for every target in a process of its own."""

from __future__ import annotations

import os
import select
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from autograder.compile_checks import absent, dry, faults, launches, parts, precompile
from autograder.compile_checks.child import Child, Say
from autograder.compile_checks.launches import Kernel, Launches, Resisting
from autograder.compile_checks.messages import MOST_KERNELS, Compile, DryCase, Part
from autograder.compile_checks.targets import TARGETS
from autograder.contract import Language
from autograder.languages.triton import LANGUAGE
from autograder.protocol import Load
from autograder.runner.languages import touch
from autograder.runner.report import SubmissionError, describe

STRICT_S = 10.0
"""How long the calls may take that get a device's errors; they come when all others have been made."""


def warmed() -> Callable[[socket.socket], None]:
    """What serves a channel.

    A first tensor without memory brings what a dry call imports, a first compilation what triton sets up.
    """
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    touch.compile_ahead()
    with dry.without_memory():
        torch.empty(1, device="cpu").add_(1)
    return serve


def serve(channel: socket.socket) -> None:
    """Run until the judge hangs up."""
    _use_own_folder()
    parts.serve(
        channel, lambda request, text: lambda part, code: compile_part(request, part, text, code), precompile.fill
    )


def _use_own_folder() -> None:
    """Triton settled where its cache is before this runner had a folder.

    It keeps whole paths in it: a pack is of use where a runner that makes calls has its cache at the same path.
    """
    from triton import knobs  # noqa: PLC0415

    knobs.cache.dir = str(Path(os.environ.get("HOME", tempfile.gettempdir())) / ".triton" / "cache")


def compile_part(request: Compile, part: Part, text: str, code: int) -> dict[str, Any]:
    """Load, call and compile for one target; `messages.Compiled` as it travels."""
    absent.stand_in(TARGETS[part.target])
    load = Load(text, request.filename, Language(LANGUAGE.id), request.entry, request.arguments)
    # Made before the student's code has run: what that learns below, of a device that takes everything, is wrong.
    strict = Child(lambda say: _refusals(load, part, say))
    # What several cases launch is compiled by all who come first.
    has_cores = len(os.sched_getaffinity(0)) >= sum(len(one.cases) for one in request.parts)
    beside = _Beside(load, part.cases[1:] if has_cores else (), request.budget_s / 2)
    kept = Launches(min(request.most, MOST_KERNELS), request.budget_s)
    launches.install(kept)
    with dry.without_memory():
        course = _walk(load, part, kept, beside)
    beside.end()
    if kept.any_refused:
        course = replace(course, refused=strict.work(STRICT_S).said[: len(part.cases)])
    else:
        strict.leave()
    told = _told(kept.kernels, request.filename)
    return {"target": part.target, **parts.fitting(told, course, code)}


class _Beside:
    """Calls made in processes of their own, so that their kernels are in triton's cache when it is their turn here.

    What they show is not kept: a kernel that is refused there is refused here again.
    """

    def __init__(self, load: Load, cases: Sequence[DryCase], patience_s: float) -> None:
        self._end = time.monotonic() + patience_s
        # The submission may take a process of its own for one of these, and wait for it.
        self._running = [os.pidfd_open(parts.forked(partial(_call, load, case))) for case in cases]

    def wait(self) -> None:
        """Until the next one has ended, or has taken too long."""
        if self._running:
            select.select(self._running[:1], [], [], max(0.0, self._end - time.monotonic()))
            self._end_first()

    def end(self) -> None:
        """End those that nobody waited for."""
        while self._running:
            self._end_first()

    def _end_first(self) -> None:
        running = self._running.pop(0)
        with suppress(ProcessLookupError, ChildProcessError):
            signal.pidfd_send_signal(running, signal.SIGKILL)
            os.waitid(os.P_PIDFD, running, os.WEXITED)
        os.close(running)


def _call(load: Load, case: DryCase) -> None:
    with dry.without_memory():
        dry.call(dry.entry_of(load), load.arguments, case)


def _walk(load: Load, part: Part, kept: Launches, beside: _Beside) -> parts.Course:
    """Load the source and call its entry on every case; what ended the first that did not end by itself."""
    try:
        entry = dry.entry_of(load)
    except SubmissionError as error:
        return parts.Course(fault=describe(error, load.filename, ()))
    except BaseException as error:  # noqa: BLE001 -- the student's code: SystemExit and KeyboardInterrupt too.
        return parts.Course(fault=faults.of_host(error, load.filename))
    ended: tuple[dict[str, Any] | None, str] = (None, "")
    for number, case in enumerate(part.cases):
        if number:
            beside.wait()
        kept.begin(number)
        try:
            dry.call(entry, load.arguments, case)
        except BaseException as error:  # noqa: BLE001 -- the same.
            ended = ended if ended[0] else (faults.of_host(error, load.filename), case.name)
    return parts.Course(kept.left_out, *ended)


def _refusals(load: Load, part: Part, say: Say) -> None:
    """Call the entry on every case with the errors that a device would give; say which calls end with one of them.

    Host code may catch it and have another way, and then nothing is said.
    """
    resisting = Resisting()
    launches.install(resisting)
    with dry.without_memory():
        entry = dry.entry_of(load)
        for number, case in enumerate(part.cases):
            try:
                dry.call(entry, load.arguments, case)
            except BaseException as error:  # noqa: BLE001 -- the student's code.
                function = resisting.refused(error)
                if function is not None:
                    fault = faults.of_kernel(error, function, load.filename)
                    say({"case": number, "kernel": launches.name_of(function), "fault": fault})


def _told(kernels: list[Kernel], filename: str) -> Iterator[parts.Told]:
    for kernel in kernels:
        fault = faults.of_kernel(kernel.error, kernel.function, filename) if kernel.error else None
        fields = {
            "kernel": kernel.name,
            "uses": [list(use) for use in kernel.uses],
            "config": kernel.config,
            "arguments": kernel.arguments,
            "shared_bytes": kernel.shared_bytes,
            "fault": fault,
        }
        yield parts.Told(fields, kernel.code, kernel.ptx)
