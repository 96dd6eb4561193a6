"""The tables of docs/measurement.md, from what `scripts/measurement.py` has read."""

from __future__ import annotations

import json
import lzma
import math
import random
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder import codec
from autograder.contract import Bound, GradeResult, Measurement, Pair, Work
from autograder.judge.rules import GPU, BoundTolerance, Rules
from autograder.judge.timing.estimators import by_samples, call_us
from autograder.judge.timing.validity import scored_us, sealed_call_us
from tests.redteam.decide import judged, smallest_scale

SELF = ("self", "warm")
"""Parts whose measurements are of the rungs as they are, by a warm judge."""
SPARES = (0.004, 0.006, 0.016)
"""Parts of the limit: `Rules.bound_margin` and what else was thought of."""
LIMITS = (0.06, 0.05)
"""Limits of the excess that were thought of beside today's."""
GOAL = 0.05
"""The largest gain that may go unnoticed at 200 µs and more."""
RESAMPLES = 400
"""Of the pairs of each grading."""


def tables(folder: Path, *, anew: bool = False) -> str:
    """The tables of docs/measurement.md, in Markdown.

    Args:
        anew: first gradings alone, decided by today's rules from the samples that were recorded.
    """
    warm, cold, short = (measured(folder, parts) for parts in (SELF, ("cold",), ("short",)))
    if anew:
        warm, cold, short = (_anew(entries) for entries in (warm, cold, short))
    first = by_case(one for one in warm if not one["remeasured"])
    blocks = [
        _spread_table(first),
        _sampling_table(first),
        _bound_table(by_case(warm)),
        _spare_table(first),
        _forging_table(first),
        _seconds_table(warm),
    ]
    if bench := entries_of(folder, "bench"):
        blocks += [_bench_table(first, bench)]
    if short:
        own = by_case(one for one in short if not one["remeasured"])
        blocks += [_spread_table(own), _bound_table(by_case(short)), _spare_table(own)]
        blocks += [_forging_table(own), _seconds_table(short)]
    if cold:
        blocks += [_cold_table(cold, warm)]
    if checks := [one for one in entries_of(folder, "warm") if one["work"] == Work.check]:
        blocks += [_check_table(checks)]
    blocks += [[_sums(name, found)] for name, found in (("warm", warm), ("short", short), ("cold", cold)) if found]
    return "\n\n".join("\n".join(block) for block in blocks)


def entries_of(folder: Path, part: str) -> list[dict[str, Any]]:
    """What was read of a part, oldest first."""
    path = folder / f"{part}.jsonl"
    packed = path.with_suffix(".jsonl.xz")
    text = lzma.decompress(packed.read_bytes()).decode() if packed.is_file() else ""
    text += path.read_text(encoding="utf-8") if path.is_file() else ""
    return [json.loads(line) for line in text.splitlines()]


