"""The judge's process: long-lived, because its imports take seconds; one job at a time, as JSON lines.

    worker → judge    {"folder": "…"}
    judge → worker    one event per line, the last one with the result

A judge that dies, falls silent or says something else is killed with everything below it, and replaced for the next
job.
"""

from __future__ import annotations

import json
import logging
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from autograder import codec, languages
from autograder.contract import Event
from autograder.errors import ContractError
from worker.node_errors import HandedBackError, JudgeBrokenError, JudgeDiedError, JudgeSilentError
from worker.processes import end_orphans, kill_tree, tied_to_this_process
from worker.stopping import STOPPED, Stopping

logger = logging.getLogger(__name__)

MAX_LINE = codec.MAX_BYTES
MAX_LOG_BYTES = 8 * 2**20
EXIT_S = 10.0
"""How long a judge may take to end when it is asked to, or to be gone after it was killed."""

# What the judge's environment keeps. The node's key and the broker's password are none of it.
_KEEP = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "DOCKER_HOST",
)
_KEEP_PREFIXES = (
    "CUDA_",
    "NVIDIA_",
    "OMP_",
    "MKL_",
    *(start for one in languages.ALL for start in one.kept_environment),
)


class JudgeProcess:
    """A handle on the process, started when it is first needed.

    Args:
        command: what to run.
        log: file that its standard error goes to; begun anew when it has grown too long.
        adopt: this process has no other children, and has adopted orphans (`worker.processes`): all of them are ended
            with the judge, its runners' leftovers included.
        stopping: once it hands back, a grading ends with `HandedBackError`.
        environment: what its environment has beside what is kept of this process's.
        sweep: removes what a judge that is gone has left elsewhere than below itself; called whenever one has ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        adopt: bool = False,
        stopping: Stopping | None = None,
        environment: Mapping[str, str] | None = None,
        sweep: Callable[[], None] = lambda: None,
    ) -> None:
        self._command = list(command)
        self._log = log
        self._adopt = adopt
        self._stopping = stopping
        self._extra = dict(environment or {})
        self._sweep = sweep
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._pidfd = -1

    @property
    def log(self) -> Path:
        """The file that its standard error goes to."""
        return self._log

    def log_size(self) -> int:
        """How much it has written so far, in bytes."""
        return self._log.stat().st_size if self._log.is_file() else 0

    @property
    def pid(self) -> int | None:
        """Its process id, `None` while there is none."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start it, unless it lives; its imports then run while nobody waits for them."""
        if self._process is not None and self._process.poll() is None:
            return
        self.kill()
        too_long = self._log.is_file() and self._log.stat().st_size > MAX_LOG_BYTES
        if too_long:
            self._log.unlink()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                tied_to_this_process(self._command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env=_environment(os.environ) | self._extra,
            )
        self._pidfd = os.pidfd_open(self._process.pid)
        logger.info("started the judge, process %d", self._process.pid)

    def tell(self, name: str, text: str) -> None:
        """Give the next judge that is started one more variable."""
        self._extra[name] = text

    def grade(self, folder: Path, *, deadline_s: float) -> Iterator[Event]:
        """Yield the events of one grading, the last one with the result.

        Whoever leaves this iterator early has to `kill` the judge: it would go on with the job.

        Raises:
            JudgeDiedError, JudgeSilentError, JudgeBrokenError, HandedBackError: it has to be killed too.
        """
        self.start()
        deadline = time.monotonic() + deadline_s
        self._ask(folder)
        while True:
            event = self._event(deadline)
            yield event
            if event.result is not None:
                return

    def close(self) -> None:
        """Let it end by itself, which closes its sandboxes; then see to it."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            try:
                self._process.wait(EXIT_S)
            except subprocess.TimeoutExpired:
                logger.warning("the judge did not end when it was asked to")
        self.kill()

    def kill(self) -> None:
        """End it and everything below it; the next job gets a new one. Whatever no signal ends is left behind."""
        process, self._process = self._process, None
        self._buffer.clear()
        if process is None:
            return
        try:
            self._end(process)
        except KeyboardInterrupt:
            # Who kills it once more must find what has not ended yet.
            self._process = process
            raise

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            kill_tree(process.pid)
        try:
            process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            # A call into a driver may hang. Who has the judge killed goes on to ask whether the node is ill.
            logger.error("the judge, process %d, was killed and is still there", process.pid)  # noqa: TRY400
        pidfd, self._pidfd = self._pidfd, -1
        if pidfd >= 0:
            os.close(pidfd)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        if self._adopt:
            end_orphans()
        self._sweep()

    def note(self, text: str) -> None:
        """Write a line into the judge's log: whose is what it says from here on."""
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{text}\n")

    def _ask(self, folder: Path) -> None:
        process = self._running()
        line = json.dumps({"folder": str(folder)}).encode() + b"\n"
        try:
            # A line is shorter than a pipe holds, and the judge waits for it: this does not block.
            os.write(self._stdin(process), line)
        except BrokenPipeError:
            raise self._died(process) from None

    def _event(self, deadline: float) -> Event:
        line = self._line(deadline)
        try:
            return codec.loads(Event, line)
        except (ContractError, ValueError) as error:
            raise JudgeBrokenError(f"the judge said something that is no event: {error}") from None

    def _line(self, deadline: float) -> bytes:
        process = self._running()
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > MAX_LINE:
                raise JudgeBrokenError(f"the judge wrote a line of more than {MAX_LINE} bytes")
            self._read(process, deadline)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _read(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        stdout = self._stdout(process)
        left_s = deadline - time.monotonic()
        # Its output alone does not show its end: what it started may hold the other end of the pipe.
        woken = (self._stopping.fileno(),) if self._stopping is not None else ()
        ready = _ready((stdout, self._pidfd, *woken), left_s)
        if ready.intersection(woken):
            raise HandedBackError(STOPPED)
        if not ready:
            raise JudgeSilentError("the judge did not end before the attempt's deadline")
        data = os.read(stdout, 65_536) if stdout in ready else b""
        if not data:
            raise self._died(process)
        self._buffer += data

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise JudgeDiedError("the judge was not started")
        return self._process

    @staticmethod
    def _died(process: subprocess.Popen[bytes]) -> JudgeDiedError:
        try:
            status = process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            return JudgeDiedError("the judge closed its output")
        return JudgeDiedError(f"the judge died with status {status}")

    @staticmethod
    def _stdin(process: subprocess.Popen[bytes]) -> int:
        if process.stdin is None:
            raise JudgeDiedError("the judge has no input")
        return process.stdin.fileno()

    @staticmethod
    def _stdout(process: subprocess.Popen[bytes]) -> int:
        if process.stdout is None:
            raise JudgeDiedError("the judge has no output")
        return process.stdout.fileno()


def _ready(descriptors: Sequence[int], left_s: float) -> set[int]:
    """Which of them can be read, within what is left; unlike `select.select`, whatever their numbers."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(1000 * left_s)} if left_s > 0 else set()


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name in _KEEP or name.startswith(_KEEP_PREFIXES)}
