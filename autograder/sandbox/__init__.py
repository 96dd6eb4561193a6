"""Where runners live.

A sandbox starts runners; the judge talks to them and never imports them. Drivers: `autograder.sandbox.process`
(standard library only, so that a student's laptop, CI and a node without Docker use the same code) and
`autograder.sandbox.docker` (one hardened container per submission, for nodes that take strangers' code). The judge is
given a driver by dotted name and knows only these two protocols.
"""

from __future__ import annotations

import socket
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from autograder.contract import Lane, Language


class Promise(StrEnum):
    """What a sandbox keeps a runner from; what is not in `Sandbox.promises` is not promised."""

    other_uid = "other_uid"
    """Each runner has a user id that nothing else on the machine has."""
    no_network = "no_network"
    private_files = "private_files"
    """It can read the toolchain and its own folder, and write its own folder only."""
    private_processes = "private_processes"
    """It can neither see nor signal a process that is not its own."""
    whole_tree = "whole_tree"
    """Killing it kills all its descendants, whatever they did."""
    freezes_tree = "freezes_tree"
    memory_limit = "memory_limit"
    process_limit = "process_limit"
    syscall_filter = "syscall_filter"


class Purpose(StrEnum):
    """What a runner is for."""

    call = "call"
    """It loads one source and answers calls."""
    compile = "compile"
    """It compiles one source's kernels for devices that are not there. It gets no device."""
    read = "read"
    """It reads machine code, has loaded nothing, and gets no device."""
    profile = "profile"
    """It calls one source under a profiler, which talks to itself over its own network namespace."""

    def lane(self, wanted: Lane) -> Lane:
        """The lane whose device it gets: none but the CPU's where it calls nothing."""
        return wanted if self in {Purpose.call, Purpose.profile} else Lane.cpu


class Side(StrEnum):
    """Whose runner it is. The two that are timed take turns, and may be kept on cores of their own.

    Attributes:
        untimed: a submission's that nobody times; it may have every core but the judge's.
    """

    submission = "submission"
    reference = "reference"
    untimed = "untimed"


@dataclass(frozen=True)
class RunnerLimits:
    """What a runner may use: bytes of memory and of its own folder, processes, bytes of output."""

    memory_bytes: int
    processes: int
    output_bytes: int
    tmp_bytes: int


@dataclass(frozen=True)
class Exit:
    """How a runner ended.

    Attributes:
        code: exit status, `None` if a signal ended it.
        signal: the signal's number, `None` if it exited.
        out_of_memory: the sandbox ended it for its memory.
        output_exceeded: the sandbox ended it for its output.
    """

    code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    output_exceeded: bool = False


@dataclass(frozen=True)
class Spent:
    """What a runner's whole tree has spent so far, those of it that have ended as well, as far as the kernel tells.

    Attributes:
        processor_s: of processors, by all its processes together.
        waited_s: in which one of them, or where only that is told one of this machine's, was ready to run and waited
            for a processor; `None` where nobody tells.
    """

    processor_s: float
    waited_s: float | None


class Runner(Protocol):
    """One started runner: one process tree, connected by `channel`."""

    @property
    def channel(self) -> socket.socket:
        """A connected `SOCK_SEQPACKET` unix socket; the other end is the runner's."""

    def freeze(self) -> None:
        """Stop every process of the tree; returns when they are stopped."""

    def thaw(self) -> None:
        """Let them go on."""

    def pin_core(self, turn: int) -> None:
        """Have it go on on one of its cores after the other, the next one for every turn; on any of them for turn 0.

        The first may be the one that it was on. Nothing happens where the sandbox keeps it on none.
        """

    def poll(self) -> Exit | None:
        """How it ended, `None` while it lives. Also enforces the limits that are watched rather than set."""

    def spent(self) -> Spent:
        """What it has spent. Neither number goes down; some files of the kernel's are read for it."""

    def log(self) -> str:
        """What it has printed so far, capped, undecodable bytes replaced."""

    def close(self) -> Exit:
        """Kill the whole tree, remove its files, and say how it ended; may be called again."""


class Sandbox(Protocol):
    """Starts runners."""

    @property
    def promises(self) -> frozenset[Promise]:
        """What this driver keeps on this machine, found out by trying when it was made."""

    @property
    def facts(self) -> dict[str, str]:
        """Names and versions of what it is made of, for the result."""

    def start(
        self,
        limits: RunnerLimits,
        language: Language,
        lane: Lane = Lane.cpu,
        *,
        side: Side = Side.submission,
        purpose: Purpose = Purpose.call,
    ) -> Runner:
        """Start a runner that will load one source in `language`; its toolchain may be imported already.

        On another lane than the CPU's it is given the GPU's device nodes, if it is to make calls.

        Raises:
            SandboxError: it could not be started.
        """

    def prewarm(
        self, limits: RunnerLimits, language: Language, lane: Lane = Lane.cpu, *, purpose: Purpose = Purpose.call
    ) -> None:
        """Runners like this will be asked for: get ready for them, so far as the driver can, and wait for nothing."""

    def warm_count(
        self, limits: RunnerLimits, language: Language, lane: Lane = Lane.cpu, *, purpose: Purpose = Purpose.call
    ) -> int:
        """How many runners like this would start at once and cost nobody a wait."""

    def pause_background_work(self) -> AbstractContextManager[None]:
        """Nothing is begun in the background while this lasts: somebody is timed."""

    def close(self) -> None:
        """End everything it started."""
