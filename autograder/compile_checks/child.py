"""A process of its own for code of the student's: what it says comes back line by line, up to a time of its own.

That is `judge.protocol.own_time` for one process, which this one waits for itself: what it computes, or the time in
which it did not wait for a processor.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from autograder.compile_checks import parts

Said = dict[str, Any]
Say = Callable[[Said], None]

_MOST_SAID = 4 * 2**20
_LOOK_S = 0.01
BACKSTOP = 10.0
"""How many times its time may pass, whoever takes it."""
SCHEDSTAT = "/proc/{pid}/schedstat"
"""Nanoseconds: on a processor, waiting for one."""


@dataclass(frozen=True)
class Told:
    """What a child said, of which every word may be the student's.

    Attributes:
        ending: `code` and `signal`, as in `sandbox.Exit`.
        in_time: it ended by itself.
    """

    said: list[Said]
    ending: dict[str, int | None]
    in_time: bool


class Child:
    """Forked when it is made, so that it knows what was known then; it works once it is asked to."""

    def __init__(self, work: Callable[[Say], None]) -> None:
        asked, self._ask = os.pipe()
        self._heard, say = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._ask)
            os.close(self._heard)
            _work_when_asked(work, asked, say)
        os.close(asked)
        os.close(say)

    def work(self, seconds: float) -> Told:
        """Have it work; what it said until it ended, or so much of its own time was over."""
        patience = _Patience(self._pid, seconds)
        with contextlib.suppress(BrokenPipeError):
            os.write(self._ask, b".")
        text = _all_of(self._heard, patience)
        os.close(self._heard)
        # Whoever closed the pipe, or said too much, may go on.
        in_time = _is_over(self._pid, patience)
        return Told(_understood(text), self._end(), in_time)

    def leave(self) -> None:
        """It is not asked."""
        os.close(self._heard)
        self._end()

    def _end(self) -> dict[str, int | None]:
        os.close(self._ask)
        if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            os.kill(self._pid, signal.SIGKILL)
        return parts.ended(os.waitpid(self._pid, 0)[1])


class _Patience:
    """With a process that has not been waited for."""

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self._seconds = seconds
        self._start = time.monotonic()

    def is_over(self) -> bool:
        """Whether it has had its time, or ten times that has passed."""
        wall_s = time.monotonic() - self._start
        return wall_s >= self._seconds and (wall_s >= BACKSTOP * self._seconds or self._own_s(wall_s) >= self._seconds)

    def _own_s(self, wall_s: float) -> float:
        # The clock of a process's processor time, as clock_getcpuclockid makes its number.
        processor_s = time.clock_gettime((~self._pid << 3) | 2)
        with contextlib.suppress(OSError):
            waited_ns = int(Path(SCHEDSTAT.format(pid=self._pid)).read_text(encoding="ascii").split()[1])
            return max(processor_s, wall_s - waited_ns / 1e9)
        return processor_s


def _work_when_asked(work: Callable[[Say], None], asked: int, say: int) -> NoReturn:
    status = 1
    try:
        if os.read(asked, 1):
            work(lambda one: _write(say, json.dumps(one).encode() + b"\n"))
        status = 0
    finally:
        ctypes.CDLL(None).fflush(None)
        os._exit(status)


def _write(descriptor: int, text: bytes) -> None:
    while text:
        text = text[os.write(descriptor, text) :]


def _all_of(descriptor: int, patience: _Patience) -> bytes:
    """What is said up to the end, while it has time, or to more than is looked at."""
    text = b""
    looked = select.poll()
    looked.register(descriptor, select.POLLIN)
    while len(text) <= _MOST_SAID and not patience.is_over():
        if looked.poll(1000 * _LOOK_S):
            piece = os.read(descriptor, 65536)
            if not piece:
                break
            text += piece
    return text


def _is_over(pid: int, patience: _Patience) -> bool:
    """Whether the process ends in its time; it is left to be waited for."""
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if patience.is_over():
            return False
        time.sleep(_LOOK_S)
    return True


def _understood(text: bytes) -> list[Said]:
    """Its words up to the first that is none: whoever can write there can write anything."""
    said: list[Said] = []
    for line in text.split(b"\n")[:-1]:
        try:
            one = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(one, dict):
            break
        said.append(one)
    return said
