"""A submission's runners, each with the source loaded anew: the present one, those beside it, one aside.

Beside it work those that are dealt cases of the same kind (`parallel_cases`); aside, the no-op replay and the tracer.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from autograder import languages
from autograder.assignment import Assignment, Case
from autograder.contract import GradeRequest, Lane, Language, Visibility, Work
from autograder.errors import SandboxError
from autograder.judge.compile.cache_warmup import CacheWarmup
from autograder.judge.compile.compile_cache import CacheStore, CompileCache
from autograder.judge.defences import Defences
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.loading import Begin, limits_of, load_of
from autograder.judge.protocol.runner_client import Budget, RunnerClient
from autograder.sandbox import Sandbox, Side

logger = logging.getLogger(__name__)

_PACK_S = 2.0
"""For all runners of a kind together."""


class Runners:
    """Starts the runners of one submission; they share its budget of running time.

    Attributes:
        versions: of the toolchain, as the first runner named them.
        cut_short: whether runners aside were ended; what was not found by then is not to be believed.
    """

    def __init__(
        self,
        request: GradeRequest,
        assignment: Assignment,
        sandbox: Sandbox,
        defences: Defences,
        device: Device,
        *,
        shelf: CacheStore | None = None,
    ) -> None:
        self._request = request
        self._assignment = assignment
        self._sandbox = sandbox
        self._defences = defences
        self._device = device
        self._budget = Budget(assignment.limits.total_s)
        self._present: RunnerClient | None = None
        self._beside: dict[RunnerClient, int] = {}
        self._next: list[RunnerClient] = []
        self._aside: list[RunnerClient] = []
        self._shelf = shelf or CacheStore()
        self._key = _key(request)
        kept = self._shelf.of(self._key) if request.work is Work.measure else []
        self._has_kept = bool(kept)
        self._packs = {Visibility.public: CompileCache(kept), Visibility.hidden: CompileCache()}
        self._warmup = CacheWarmup(assignment, request, sandbox)
        self._packed = False
        # On a processor compiling is short.
        self._compiles_ahead = request.work is not Work.all and request.lane is not Lane.cpu
        self._before_s, self._since = self._budget.left_s, time.monotonic()
        self.versions: dict[str, str] = {}
        self.cut_short = False

    def precompile(self, visibility: Visibility, cases: Sequence[Case]) -> None:
        """Begin to compile what cases launch, if that can be; runners that are to be dealt them wait for it.

        For hidden ones after the others' results and words are taken, with what those have compiled.
        """
        if self._has_kept:
            return
        if self._compiles_ahead and visibility is Visibility.public:
            self._warmup.begin(visibility, cases)
        elif self._warmup.is_active:
            self._packs[Visibility.public].seal()
            self._warmup.begin(visibility, cases, self._packs[Visibility.public].sealed())

    @property
    def precompiles(self) -> bool:
        """Whether that has begun."""
        return self._warmup.is_active

    def end_precompiling(self) -> None:
        """End whoever compiles ahead, and wait until it is gone: something will be timed.

        Raises:
            SandboxError: it could not be ended.
        """
        self._warmup.stop()

    def fresh(self, *, others: int = 0, meanwhile: Callable[[], None] | None = None) -> RunnerClient | Failure:
        """End the present runner and those beside it, start another, and load the submission into it.

        Args:
            others: so many start beside it, where none were started to come next.
            meanwhile: called when it is there; those beside it start then too, for it does not work yet, but waits
                until what it will launch is compiled.
        """
        return self._fresh(Visibility.public, others, meanwhile)

    def _fresh(
        self, visibility: Visibility, others: int = 0, meanwhile: Callable[[], None] | None = None
    ) -> RunnerClient | Failure:
        self._end_present()
        for packs in self._packs.values():
            packs.seal()
        self._refund_overlap()
        was_ahead = bool(self._next)
        self.start_next()
        self._present = self._next.pop(0)
        try:
            self._present.hello()
            if meanwhile is not None:
                self._start_beside(others)
                meanwhile()
            loaded = self._loaded(self._present, visibility)
        except SandboxError:
            if not was_ahead:
                raise
            # The submission may have been in its way, aside too; now nothing of it runs.
            self.close()
            return self._fresh(visibility)
        self.versions = self.versions or self._present.versions
        if not isinstance(loaded, Failure) and meanwhile is None:
            if languages.of(self._request.language).compiled_at_load:
                self.export_caches()
                self._packs[visibility].seal()
            self._start_beside(others)
        return loaded

    def _start_beside(self, count: int) -> None:
        """When the first is there: the driver makes one context after the other, and it should not wait for others'."""
        try:
            self.start_next(count)
        except SandboxError as error:
            logger.warning("a runner beside the first did not start: %s", error)
        self._beside, self._next = dict.fromkeys(self._next, 0), []

    def export_caches(self) -> None:
        """Keep what compilers have made in the present runners, for others of a check; once."""
        hands_on = self._compiles_ahead and self._request.work is Work.check
        if not hands_on or self._packed:
            return
        self._packed = True
        until = time.monotonic() + _PACK_S
        for talk in filter(None, (self._present, *self._beside)):
            self._packs[Visibility.public].add(talk.export_cache(until - time.monotonic()))

    def store_cache(self) -> None:
        """Leave what was compiled for public cases to a measurement of the same source."""
        if self._packed:
            self._packs[Visibility.public].seal()
            self._shelf.keep(self._key, self._packs[Visibility.public].sealed())

    def another(self, visibility: Visibility = Visibility.public) -> RunnerClient | Failure:
        """A fresh runner for such cases, or in a test without that defence the present one."""
        if self._defences.fresh_runner or self._present is None:
            return self._fresh(visibility)
        return self._present

    def alone(self) -> RunnerClient | Failure:
        """One with none beside it or aside, which compiles by itself."""
        self.close()
        self._compiles_ahead = False
        self._budget.ask_again()
        # As one that was ahead it may try twice: the driver takes its time to give back the memory of those ended.
        self.start_next()
        return self.fresh()

    def _refund_overlap(self) -> None:
        """What runners spent at the same time counts once: by the wall's clock, where that is less."""
        now = time.monotonic()
        self._budget.refund_up_to(self._before_s - (now - self._since))
        self._before_s, self._since = self._budget.left_s, now

    def present(self) -> RunnerClient | Failure:
        """The runner that is there, or a fresh one."""
        return self._present or self.fresh()

    def start_next(self, count: int = 1) -> None:
        """Have the next runners start while the present ones are busy; they have seen nothing of the submission."""
        while len(self._next) < count:
            self._next.append(self._talk())

    def warm_count(self) -> int:
        """How many more could begin at once."""
        return self._sandbox.warm_count(limits_of(self._assignment, self._request.lane), *self._kind())

    def beside(self, visibility: Visibility = Visibility.public) -> list[Begin]:
        """Those that started beside the present one; each is loaded by whoever uses it."""
        return [functools.partial(self._begun_beside, talk, self._beside, visibility) for talk in self._beside]

    def noop_replay(self) -> Begin:
        """Start one aside, for the replay."""
        return functools.partial(self._begun, self._put_aside(), Visibility.public, noop_replay=True)

    def tracing(self) -> Begin:
        """Start one aside, for calls that are traced."""
        return functools.partial(self._begun, self._put_aside(), Visibility.public)

    def log(self) -> str:
        """What the present runner has printed, and those beside it since they have the submission."""
        if self._present is None:
            return ""
        others = (talk.log()[start:] for talk, start in self._beside.items())
        return "".join([self._present.log(), *others])

    def close(self) -> None:
        """End them all, and let go of what they have compiled."""
        self.end()
        for packs in self._packs.values():
            packs.close()

    def end(self) -> None:
        """End them all; what they have compiled stays."""
        self.cut_short = self.cut_short or bool(self._aside)
        others = [*self._next, *self._aside]
        self._next, self._aside = [], []
        self._warmup.close()
        self._end_present(others)

    def _end_present(self, others: Sequence[RunnerClient] = ()) -> None:
        talks = [talk for talk in (self._present, *self._beside) if talk is not None]
        self._present, self._beside = None, {}
        _end([*talks, *others])

    def _put_aside(self) -> RunnerClient:
        self._aside.append(self._talk())
        return self._aside[-1]

    def _begun_beside(
        self, talk: RunnerClient, beside: dict[RunnerClient, int], visibility: Visibility
    ) -> RunnerClient | Failure:
        """Loading says the same in every runner: once is enough. Others may be beside by the time that it has ended."""
        loaded = self._begun(talk, visibility)
        beside[talk] = len(talk.log())
        return loaded

    def _begun(
        self, talk: RunnerClient, visibility: Visibility, *, noop_replay: bool = False
    ) -> RunnerClient | Failure:
        talk.hello()
        return self._loaded(talk, visibility, noop_replay=noop_replay)

    def _loaded(
        self, talk: RunnerClient, visibility: Visibility, *, noop_replay: bool = False
    ) -> RunnerClient | Failure:
        request = self._request
        load = load_of(
            self._assignment,
            request.language,
            request.source,
            request.filename,
            lane=request.lane,
            noop_replay=noop_replay,
        )
        self._warmup.wait(visibility, self._packs[visibility])
        packs = self._packs[Visibility.public].sealed()
        if visibility is Visibility.hidden:
            self._warmup.resume_background_work()
            packs += self._packs[visibility].sealed()
        # What was tuned beside other runners may be a poor choice: what is timed is tuned where nothing else runs.
        return talk.load(dataclasses.replace(load, tuned=request.work is not Work.measure), packs) or talk

    def _talk(self) -> RunnerClient:
        limits = limits_of(self._assignment, self._request.lane)
        side = Side.untimed if self._request.work is Work.check else Side.submission
        runner = self._sandbox.start(limits, *self._kind(), side=side)
        return RunnerClient(runner, self._assignment.limits, self._budget, self._defences, self._device)

    def _kind(self) -> tuple[Language, Lane]:
        return self._request.language, self._request.lane


def _key(request: GradeRequest) -> str:
    """By what a source is found again: all that a compiler is told of it."""
    told = (request.slug, request.bundle, request.language, request.lane, request.filename, request.source)
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _end(talks: Sequence[RunnerClient]) -> None:
    """End them all at the same time: a container takes a tenth of a second."""
    if len(talks) == 1:
        talks[0].close()
    elif talks:
        with ThreadPoolExecutor(len(talks)) as threads:
            # Errors come out where results are taken, which is when all have been tried.
            ended = [threads.submit(talk.close) for talk in talks]
        for one in ended:
            one.result()