def _anew(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the judge would say today; whom it would ask for a second measurement, nobody knows what that had shown."""
    return [{**entry, "result": _decided(entry["result"])} for entry in entries if not entry["remeasured"]]


def _decided(result: GradeResult) -> GradeResult:
    found = tuple(judged(one, remeasured=0) for one in result.measurements)
    again = next((one.remeasure for one in found if one.remeasure), "")
    held = next((one.held for one in found if one.held), "")
    return replace(result, measurements=found, remeasure=again, held=bool(held), held_reason=held)


def measured(folder: Path, parts: Iterable[str]) -> list[dict[str, Any]]:
    """The measurements of some parts, as read, with `result` decoded."""
    return [
        {**entry, "result": codec.from_json(GradeResult, entry["result"])}
        for part in parts
        for entry in entries_of(folder, part)
        if entry["work"] == Work.measure
    ]


def by_case(entries: Iterable[dict[str, Any]]) -> dict[str, list[Measurement]]:
    """The measurements of every ranked case."""
    found: dict[str, list[Measurement]] = {}
    for entry in entries:
        for one in entry["result"].measurements:
            found.setdefault(f"{entry['slug']} `{one.case}`", []).append(one)
    return found


def _spread_table(cases: dict[str, list[Measurement]]) -> list[str]:
    heads = ("ranked case", "gradings", "time, µs", "ratio to itself, median", "standard deviation", "least – most")
    rows = [f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---:|---|"]
    for name, found in cases.items():
        ratios = [one.ratio for one in found]
        time_us = statistics.median(one.time_us for one in found)
        spread = 100 * statistics.stdev(ratios) if len(ratios) > 1 else 0.0
        rows.append(
            f"| {name} | {len(found)} | {time_us:.1f} | {statistics.median(ratios):.4f} | {spread:.2f} % | "
            f"{min(ratios):.4f} – {max(ratios):.4f} |"
        )
    return rows


def _bench_table(cases: dict[str, list[Measurement]], bench: list[dict[str, Any]]) -> list[str]:
    """The reported time beside `do_bench`, as it is and in windows so short that the device need not save power."""
    heads = ("ranked case", "time, µs", "do_bench, µs", "difference", "do_bench in short windows, µs", "difference")
    rows = [f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---:|---:|"]
    for entry in bench:
        name = f"{entry['slug']} `{entry['case']}`"
        ours = statistics.median(one.time_us for one in cases[name]) if name in cases else None
        columns = [f"{ours:.1f}" if ours else "–"]
        for part in ("do_bench_us", "do_bench_short_us"):
            # Readings before 23 November 2026 have no short windows.
            other = statistics.median(entry[part]) if part in entry else None
            columns += [f"{other:.1f}" if other else "–"]
            columns += [f"{100 * (ours / other - 1):+.1f} %" if ours and other else "–"]
        rows.append(f"| {name} | {' | '.join(columns)} |")
    return rows


def _sampling_table(cases: dict[str, list[Measurement]]) -> list[str]:
    """Do gradings differ by more than the calls that each of them took?"""
    heads = ("ranked case", "gradings", "pairs, median", "standard deviation of the medians",
             "… that their own pairs let expect")  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---:|"]
    for name, found in cases.items():
        ratios = [[by_event(pair) for pair in one.pairs] for one in found]
        if not ratios[1:]:
            continue
        between = statistics.stdev(statistics.median(each) for each in ratios)
        within = statistics.mean(_variance_of_median(each) for each in ratios) ** 0.5
        pairs = statistics.median(len(each) for each in ratios)
        rows.append(f"| {name} | {len(found)} | {pairs:g} | {100 * between:.2f} % | {100 * within:.2f} % |")
    return rows


def by_event(pair: Pair) -> float:
    """The ratio of one pair by the event clock, whatever ranked."""
    return pair.submission_event_us / pair.reference_event_us


def _variance_of_median(samples: list[float]) -> float:
    draw = random.Random(0)  # noqa: S311 -- tables are the same every time.
    return statistics.variance(statistics.median(draw.choices(samples, k=len(samples))) for _ in range(RESAMPLES))


def _bound_table(cases: dict[str, list[Measurement]]) -> list[str]:
    heads = ("ranked case", "K", "null, µs", "excess of the bound: least, median, most", "limit, most",
             "batches needed", "drift of T_ref: median, most", "clock", "disagreement", "measure again",
             "held")  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---:|---:|---|---:|---:|---|---|---:|---:|---:|"]
    for name, found in cases.items():
        bounds = [one.bound for one in found if one.bound]
        drifts = [abs(one.control.drift) for one in found if one.control]
        if not bounds or not drifts:
            continue
        excess = [one.excess for one in bounds]
        null_us = statistics.median(min(one.null_us) for one in bounds)
        clocks = sorted({one.clock for one in found})
        rows.append(
            f"| {name} | {bounds[0].calls} | {null_us:.0f} | {100 * min(excess):.2f}, "
            f"{100 * statistics.median(excess):.2f}, {100 * max(excess):.2f} % | "
            f"{100 * max(one.epsilon for one in bounds):.1f} % | "
            f"{statistics.mean(len(one.dropped) + len(one.batches) for one in bounds):.1f} | "
            f"{100 * statistics.median(drifts):.2f}, {100 * max(drifts):.2f} % | "
            f"{', '.join(f'{clock} {sum(one.clock == clock for one in found)}' for clock in clocks)} | "
            f"{sum(not one.bounded for one in bounds)} | "
            f"{sum(bool(one.remeasure) for one in found)} | {sum(bool(one.held) for one in found)} |"
        )
    return rows


def _spare_table(cases: dict[str, list[Measurement]]) -> list[str]:
    """How much shorter the time that counts is than the event clock's, and how many batches sparing that takes.

    Where more batches would have been wanted than were taken, those that were taken are counted.
    """
    heads = ("ranked case", "the reference alone takes off: median, most",
             *(f"batches, {100 * spare:g} % to spare: mean, missed" for spare in SPARES))  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---|" + "---|" * len(SPARES)]
    for name, found in cases.items():
        bounded = [(one, one.bound) for one in found if one.bound and one.control]
        if not bounded:
            continue
        off = [1 - scored_us(by_samples(one, "event")) / event_us(one) for one, _ in bounded]
        columns = [_spared(bounded, spare) for spare in SPARES]
        rows.append(f"| {name} | {100 * statistics.median(off):.2f}, {100 * max(off):.2f} % | {' | '.join(columns)} |")
    return rows


def _forging_table(cases: dict[str, list[Measurement]]) -> list[str]:
    """What a forger could claim with the samples of each honest grading: how much less time, and nobody would notice.

    A forger has the reference's kernel, and batches as short as these: more of them than an honest kernel takes, as its
    bound is missed by the first.
    """
    heads = ("ranked case", "gain that the samples allow: median, most", f"gradings with more than {GOAL:.0%}",
             *(f"with a limit of {limit:.0%} at most" for limit in LIMITS))  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---|---:|" + "---|" * len(LIMITS)]
    lower = [_lowered(limit) for limit in LIMITS]
    for name, found in cases.items():
        gains = [gain for one in found if one.bound for gain in _gain(one, GPU)]
        if not gains:
            continue
        columns = [
            f"{100 * max((gain for one in found for gain in _gain(one, rules)), default=0.0):.1f} %" for rules in lower
        ]
        rows.append(
            f"| {name} | {100 * statistics.median(gains):.1f}, {100 * max(gains):.1f} % | "
            f"{sum(gain > GOAL for gain in gains)} of {len(found)} | {' | '.join(columns)} |"
        )
    return rows


def _lowered(limit: float) -> Rules:
    """Today's rules, with no limit of the excess above this one."""
    lower = (
        BoundTolerance(one.below_us, min(limit, one.minimum), min(limit, one.maximum)) for one in GPU.bound_tolerances
    )
    return replace(GPU, bound_tolerances=tuple(lower))


def _gain(one: Measurement, rules: Rules) -> list[float]:
    """Of one grading; nothing if not even the true times would go unnoticed."""
    scale = smallest_scale(one, rules)
    return [1 - scale] if scale < math.inf else []


def _spared(found: list[tuple[Measurement, Bound]], spare: float) -> str:
    counts, missed = [], 0
    for one, bound in found:
        bounds = list(_bounds(bound))
        enough_us = event_us(one) * (1 + bound.epsilon - spare)
        counts.append(next((number for number, us in enumerate(bounds, 1) if us <= enough_us), len(bounds)))
        missed += bounds[counts[-1] - 1] > scored_us(by_samples(one, "event")) * (1 + bound.epsilon)
    return f"{statistics.mean(counts):.2f}, {missed}"


def _bounds(bound: Bound) -> Iterator[float]:
    """What is known of a call after each batch: never more than before."""
    taken = (*bound.dropped, *bound.batches)
    return (sealed_call_us(taken[:number], bound.null_us, bound.calls) for number in range(1, len(taken) + 1))


def event_us(one: Measurement) -> float:
    """A call of the submission by the event clock, whatever ranked."""
    return call_us(one.pairs, "event")


def _seconds_table(entries: list[dict[str, Any]]) -> list[str]:
    heads = ("rung", "a measurement, warm: median, most, s", "exclusive GPU seconds: median, most", "the first one, s",
             "… exclusive")  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---|---|---:|---:|"]
    for slug in dict.fromkeys(entry["slug"] for entry in entries):
        own = [entry for entry in entries if entry["slug"] == slug]
        warm, first = [one for one in own if not one["first"]], [one for one in own if one["first"]]
        rows.append(
            f"| {slug} | {_two([one['seconds'] for one in warm])} | "
            f"{_two([one['result'].exclusive_s for one in warm])} | {_one([one['seconds'] for one in first])} | "
            f"{_one([one['result'].exclusive_s for one in first])} |"
        )
    return rows


def _cold_table(cold: list[dict[str, Any]], warm: list[dict[str, Any]]) -> list[str]:
    """Is the first measurement of a new judge as right as a later one?"""
    heads = ("ranked case", "first ones", "time, µs", "beside warm ones", "ratio to itself: least – most",
             "excess of the bound, most", "measure again", "held")  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---|---:|---:|---:|"]
    later = by_case(one for one in warm if not one["first"])
    for name, found in by_case([*cold, *(one for one in warm if one["first"])]).items():
        time_us = statistics.median(one.time_us for one in found)
        beside = statistics.median(one.time_us for one in later[name]) if later.get(name) else time_us
        excess = [one.bound.excess for one in found if one.bound]
        ratios = [one.ratio for one in found]
        rows.append(
            f"| {name} | {len(found)} | {time_us:.1f} | {100 * (time_us / beside - 1):+.2f} % | "
            f"{min(ratios):.4f} – {max(ratios):.4f} | {100 * max(excess, default=0.0):.2f} % | "
            f"{sum(bool(one.remeasure) for one in found)} | {sum(bool(one.held) for one in found)} |"
        )
    return rows


def _check_table(checks: list[dict[str, Any]]) -> list[str]:
    rows = ["| rung | check, warm: median, most, s |", "|---|---|"]
    for slug in dict.fromkeys(entry["slug"] for entry in checks):
        # The first of each starts the judge's runners: it is not warm.
        own = [entry["seconds"] for entry in checks if entry["slug"] == slug and not entry["first"]]
        rows.append(f"| {slug} | {_two(own)} |")
    return rows


def _sums(name: str, entries: list[dict[str, Any]]) -> str:
    results = [entry["result"] for entry in entries]
    disagree = sum(any(found.bound and not found.bound.bounded for found in one.measurements) for one in results)
    return (
        f"{name}: {len(results)} gradings; {sum(one.verdict != 'passed' for one in results)} not passed, "
        f"{disagree} where the clocks disagree, {sum(bool(one.remeasure) for one in results)} to repeat, "
        f"{sum(one.held for one in results)} held."
    )


def _one(values: list[float]) -> str:
    return f"{statistics.median(values):.1f}" if values else "–"


def _two(values: list[float]) -> str:
    return f"{statistics.median(values):.1f}, {max(values):.1f}" if values else "–"
