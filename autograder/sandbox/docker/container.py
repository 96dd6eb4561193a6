"""One container, from its making to its removal: made, started, connected, warm, lent once, killed, removed."""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import select
import signal
import socket
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from autograder import codec
from autograder.errors import ContractError, SandboxError
from autograder.sandbox import Promise, Purpose, Side, Spent, cgroups, uids
from autograder.sandbox.docker.config import DockerConfig
from autograder.sandbox.docker.cores import apart
from autograder.sandbox.docker.engine import Engine, Image
from autograder.sandbox.docker.gate import Gate
from autograder.sandbox.docker.settings import Kind, Slot, settings
from autograder.sandbox.meter import meter
from autograder.sandbox.plan import Report

_logger = logging.getLogger(__name__)

_START_S = 120.0
_UNKNOWN = -1
_GONE_S = 15.0
_LAST_WORDS_S = 2.0
_LOOK_S = 0.05
_PACKET = 4096
_GO = b"go"
_numbers = itertools.count()


@dataclass(frozen=True)
class Making:
    """What every container of one sandbox is made with.

    Attributes:
        owner: the label of the judge's process.
        without: promises that are not kept.
        changes: of Docker's `HostConfig`; tests take a defence away.
    """

    engine: Engine
    image: Image
    config: DockerConfig
    owner: str
    without: frozenset[Promise]
    changes: dict[str, Any]


