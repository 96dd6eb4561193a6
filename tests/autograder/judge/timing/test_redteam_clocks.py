"""Attacks on batches and on the bound, with a GPU's rules over memory of the host: what CI can try without a GPU.

Their likes on a GPU are files of tests/gpu/hostile. What ends a runner early must not harm the judge: it goes on.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
from collections.abc import Iterator

import pytest

from autograder.contract import GradeResult, Verdict, Work
from autograder.judge import ALL_ON
from autograder.judge.protocol import devices
from autograder.judge.protocol.host import HostDevice
from autograder.judge.rules import BoundTolerance, Rules
from tests.autograder.grading_bench import GOOD, Bench, kernel

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the native null needs a C compiler")

IN_A_BATCH = """
def in_a_batch():
    frame = sys._getframe(1)
    while frame:
        if frame.f_code.co_name == "batch":
            return True
        frame = frame.f_back
    return False
"""
ON_ARMED = """
import gc
hooked = []
def on_armed(act):
    for line in gc.get_objects():
        if type(line).__name__ == "Wire":
            say = line.send
            line.send = lambda kind, body: act(say) if kind == "Armed" else say(kind, body)
            hooked.append(line)
"""


class EventHost(HostDevice):
    """The host with a GPU's rules. An exchange is not small beside a call there, so ε is wide: a factor of six."""

    clock = "event"
    rules = Rules(
        bound_tolerances=(BoundTolerance(math.inf, 5.0, 5.0),), aa_tolerance=50.0, aa_tolerance_short_call=50.0,
        max_interval_width=1e9, batch_work_us=1.0,
        max_calls=3, max_batches=2, reference_batches=2, aa_pairs=2, aa_pairs_long_call=2, null_exchanges=2,
        max_null_us=math.inf,
    )  # fmt: skip


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> Iterator[None]:
    device = EventHost()
    monkeypatch.setattr(devices, "of", lambda _: device)
    bench.references.close()
    bench.references._exchanges = None
    yield
    bench.references.close()
    bench.references._exchanges = None


def measured(bench: Bench, source: str, **more: object) -> GradeResult:
    return bench.grade(source, work=Work.measure, **more)  # type: ignore[arg-type]


def assert_the_judge_goes_on(bench: Bench) -> None:
    result = measured(bench, GOOD)
    assert result.verdict is Verdict.passed, result.explanation


FORGES_OUTSIDE_BATCHES = kernel(
    # So long that a batch is longer than an exchange without any call, however busy this machine is.
    before="time.sleep(0.02)",
    top=f"import autograder.runner.languages.triton as lane\nreal = lane._clock\n{IN_A_BATCH}"
    "lane._clock = lambda: real() // (1 if in_a_batch() else 10**6)\n",
)


def test_a_clock_that_is_honest_in_batches_only_does_not_rank(bench: Bench, host: None) -> None:
    result = measured(bench, FORGES_OUTSIDE_BATCHES)
    assert result.verdict is Verdict.passed, result.explanation
    (found,) = result.measurements
    assert all(pair.submission_event_us < 1 for pair in found.pairs)
    assert found.clock in {"bound", "batches"}
    assert found.time_us > 1


def test_without_batches_it_would_rank(bench: Bench, host: None) -> None:
    (found,) = measured(bench, FORGES_OUTSIDE_BATCHES, defences=dataclasses.replace(ALL_ON, batches=False)).measurements
    assert found.clock == "event"
    assert found.time_us < 1


def test_who_works_in_single_calls_only_is_wrong_in_a_batch(bench: Bench, host: None) -> None:
    """A bound counts only if every output of the batch is looked at."""
    skips = kernel(top=IN_A_BATCH, before="if in_a_batch(): return")
    result = measured(bench, skips)
    assert result.verdict is Verdict.wrong_answer, result.explanation
    assert "Nothing was written" in result.explanation
    assert_the_judge_goes_on(bench)


EARLY = """
import gc
def say_so():
    made = {type(item).__name__: item for item in gc.get_objects() if type(item).__name__ in ("Words", "Wire")}
    nonce = made["Words"].allowed()
    made["Words"].finish(nonce, 1)
    made["Wire"].send("Returned", {"nonce": nonce})
    time.sleep(0.2)
"""


def test_who_says_that_a_batch_is_over_before_it_has_worked_has_no_answer(bench: Bench, host: None) -> None:
    result = measured(bench, kernel(top=IN_A_BATCH + EARLY, before="if in_a_batch(): say_so()"))
    assert result.verdict is Verdict.wrong_answer, result.explanation
    assert_the_judge_goes_on(bench)


def test_who_lies_when_a_batch_is_armed_breaks_a_rule_and_nothing_else(bench: Bench, host: None) -> None:
    lies = kernel(top=ON_ARMED, before="hooked or on_armed(lambda say: say('Loaded', {'signature': '()'}))")
    result = measured(bench, lies)
    assert result.verdict is Verdict.rule_violation, result.explanation
    assert_the_judge_goes_on(bench)


def test_who_dies_when_a_batch_is_armed_takes_nobody_along(bench: Bench, host: None) -> None:
    result = measured(bench, kernel(top=ON_ARMED, before="hooked or on_armed(lambda say: os._exit(3))"))
    assert result.verdict is Verdict.runtime_error, result.explanation
    assert_the_judge_goes_on(bench)


def test_who_says_nothing_when_a_batch_is_armed_runs_out_of_time(bench: Bench, host: None) -> None:
    result = measured(bench, kernel(top=ON_ARMED, before="hooked or on_armed(lambda say: None)"))
    assert result.verdict is Verdict.time_limit, result.explanation
    assert_the_judge_goes_on(bench)
