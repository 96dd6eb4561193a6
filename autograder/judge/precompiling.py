"""Kernels compiled for this lane's device before anybody calls them, in a runner that has no device.

Checking cases is mostly waiting for triton, which compiles on one core what a call launches. A context of the device
takes its time too, and while a runner waits for that, another one without a device calls the entry with tensors without
memory, each case in a process of its own (`compile_checks/precompile.py`). What came of it is a pack, as runners of
one check hand it on: nobody here looks into it, and who has no pack compiles by itself.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from autograder.assignment import Assignment, Case
from autograder.compile_checks.messages import Part, Precompile, Precompiled
from autograder.compile_checks.targets import LANES
from autograder.contract import GradeRequest, Lane, Language, Visibility
from autograder.errors import SandboxError
from autograder.judge import compiled, memory
from autograder.judge.compilers import (
    LIMITS,
    EndedError,
    arguments_of,
    ask_with_source,
    packet_of,
    source_of,
    understood,
)
from autograder.judge.conversation import PACK_BYTES
from autograder.judge.packs import Packs
from autograder.judge.references import limits_of
from autograder.sandbox import Purpose, Runner, Sandbox, Side

logger = logging.getLogger(__name__)

BUDGET_S = 12.0
"""What is not compiled by then is compiled where it is called."""
_PACKING_S = 3.0
_ENOUGH = 6
"""Runners of a check that make calls: two for each kind of cases, and two that look."""
_LEFT = 1
"""A runner of this kind that goes on waiting: the compile checks take one."""


def _target_of(lane: Lane) -> str:
    """What its device is called as a target of compilers; "" where there is none."""
    return next((target for target, lanes in LANES.items() if lane in lanes), "")


def _is_possible(request: GradeRequest, sandbox: Sandbox) -> bool:
    """Whether there is something to compile ahead, and a runner for it that waits anyway."""
    wanted = request.language is Language.triton and _target_of(request.lane)
    return bool(wanted) and sandbox.ready(LIMITS, request.language, purpose=Purpose.compile) > _LEFT


class Precompiling:
    """Some cases of one submission being compiled; it begins when it is made, and one waits for its pack.

    Args:
        packs: of what need not be compiled again; closed here.
    """

    def __init__(
        self,
        assignment: Assignment,
        request: GradeRequest,
        sandbox: Sandbox,
        cases: Sequence[Case],
        *,
        side: Side,
        packs: Sequence[int] = (),
    ) -> None:
        self._limit_s = BUDGET_S + _PACKING_S
        self._deadline = time.monotonic() + self._limit_s
        self._closing = threading.Lock()
        self._room = memory.of_fixed_size("pack", PACK_BYTES)
        self._runner: Runner | None = None
        dry = tuple(compiled.dry_case(case, assignment) for case in cases)
        ask = Precompile(
            len(source_of(request)), request.filename, assignment.entry, arguments_of(assignment),
            Part(_target_of(request.lane), dry), BUDGET_S,
        )  # fmt: skip
        try:
            self._runner = sandbox.start(LIMITS, request.language, side=side, purpose=Purpose.compile)
            ask_with_source(self._runner, request, ask, [self._room, *packs])
        except (SandboxError, EndedError):  # Whoever waits for it meets the same.
            pass
        finally:
            for descriptor in packs:
                os.close(descriptor)

    def pack(self) -> int | None:
        """Wait for it; a descriptor of the pack, the caller's, if there is one. The runner is still to be ended."""
        try:
            if (runner := self._runner) is not None:
                understood(packet_of(runner, self._deadline, self._limit_s), Precompiled)
                return os.dup(self._room)
        except (SandboxError, EndedError, OSError):  # It was closed, here or there.
            pass
        return None

    def close(self) -> None:
        """End the runner; may be called again, and while somebody waits."""
        with self._closing:
            runner, self._runner = self._runner, None
            room, self._room = self._room, -1
        if runner is not None:
            runner.close()
        if room >= 0:
            os.close(room)


class Ahead:
    """What is compiled ahead in one check: for the public cases, and when that is over for the hidden ones.

    Meanwhile no container is made to wait, if enough do: importing takes the cores that compiling needs. The second is
    kept on cores where no runner works that is shown anything of (`Runners`), and gets what the first has compiled.
    """

    def __init__(self, assignment: Assignment, request: GradeRequest, sandbox: Sandbox) -> None:
        self._submission = (assignment, request, sandbox)
        self._cases: dict[Visibility, Sequence[Case]] = {}
        self._begun: dict[Visibility, Precompiling] = {}
        self._waiting = {visibility: threading.Lock() for visibility in Visibility}
        self._changing = threading.Lock()
        self._quiet = ExitStack()
        self._ending: list[threading.Thread] = []
        self._closed = False
        self.is_on = False

    def begin(self, cases: Mapping[Visibility, Sequence[Case]]) -> None:
        """Begin with the public cases, if there is something to compile ahead, and a runner for it that waits."""
        self._cases = dict(cases)
        self._start(Visibility.public, Side.untimed)
        self.is_on = Visibility.public in self._begun
        if self.is_on and self._are_enough():
            self._quiet.enter_context(self._submission[2].quiet())

    def wait(self, visibility: Visibility, packs: Packs) -> None:
        """Have in `packs`, sealed, what was compiled for these cases, if anything was and nobody has it there yet."""
        with self._waiting[visibility]:
            if (begun := self._begun.get(visibility)) is None:
                return
            packed = begun.pack()
            with self._changing:
                self._begun.pop(visibility, None)
                if self._closed and packed is not None:
                    os.close(packed)
                    packed = None
                packs.add(packed)
                packs.seal()
            self._end(begun)
            if visibility is Visibility.public:
                self._start(Visibility.hidden, Side.submission, packs)
            with self._changing:
                if not self._begun:
                    self._quiet.close()

    def close(self) -> None:
        """End what is begun; whoever waits for it has nothing."""
        with self._changing:
            self._closed, begun, self._begun = True, self._begun, {}
            self._quiet.close()
        for one in begun.values():
            self._end(one)
        for thread in self._ending:
            thread.join()

    def _end(self, begun: Precompiling) -> None:
        """In a thread, as nobody has to wait for it: removing a container takes a tenth of a second."""
        self._ending.append(threading.Thread(target=_close, args=(begun,), name="precompiling-close"))
        self._ending[-1].start()

    def _are_enough(self) -> bool:
        """Whether runners that make calls wait for this check; else whoever makes more of them is not held up."""
        assignment, request, sandbox = self._submission
        return sandbox.ready(limits_of(assignment, request.lane), request.language, request.lane) >= _ENOUGH

    def _start(self, visibility: Visibility, side: Side, packs: Packs | None = None) -> None:
        assignment, request, sandbox = self._submission
        with self._changing:
            cases = self._cases.pop(visibility, ())
            if cases and not self._closed and _is_possible(request, sandbox):
                known = packs.sealed() if packs else ()
                self._begun[visibility] = Precompiling(assignment, request, sandbox, cases, side=side, packs=known)


def _close(begun: Precompiling) -> None:
    try:
        begun.close()
    except SandboxError as error:
        logger.warning("a runner that compiled ahead could not be ended: %s", error)
