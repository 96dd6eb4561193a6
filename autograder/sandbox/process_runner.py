"""The judge's hold on one runner of the process sandbox."""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import ExitStack, suppress

from autograder import codec
from autograder.errors import NotStoppedError, SandboxError
from autograder.sandbox import Exit, Promise, RunnerLimits, Spent, cgroups, removal, tree
from autograder.sandbox.meter import meter
from autograder.sandbox.output import Output
from autograder.sandbox.plan import Plan, Report
from autograder.sandbox.uids import Uid
from autograder.sandbox.watch import Watch
from autograder.sandbox.zygote import Zygote

_START_S = 120.0
_END_S = 15.0
_PACKET = 4096


class ProcessRunner:
    """One started runner; the supervisor at the other end of `_status` says how it ended, and cleans up."""

    def __init__(self, zygote: Zygote, plan: Plan, limits: RunnerLimits, group: cgroups.Group, uid: Uid | None) -> None:
        self._plan = plan
        self._group = group
        self._uid = uid
        self._output = Output(limits.output_bytes)
        self._exit: Exit | None = None
        self._hung_up = False
        self.closed = False
        self.channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._status, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # `select.select` takes no descriptor above 1023, and a judge may have many.
        self._looked = select.poll()
        self._looked.register(self._status, select.POLLIN)
        self._init = -1
        self._watch: Watch | None = None
        try:
            with channel, status:
                try:
                    zygote.fork(plan, channel.fileno(), self._output.writer, status.fileno())
                finally:
                    self._output.close_writer()
            self._init, self.pid = self._started()
        except SandboxError:
            self.close()
            raise
        self._meter = meter(self.pid, group.unified)
        tmp_bytes = 0 if plan.new_root else limits.tmp_bytes
        self._watch = Watch(self.pid, plan.folder, memory_bytes=plan.watched_bytes, tmp_bytes=tmp_bytes)

    def _started(self) -> tuple[int, int]:
        """The descriptor and the id of its init."""
        self._status.settimeout(_START_S)
        try:
            data, descriptors, _, _ = socket.recv_fds(self._status, _PACKET, 1)
        except TimeoutError:
            raise SandboxError("the runner did not start in time") from None
        finally:
            self._status.settimeout(None)
        if not data:
            raise SandboxError("the zygote ended before it could start a runner")
        report = codec.loads(Report, data)
        if report.kind != "started" or not descriptors:
            raise SandboxError(f"the runner could not be shut in: {report.message}")
        return descriptors[0], report.pid

    def freeze(self) -> None:
        """Stop every process of the tree; returns when they are stopped."""
        if not self._plan.keeps(Promise.freezes_tree):
            return
        if self._group.freezes:
            self._group.freeze()
        elif not tree.stop(self.pid):
            raise NotStoppedError("the runner's processes cannot be stopped")

    def thaw(self) -> None:
        """Let them go on."""
        if self._group.freezes:
            self._group.thaw()
        else:
            tree.resume(self.pid)

    def pin_core(self, turn: int) -> None:
        """It is kept on no core."""

    def poll(self) -> Exit | None:
        """How it ended, `None` while it lives. Ends it for its output, its memory or the size of its folder.

        To be called every few tens of milliseconds while the runner works: what it prints is read here too.
        """
        if self._exit is None and not self.closed:
            self._exit = self._look()
        return self._exit

    def _look(self) -> Exit | None:
        if self._output.exceeded():
            self._kill()
            return Exit(signal=signal.SIGKILL, output_exceeded=True)
        if self._group.out_of_memory() or (self._watch is not None and self._watch.exceeded()):
            self._kill()
            return Exit(signal=signal.SIGKILL, out_of_memory=True)
        return self._read_end() if self._looked.poll(0) else None

    def _read_end(self) -> Exit:
        data = self._status.recv(_PACKET)
        self._hung_up = not data
        report = codec.loads(Report, data) if data else Report("ended", signal=signal.SIGKILL)
        if report.kind == "error":
            raise SandboxError(f"the runner could not be shut in: {report.message}")
        # The kernel may have ended it for its memory between the two looks.
        return Exit(report.code, report.signal, out_of_memory=self._group.out_of_memory())

    def spent(self) -> Spent:
        """What its processes have spent so far."""
        return self._meter.read()

    def log(self) -> str:
        """What it has printed so far, capped, undecodable bytes replaced."""
        self._output.exceeded()
        return self._output.text()

    def _kill(self) -> None:
        """Kill init, with it its namespace, and everything in the groups."""
        if self._init < 0:
            return
        if not self._plan.keeps(Promise.whole_tree):
            # The runner itself, init's first child; what init adopted lives on.
            for pid in sorted(tree.children(self.pid))[:1]:
                tree.send(pid, signal.SIGKILL)
            self.thaw()
            return
        if not self._plan.pid_namespace:
            tree.kill(self.pid)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._init, signal.SIGKILL)
        cgroups.kill(self._plan.cgroups)

    def close(self) -> Exit:
        """Kill the whole tree, remove its files, and say how it ended; may be called again."""
        if self.closed:
            return self._exit or Exit(signal=signal.SIGKILL)
        if self._init >= 0:  # Otherwise it never started.
            with suppress(SandboxError):
                self.poll()
        self._exit = self._exit or Exit(signal=signal.SIGKILL)
        self.closed = True
        with ExitStack() as last:  # From the last line to the first, whatever fails.
            last.callback(self._let_go)
            last.callback(self._wait_for_supervisor)
            self._kill()
        return self._exit

    def _let_go(self) -> None:
        """Close what this process has of it."""
        with ExitStack() as last:
            if self._uid is not None:
                last.callback(self._uid.release)
            if self._init >= 0:
                last.callback(os.close, self._init)
            last.callback(self._group.close)
            last.callback(self._status.close)
            last.callback(self.channel.close)
            last.callback(self._output.close)

    def _wait_for_supervisor(self) -> None:
        """Hang up; the supervisor cleans up and ends."""
        with suppress(OSError):
            self._status.shutdown(socket.SHUT_WR)
        self._status.settimeout(_END_S)
        with suppress(OSError):
            while not self._hung_up and self._status.recv(_PACKET):
                pass
        # It did this already, unless it was never started or was killed.
        try:
            if self._plan.keeps(Promise.whole_tree):
                cgroups.end(self._plan.cgroups)
        finally:
            removal.remove(self._plan.folder)
