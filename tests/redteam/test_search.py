"""What is decided on recorded samples is what the judge decides; and the search finds what they allow, no more."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from autograder import codec
from autograder.contract import Batch, Bound, Measurement, Pair
from autograder.judge.rules import GPU
from autograder.judge.timing.aa_check import aa_check_of
from tests.redteam.decide import forged, judged, noticed, smallest_scale
from tests.redteam.search import KERNELS, Probe, load, reach, search, table
from tests.redteam.strategies import Knobs, source_of

ROOT = Path(__file__).parents[2]
TIME_US, CALLS, NULL_US = 300.0, 40, 900.0
LIMIT = GPU.min_excess(TIME_US)
WOBBLE = (0.0, 0.1, -0.2, 0.3, -0.1, 0.2, -0.3, 0.1, 0.0, -0.1, 0.2)


def recorded(*, excess: float = 0.005, alone_excess: float = 0.005, slowed: float = 1.0) -> Measurement:
    """An honest measurement of 300 µs; the sealed clock sees `excess` more, the reference is slowed beside it."""
    pairs = tuple(Pair(TIME_US + w, 2000, (TIME_US - w) * slowed, 2000) for w in WOBBLE)
    alone = tuple(Pair(TIME_US + w, 2000, TIME_US - w, 2000) for w in WOBBLE[:8])
    ours, theirs = (Batch(NULL_US + CALLS * TIME_US * (1 + more), CALLS * TIME_US) for more in (excess, alone_excess))
    bound = Bound(CALLS, (ours,), (theirs,), (NULL_US, NULL_US + 5), TIME_US, 0.0, LIMIT, bounded=True)
    control = aa_check_of(pairs, alone, "event", GPU.aa_tolerance)
    raw = Measurement("case", "event", 1, 1, 1, TIME_US, TIME_US, TIME_US, TIME_US, 0, 0, pairs, (11,), bound, control)
    return forged(raw, 1.0)


def test_an_honest_measurement_goes_through() -> None:
    assert noticed(recorded()) == ""
    assert judged(recorded()).ratio == pytest.approx(1.0, abs=0.001)


def test_the_smallest_factor_is_where_the_bound_lies() -> None:
    found = recorded(excess=0.005)
    scale = smallest_scale(found)
    assert scale == pytest.approx(1.005 / (1 + LIMIT), rel=1e-4)
    assert noticed(found, scale * 1.0001) == ""
    assert judged(found, scale * 0.9999).clock == "batches"


def test_what_the_sealed_clock_does_not_see_can_be_forged_away_and_what_is_noticed_cannot() -> None:
    assert smallest_scale(recorded(excess=-0.1)) == pytest.approx(0.9 / (1 + LIMIT), rel=1e-4)
    assert smallest_scale(recorded(excess=0.08)) == 1
    assert smallest_scale(recorded(slowed=1.08)) == 1


def test_where_not_even_the_reference_is_seen_within_the_bound_nothing_can_be_forged() -> None:
    found = recorded(excess=0.08, alone_excess=0.06)
    assert smallest_scale(found) == 1
    assert judged(found).clock == "batches"
    assert judged(found, 0.99).ratio == pytest.approx(1.08 / 1.06, abs=0.001)
    assert judged(found, 0.5).ratio == judged(found).ratio


def test_no_time_at_all_is_below_the_floor_even_if_nothing_else_sees_it() -> None:
    found = dataclasses.replace(recorded(), bound=None, control=None, floor_us=50.0)
    assert smallest_scale(found) == pytest.approx(50.0 / TIME_US, rel=0.01)


def test_a_slowed_reference_within_its_tolerance_does_not_add_to_what_can_be_forged() -> None:
    """What is bounded is the ratio at the reference's own pace."""
    for slowed in (1.0, 1.015):
        gain, _ = reach(Probe(KERNELS[0], Knobs(), "passed", "", 0.0, recorded(excess=0.0, slowed=slowed)))
        assert gain == pytest.approx(1 - 1 / (1 + LIMIT), abs=0.002)


class Table:
    """A bench that knows physics: forging changes what is reported and nothing else."""

    def probe(self, kernel, knobs: Knobs) -> Probe:
        slowed = 1 + 0.005 * knobs.copies * knobs.chunk / 2**25
        found = judged(recorded(excess=0.002 if knobs.takes_over else 0.01, slowed=slowed), knobs.scale)
        why = "wrong_answer" if knobs.early else ""
        return Probe(
            kernel, knobs, why or "passed", found.held or found.remeasure, 1 - found.ratio, None if why else found
        )


def test_the_search_ends_with_a_gain_that_was_graded_and_not_noticed() -> None:
    probes = search(Table(), KERNELS[:1], math.inf, lambda _: None)
    through = [probe for probe in probes if probe.verdict == "passed" and not probe.noticed]
    best = max(probe.gain for probe in through)
    assert 0.02 < best < LIMIT + GPU.aa_tolerance + 0.001
    line = table(probes).splitlines()[-1]
    assert f"{best:.1%}" in line
    assert line.count("|") == table(probes).splitlines()[0].count("|")


def test_what_was_recorded_is_decided_anew_with_its_gain(tmp_path: Path) -> None:
    """By rules of another day a forger may have ranked by the clock that was forged."""
    probe = Probe(KERNELS[0], Knobs(scale=0.9), "passed", "held then", 0.1, forged(recorded(), 0.9))
    (tmp_path / "search.json").write_text(json.dumps({"probes": [codec.to_json(probe)]}), encoding="utf-8")
    (found,) = load(tmp_path / "search.json")
    assert found.noticed == ""
    assert found.gain == pytest.approx(0.0, abs=0.01)


def test_the_search_stops_when_its_time_is_over() -> None:
    assert search(Table(), KERNELS, 0.0, lambda _: None) == []


@pytest.mark.parametrize(
    "knobs",
    [
        Knobs(),
        Knobs(scale=0.97),
        Knobs(takes_over=True),
        Knobs(takes_over=True, merged=True, scale=0.9),
        Knobs(takes_over=True, early=True, claim_ns=7),
        Knobs(copies=9, chunk=4096, scale=0.98),
    ],
)
def test_a_cheat_is_a_source_that_keeps_the_entrys_signature(knobs: Knobs) -> None:
    staff = (ROOT / "reference" / "vector_add" / "solutions" / "triton.py").read_text(encoding="utf-8")
    text = source_of(staff, "vector_add", knobs)
    compile(text, "cheat", "exec")
    assert (text == staff) == (knobs == Knobs())
