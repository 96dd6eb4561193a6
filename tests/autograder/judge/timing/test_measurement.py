"""Measuring as on a GPU, with memory of the host: batches, the native null, the A/A block, on real runners."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shutil
import statistics
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest
import torch

from autograder import samples
from autograder.assignment import Case
from autograder.contract import Batch, FindingKind, GradeResult, Lane, Pair, Verdict, Work
from autograder.errors import GpuMemoryError
from autograder.judge import ALL_ON, Defences
from autograder.judge.correctness import checker
from autograder.judge.correctness.checker import BatchOutputs, CallOutputs, CallResult, Checker
from autograder.judge.protocol import batch_buffer, devices, oom_attribution
from autograder.judge.protocol.batch_buffer import BatchMemory
from autograder.judge.protocol.batch_inputs import DrawnInputs, draw_key
from autograder.judge.protocol.buffers import Buffers, SharedTensor, Snapshot
from autograder.judge.protocol.failure import Failure, out_of_time
from autograder.judge.protocol.host import HostDevice, HostMemory
from autograder.judge.protocol.runner_client import BatchReply, RunnerClient
from autograder.judge.rules import GPU as GPU_RULES
from autograder.judge.rules import HOST as HOST_RULES
from autograder.judge.rules import BoundTolerance, Rules
from autograder.judge.runners import Runners
from autograder.judge.timing import aa_check, floor, paired_calls, validity
from autograder.judge.timing.aa_check import ReferenceRecheck
from autograder.judge.timing.calibration import CaseCalibration
from autograder.judge.timing.estimators import by_samples
from autograder.judge.timing.measurement import MeasurementSession
from autograder.judge.timing.overhead_baseline import NullExchanges, OverheadBaseline, null_of
from autograder.judge.timing.paired_calls import PairedCalls
from autograder.judge.timing.paired_timing import CaseSamples, PairedTimer
from autograder.judge.timing.references import Reference
from autograder.lanes import DataSheet
from autograder.protocol import Load
from scripts.measurement_steps import clocked
from tests.autograder.grading_bench import GOOD, Bench, kernel

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the native null needs a C compiler")


def always(least: float, most: float) -> tuple[BoundTolerance, ...]:
    """The same limit however long a call takes."""
    return (BoundTolerance(math.inf, least, most),)


NEVER = always(-2.0, -2.0)
"""Not even a batch that takes no time at all is short enough."""


LENIENT = Rules(
    bound_tolerances=always(50.0, 0.07), aa_tolerance=50.0, aa_tolerance_short_call=50.0,
    max_interval_width=1e9, batch_work_us=1.0, max_calls=3,
    max_batches=2, max_dropped=0, reference_batches=2, aa_pairs=2, aa_pairs_long_call=2, null_exchanges=2,
    max_null_us=math.inf, short_call_pair_factors=(), max_ratio_for_full_sampling=math.inf,
)  # fmt: skip


class EventHost(HostDevice):
    """The host with a GPU's rules: the runner's own clock ranks, and is bounded."""

    clock = "event"
    rules = LENIENT


@pytest.fixture(params=[0.0, 1e9], ids=["a slab a call", "calls share a slab"])
def host(monkeypatch: pytest.MonkeyPatch, bench: Bench, request: pytest.FixtureRequest) -> Iterator[EventHost]:
    device = EventHost()
    monkeypatch.setattr(devices, "of", lambda _: device)
    monkeypatch.setattr(EventHost, "rules", dataclasses.replace(LENIENT, max_buffer_work_us=request.param))
    bench.references.close()
    bench.references._exchanges = None
    yield device
    bench.references.close()
    bench.references._exchanges = None


def measure(bench: Bench, source: str = GOOD, **more: object) -> GradeResult:
    return bench.grade(source, work=Work.measure, **more)  # type: ignore[arg-type]


def test_brief_calls_have_more_pairs_by_the_references_time(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    monkeypatch.setattr(EventHost, "rules", dataclasses.replace(host.rules, short_call_pair_factors=((1e9, 2.0),)))
    (found,) = measure(bench).measurements
    assert (len(found.pairs), found.stages) == (6, (6,))


@pytest.mark.parametrize(
    ("call_us", "expected"),
    [
        (8.0, 300),
        (39.9, 300),
        (40.0, 150),
        (59.9, 150),
        (60.0, 76),
        (149.9, 76),
        (150.0, 32),
        (999.9, 32),
        (1000.0, 24),
        (3200.0, 24),
    ],
)
def test_how_many_pairs_a_call_of_that_time_has(call_us: float, expected: int) -> None:
    assert GPU_RULES.first_stage_pairs(25, call_us) == expected


@pytest.mark.parametrize(("call_us", "expected"), [(0.0, 12), (99.9, 12), (100.0, 8), (3200.0, 8)])
def test_how_many_pairs_the_control_has(call_us: float, expected: int) -> None:
    assert GPU_RULES.aa_pairs_for(call_us) == expected


@pytest.mark.parametrize(
    ("call_us", "spread", "expected"),
    [(133.0, 0.004, 0.03), (149.9, 0.04, 0.04), (150.0, 0.004, 0.02), (540.0, 0.025, 0.025)],
)
def test_by_how_much_a_reference_may_differ_from_itself(
    monkeypatch: pytest.MonkeyPatch, call_us: float, spread: float, expected: float
) -> None:
    """A softmax of 133 us lay 2.3 % above its own A/A block on an H200, as its memory lay elsewhere (reading 19)."""
    monkeypatch.setattr(aa_check, "timed_pairs", lambda *_: (None, (Pair(100.0, 120.0, 100.0, 120.0),)))
    alone = ReferenceRecheck(cast("Checker", None), cast("RunnerClient", None), EventHost(), GPU_RULES)
    prepared = CaseCalibration(10, 1, (0.0,), 0.0, (), 0.07, call_us)
    timed = CaseSamples(
        Case("ranked", {"n": 1}, "float32"),
        CallResult(Verdict.passed, ""),
        (Pair(102.3, 120.0, 102.3, 120.0),),
        calibration=prepared,
    )
    control = alone.aa_check(timed, spread)
    assert control.tolerance == expected
    assert control.agrees == (expected > 0.023)


def test_as_many_pairs_begin_with_the_submission_as_with_the_reference() -> None:
    """Or the median of pairs of two kinds is of one kind: who lies elsewhere in the second of two calls in a row (A B,
    B A) had the whole of what that is worth with an odd number, and half of it with an even one."""
    for asked, call_us in itertools.product(range(1, 60), (10.0, 100.0, 500.0, 5000.0)):
        assert GPU_RULES.first_stage_pairs(asked, call_us) in range(2, 1000, 2), f"{asked} pairs of {call_us} µs"


def test_whoever_compiles_ahead_is_gone_before_anything_is_timed(
    bench: Bench, host: EventHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And does not begin while the reference is prepared: the submission's code must not run beside that."""
    done: list[str] = []

    def noted(of: type, name: str) -> None:
        own = getattr(of, name)

        def method(self: object, *arguments: Any, **options: Any) -> Any:
            done.append(name)
            return own(self, *arguments, **options)

        monkeypatch.setattr(of, name, method)

    for of, name in (
        (MeasurementSession, "prepare"), (Runners, "precompile"), (Runners, "fresh"), (Runners, "end_precompiling"),
        (MeasurementSession, "time"),
    ):  # fmt: skip
        noted(of, name)
    assert measure(bench).verdict is Verdict.passed
    assert done == ["prepare", "precompile", "fresh", "end_precompiling", "time"]


