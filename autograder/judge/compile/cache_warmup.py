"""Kernels compiled for this lane's device before anybody calls them, in a runner that has no device.

Checking cases is mostly waiting for triton, which compiles on one core what a call launches. A context of the device
takes its time too, and while a runner waits for that, another one without a device calls the entry with tensors without
memory, each case in a process of its own (`compile_checks/precompile.py`). What came of it is a pack, as runners of
one attempt hand it on: nobody here looks into it, and who has no pack compiles by itself.

A measurement has it too, while its runner takes a context. It is over, and who compiled is gone, before anything is
timed.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack

from autograder import languages
from autograder.assignment import Assignment, Case
from autograder.compile_checks.messages import Part, Precompile, Precompiled
from autograder.contract import GradeRequest, Lane, Visibility, Work
from autograder.errors import ContractError, SandboxError
from autograder.judge.compile import cross_compile
from autograder.judge.compile.compile_cache import CompileCache
from autograder.judge.compile.compiler_client import (
    LIMITS,
    CompilerExitedError,
    arguments_of,
    ask_with_source,
    packet_of,
    source_of,
    understood,
)
from autograder.judge.protocol import memfd
from autograder.judge.protocol.loading import limits_of
from autograder.judge.protocol.own_time import Wait
from autograder.judge.protocol.runner_client import PACK_BYTES
from autograder.lanes import DEVICES
from autograder.sandbox import Purpose, Runner, Sandbox, Side

logger = logging.getLogger(__name__)

BUDGET_S = 12.0
"""What is not compiled by then is compiled where it is called."""
_PACKING_S = 3.0
_MIN_READY_RUNNERS = 6
"""Runners of a check that make calls: two for each kind of cases, and two that look."""
_MAX_PAUSE_S = 8.0
"""A submission whose cases take longer does not keep the node from getting ready for the next one."""
_RESERVED = 1
"""A runner of this kind that goes on waiting in a check: its compile checks take one."""


def _target_of(lane: Lane) -> str:
    """What its device is called as a target of compilers; "" where there is none."""
    return DEVICES[lane].target if lane in DEVICES else ""


def _is_possible(assignment: Assignment, request: GradeRequest, sandbox: Sandbox) -> bool:
    """Whether there is something to compile ahead, and a runner for it that waits anyway."""
    has_own_entry = bool(assignment.entry) and not assignment.adapter
    wanted = has_own_entry and languages.of(request.language).precompiles and _target_of(request.lane)
    left = _RESERVED if request.work is Work.check else 0
    return bool(wanted) and sandbox.warm_count(LIMITS, request.language, purpose=Purpose.compile) > left


class WarmupJob:
    """Some cases of one submission being compiled, by a thread that ends the runner too; one waits for its pack.

    Args:
        packs: of what need not be compiled again; closed here.
    """

    def __init__(
        self,
        assignment: Assignment,
        request: GradeRequest,
        sandbox: Sandbox,
        cases: Sequence[Case],
        packs: Sequence[int] = (),
    ) -> None:
        self._assignment = assignment
        self._request = request
        self._sandbox = sandbox
        self._packed: int | None = None
        self._taking = threading.Lock()
        self._has_packed = False
        self._over = threading.Event()
        self._given_up = threading.Event()
        self._unended: SandboxError | None = None
        self._thread = threading.Thread(target=self._work, args=(tuple(cases), packs), name="precompiling")
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether it is over and has come to nothing."""
        return self._over.is_set() and not self._has_packed

    def pack(self) -> int | None:
        """Wait for it; a descriptor of the pack, the caller's, if there is one."""
        self._over.wait()
        with self._taking:
            packed, self._packed = self._packed, None
        return packed

    def close(self) -> None:
        """End it, and wait for that; may be called again, and while somebody waits."""
        self._given_up.set()
        self._thread.join()
        if (packed := self.pack()) is not None:
            os.close(packed)

    def stop(self) -> None:
        """Make sure that its runner does not run any more.

        Raises:
            SandboxError: it could not be ended.
        """
        self.close()
        if self._unended is not None:
            raise self._unended

    def _work(self, cases: tuple[Case, ...], packs: Sequence[int]) -> None:
        with ExitStack() as last:  # From the last line to the first, whatever fails.
            try:
                self._ask(cases, packs, last)
            except (SandboxError, CompilerExitedError, ContractError, OSError) as error:
                logger.info("nothing was compiled ahead: %s", error)
            finally:
                # Nobody has to wait for the runner's end: removing a container takes a tenth of a second.
                self._over.set()
                memfd.close(packs)

    def _ask(self, cases: tuple[Case, ...], packs: Sequence[int], last: ExitStack) -> None:
        """Have a runner compile; `last` ends it."""
        room = memfd.of_fixed_size("pack", PACK_BYTES)
        last.callback(os.close, room)
        runner = self._sandbox.start(LIMITS, self._request.language, side=Side.untimed, purpose=Purpose.compile)
        last.callback(self._end, runner)
        # By the wall's clock: what is not compiled ahead is compiled when it is called, and no verdict depends on it.
        wait = Wait(runner, BUDGET_S + _PACKING_S, backstop_s=BUDGET_S + _PACKING_S)
        ask_with_source(runner, self._request, self._question(cases), [room, *packs])
        packet = packet_of(runner, wait, self._given_up.is_set)
        understood(packet, Precompiled)
        self._packed = os.dup(room)
        self._has_packed = True

    def _end(self, runner: Runner) -> None:
        try:
            runner.close()
        except SandboxError as error:
            logger.warning("a runner that compiled ahead could not be ended: %s", error)
            self._unended = error

    def _question(self, cases: tuple[Case, ...]) -> Precompile:
        request, assignment = self._request, self._assignment
        dry = tuple(cross_compile.dry_case(case, assignment) for case in cases)
        part = Part(_target_of(request.lane), dry)
        size = len(source_of(request))
        is_timed = request.work is Work.measure
        return Precompile(size, request.filename, assignment.entry, arguments_of(assignment), part, BUDGET_S, is_timed)


