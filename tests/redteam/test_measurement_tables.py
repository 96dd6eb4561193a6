"""What `scripts/measurement.py tables` prints of recorded gradings, which docs/measurement.md quotes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autograder.contract import AACheck, Batch, Bound, Measurement, Pair
from scripts import measurement_tables as tables
from tests.doubles.world import measurement

READINGS = Path(__file__).parents[2] / "docs" / "data"
CALLS = 10


def bounded(*call_us: float, alone_us: float = 100.0) -> Measurement:
    """A kernel of 100 µs beside a reference of as many, whose batches show so much a call; no null is taken off."""
    batches = tuple(Batch(CALLS * one, CALLS * one) for one in call_us)
    theirs = (Batch(104.0 * CALLS, 104.0 * CALLS),)
    bound = Bound(CALLS, batches, theirs, (0.0,), min(call_us), 0.0, 0.07, bounded=True)
    alone = (Pair(alone_us, 120.0, alone_us, 120.0),) * 4
    control = AACheck(alone, alone_us, 1.0, 100.0 / alone_us - 1, 0.02, agrees=True)
    pairs = (Pair(100.0, 120.0, 100.0, 120.0),) * 4
    return replace(measurement(), pairs=pairs, bound=bound, control=control)


@pytest.mark.parametrize(
    ("found", "spare", "expected"),
    [
        ([bounded(105.0)], 0.01, "1.00, 0"),
        ([bounded(106.2, 104.0)], 0.006, "1.00, 0"),
        ([bounded(106.2, 104.0)], 0.01, "2.00, 0"),
        ([bounded(106.2, 106.5)], 0.01, "2.00, 0"),
        # The reference alone takes 1 % off the time that counts: what kept the bound misses it.
        ([bounded(106.2, 104.0, alone_us=99.0)], 0.006, "1.00, 1"),
        ([bounded(106.2, 104.0, alone_us=99.0), bounded(103.0)], 0.01, "1.50, 0"),
    ],
)
def test_how_many_batches_what_is_to_spare_takes(found: list[Measurement], spare: float, expected: str) -> None:
    assert tables._spared([(one, one.bound) for one in found if one.bound], spare) == expected


def test_what_the_reference_alone_takes_off_is_said() -> None:
    line = tables._spare_table({"softmax `large`": [bounded(105.0), bounded(105.0, alone_us=99.0)]})[-1]
    assert line.startswith("| softmax `large` | 0.50, 1.00 % |")


def test_what_a_forger_could_claim_is_said() -> None:
    """Whose batches show 2 % may claim what is 7 % below them; who is seen beyond the limit gains nothing."""
    name = "softmax `large`"
    line = tables._forging_table({name: [bounded(102.0), bounded(101.0), bounded(108.0)]})[-1]
    assert line == f"| {name} | 4.7, 5.6 % | 1 of 3 | 4.7 % | 3.8 % |"
    assert tables._forging_table({name: [bounded(108.0)]})[-1] == f"| {name} | 0.0, 0.0 % | 0 of 1 | 0.0 % | 0.0 % |"


@pytest.mark.full("slow")
def test_a_reading_that_is_kept_has_its_tables() -> None:
    text = tables.tables(READINGS / "gpu-2026-11-24" / "reading_7")
    assert "| vector_add `gpu_ranked_bfloat16` | 20 | 52.3 | 1.0018 |" in text
    assert "short: 24 gradings; 0 not passed, 5 where the clocks disagree, 4 to repeat, 0 held." in text
