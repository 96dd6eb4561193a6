"""Starts our processes, and starts again what dies, as supervisord would."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from worker.processes import children, descendants, kill_tree, tied_to_this_process

REPOSITORY = Path(__file__).resolve().parents[2]
AGAIN_S = 0.5
STOP_S = 20.0


@dataclass
class Program:
    """One process of ours, and what became of it.

    Attributes:
        role: `web`, `dispatcher`, `recorder` or `worker`.
        clock: the file that shifts its clock; `None` where it has the machine's.
        work: a worker's folder.
        real: a worker with the real judge.
        small_disk: its folder is a file system of its own, which can be filled.
        deaths: exit statuses of those that ended.
    """

    name: str
    role: str
    command: Sequence[str]
    environ: Mapping[str, str]
    log: Path
    clock: Path | None = None
    work: Path | None = None
    real: bool = False
    small_disk: bool = False
    deaths: list[int] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id while it lives."""
        process = self.process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def filling(self) -> Path:
        """The file that fills a worker's small disk."""
        return (self.work or self.log.parent) / "filling"

    def judge(self) -> int | None:
        """The process id of a worker's judge."""
        pid = self.pid
        below = children(pid) if pid is not None else []
        return below[0] if below else None

    def runners(self) -> list[int]:
        """The processes below a worker's judge."""
        judge = self.judge()
        return sorted(descendants(judge)) if judge is not None else []


class Supervisor:
    """Keeps programs running, from a thread of its own: they die with that thread, even by SIGKILL."""

    def __init__(self) -> None:
        self.programs: list[Program] = []
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor", daemon=True)
        self.restarts = 0

    def start(self, programs: Sequence[Program]) -> None:
        """Start all of them, and keep them running."""
        self.programs += programs
        if not self._thread.is_alive():
            self._thread.start()

    def of(self, role: str) -> list[Program]:
        """The programs of a role."""
        return [program for program in self.programs if program.role == role]

    def _run(self) -> None:
        # It outlives what it started: they would die with it at once.
        while not self._ended.wait(0.1):
            for program in tuple(self.programs) if not self._stopping.is_set() else ():
                self._look_at(program)

    def _look_at(self, program: Program) -> None:
        if program.process is not None:
            status = program.process.poll()
            if status is None:
                return
            program.deaths.append(status)
            self.restarts += 1
            program.process = None
            time.sleep(AGAIN_S)
        if not self._stopping.is_set():
            program.process = self._start(program)

    @staticmethod
    def _start(program: Program) -> subprocess.Popen[bytes]:
        with program.log.open("ab") as log:
            log.write(f"--- started at {time.time():.3f}\n".encode())
            log.flush()
            return subprocess.Popen(
                tied_to_this_process(program.command),
                cwd=REPOSITORY,
                env=dict(program.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def resume(self) -> None:
        """Let everything go on that was stopped, down to judges and runners."""
        for program in self.programs:
            if (pid := program.pid) is not None:
                for member in (pid, *descendants(pid)):
                    send(member, signal.SIGCONT)

    def stop(self) -> None:
        """Ask all to end, the workers first, and see to it; nothing is started any more."""
        self._stopping.set()
        self.resume()
        for role in ("worker", "dispatcher", "web", "recorder"):
            asked = [program.process for program in self.of(role) if program.process is not None]
            for process in asked:
                send(process.pid, signal.SIGTERM)
            for process in asked:
                _wait(process)
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.wait(STOP_S)


def send(pid: int, number: signal.Signals) -> bool:
    """Send a signal; false if there is nobody."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False
