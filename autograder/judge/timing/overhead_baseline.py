"""What a batch costs without its work: exchanges with a native runner that does none (`autograder/gpu/null.c`).

Taken while no untrusted process lives, and kept: the shortest of a few, for every number of calls and sizes of buffers.
The exchange is the judge's own (`RunnerClient.batch`), with the same memory, descriptors, clock and snapshots.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.assignment import Assignment, Case
from autograder.contract import FIRST_LANGUAGE
from autograder.errors import HarnessError
from autograder.judge.defences import ALL_ON
from autograder.judge.protocol.batch_buffer import BatchMemory, bytes_of
from autograder.judge.protocol.batch_inputs import StoredInputs, stored_inputs
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.runner_client import BatchReply, Budget, RunnerClient
from autograder.judge.protocol.tensors import Tensors
from autograder.protocol import Load
from autograder.sandbox import Exit, Spent

logger = logging.getLogger(__name__)

WAYS = ("waits", "launches")
"""How the native runner keeps the device at hand before the clock starts; the shorter exchange counts."""

ALIKE = 0.1
"""Of the shortest: by less do copies of as much memory differ on a quiet device, wherever that lies (3 % were seen)."""

SOURCE = Path(__file__).parents[2] / "gpu" / "null.c"


@dataclass(frozen=True)
class OverheadBaseline:
    """What exchanges took in which nothing was done.

    Attributes:
        us: each, less what copying its outputs takes in its memory, the median of all that were taken there.
        copy_us: the same in the memory in which they are shortest.
        undisturbed: false where others disturbed the node so much that nothing of it may be taken off; both are 0 then.
    """

    us: tuple[float, ...]
    copy_us: float
    undisturbed: bool = True


class NullRunner:
    """The native runner as a process of ours; it needs no sandbox."""

    def __init__(self, program: Path, kind: str, way: str) -> None:
        self.channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the runner
        with end:
            self._process = subprocess.Popen(
                [str(program), kind, way], stdin=end.fileno(), stdout=self._log, stderr=self._log
            )

    def freeze(self) -> None:
        """It is trusted to wait."""

    def thaw(self) -> None:
        """It is awake."""

    def pin_core(self, turn: int) -> None:
        """It is where the system has it."""

    def poll(self) -> Exit | None:
        """How it ended."""
        code = self._process.poll()
        if code is None:
            return None
        return Exit(signal=-code) if code < 0 else Exit(code=code)

    def spent(self) -> Spent:
        """Nobody asks how much it spends: it ends in time, or the grader has failed."""
        return Spent(0.0, 0.0)

    def log(self) -> str:
        """What it complained of."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def close(self) -> Exit:
        """End it."""
        self.channel.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._log.close()
        return self.poll() or Exit(signal=signal.SIGKILL)


class NullExchanges:
    """The shortest exchanges of a device, measured when they are first asked for."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._kind = "gpu" if device.where.type == "cuda" else "host"
        self._program: Path | None = None
        self._taken: dict[tuple[int, int, int, int], OverheadBaseline] = {}

    def taken(
        self, assignment: Assignment, case: Case, inputs: Tensors, calls: int, calls_per_buffer: int
    ) -> OverheadBaseline:
        """Exchanges of `calls` calls, sealed as a batch is; no submission may be alive.

        What was taken on a node that was not quiet is not kept.

        Raises:
            HarnessError: the native runner could not be built, or failed.
        """
        key = (calls, calls_per_buffer, *bytes_of(assignment, case))
        if key not in self._taken:
            tensors = {argument.name: inputs[argument.name] for argument in assignment.part(case).inputs}
            given = [stored_inputs(assignment, case, tensors)] * calls
            found = [self._exchanges(assignment, case, given, way, calls_per_buffer) for way in WAYS]
            null = null_of(found, self._device.rules.max_null_us)
            if not null.undisturbed:
                shortest_us = min(one.sealed_us for taken in found for one in taken)
                logger.warning(
                    "others disturb this node: case %s, null %.0f µs with its copies", case.name, shortest_us
                )
                return null
            self._taken[key] = null
        return self._taken[key]

    def _exchanges(
        self, assignment: Assignment, case: Case, inputs: Sequence[StoredInputs], way: str, calls_per_buffer: int
    ) -> list[BatchReply]:
        runner = NullRunner(self.built(), self._kind, way)
        talk = RunnerClient(runner, assignment.limits, Budget(math.inf), ALL_ON, self._device)
        taken: list[BatchReply] = []
        # The same memory for all of them: it is shared with nobody but a program of ours, and the device is not busy
        # with clearing what was given back while the next exchange is timed.
        memory = BatchMemory(assignment, case, self._device, inputs, ALL_ON, calls_per_buffer=calls_per_buffer)
        try:
            talk.hello()
            talk.load(Load("", "null", FIRST_LANGUAGE, assignment.entry, ()))
            # The first exchange of a process is no use: pages and caches are cold.
            for _ in range(self._device.rules.null_exchanges + 1):
                finished = talk.batch(memory, {})
                if isinstance(finished, Failure):
                    raise HarnessError(f"the null exchange failed: {finished.message} {talk.log()}")
                taken.append(dataclasses.replace(finished, snapshots=()))
        finally:
            memory.close()
            talk.close()
        return taken[1:]

    def built(self) -> Path:
        """The native runner, compiled once.

        Raises:
            HarnessError: it could not be built.
        """
        if self._program is None:
            compiler = shutil.which("cc") or shutil.which("gcc")
            if compiler is None:
                raise HarnessError("a node that measures needs a C compiler")
            program = Path(tempfile.mkdtemp(prefix="kernel-ladder-null-")) / "null"
            done = subprocess.run(
                [compiler, "-O2", "-o", str(program), str(SOURCE), "-ldl"], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise HarnessError(f"the native runner does not compile: {done.stderr[-1000:]}")
            self._program = program
        return self._program

    def close(self) -> None:
        """Remove what was built."""
        if self._program is not None:
            shutil.rmtree(self._program.parent, ignore_errors=True)
            self._program = None


def null_of(found: Sequence[Sequence[BatchReply]], max_us: float) -> OverheadBaseline:
    """What exchanges say together; of each of several memories, all that were taken there.

    A median: one copy that the host stopped would make every exchange of its memory seem short, or, as what may be
    taken off, every later batch. On a node that others disturb, all are long, and a batch that happens to be disturbed
    less, freed of so much, would seem shorter than its calls: such a null bounds nothing.

    Args:
        found: as they were taken.
        max_us: what the shortest exchange of a quiet node takes at most; copies that take hardly longer than their
            launch may differ by an eighth of it.
    """
    copies = [statistics.median(one.copy_us for one in taken) for taken in found]
    us = tuple(one.sealed_us - copy_us for taken, copy_us in zip(found, copies, strict=True) for one in taken)
    shortest = min(one.copy_us for taken in found for one in taken)
    if min(us) > max_us or min(copies) - shortest > max(ALIKE * shortest, max_us / 8):
        return OverheadBaseline((0.0,), 0.0, undisturbed=False)
    return OverheadBaseline(us, min(copies))
