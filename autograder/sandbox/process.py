"""The process sandbox: what Linux offers without containers."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import autograder
from autograder import codec
from autograder.contract import MAX_LOG_CHARS, Language
from autograder.errors import SandboxError
from autograder.sandbox import Exit, Promise, RunnerLimits, tree
from autograder.sandbox.plan import Features, Plan, Report

FIRST_UID: Final = 61_000
LAST_UID: Final = 62_999
START_S: Final = 60.0
END_S: Final = 10.0

_BOOTSTRAP = "import sys; sys.path.insert(0, sys.argv.pop(1)); from autograder.runner.__main__ import main; main(sys.argv[1:])"
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "USER": "runner",
    "TRITON_INTERPRET": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class _Zygote:
    """The judge's hold on one language's zygote."""

    def __init__(self, language: Language) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        package = str(Path(autograder.__file__).parent.parent)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _BOOTSTRAP, package, "zygote", language],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
        theirs.close()

    def fork(self, plan: Plan, channel: int, log: int, status: int) -> None:
        socket.send_fds(self._control, [codec.dumps(plan).encode()], [channel, log, status])

    def close(self) -> None:
        self._control.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class ProcessSandbox:
    """Starts runners as processes of this machine."""

    def __init__(self) -> None:
        self._zygotes: dict[Language, _Zygote] = {}
        self._runners: set[ProcessRunner] = set()
        self._uid = FIRST_UID
        self.promises: frozenset[Promise] = frozenset({Promise.whole_tree, Promise.freezes_tree})

    def start(self, limits: RunnerLimits, language: Language) -> ProcessRunner:
        """Start a runner."""
        if language not in self._zygotes:
            self._zygotes[language] = _Zygote(language)
        folder = tempfile.mkdtemp(prefix="kernel-ladder-")
        uid = None
        if os.getuid() == 0:
            uid = self._uid = self._uid + 1
            os.chown(folder, uid, uid)
        plan = Plan(
            folder=folder,
            uid=uid,
            processes=limits.processes,
            file_bytes=limits.tmp_bytes,
            data_bytes=0,
            cgroups=(),
            readable=(),
            features=Features(),
        )
        runner = ProcessRunner(self._zygotes[language], plan, limits)
        self._runners.add(runner)
        return runner

    def close(self) -> None:
        """End everything."""
        for runner in self._runners:
            runner.close()
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()


class ProcessRunner:
    """One started runner."""

    def __init__(self, zygote: _Zygote, plan: Plan, limits: RunnerLimits) -> None:
        self._limits = limits
        self._exit: Exit | None = None
        self._closed = False
        self._text = b""
        self._printed = 0
        self.channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._status, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._log, log = os.pipe()
        os.set_blocking(self._log, False)
        try:
            zygote.fork(plan, channel.fileno(), log, status.fileno())
        finally:
            channel.close()
            status.close()
            os.close(log)
        self._init, self._pid = self._started()

    def _started(self) -> tuple[int, int]:
        self._status.settimeout(START_S)
        try:
            data, descriptors, _, _ = socket.recv_fds(self._status, 4096, 1)
        except TimeoutError:
            raise SandboxError("the runner did not start in time") from None
        self._status.settimeout(None)
        if not data:
            raise SandboxError("the zygote ended")
        report = codec.loads(Report, data)
        if report.kind != "started":
            raise SandboxError(report.message)
        return descriptors[0], report.pid

    def freeze(self) -> None:
        """Stop the tree."""
        if not tree.stop(self._pid):
            raise SandboxError("the runner's processes cannot be stopped")

    def thaw(self) -> None:
        """Let it go on."""
        tree.resume(self._pid)

    def poll(self) -> Exit | None:
        """How it ended; ends it for its output."""
        self._drain()
        if self._exit is None and self._printed > self._limits.output_bytes:
            self._kill()
            self._exit = Exit(signal=signal.SIGKILL, output_exceeded=True)
        if self._exit is None and select.select([self._status], [], [], 0)[0]:
            self._exit = self._read_end()
        return self._exit

    def _read_end(self) -> Exit:
        data = self._status.recv(4096)
        if not data:
            return Exit(signal=signal.SIGKILL)
        report = codec.loads(Report, data)
        return Exit(code=report.code, signal=report.signal)

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while self._printed <= self._limits.output_bytes and (data := os.read(self._log, 65536)):
                self._printed += len(data)
                self._text = (self._text + data)[: 4 * MAX_LOG_CHARS]

    def log(self) -> str:
        """What it printed, capped."""
        if not self._closed:
            self._drain()
        return self._text.decode("utf-8", "replace")[:MAX_LOG_CHARS]

    def _kill(self) -> None:
        tree.kill(self._pid)
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._init, signal.SIGKILL)

    def close(self) -> Exit:
        """Kill and clean up."""
        if self._closed:
            return self._exit or Exit(signal=signal.SIGKILL)
        self.poll()
        self._kill()
        self._drain()
        with suppress(OSError):
            self._status.shutdown(socket.SHUT_WR)
        self._status.settimeout(END_S)
        with suppress(TimeoutError):
            while self._status.recv(4096):
                pass
        self._exit = self._exit or Exit(signal=signal.SIGKILL)
        self._closed = True
        self.channel.close()
        self._status.close()
        os.close(self._init)
        os.close(self._log)
        return self._exit
