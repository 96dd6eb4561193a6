"""How a node looks after itself between and around attempts: self-test, calibration, canary, blame, and a clean GPU.

Attempts and the node's own jobs use one judge, one after the other: whoever holds `turn` has it. A thread waits for a
quiet moment in which the canary is due.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.contract import Calibration, GpuFacts, GradeResult, Phase, Work
from worker import blame, selftest
from worker.baseline import Hygiene
from worker.calibration import Canary, Song
from worker.gpulock import GpuLock
from worker.health import Health
from worker.known import KnownJobs
from worker.node_errors import HandedBackError
from worker.nvml import Gpu
from worker.settings import LifeConfig
from worker.stopping import Stopping
from worker.watch import Watch, with_facts

logger = logging.getLogger(__name__)

TICK_S = 0.5
QUIET_S = 2.0
"""So long nothing was graded: a moment for the canary."""
OVERDUE = 2.0
"""After so many times its interval the canary does not wait for a quiet moment any more."""
PATIENCE_S = 600.0
"""How long the node's own jobs wait for the GPU's lock."""


@dataclass(frozen=True)
class Device:
    """What a node works on.

    Attributes:
        gpu, hygiene: `None` where there is no NVML to ask.
    """

    lock: GpuLock
    gpu: Gpu | None = None
    hygiene: Hygiene | None = None


class Attempt:
    """One attempt's time on the device: what was seen meanwhile, and whose fault it was if something broke."""

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch

    def enter(self, phase: Phase) -> None:
        """The judge is doing this now."""
        if self._watch is not None:
            self._watch.enter(phase)

    def measuring(self) -> None:
        """All of it is one measurement."""
        self.enter(Phase.measuring)

    def facts(self) -> GpuFacts | None:
        """What was seen; `None` where there is no NVML."""
        return self._watch.facts() if self._watch is not None else None

    def xids(self) -> tuple[int, ...]:
        """The driver's error numbers of its time."""
        return self._watch.xids() if self._watch is not None else ()

    def with_facts(self, result: GradeResult) -> GradeResult:
        """The result with what was seen."""
        return with_facts(result, self._watch.facts()) if self._watch is not None else result


