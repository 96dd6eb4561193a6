"""The judge's hold on the one runner of a container."""

from __future__ import annotations

import signal
import socket
from contextlib import ExitStack, suppress

from autograder.errors import SandboxError
from autograder.sandbox import Exit, Promise, Side, Spent
from autograder.sandbox.docker.container import Container
from autograder.sandbox.output import Output


class DockerRunner:
    """One lent container. What it prints comes by a pipe, as much as is allowed, and is never Docker's to keep.

    Attributes:
        container: it is this runner's alone.
        channel: the judge's end.
    """

    def __init__(self, container: Container, side: Side, without: frozenset[Promise]) -> None:
        self.container = container
        self._without = without
        self._output = Output(container.kind.limits.output_bytes)
        self._exit: Exit | None = None
        self.closed = False
        self.channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with channel:
                try:
                    container.lend(channel, self._output.writer, side)
                finally:
                    self._output.close_writer()
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """Its container's."""
        return self.container.name

    @property
    def pid(self) -> int:
        """Its container's first process, as this machine sees it."""
        return self.container.pid

    @property
    def uid(self) -> int:
        """Its user's number."""
        return self.container.uid

    def freeze(self) -> None:
        """Stop every process of the container; returns when they are stopped."""
        if Promise.freezes_tree not in self._without:
            self.container.freeze()

    def thaw(self) -> None:
        """Let them go on."""
        self.container.thaw()

    def pin_core(self, turn: int) -> None:
        """Have it go on elsewhere, if it is kept on cores of its own."""
        if not self.closed:
            self.container.pin_core(turn)

    def poll(self) -> Exit | None:
        """How it ended, `None` while it lives. Ends it for its output or its memory."""
        if self._exit is None and not self.closed:
            self._exit = self._look()
        return self._exit

    def _look(self) -> Exit | None:
        if self._output.exceeded():
            self.container.kill()
            return Exit(signal=signal.SIGKILL, output_exceeded=True)
        if self.container.out_of_memory():
            self.container.kill()
            return Exit(signal=signal.SIGKILL, out_of_memory=True)
        report = self.container.ended()
        if report is None:
            return None
        if report.kind == "error":
            raise SandboxError(f"the runner could not be shut in: {report.message}")
        # The kernel may have ended it for its memory between the two looks.
        return Exit(report.code, report.signal, out_of_memory=self.container.out_of_memory())

    def spent(self) -> Spent:
        """What all processes of the container have spent so far."""
        return self.container.spent()

    def log(self) -> str:
        """What it has printed so far, capped, undecodable bytes replaced."""
        if not self.closed:
            self._output.exceeded()
        return self._output.text()

    def close(self) -> Exit:
        """Kill and remove the container, and say how it ended; may be called again."""
        if self.closed:
            return self._exit or Exit(signal=signal.SIGKILL)
        with suppress(SandboxError):
            self.poll()
        self._exit = self._exit or Exit(signal=signal.SIGKILL)
        self.closed = True
        with ExitStack() as last:  # From the last line to the first, whatever fails.
            last.callback(self.channel.close)
            last.callback(self._output.close)
            last.callback(self.container.close)
        return self._exit