class CacheWarmup:
    """What is compiled ahead in one attempt.

    Meanwhile no container is made to wait, if enough do: importing takes the cores that compiling needs.
    """

    def __init__(self, assignment: Assignment, request: GradeRequest, sandbox: Sandbox) -> None:
        self._assignment = assignment
        self._request = request
        self._sandbox = sandbox
        self._begun: dict[Visibility, WarmupJob] = {}
        self._waiting = {visibility: threading.Lock() for visibility in Visibility}
        self._paused = ExitStack()
        self._resume_timer = threading.Timer(_MAX_PAUSE_S, self._paused.close)
        self._resume_timer.daemon = True
        self._is_active = False

    @property
    def is_active(self) -> bool:
        """Whether the public cases' kernels are, or were."""
        public = self._begun.get(Visibility.public)
        return self._is_active and not (public is not None and public.failed)

    def begin(self, visibility: Visibility, cases: Sequence[Case], packs: Sequence[int] = ()) -> None:
        """Begin with these cases, if there is something to compile ahead, and a runner for it that waits.

        Args:
            packs: of what need not be compiled again; closed here.
        """
        if not cases or not _is_possible(self._assignment, self._request, self._sandbox):
            memfd.close(packs)
            return
        if visibility is Visibility.public and self._are_enough():
            self._paused.enter_context(self._sandbox.pause_background_work())
            self._resume_timer.start()
        self._is_active = True
        self._begun[visibility] = WarmupJob(self._assignment, self._request, self._sandbox, cases, packs)

    def wait(self, visibility: Visibility, packs: CompileCache) -> None:
        """Have in `packs`, sealed, what was compiled for these cases, if anything was and nobody has it there yet."""
        with self._waiting[visibility]:
            if (begun := self._begun.get(visibility)) is not None and (packed := begun.pack()) is not None:
                packs.add(packed)
                packs.seal()

    def resume_background_work(self) -> None:
        """Nothing more is compiled ahead that anybody waits for: containers may be made again."""
        self._resume_timer.cancel()
        self._paused.close()

    def stop(self) -> None:
        """End what is begun, and make sure that none of it runs any more.

        Raises:
            SandboxError: a runner could not be ended.
        """
        self.close()
        for begun in self._begun.values():
            begun.stop()

    def close(self) -> None:
        """End what is begun; whoever waits for it has nothing."""
        self._is_active = False
        self.resume_background_work()
        for begun in self._begun.values():
            begun.close()
        for waiting in self._waiting.values():  # Whoever waited has put down what it got.
            with waiting:
                pass

    def _are_enough(self) -> bool:
        """Whether runners that make calls wait for this check; else whoever makes more of them is not held up."""
        assignment, request = self._assignment, self._request
        ready = self._sandbox.warm_count(limits_of(assignment, request.lane), request.language, request.lane)
        return ready >= _MIN_READY_RUNNERS