class Container:
    """A container of one kind; it serves one submission.

    Attributes:
        kind: what it was made for.
        name: as Docker lists it.
        uid: its user's number.
        pid: its first process, as this machine sees it; 0 before it was started.
        groups: its control groups.
    """

    def __init__(self, making: Making, kind: Kind, *, background: bool = False) -> None:
        self.kind = kind
        # Not by this process's number alone: another judge's may be left, which nobody may sweep.
        self.name = f"{cgroups.PREFIX}-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(3)}"
        self.pid = 0
        self._making = making
        self._id = ""
        self._first = -1
        self._line: socket.socket | None = None
        self._freezer: cgroups.Freezer | None = None
        self._own_cores, self._turn = "", 0
        self._slot = None if Promise.other_uid in making.without else uids.take()
        self.uid = 0 if self._slot is None else self._slot.number
        try:
            self._gate = Gate(making.config.folder, self.uid)
        except (OSError, SandboxError):
            self._release()
            raise
        try:
            self._start(background=background)
        except BaseException:
            self.close()
            raise

    def _start(self, *, background: bool) -> None:
        making = self._making
        slot = Slot(self.uid, str(self._gate.folder), making.owner)
        wanted = settings(self.kind, slot, making.image, making.config, without=making.without, background=background)
        wanted["HostConfig"].update(making.changes)
        deadline = time.monotonic() + _START_S
        self._id = making.engine.create(self.name, wanted)
        self.pid = making.engine.start(self._id)
        try:
            self._first = os.pidfd_open(self.pid) if self.pid else -1
            self.groups = cgroups.of(self.pid)
            self._freezer = cgroups.Freezer(self.groups.freezer, self.groups.freezer_version)
            unified = self.groups.freezer if self.groups.freezer_version != 1 else ""
            self._meter = meter(self.pid, unified, cgroups.accounting_of(self.pid))
            self._line = self._gate.accept(self.pid, self._id, deadline)
        except (OSError, SandboxError) as error:
            raise SandboxError(f"a container did not start: {error} {self._told()}") from None

    def _told(self) -> str:
        # Its line is cut before Docker has all that it printed; that is so once Docker knows that it has ended.
        deadline = time.monotonic() + _LAST_WORDS_S
        while self._making.engine.state(self._id).get("Running") and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        printed = self._making.engine.printed(self._id).strip()
        return f"It printed: {printed[-1000:] or 'nothing'}"

    def warm(self, deadline: float) -> None:
        """Wait until its imports are done.

        Raises:
            SandboxError: they failed, or took too long.
        """
        report = self._report(max(0.0, deadline - time.monotonic()))
        if report is None or report.kind != "warm":
            raise SandboxError(f"a container's toolchain is not there. {self._told()}")

    def lend(self, channel: socket.socket, log: int, side: Side) -> None:
        """Have its one runner started, with what it may use from now on.

        Args:
            channel, log: the runner's end of its channel, and of the pipe that takes its output.
        """
        if self._line is None:
            raise SandboxError("a container is gone")
        self._settle_limits(side)
        try:
            socket.send_fds(self._line, [_GO], [channel.fileno(), log])
        except OSError as error:
            raise SandboxError(f"a container is gone: {error}") from None

    def _settle_limits(self, side: Side) -> None:
        """Its memory is what the first process has by now and what the submission may have; its cores its side's."""
        limits = dict[str, Any]()
        if Promise.memory_limit not in self._making.without:
            own = cgroups.used_bytes(self.groups.memory, self.groups.memory_version)
            most = own + self.kind.limits.memory_bytes
            limits.update(mem_limit=most, memswap_limit=most)
        self._own_cores = self._cores(side)
        if self._own_cores:
            limits.update(cpuset_cpus=self._own_cores)
        if limits:
            self._making.engine.update(self._id, **limits)

    def _cores(self, side: Side) -> str:
        """Who compiles stays where it was made, beside whoever is called, unless nobody is."""
        cores = self._making.config.cores
        if self.kind.purpose is not Purpose.call and side is not Side.untimed:
            return cores.warm
        return {Side.submission: cores.submission, Side.reference: cores.reference, Side.untimed: cores.untimed}[side]

    def ended(self) -> Report | None:
        """How its runner ended, as the first process says; that it is gone itself; or nothing yet."""
        return self._report(0.0)

    def _report(self, patience_s: float) -> Report | None:
        if self._line is None:
            return Report("ended", signal=signal.SIGKILL)
        # Nothing that is left is no waiting at all: the shortest time there is would be a whole millisecond.
        self._line.settimeout(patience_s)
        try:
            data = self._line.recv(_PACKET)
            return codec.loads(Report, data) if data else Report("ended", signal=signal.SIGKILL)
        except (TimeoutError, BlockingIOError):
            return None
        except (OSError, ContractError):
            return Report("ended", signal=signal.SIGKILL)

    def spent(self) -> Spent:
        """What all processes in it have spent so far, its first one's imports among it."""
        return self._meter.read()

    def alive(self) -> bool:
        """Whether its first process lives."""
        return self._first >= 0 and not _over(self._first, 0.0)

    def freeze(self) -> None:
        """Stop every process in it; returns when they are stopped."""
        if self._freezer is not None:
            self._freezer.freeze()

    def thaw(self) -> None:
        """Let them go on."""
        if self._freezer is not None:
            self._freezer.thaw()

    def pin_core(self, turn: int) -> None:
        """Keep it on one of its side's physical cores, the next one for every turn, or for turn 0 on all of them.

        A scheduler lets a process go on where it was, and does not see that somebody else's work makes that core slow.
        What Docker refuses is no error of ours: of a container that has ended it refuses everything. Nobody knows then
        where one is that lives, as an answer may be lost: it is asked for again in the next turn, whatever that is.
        """
        if turn == self._turn:
            return
        places = apart(self._own_cores)
        if len(places) <= 1:
            return
        wanted = places[(turn - 1) % len(places)] if turn else self._own_cores
        self._turn = _UNKNOWN
        try:
            self._making.engine.update(self._id, cpuset_cpus=wanted)
            self._turn = turn
        except SandboxError as error:
            if self.alive():
                _logger.warning("container %s stays where it is: %s", self.name, error)

    def out_of_memory(self) -> bool:
        """Whether the kernel ended a process in it for its memory."""
        if not self.pid:
            return False
        if cgroups.out_of_memory(self.groups.memory, self.groups.memory_version):
            return True
        # With its last process its control group is gone; then Docker knows.
        return not self.alive() and bool(self._making.engine.state(self._id).get("OOMKilled"))

    def kill(self) -> None:
        """End everything in it: the kernel ends a process namespace with its first process, frozen or not."""
        if self._first < 0:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._first, signal.SIGKILL)
        with suppress(SandboxError):
            self.thaw()
        if not _over(self._first, _GONE_S):
            raise SandboxError(f"process {self.pid} of container {self.name} cannot be killed")
        if Promise.private_processes in self._making.without:
            cgroups.kill(self.groups.folders)

    def close(self) -> None:
        """Kill and remove it; may be called again."""
        with ExitStack() as last:  # From the last line to the first, whatever fails.
            last.callback(self._release)
            last.callback(self._gate.remove)
            last.callback(self._let_go)
            if self._id:
                last.callback(self._making.engine.remove, self._id)
            last.callback(self.kill)

    def _let_go(self) -> None:
        if self._line is not None:
            self._line.close()
        if self._freezer is not None:
            self._freezer.close()
        if self._first >= 0:
            os.close(self._first)
        self._line, self._freezer, self._first, self._id = None, None, -1, ""

    def _release(self) -> None:
        if self._slot is not None:
            self._slot.release()
            self._slot = None


def _over(process: int, patience_s: float) -> bool:
    """Whether a process, given by its descriptor, has ended, and with a namespace's first one all others in it."""
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(1000 * patience_s))