def test_who_does_not_load_in_time_is_not_loaded_again(
    bench: Bench, host: EventHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a source times itself when it is loaded, and is late where its process has a slow pace."""
    mine, loaded = kernel(), 0
    real = RunnerClient.load

    def load(talk: RunnerClient, load: Load, packs: Sequence[int] = ()) -> Failure | None:
        nonlocal loaded
        if load.source != mine:
            return real(talk, load, packs)
        loaded += 1
        return out_of_time("loading", 1.0)

    monkeypatch.setattr(RunnerClient, "load", load)
    monkeypatch.setattr(Runners, "precompiles", property(lambda _: True))
    assert measure(bench, mine).verdict is Verdict.time_limit
    assert loaded == 1


def test_memory_is_given_back_before_what_it_held_is_looked_at(
    bench: Bench, host: EventHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device clears it meanwhile; and it is given back once, whatever is found."""
    done: list[str] = []
    close, look = HostMemory.close, Checker._around

    def closing(memory: HostMemory) -> None:
        done.append("close" if memory.descriptor >= 0 else "again")
        close(memory)

    def looking(checker: Checker, snapshots: Sequence[Snapshot]) -> list[tuple[int, int, int]]:
        done.append("look")
        return look(checker, snapshots)

    monkeypatch.setattr(HostMemory, "close", closing)
    monkeypatch.setattr(Checker, "_around", looking)
    assert measure(bench).verdict is Verdict.passed
    assert done[:7] == ["close"] * 3 + ["look"] + ["again"] * 3


def test_a_submission_that_is_far_slower_has_no_more_pairs_than_the_lane_asks_for(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    """Its calls would use up its time: right, and a time limit."""
    # Nor a second stage, which every interval would be wide enough for.
    hard = dataclasses.replace(
        host.rules, short_call_pair_factors=((1e9, 50.0),), max_ratio_for_full_sampling=2.0, max_interval_width=0.0
    )
    monkeypatch.setattr(EventHost, "rules", hard)
    result = measure(bench, kernel("time.sleep(0.05)"))
    assert result.verdict is Verdict.passed, result.explanation
    assert [one.stages for one in result.measurements] == [(4,)]
    assert result.remeasure == "", "nor is the node at fault"


def test_a_measurement_has_pairs_batches_null_and_control(bench: Bench, host: EventHost) -> None:
    result = measure(bench)
    assert result.verdict is Verdict.passed, result.explanation
    (found,) = result.measurements
    assert found.clock == "event"
    assert (len(found.pairs), found.stages) == (4, (4,))
    assert found.bound
    assert (found.bound.calls, len(found.bound.batches), len(found.bound.null_us)) == (3, 1, 4)
    assert found.bound.bounded
    assert found.control
    assert len(found.control.pairs) == 2
    assert not result.held
    assert result.remeasure == ""
    assert result.exclusive_s > 0


class FullHost(EventHost):
    """Memory that runs out at the nth allocation, and comes back when whoever took it is gone."""

    memory_bytes = 1000

    def __init__(self, fails_at: int, comes_back: int) -> None:
        self._left = fails_at
        self._comes_back = comes_back
        self._looks = 0

    def memory(self, size: int) -> HostMemory:
        self._left -= 1
        if self._left < 0:
            raise GpuMemoryError("the CUDA driver says CUDA_ERROR_OUT_OF_MEMORY")
        return super().memory(size)

    def free_bytes(self) -> int:
        self._looks += 1
        return 0 if self._looks == 1 else self._comes_back


def hogged(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, device: FullHost, *, rules: Rules = HOST_RULES, **more: object
) -> GradeResult:
    monkeypatch.setattr(devices, "of", lambda _: device)
    monkeypatch.setattr(oom_attribution, "_GONE_S", 0.2)
    monkeypatch.setattr(type(device), "rules", rules)
    bench.references.close()
    try:
        return measure(bench, **more)
    finally:
        bench.references.close()


@pytest.mark.parametrize("comes_back", [10**12, FullHost.memory_bytes // 8 + 1])
@pytest.mark.parametrize("fails_at", [3, 7])
def test_who_took_the_devices_memory_is_told_so(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, fails_at: int, comes_back: int
) -> None:
    """An eighth may be kept, and nothing more: memory that could not be made was lent to nobody."""
    result = hogged(monkeypatch, bench, FullHost(fails_at, comes_back))
    assert result.verdict is Verdict.out_of_memory, result.explanation


@pytest.mark.parametrize("comes_back", [0, FullHost.memory_bytes // 8])
def test_memory_that_nobody_had_taken_is_our_fault(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, comes_back: int
) -> None:
    assert hogged(monkeypatch, bench, FullHost(3, comes_back)).verdict is Verdict.grader_error


def test_who_is_gone_already_is_not_asked_for_memory_again(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    """The device is kept meanwhile, for the seconds in which a driver gives back what a process had."""
    asked: list[bool] = []
    took = checker.took_the_memory

    def noted(device: FullHost, suspect: RunnerClient, lent_bytes: int) -> bool:
        asked.append(suspect.closed)
        return took(device, suspect, lent_bytes)

    monkeypatch.setattr(checker, "took_the_memory", noted)
    assert hogged(monkeypatch, bench, FullHost(3, comes_back=0)).verdict is Verdict.grader_error
    assert asked == [False]


def test_without_that_defence_taking_the_memory_is_a_free_redraw(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    off = dataclasses.replace(ALL_ON, memory_blame=False)
    result = hogged(monkeypatch, bench, FullHost(3, comes_back=10**12), defences=off)
    assert result.verdict is Verdict.grader_error


LONG = "time.sleep(0.02)"
"""So long that a batch of three calls is longer than an exchange without any, however busy this machine is."""
FORGES = kernel(
    top="real = time.perf_counter_ns\nimport gc\n",
    before=f"import autograder.runner.languages.triton as lane\nlane._clock = lambda: 0\n{LONG}",
)
STRICT = dataclasses.replace(LENIENT, bound_tolerances=always(5.0, 0.07))


def test_a_forged_clock_ranks_by_the_sealed_batches(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    """In a batch of the host lane an exchange is not small beside a call: ε is wide, and still a clock of 0 is seen."""
    monkeypatch.setattr(type(host), "rules", STRICT)
    result = measure(bench, FORGES)
    assert result.verdict is Verdict.passed, result.explanation
    (found,) = result.measurements
    assert {pair.submission_event_us for pair in found.pairs} == {0.001}
    assert found.clock in {"bound", "batches"}
    assert found.time_us > 0


def test_without_batches_a_forged_clock_ranks(bench: Bench, host: EventHost) -> None:
    off = dataclasses.replace(ALL_ON, batches=False)
    (found,) = measure(bench, FORGES, defences=off).measurements
    assert (found.clock, found.time_us, found.bound) == ("event", 0.001, None)


FORGES_ONE = kernel(
    top="real = time.perf_counter_ns\nsaid = []\n",
    before=f"""import autograder.runner.languages.triton as lane
lane._clock = lambda: said.append(0) or (0 if len(said) in (5, 6) else real())
{LONG}""",
)


def test_one_time_of_nothing_does_not_void_a_measurement(bench: Bench, host: EventHost) -> None:
    """No sample is kept of a result that holds no time: who could have one refused would be measured again for it."""
    result = measure(bench, FORGES_ONE)
    assert result.verdict is Verdict.passed, result.explanation
    (found,) = result.measurements
    times = sorted(pair.submission_event_us for pair in found.pairs)
    assert times[0] == 0.001
    assert times[1] > 1
    assert samples.pooled((found,)).pairs == len(times)


WRONG_WHEN_TIMED = kernel(top="calls = []\n", after="calls.append(n)\nif len(calls) == 2: out[0, 0] += 1")


@pytest.mark.parametrize(
    ("defences", "verdict"),
    [(ALL_ON, Verdict.wrong_answer), (dataclasses.replace(ALL_ON, oracle=False), Verdict.passed)],
    ids=["on", "off"],
)
def test_every_timed_output_is_compared(bench: Bench, host: EventHost, defences: Defences, verdict: Verdict) -> None:
    result = measure(bench, WRONG_WHEN_TIMED, defences=defences)
    assert result.verdict is verdict, result.explanation
    assert verdict is Verdict.passed or "In a timed call" in result.explanation


def test_no_garbage_is_collected_in_a_batch(bench: Bench, host: EventHost) -> None:
    """Five single calls, then a batch of three: it would be late by a look through all that a compiler has made."""
    source = kernel(
        top="import gc\nseen = []\n",
        before="seen.append(gc.isenabled())",
        after="if len(seen) == 8 and seen != [True] * 5 + [False] * 3: raise RuntimeError(str(seen))",
    )
    result = measure(bench, source)
    assert result.verdict is Verdict.passed, result.error
    assert result.measurements[0].bound
    assert len(result.measurements[0].bound.batches) == 1


def test_a_batch_that_raises_is_the_submissions(bench: Bench, host: EventHost) -> None:
    source = kernel(top="calls = []\n", before="calls.append(n)\nif len(calls) > 5: raise KeyError('late')")
    result = measure(bench, source)
    assert result.verdict is Verdict.runtime_error, result.explanation
    assert result.error
    assert result.error.kind == "KeyError"


def test_a_guard_band_that_is_broken_in_a_batch_is_illegal_access(bench: Bench, host: EventHost) -> None:
    lines = "calls.append(n)\nif len(calls) > 5: torch.as_strided(out, (1,), (1,), out.storage_offset() + m * n)[0] = 1"
    result = measure(bench, kernel(top="calls = []\n", after=lines))
    assert result.verdict is Verdict.illegal_access, result.explanation


def test_an_input_that_is_rewritten_in_a_batch_is_not_believed(bench: Bench, host: EventHost) -> None:
    """It is sealed against writing: the runner writes to a view of its own, and the judge's copy stays."""
    lines = "calls.append(n)\nif len(calls) > 5: a.zero_()"
    result = measure(bench, kernel(top="calls = []\n", before=lines))
    assert result.verdict is Verdict.wrong_answer, result.explanation


class Unsealed(HostMemory):
    """As a GPU's: a descriptor carries no rights."""

    def seal(self, *, size: bool, writing: bool) -> None:
        del writing
        super().seal(size=size, writing=False)


ZEROS_ITS_INPUT = kernel(top="calls = []\n", before="calls.append(n)\nif len(calls) > 5: a.zero_()")


def test_whoever_writes_to_an_input_of_a_batch_breaks_a_rule(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    """Zeros are the right answer for zeros; that they were no zeros is known by a print alone."""
    monkeypatch.setattr(EventHost, "memory", lambda _, size: Unsealed(size))
    result = measure(bench, ZEROS_ITS_INPUT)
    assert result.verdict is Verdict.rule_violation, result.explanation
    assert "The input `a` was written to" in result.explanation


def test_without_private_inputs_whoever_zeroes_them_in_a_batch_is_right(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    off = dataclasses.replace(ALL_ON, private_inputs=False)
    assert measure(bench, ZEROS_ITS_INPUT, defences=off).verdict is Verdict.passed


@pytest.mark.parametrize(
    ("comes_back", "verdict"),
    [
        (FullHost.memory_bytes // 8 + 1, Verdict.out_of_memory),
        (FullHost.memory_bytes // 8, Verdict.grader_error),
    ],
    ids=["more than an eighth comes back", "an eighth"],
)
@pytest.mark.parametrize("where", ["write", "read_back_inputs"])
def test_who_leaves_no_room_for_a_batchs_inputs_is_told_so(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, where: str, comes_back: int, verdict: Verdict
) -> None:
    """What is shared is mapped by the judge too, and does not come back with whoever else has it: or a submission that
    takes the memory at that moment, or keeps what it was lent, is graded again for free."""

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(DrawnInputs, where, full)
    device = FullHost(fails_at=10**6, comes_back=comes_back)
    assert hogged(monkeypatch, bench, device, rules=LENIENT).verdict is verdict


def test_whoever_writes_around_an_input_of_a_batch_is_told_where(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    """As in a single call: a stray store is a bug, and no broken rule."""
    monkeypatch.setattr(EventHost, "memory", lambda _, size: Unsealed(size))
    lines = "calls.append(n)\nif len(calls) > 5: ctypes.memset(a.data_ptr() - 4, 0, 4)"
    result = measure(bench, kernel(top="import ctypes\ncalls = []\n", before=lines))
    assert result.verdict is Verdict.illegal_access, result.explanation
    assert "outside `a`, before its start" in result.explanation


def test_every_batch_has_a_key_of_its_own_and_memory_that_others_may_need_is_given_back_before(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    monkeypatch.setattr(EventHost, "rules", dataclasses.replace(host.rules, bound_tolerances=NEVER, max_batches=3))
    keys: list[torch.Tensor] = []
    done: list[str] = []

    def drawn(where: torch.device) -> torch.Tensor:
        keys.append(draw_key(where))
        return keys[-1]

    exchange = Checker.batch

    def noted(self: Checker, *given: Any, **more: Any) -> BatchOutputs | CallResult:
        done.append("cold" if more.get("cold", True) else "part")
        return exchange(self, *given, **more)

    monkeypatch.setattr(paired_calls, "draw_key", drawn)
    monkeypatch.setattr(Checker, "batch", noted)
    monkeypatch.setattr(EventHost, "trim_cache", lambda _: done.append("given back"))
    result = measure(bench, kernel(before=LONG))
    assert result.verdict is Verdict.passed, result.explanation
    assert len({tuple(key[0].tolist()) for key in keys}) == 3
    assert [then for first, then in itertools.pairwise(done) if first == "cold"] == ["given back"] * done.count("cold")
    assert done.count("given back") == done.count("cold") > 3


def test_every_step_of_a_measurement_has_a_clock(bench: Bench, host: EventHost) -> None:
    """Of `measurement.py read --part steps`: a step that is called otherwise one day would be missed in silence."""
    with clocked(Lane.cpu) as clock:
        names = list(clock.names)
        assert measure(bench).verdict is Verdict.passed
        taken = clock.taken()
    assert set(taken) == set(names)
    assert sum(one["seconds"] for one in taken.values()) > 0


def test_nulls_and_calls_are_kept_with_the_reference(bench: Bench, host: EventHost) -> None:
    first, second = (measure(bench).measurements[0].bound for _ in range(2))
    assert first
    assert second
    assert first.null_us == second.null_us
    assert first.calls == second.calls
    assert first.batches != second.batches


def test_every_output_of_a_batch_is_where_it_belongs(bench: Bench, host: EventHost) -> None:
    """Several outputs share a slab: each is read, poisoned and compared in its own place."""
    source = kernel(top="calls = []\n", after="calls.append(n)\nif len(calls) == 6: negative[0] += 1")
    result = measure(bench, source)
    assert result.verdict is Verdict.wrong_answer, result.explanation
    assert "`negative`" in result.explanation


def event_times_of(monkeypatch: pytest.MonkeyPatch, changed: Callable[[bool, float], float]) -> None:
    """Have a GPU's event clock say what a host's cannot: `changed` gets whether it is the submission's turn, and µs."""
    take = Checker.call_unverified

    def taken(self: Checker, runner: RunnerClient, *rest: object, **more: object) -> CallOutputs | CallResult:
        found = take(self, runner, *rest, **more)  # type: ignore[arg-type]
        if isinstance(found, CallResult):
            return found
        ours = more.get("suspect") is None
        alone = more.get("suspect") is runner
        us = found.finished.event_us if alone else changed(ours, found.finished.event_us)
        return dataclasses.replace(found, finished=dataclasses.replace(found.finished, event_us=us))

    monkeypatch.setattr(Checker, "call_unverified", taken)


FAR = 1e6
"""Farther than any noise of a machine's on which tests run."""
WIDE = dataclasses.replace(LENIENT, bound_tolerances=always(50.0, 50.0))


@pytest.mark.parametrize("on", [True, False])
def test_who_slows_the_reference_beside_it_gains_nothing_only_while_it_is_timed_alone(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost, on: bool
) -> None:
    """What was queued on a device goes on in the reference's turn, and ends with the process that queued it."""
    monkeypatch.setattr(type(host), "rules", WIDE)
    # A busy machine may take longer for an exchange of nothing than for a batch of three calls: all is borne out then.
    monkeypatch.setattr(NullExchanges, "taken", lambda *_: OverheadBaseline((0.0,), 0.0))
    event_times_of(monkeypatch, lambda ours, us: us if ours else FAR * us)
    result = measure(bench, defences=dataclasses.replace(ALL_ON, aa_check=on))
    assert result.verdict is Verdict.passed, result.explanation
    (found,) = result.measurements
    assert not found.held
    assert (found.control is not None) == on
    assert (found.clock == "batches") == on
    assert (found.ratio > 10 / FAR) == on


class CachedHost(EventHost):
    """What was just written lies in a cache, until something else is written over it."""

    warm = False

    def memory(self, size: int) -> HostMemory:
        self.warm = True
        return super().memory(size)

    def flush_l2(self) -> None:
        self.warm = False


@pytest.mark.parametrize("on", [True, False])
def test_who_does_not_flush_its_caches_gains_nothing_only_while_the_judge_does(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost, on: bool
) -> None:
    """A runner of ours flushes by itself before it is timed; a submission has replaced that. The bound would see it
    too, where a case is long enough for one, so it is off."""
    device = CachedHost()
    monkeypatch.setattr(devices, "of", lambda _: device)
    event_times_of(monkeypatch, lambda ours, us: us / FAR if ours and device.warm else us)
    (found,) = measure(bench, defences=dataclasses.replace(ALL_ON, cold=on, batches=False)).measurements
    assert not found.held
    assert (found.ratio > 10 / FAR) == on


class ClearingHost(EventHost):
    """Memory that was given back is nobody's until it is cleared: who asks before that gets other memory."""

    clearing = False
    timed = True
    made_meanwhile = 0

    def memory(self, size: int) -> HostMemory:
        self.made_meanwhile += self.clearing and self.timed
        return super().memory(size)

    def wait_until_idle(self) -> None:
        self.clearing = False


@pytest.mark.parametrize("on", [True, False])
def test_a_timed_call_has_the_memory_that_the_one_before_had_only_where_a_quiet_device_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost, on: bool
) -> None:
    """Seen on an H200: the reference, called right after the submission, had other memory than all others, and was
    faster or slower by 1 % for it in every pair of a grading."""
    device, release, close = ClearingHost(), Buffers.release, BatchMemory.close
    given_back: list[str] = []

    def untimed(done: Callable[..., None]) -> Callable[..., None]:
        def called(self: PairedCalls, *given: Any) -> None:
            device.timed = False
            done(self, *given)
            device.timed = True

        return called

    def released(self: Buffers, tensors: Iterable[SharedTensor]) -> None:
        release(self, tensors)
        device.clearing = True
        given_back.append("call")

    def closed(self: BatchMemory) -> None:
        close(self)
        device.clearing = True
        given_back.append("batch")

    monkeypatch.setattr(devices, "of", lambda _: device)
    monkeypatch.setattr(Buffers, "release", released)
    monkeypatch.setattr(BatchMemory, "close", closed)
    monkeypatch.setattr(PairedCalls, "_compare_batch", untimed(PairedCalls._compare_batch))
    monkeypatch.setattr(PairedCalls, "finish", untimed(PairedCalls.finish))
    monkeypatch.setattr(NullExchanges, "taken", lambda *_: OverheadBaseline((1.0,), 0.0))
    assert measure(bench, defences=dataclasses.replace(ALL_ON, cold=on)).verdict is Verdict.passed
    assert set(given_back) == {"call", "batch"}
    assert bool(device.made_meanwhile) != on


@pytest.mark.parametrize("on", [True, False])
def test_a_time_that_no_device_reaches_is_held_only_where_the_data_sheet_is_asked(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost, on: bool
) -> None:
    """Nothing else sees it while it is not bounded: a short case is not."""
    monkeypatch.setitem(floor.SHEETS, Lane.cpu, DataSheet(memory_tb_s=1.0, l2_bytes=0, tflops={}))
    result = measure(bench, FORGES, defences=dataclasses.replace(ALL_ON, batches=False, floor=on))
    assert result.held_reason == (validity.BELOW_FLOOR if on else "")
    assert (result.measurements[0].floor_us > 0) == on


def test_nothing_is_made_in_the_background_while_a_kernel_is_timed(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    quiet: list[bool] = []

    @contextmanager
    def noted() -> Iterator[None]:
        quiet.append(True)
        yield
        quiet.append(False)

    batch = PairedCalls.batch
    during: list[bool] = []

    def watched(self: PairedCalls, *given: Any) -> tuple[Batch, bool]:
        during.append(quiet[-1:] == [True])
        return batch(self, *given)

    monkeypatch.setattr(bench.sandbox, "pause_background_work", noted)
    monkeypatch.setattr(PairedCalls, "batch", watched)
    assert measure(bench).verdict is Verdict.passed
    assert set(during) == {True}
    assert quiet == [True, False]


@pytest.mark.parametrize("capped", [True, False])
def test_what_is_taken_off_for_copies_is_capped_by_the_nulls(
    bench: Bench, host: EventHost, monkeypatch: pytest.MonkeyPatch, capped: bool
) -> None:
    """On a GPU the file that slows them is credited without the cap (`tests/gpu/hostile/held_slows_the_copies.py`)."""
    batch = PairedCalls.batch
    caps: list[float] = []

    def watched(
        self: PairedCalls, calls: int, calls_per_buffer: int, turn: int, max_copy_us: float, *more: Any
    ) -> tuple[Batch, bool]:
        caps.append(max_copy_us)
        return batch(self, calls, calls_per_buffer, turn, max_copy_us, *more)

    monkeypatch.setattr(PairedCalls, "batch", watched)
    assert measure(bench, defences=dataclasses.replace(ALL_ON, copies=capped)).verdict is Verdict.passed
    assert caps
    assert all(math.isfinite(one) is capped for one in caps)


class BatchesOnly:
    """Turns whose batches take so long a call, one after the other."""

    def __init__(self, *call_us: float) -> None:
        self._left = list(call_us)
        self.looked_at: list[bool] = []

    def batch(
        self,
        calls: int,
        _calls_per_buffer: int,
        _turn: int,
        _max_copy_us: float,
        should_verify: Callable[[Batch], bool] | None,
    ) -> tuple[Batch, bool]:
        made = Batch(sealed_us=calls * self._left.pop(0), event_us=0.0)
        self.looked_at.append(should_verify is None or should_verify(made))
        return made, self.looked_at[-1]

    def on_all_cores(self) -> None:
        """They are nowhere."""


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ((106.5,), 1),
        ((106.7, 104.0), 2),
        ((107.5, 108.0, 104.0), 3),
        # The host stopped three of them, for 0.3, 2.2 and 1.4 ms: seen on an H200, with a right kernel.
        ((108.7, 132.7, 120.5, 104.0), 4),
        ((107.5, 108.0, 108.0, 108.0, 108.0, 108.0), 6),
    ],
)
def test_a_batch_that_only_just_bounds_the_event_clock_is_not_the_last(batches: list[float], expected: int) -> None:
    """Seen on an H200: 6.5 % above the event clock when the batches ended, 7.01 % above the time that counted."""
    assert batches_taken(batches, 200.0) == expected


@pytest.mark.parametrize(
    ("batches", "expected"), [((106.7, 106.8, 109.0), 3), ((106.85, 107.5, 109.0, 107.0), 4), ((106.7, 106.5), 2)]
)
def test_batches_that_lie_just_within_the_limit_are_enough_before_there_are_six(
    batches: list[float], expected: int
) -> None:
    """One of 16 warm gradings of a softmax took six exclusive seconds for the 0.6 % to spare (reading 16)."""
    assert batches_taken(batches, 200.0) == expected


@pytest.mark.parametrize(
    ("batches", "expected"), [((105.3,), 1), ((105.5, 105.3), 2), ((105.5, 106.0, 105.6, 105.3), 4)]
)
def test_brief_calls_leave_more_to_spare(batches: list[float], expected: int) -> None:
    """The reference alone took up to 1.8 % off the time that counts, at 52 and 133 µs."""
    assert batches_taken(batches, 133.0) == expected


@pytest.mark.parametrize(
    ("batches", "counted", "looked_at"),
    [
        ((104.0,), 1, [True]),
        ((108.0, 104.0), 1, [False, True]),
        ((140.0, 107.5, 108.0, 104.0), 1, [False, False, False, True]),
        ((140.0, 107.5, 108.0, 109.0, 104.0), 2, [False, False, False, True, True]),
        # Within the limit, with too little to spare for a first one.
        ((106.85, 104.0), 2, [True, True]),
        ((120.0, 120.0, 120.0, 110.0, 109.0, 108.0), 3, [False, False, False, True, True, True]),
    ],
)
def test_the_first_batches_that_are_too_long_are_not_looked_at_and_do_not_count(
    batches: list[float], counted: int, looked_at: list[bool]
) -> None:
    """Comparing its outputs is most of what a batch takes; nothing that counts is left unlooked at."""
    only = BatchesOnly(*batches)
    taken, dropped = all_batches(only, 200.0)
    assert only.looked_at == looked_at
    assert [batch.sealed_us / 10 for batch in taken] == list(batches[-counted:])
    assert [batch.sealed_us / 10 for batch in dropped] == list(batches[:-counted])


def test_what_the_reference_may_yet_allow_is_not_dropped() -> None:
    """Below 100 us the limit may become 8 % when the reference has been asked again, of 5 % before."""
    batches = BatchesOnly(106.0, 107.9, 108.1, 110.0, 110.0, 110.0)
    taken, dropped = all_batches(batches, 90.0, tolerated_excess=0.05)
    assert batches.looked_at == [True, True, False, True, True, True]
    assert (len(taken), len(dropped)) == (5, 1)


def test_one_batch_is_looked_at_however_few_there_are() -> None:
    rules = dataclasses.replace(Rules(), max_batches=2)
    taken, dropped = all_batches(BatchesOnly(108.0, 109.0), 200.0, rules)
    assert (len(taken), len(dropped)) == (1, 1)


def batches_taken(batches: list[float], reference_us: float) -> int:
    """How many batches of a submission are taken whose calls show so much there, and 100 by the event clock."""
    taken, dropped = all_batches(BatchesOnly(*batches), reference_us)
    return len(taken) + len(dropped)


def all_batches(
    batches: BatchesOnly, reference_us: float, rules: Rules | None = None, tolerated_excess: float = 0.07
) -> tuple[tuple[Batch, ...], tuple[Batch, ...]]:
    """Those that count and those that do not, of a submission whose calls take 100 by the event clock."""
    watch = PairedTimer(
        cast("Checker", None), cast("RunnerClient", None), cast("RunnerClient", None),
        reference=Reference("staff", "", right=True), device=EventHost(), rules=rules or Rules(),
    )  # fmt: skip
    prepared = CaseCalibration(
        calls=10,
        calls_per_buffer=1,
        null_us=(0.0,),
        copy_us=0.0,
        reference_batches=(),
        tolerated_excess=tolerated_excess,
        reference_us=reference_us,
    )
    pairs = (Pair(100.0, 120.0, 100.0, 120.0),) * 3
    return watch._batches(cast("PairedCalls", batches), pairs, prepared)


WRONG_IN = """
frame = sys._getframe()
while frame is not None and frame.f_code.co_name != "_revealed":
    frame = frame.f_back
if frame is not None:
    batches.setdefault(frame.f_locals["arm"].nonce, len(batches))
    if batches[frame.f_locals["arm"].nonce] == {}:
        out[0, 0] += 1
"""


def test_what_was_answered_last_is_the_references_to_answer_too(
    bench: Bench, host: EventHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle, which takes six times as long on a GPU, is asked once in a case: what the reference made of it."""
    asked: list[str] = []
    compared, take = Checker._compared, Checker.call_unverified

    def noted(self: Checker, *given: Any, **more: Any) -> CallResult:
        asked.append("oracle")
        return compared(self, *given, **more)

    def taken(self: Checker, *given: Any, cold: bool = True, **more: Any) -> CallOutputs | CallResult:
        asked.append("cold" if cold else "warm")
        return take(self, *given, cold=cold, **more)

    monkeypatch.setattr(
        EventHost, "rules", dataclasses.replace(host.rules, batches=False, aa_check=False, post_timing_trace=False)
    )
    monkeypatch.setattr(Checker, "_compared", noted)
    monkeypatch.setattr(Checker, "call_unverified", taken)
    result = measure(bench)
    assert result.verdict is Verdict.passed, result.explanation
    assert asked.count("oracle") == 1
    assert asked.count("warm") == 1
    assert asked[-1] == "warm"


def test_who_is_wrong_in_the_last_timed_call_only_is_found(bench: Bench, host: EventHost) -> None:
    """No call of the reference's follows it."""
    (one,) = measure(bench, kernel(after="calls.append(1)\n", top="calls = []\n")).measurements
    made = len(one.pairs) + 1
    wrong = kernel(after=f"calls.append(1)\nif len(calls) == {made}:\n    out[0, 0] += 1\n", top="calls = []\n")
    result = measure(bench, wrong)
    assert result.verdict is Verdict.wrong_answer, result.explanation
    assert "In a timed call" in result.explanation


@pytest.mark.full("slow")
@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("dropped", "wrong_in", "found"),
    [
        (0, 0, ""), (1, 0, "2 counted, 1 dropped"), (1, 1, ""), (2, 1, "1 counted, 2 dropped"), (2, 2, ""), (9, 2, ""),
    ],
)  # fmt: skip
def test_what_was_dropped_counts_for_nothing_and_what_counts_was_looked_at(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, dropped: int, wrong_in: int, found: str
) -> None:
    """Wrong in one of three batches, all of which are too long to bound anything."""
    never = dataclasses.replace(LENIENT, bound_tolerances=NEVER, max_batches=3, max_dropped=dropped)
    monkeypatch.setattr(EventHost, "rules", never)
    result = measure(bench, kernel(before=LONG, after=WRONG_IN.format(wrong_in), top="batches = {}\n"))
    if not found:
        assert result.verdict is Verdict.wrong_answer, result.explanation
        return
    assert result.verdict is Verdict.passed, result.explanation
    (one,) = result.measurements
    assert one.bound
    assert f"{len(one.bound.batches)} counted, {len(one.bound.dropped)} dropped" == found
    assert len(one.bound.reference_batches) == 3, "or the shortest of fewer would allow more"


SLOW = kernel("time.sleep(0.3)")


@pytest.mark.full("slow")
@pytest.mark.parametrize(("longest_us", "expected"), [(8e5, (2, 1)), (1e5, (1, 1)), (1e9, None)])
def test_a_slow_submission_has_fewer_calls_in_a_batch_and_nothing_taken_off(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost, longest_us: float, expected: tuple[int, int] | None
) -> None:
    """How many there are follows from the reference: of one a thousand times as slow they would not end in time."""
    rules = dataclasses.replace(host.rules, batch_work_us=1e9, max_calls=8, max_batch_us=longest_us)
    monkeypatch.setattr(EventHost, "rules", rules)
    result = measure(bench, SLOW)
    if expected is None:  # With that out of the way, a right kernel is stopped.
        assert result.verdict is Verdict.time_limit
        assert "A batch of calls" in result.explanation
        return
    assert result.verdict is Verdict.passed, result.explanation
    (found,) = result.measurements
    assert found.bound
    assert (found.bound.calls, len(found.bound.null_us)) == expected
    assert found.bound.bounded


@pytest.mark.parametrize(
    ("call_us", "calls", "calls_per_buffer", "null_us"),
    [
        (375.0, 28, 2, (600.0,)),
        (35714.0, 28, 2, (600.0,)),
        (1e5, 10, 2, (0.0,)),
        (4e5, 2, 2, (0.0,)),
        (2e6, 1, 1, (0.0,)),
    ],
)
def test_a_batch_takes_a_second_at_most_or_is_one_call(
    call_us: float, calls: int, calls_per_buffer: int, null_us: tuple[float, ...]
) -> None:
    prepared = CaseCalibration(
        calls=28, calls_per_buffer=2, null_us=(600.0,), copy_us=6000.0, reference_batches=(Batch(11000.0, 10500.0),),
        tolerated_excess=0.07, reference_us=375.0,
    )  # fmt: skip
    fitting = prepared.fitting(call_us, Rules())
    assert (fitting.calls, fitting.calls_per_buffer, fitting.null_us) == (calls, calls_per_buffer, null_us)
    assert fitting.copy_us == (prepared.copy_us if null_us == prepared.null_us else 0.0)
    assert fitting.tolerated_excess == prepared.tolerated_excess
    assert bool(fitting.reference_batches) == (null_us == prepared.null_us)


@pytest.mark.full("slow")
def test_a_slow_submission_that_is_slower_than_it_says_is_not_compared_with_few_calls_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    """One call of the reference is mostly the exchange: it would seem as far from its own clock as anybody."""
    rules = dataclasses.replace(host.rules, batch_work_us=1e9, max_calls=8, max_batch_us=1e5, bound_tolerances=NEVER)
    monkeypatch.setattr(EventHost, "rules", rules)
    (found,) = measure(bench, SLOW).measurements
    assert found.bound
    assert not found.bound.bounded
    assert found.bound.reference_batches == ()
    assert (found.clock, found.held, found.remeasure) == ("bound", "", "")


@pytest.mark.full("slow")
@pytest.mark.parametrize("taken", [(4, 2, 4), (1, 3, 3)])
def test_where_both_sides_may_rank_by_their_shortest_batch_the_reference_has_no_fewer(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost, taken: tuple[int, int, int]
) -> None:
    most, before, after = taken
    never = dataclasses.replace(host.rules, max_batches=most, reference_batches=before, bound_tolerances=NEVER)
    monkeypatch.setattr(type(host), "rules", never)
    (found,) = measure(bench, kernel(before=LONG)).measurements
    assert found.bound
    assert not found.bound.bounded
    assert (len(found.bound.batches), len(found.bound.reference_batches)) == (most, after)


def test_further_batches_of_either_side_are_taken_on_other_cores(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    """Seen on an H200: a submission whose six batches took a fifth longer each, and no other process of the machine."""
    never = dataclasses.replace(host.rules, bound_tolerances=NEVER, max_batches=3)
    monkeypatch.setattr(type(host), "rules", never)
    asked: dict[int, list[int]] = {}

    def moved(self: RunnerClient, turn: int) -> None:
        asked.setdefault(id(self), []).append(turn)

    monkeypatch.setattr(RunnerClient, "pin_core", moved)
    result = measure(bench, kernel(before=LONG))
    assert result.verdict is Verdict.passed, result.explanation
    # The reference before, while, and after the submission lives. What it shows before says how much is allowed: a slow
    # core would allow more.
    assert sorted(asked.values(), key=len) == [[0, 1, 2, 0], [0, 0, 0, 0, 0, 1, 2, 0]]


def test_nothing_of_a_batch_is_kept_while_the_next_one_is_made(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    """On a GPU two of them do not fit."""
    never = dataclasses.replace(host.rules, bound_tolerances=NEVER, max_batches=3)
    monkeypatch.setattr(type(host), "rules", never)
    batch, exchange = PairedCalls.batch, Checker.batch
    taken: list[weakref.ref[BatchOutputs | CallResult]] = []
    left: list[int] = []

    def watched(self: PairedCalls, *given: Any) -> tuple[Batch, bool]:
        left.append(sum(one() is not None for one in taken))
        return batch(self, *given)

    def kept(self: Checker, *given: Any, **more: Any) -> BatchOutputs | CallResult:
        found = exchange(self, *given, **more)
        taken.append(weakref.ref(found))
        return found

    monkeypatch.setattr(PairedCalls, "batch", watched)
    monkeypatch.setattr(Checker, "batch", kept)
    result = measure(bench, kernel(before=LONG))
    assert result.verdict is Verdict.passed, result.explanation
    assert left == [0, 0, 0]


def test_on_a_batchs_inputs_the_reference_is_called_in_parts_whose_time_nobody_takes(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    """Snapshots of both sides' outputs at once would leave room for fewer calls, and a quiet device takes its time."""
    monkeypatch.setattr(EventHost, "rules", dataclasses.replace(host.rules, max_calls=8, batch_work_us=1e9))
    exchange = Checker.batch
    asked: list[tuple[int, bool]] = []

    def noted(self: Checker, *given: Any, **more: Any) -> BatchOutputs | CallResult:
        asked.append((len(given[2]), more.get("cold", True)))
        return exchange(self, *given, **more)

    monkeypatch.setattr(Checker, "batch", noted)
    result = measure(bench)
    assert result.verdict is Verdict.passed, result.explanation
    parts = [calls for calls, cold in asked if not cold]
    assert parts
    assert sum(parts) == 8
    # Calls that share one slab stay together.
    assert parts == ([2] * batch_buffer.PARTS if host.rules.max_buffer_work_us == 0 else [8])


@pytest.mark.parametrize(("copy_us", "expected"), [(300.0, 700.0), (400.0, 600.0), (900.0, 600.0)])
def test_of_a_batch_no_more_is_taken_off_for_its_copies_than_they_took_beside_the_null(
    copy_us: float, expected: float
) -> None:
    """Who has the device slow down the judge's copies while nothing is timed would seem faster by as much."""
    assert paired_calls._batch(BatchOutputs((), (), 1000.0, copy_us, 500.0), 400.0) == Batch(
        expected, 500.0, 1000.0 - expected
    )


def test_a_copy_that_the_host_stopped_makes_no_null_shorter_and_takes_nothing_off_later_batches() -> None:
    def taken(*copies: float, sealed_us: float) -> list[BatchReply]:
        return [BatchReply((), sealed_us, copy_us, 0.0) for copy_us in copies]

    one, other = taken(100.0, 100.0, 700.0, sealed_us=500.0), taken(110.0, 111.0, 110.0, sealed_us=490.0)
    assert null_of([one, other], math.inf) == OverheadBaseline((400.0, 400.0, 400.0, 380.0, 380.0, 380.0), 100.0)


def exchanges(nulls: Sequence[float], copies: Sequence[float]) -> list[list[BatchReply]]:
    """Of two memories: those that took so long without their copies' median, and their copies."""
    median = statistics.median(copies)
    return [[BatchReply((), us + median, copy_us, 0.0) for us, copy_us in zip(nulls, copies, strict=True)]] * 2


BESIDE_A_NEIGHBOUR = [28297.9, 42517.4, 28313.4, 44351.6, 64324.6, 28289.8, 28298.0, 12864.2]
"""Nulls on an H200 beside processes on all cores and PCIe (red team 24b)."""


@pytest.mark.parametrize(
    ("nulls", "copies"),
    [
        (BESIDE_A_NEIGHBOUR, [7519.6, 22580.4, *[27135.5] * 6]),
        (BESIDE_A_NEIGHBOUR, [27135.5] * 8),
        ([400.0] * 8, [7519.6, 22580.4, *[27135.5] * 6]),
        ([2100.0] * 8, [7400.0] * 8),
    ],
    ids=["both", "copies all alike", "copies alone", "exchanges alone"],
)
def test_beside_a_neighbour_nothing_is_taken_off_a_batch(nulls: list[float], copies: list[float]) -> None:
    """By a null of 12.9 ms and copies of 27.1, a call of 374 µs seemed to take 287 in the batch that was luckiest."""
    disturbed = null_of(exchanges(nulls, copies), Rules().max_null_us)
    assert disturbed == OverheadBaseline((0.0,), 0.0, undisturbed=False)
    luckiest = paired_calls._batch(BatchOutputs((), (), 20899.9 + 27135.5, 27135.5, 10835.9), disturbed.copy_us)
    assert validity.sealed_call_us((luckiest,), disturbed.us, 28) > 374.0


def test_a_quiet_null_is_believed_although_some_exchanges_were_stopped() -> None:
    nulls, copies = [400.0, 420.0, 5000.0, 390.0], [7400.0, 7600.0, 9100.0, 7410.0]
    quiet = null_of(exchanges(nulls, copies), Rules().max_null_us)
    assert quiet.undisturbed
    assert min(quiet.us) == pytest.approx(390.0)


def test_what_others_disturbed_is_measured_again_and_found_out_anew(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    taken = [OverheadBaseline((0.0,), 0.0, undisturbed=False), OverheadBaseline((1.0,), 0.0)]
    monkeypatch.setattr(NullExchanges, "taken", lambda *_: taken.pop(0))
    monkeypatch.setattr(type(host), "rules", WIDE)
    again = [one.remeasure for _ in range(2) for one in measure(bench).measurements]
    assert again == [validity.DISTURBED, ""]
    assert not taken


OWN_WORK = """
import torch, triton, triton.language as tl

@triton.jit
def doubled(a_ptr, out_ptr, n, row, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + tl.program_id(0) * row + i, mask=i < n)
    tl.store(out_ptr + tl.program_id(0) * n + i, a * 2, mask=i < n)

calls = 0

def double(a, out, negative, m, n, a_row):
    global calls
    calls += 1
    negative.copy_((a < 0).sum(1))
    if calls > MOST:
        torch.mul(a, 2, out=out)
    else:
        doubled[(m,)](a, out, n, a_row, BLOCK=128)
"""


def kinds_of(result: GradeResult) -> set[FindingKind]:
    assert result.verdict is Verdict.passed, result.explanation
    return {finding.kind for finding in result.findings}


UNTRACED = FindingKind.no_replay
"""What is said where nothing can be traced, as on a machine without a GPU."""


@pytest.mark.parametrize("host", [0.0], indirect=True)
@pytest.mark.parametrize("on", [True, False])
def test_who_calls_a_library_after_some_calls_is_seen_only_where_the_timed_runner_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost, on: bool
) -> None:
    """Its check, of eight calls at most, shows a kernel of its own."""
    monkeypatch.setattr(type(host), "rules", dataclasses.replace(LENIENT, batches=False))
    source = OWN_WORK.replace("MOST", "4")
    found = kinds_of(measure(bench, source, defences=dataclasses.replace(ALL_ON, post_timing_trace=on)))
    assert found == ({FindingKind.library_call, FindingKind.no_kernel, UNTRACED} if on else set())


@pytest.mark.parametrize("on", [True, False])
def test_who_calls_a_library_after_some_calls_is_seen_on_the_cpu_lane_where_nothing_is_traced(
    bench: Bench, on: bool
) -> None:
    source = OWN_WORK.replace("MOST", "4")
    found = kinds_of(bench.grade(source, defences=dataclasses.replace(ALL_ON, post_timing_trace=on), work=Work.measure))
    assert found == ({FindingKind.library_call, FindingKind.no_kernel} if on else set())
    assert kinds_of(bench.grade(OWN_WORK.replace("MOST", "10**9"), work=Work.measure)) == set()


@pytest.mark.parametrize("host", [0.0], indirect=True)
def test_work_of_ones_own_is_no_finding_after_the_timed_calls(bench: Bench, host: EventHost) -> None:
    assert kinds_of(measure(bench, OWN_WORK.replace("MOST", "10**9"))) == {UNTRACED}


@pytest.mark.parametrize("host", [0.0], indirect=True)
@pytest.mark.parametrize("work", ["1 / 0", "out = torch.empty_like(out)", "os._exit(0)"])
def test_a_call_that_is_looked_at_and_goes_wrong_is_no_verdict_but_said(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost, work: str
) -> None:
    """Or whoever fails where it is looked at keeps it to itself."""
    monkeypatch.setattr(type(host), "rules", dataclasses.replace(LENIENT, batches=False))
    source = OWN_WORK.replace("MOST", "10**9").replace("import torch", "import os, torch")
    result = measure(bench, source.replace("    calls += 1\n", f"    calls += 1\n    if calls > 5: {work}\n"))
    (finding,) = result.findings
    assert (result.verdict, finding.kind) == (Verdict.passed, FindingKind.no_replay)
    assert result.measurements


FORGES_ITS_TRACE = """
from autograder.runner.trace import Tracer

def traced(self, call, ran):
    ran.append({"name": "a_kernel_of_nobodys", "calls": 7, "ns": BUSY_NS})
    return call()

Tracer.traced, Tracer.busy_ns = traced, lambda self: BUSY_NS
"""


def standing(result: GradeResult) -> tuple[object, ...]:
    """What ranks and is no time; times and bound are worked out anew, from nothing but pairs, batches and null."""
    (found,) = result.measurements
    assert by_samples(found, found.clock) == found
    assert found.bound
    sealed_us = validity.sealed_call_us(found.bound.batches, found.bound.null_us, found.bound.calls)
    assert found.bound.sealed_us == sealed_us
    assert found.bound.excess == sealed_us / validity.scored_us(found) - 1
    bound = (found.bound.calls, found.bound.epsilon, found.bound.bounded)
    return result.verdict, found.clock, len(found.pairs), bound, found.held, found.remeasure, result.held


@pytest.mark.parametrize("host", [0.0], indirect=True)
@pytest.mark.parametrize(("busy_ns", "kinds"), [(0, set()), (10**15, {FindingKind.timed_otherwise})])
def test_a_forged_trace_is_a_claim_that_staff_read_and_nothing_that_ranks_comes_from_it(
    bench: Bench, host: EventHost, busy_ns: int, kinds: set[FindingKind]
) -> None:
    """As by who tampers with CUPTI: a device that did nothing for a call or days of work, by kernels nobody has."""
    honest = measure(bench)
    forged = measure(bench, GOOD + FORGES_ITS_TRACE.replace("BUSY_NS", str(busy_ns)))
    assert (kinds_of(honest) - kinds_of(forged), kinds_of(forged) - kinds_of(honest)) == ({UNTRACED}, kinds)
    assert [(one.name, one.calls) for one in forged.device_kernels] == [("a_kernel_of_nobodys", 7)]
    assert forged.measurements[0].traced_us == busy_ns / 1e3
    assert standing(forged) == standing(honest)


@pytest.mark.parametrize("host", [0.0], indirect=True)
def test_a_far_slower_submission_is_asked_for_no_more_calls(
    monkeypatch: pytest.MonkeyPatch, bench: Bench, host: EventHost
) -> None:
    monkeypatch.setattr(type(host), "rules", dataclasses.replace(LENIENT, max_ratio_for_full_sampling=2.0))
    assert kinds_of(measure(bench, kernel("time.sleep(0.05)"))) == set()
