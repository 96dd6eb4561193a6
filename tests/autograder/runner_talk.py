"""What the tests of sandbox and runner share: speak to a real runner as the judge does, only without judging."""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from autograder import protocol, wire_format
from autograder.contract import Language
from autograder.sandbox import Exit, RunnerLimits
from autograder.sandbox.process import ProcessSandbox
from autograder.sandbox.process_runner import ProcessRunner

T = TypeVar("T")
LIMITS = RunnerLimits(memory_bytes=512 * 2**20, processes=24, output_bytes=1 << 20, tmp_bytes=8 * 2**20)
GUARD = 256
PATIENCE_S = 60.0


def memory(size: int) -> tuple[int, mmap.mmap]:
    """A memfd and this process's view of it."""
    descriptor = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    return descriptor, mmap.mmap(descriptor, size)


@dataclass
class Tensor:
    """One tensor to send: a numpy array in a memfd, with a guard band before it."""

    name: str
    values: np.ndarray[Any, Any]
    writable: bool
    sealed: bool = True
    descriptor: int = field(init=False)
    view: np.ndarray[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.bytes = -(-(self.values.nbytes + 2 * GUARD) // 4096) * 4096
        self.descriptor, shared = memory(self.bytes)
        flat = np.frombuffer(shared, dtype=self.values.dtype, offset=GUARD, count=self.values.size)
        self.view = flat.reshape(self.values.shape)
        self.view[...] = self.values
        if self.sealed:
            _seal(self.descriptor, future_write=not self.writable)

    @property
    def spec(self) -> protocol.TensorSpec:
        stride = tuple(step // self.values.itemsize for step in self.values.strides)
        dtype = str(self.values.dtype)
        return protocol.TensorSpec(self.name, dtype, self.values.shape, stride, GUARD, self.bytes, self.writable)


def _seal(descriptor: int, *, future_write: bool) -> None:
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals | (0x10 if future_write else 0))


class Talk:
    """One runner and the judge's side of its channel."""

    def __init__(self, runner: ProcessRunner) -> None:
        self.runner = runner
        self._nonce = 1000
        self._judges, self._judges_view = memory(protocol.WORD_BYTES)
        self._runners, self._runners_view = memory(protocol.WORD_BYTES)
        self.ready = self.receive()

    def receive(self) -> Any:
        """The next packet, or how the runner ended; the runner is polled while waiting, as the judge does."""
        return wait_for(self._look)

    def _look(self) -> Any:
        poll = select.poll()
        poll.register(self.runner.channel, select.POLLIN)
        if not poll.poll(5):
            return self.runner.poll()
        data = b""
        with suppress(ConnectionResetError):
            data = self.runner.channel.recv(protocol.MAX_PACKET)
        return wire_format.decode(data, *protocol.RUNNER_SAYS) if data else self.ended()

    def ended(self) -> Exit:
        """Wait until it has ended."""
        return wait_for(self.runner.poll)

    def send_load(self, source: str, entry: str, arguments: tuple[str, ...], **more: Any) -> None:
        load = protocol.Load(source, more.pop("filename", "mine.py"), Language("triton"), entry, arguments, **more)
        socket.send_fds(self.runner.channel, [wire_format.encode(load)], [self._judges, self._runners])

    def load(self, source: str, entry: str = "run", arguments: tuple[str, ...] = (), **more: Any) -> Any:
        self.send_load(source, entry, arguments, **more)
        return self.receive()

    def send_call(self, *tensors: Tensor, record: bool = True, **scalars: int) -> int:
        self._nonce += 1
        self._judges_view[: protocol.WORD.size] = protocol.WORD.pack(self._nonce, 0)
        call = protocol.Call(self._nonce, tuple(tensor.spec for tensor in tensors), scalars, record)
        descriptors = [tensor.descriptor for tensor in tensors]
        socket.send_fds(self.runner.channel, [wire_format.encode(call)], descriptors)
        return self._nonce

    def call(self, *tensors: Tensor, record: bool = True, **scalars: int) -> Any:
        nonce = self.send_call(*tensors, record=record, **scalars)
        answer = self.receive()
        if isinstance(answer, protocol.Returned):
            assert self.receive() == protocol.Released(nonce)
        return answer

    def word(self) -> tuple[int, int]:
        nonce, event_ns = protocol.WORD.unpack(self._runners_view[: protocol.WORD.size])
        return nonce, event_ns

    def run(self, body: str) -> str:
        """Have the runner execute statements in a call; what they printed."""
        lines = "\n".join("    " + line for line in body.strip().splitlines())
        loaded = self.load(f"import os, sys, time, subprocess, socket, signal, ctypes\ndef run():\n{lines}\n")
        assert isinstance(loaded, protocol.Loaded), loaded
        answer = self.call()
        assert isinstance(answer, protocol.Returned), answer
        return self.runner.log()

    def close(self) -> Exit:
        if not self._judges_view.closed:
            for view in (self._judges_view, self._runners_view):
                view.close()
            for descriptor in (self._judges, self._runners):
                os.close(descriptor)
        return self.runner.close()


@contextmanager
def talking(sandbox: ProcessSandbox, limits: RunnerLimits = LIMITS) -> Iterator[Talk]:
    """A runner that is closed at the end."""
    talk = Talk(sandbox.start(limits, Language("triton")))
    try:
        yield talk
    finally:
        talk.close()


def wait_for(look: Callable[[], T | None], patience_s: float = PATIENCE_S) -> T:
    """The first answer that is not `None`."""
    deadline = time.monotonic() + patience_s
    while (answer := look()) is None:
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.002)
    return answer
