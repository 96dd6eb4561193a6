"""Measuring as on a GPU, with memory of the host: batches, the native null, the A/A block, on real runners."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from grading_bench import GOOD, Bench

from autograder.contract import GradeResult, Verdict, Work
from autograder.judge import devices
from autograder.judge.host import HostDevice
from autograder.judge.rules import Rules

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the native null needs a C compiler")

LENIENT = Rules(
    epsilon=50.0, tolerance=50.0, widest=1e9, batch_us=1.0, most_calls=3, most_batches=2, control_pairs=2,
    null_exchanges=2,
)  # fmt: skip
FORGES = """for frame in inspect.stack():
    for entry in gc.get_objects():
        pass
"""


class EventHost(HostDevice):
    """The host with a GPU's rules: the runner's own clock ranks, and is bounded."""

    clock = "event"
    rules = LENIENT


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> Iterator[EventHost]:
    device = EventHost()
    monkeypatch.setattr(devices, "of", lambda _: device)
    bench.references.close()
    bench.references._exchanges = None
    yield device
    bench.references.close()
    bench.references._exchanges = None


def measure(bench: Bench, source: str = GOOD, **more: object) -> GradeResult:
    return bench.grade(source, work=Work.measure, **more)  # type: ignore[arg-type]


def test_a_measurement_has_pairs_batches_null_and_control(bench: Bench, host: EventHost) -> None:
    result = measure(bench)
    assert result.verdict is Verdict.passed, result.explanation
    (found,) = result.measurements
    assert found.clock == "event"
    assert (len(found.pairs), found.stages) == (3, (3,))
    assert found.bound
    assert (found.bound.calls, len(found.bound.batches), len(found.bound.null_us)) == (3, 1, 2)
    assert found.bound.bounded
    assert found.control
    assert len(found.control.pairs) == 2
    assert not result.held
    assert result.remeasure == ""
    assert result.exclusive_s > 0