class NodeLife:
    """The node's own care.

    Args:
        work: the node's folder.
        secrets_of_node: files that the self-test tries to read from inside the sandbox.
        accepted: promises of the sandbox that the node's owner serves without.
    """

    def __init__(
        self,
        config: LifeConfig,
        jobs: KnownJobs,
        device: Device,
        health: Health,
        *,
        work: Path,
        stopping: Stopping,
        secrets_of_node: tuple[Path, ...] = (),
        accepted: tuple[str, ...] = (),
    ) -> None:
        self._config = config
        self._jobs = jobs
        self._device = device
        self._work = work
        self._secrets = secrets_of_node
        self._accepted = accepted
        self._wait = stopping.sleep
        self.health = health
        self.canary = Canary(jobs)
        self.turn = threading.RLock()
        self._jobs_since = 0
        self._busy_at = self._sung_at = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="life", daemon=True)

    # --- before any work ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Self-test and calibration, if they are asked for; what fails them keeps the node from taking work.

        Raises:
            HandedBackError: the node is stopped meanwhile.
        """
        if not self._config.self_test:
            return
        with self.turn, self._alone():
            tried = selftest.run(self._jobs, self._work, secrets_of_node=self._secrets, accepted=self._accepted)
            if wrong := selftest.problems(tried):
                self.health.refuse(f"self-test failed: {wrong}")
                return
            logger.info("self-test: %d known jobs ended as they must", len(tried))
            for _ in range(self._config.gradings):
                self._listen()

    def start(self) -> None:
        """Look after the node from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End; a song that has begun is waited for."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join()

    # --- what is reported ---------------------------------------------------------------------------------------------

    def trouble(self) -> str:
        """Why the node takes nothing; `""` if it does."""
        return self.health.trouble()

    def calibration(self) -> Calibration | None:
        """The node's noise floor."""
        return self.canary.calibration()

    # --- around an attempt --------------------------------------------------------------------------------------------

    @contextmanager
    def attempt(self, work: Work, *, patience_s: float) -> Iterator[Attempt]:
        """Have the GPU for an attempt, and look at it meanwhile; `turn` is the caller's.

        Raises:
            HandedBackError: others had the GPU all the time, or the node is stopped.
        """
        gpu = self._device.gpu
        looking = Watch(gpu) if gpu is not None else nullcontext()
        with self._device.lock.held(work, patience_s=patience_s, wait=self._wait), looking as watch:
            yield Attempt(watch)

    def settled(self, result: GradeResult | None, attempt: Attempt) -> blame.Judged:
        """Whose fault it was, if something broke; `result` is `None` if the judge gave none."""
        gpu, lane = self._device.gpu, self._jobs.lane
        told = gpu is not None and gpu.tells_xids
        if not blame.looks_broken(result, lane, attempt.xids(), xids_are_told=told):
            return blame.Judged(result)
        with self._device.lock.held(Work.check, patience_s=PATIENCE_S, wait=self._wait):
            judged = blame.judged(result, attempt.xids(), self._jobs)
        if judged.node:
            self.health.quarantine(judged.node)
        return judged

    def after(self) -> None:
        """An attempt is over and said: clean up behind it, and sing if that is due by the number of jobs."""
        self._busy_at = time.monotonic()
        self._jobs_since += 1
        self.clean()
        every = self._config.canary_every_jobs
        if every and self._jobs_since >= every:
            self._sing()

    def clean(self) -> None:
        """See that the GPU is as it was: end what is ours if it is not, and take no work if that did not help."""
        hygiene = self._device.hygiene
        if hygiene is None:
            return
        found = hygiene.after_job()
        if found and not self.health.disturbed:
            logger.warning("the GPU is not as it was: %s; the judge is ended", found)
            self._jobs.end()
            found = hygiene.strict()
        self.health.disturb(f"the GPU is not as it was: {found}" if found else "")

    # --- the canary ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped.wait(TICK_S):
            try:
                self.tick()
            except HandedBackError:
                return
            except Exception:
                # Around the job: the node's care must not end because one look at it failed.
                logger.exception("looking after the node")

    def tick(self) -> None:
        """Sing if it is time and nobody has the judge; look whether a disturbance is over."""
        if not self._due() or not self.turn.acquire(blocking=self._overdue()):
            return
        try:
            if self.health.disturbed:
                self.clean()
            if self._canary_due():
                self._sing()
        finally:
            self.turn.release()

    def _due(self) -> bool:
        quiet = time.monotonic() - self._busy_at > QUIET_S
        return not self.health.unfit and (quiet or self._overdue()) and (self.health.disturbed or self._canary_due())

    def _canary_due(self) -> bool:
        every = self._config.canary_every_s
        return self.health.cooled or bool(every and time.monotonic() - self._sung_at > every)

    def _overdue(self) -> bool:
        every = self._config.canary_every_s
        return bool(every and time.monotonic() - self._sung_at > OVERDUE * every)

    def _sing(self) -> None:
        """One song, with the GPU to itself; if others have it all the time, it is tried later."""
        self._jobs_since, self._sung_at = 0, time.monotonic()
        with suppress(HandedBackError), self._alone():
            self._listen()

    def _listen(self) -> None:
        song = self._heard()
        if song.trouble:
            self.health.failed(song.trouble)
        else:
            self.health.sang()
            self._tell_the_judge()

    def _heard(self) -> Song:
        gpu = self._device.gpu
        if gpu is None:
            return self.canary.sing_again()
        with Watch(gpu) as watch:
            watch.enter(Phase.measuring)
            song = self.canary.sing_again()
        return Song(song.trouble or watch.facts().trouble, song.measurement)

    def _tell_the_judge(self) -> None:
        """The next judge that is started knows the node's noise floor."""
        if (floor := self.calibration()) is not None:
            self._jobs.tell("LADDER_NOISE_FLOOR", str(floor.ratio_spread))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._device.lock.held(Work.measure, patience_s=PATIENCE_S, wait=self._wait):
            yield
