"""What changed from one profile to another: figures side by side, and the largest differences in a sentence each.

Bytes, instructions and conflicts are of the call: of each counted kernel, by its first launch.
Registers, occupancy and stalls are of the kernel that takes most of the time. Standard library only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from autograder.profile_words import MIX, STALLS
from autograder.profiles import Figure, Mix, Profile, SpanKind, Stall

MOST_TOLD = 3
LEAST_CHANGE = 0.1
"""What differs by less than this part is not told of: caches and clocks do as much between two calls."""
_SAME_TIME = 0.05
_TIMES_FROM = 1.5
"""From this factor on it is “1.9 times as many”, below it “30 % more”."""
_NEGLIGIBLE = 0.01
"""Events below this part of the instructions, and bytes below this part of the least possible, are as good as none."""
_LEAST_IDLE = 0.05
_LEAST_STALL = 0.02
_MOST_COVERED = 0.9
_PERCENT = 100.0
_ALL = 99.5
_TEN = 10.0
_NO_WAIT = frozenset({Stall.selected, Stall.not_selected})


class Group(StrEnum):
    """A part of the table."""

    time = "time"
    memory = "memory"
    instructions = "instructions"
    launch = "launch"
    stalls = "stalls"


class Unit(StrEnum):
    """What a row's numbers are; `times` is of the least possible, `kib` are KiB."""

    us = "us"
    bytes = "bytes"
    kib = "kib"
    number = "number"
    percent = "percent"
    times = "times"


GROUPS: Mapping[Group, str] = {
    Group.time: "Time",
    Group.memory: "Memory",
    Group.instructions: "Instructions executed by warps",
    Group.launch: "Launch and registers, longest kernel",
    Group.stalls: "Samples of warps, longest kernel",
}
_NOUNS = {Unit.us: " time", Unit.bytes: " bytes", Unit.kib: " bytes", Unit.number: ""}


@dataclass(frozen=True)
class Row:
    """One figure of both profiles; `None` where it was not counted."""

    group: Group
    name: str
    unit: Unit
    now: float | None
    before: float | None

    @property
    def change(self) -> str:
        """`1.9×`, `-12 points`; `""` where there is nothing to divide."""
        if self.now is None or self.before is None:
            return ""
        if self.unit is Unit.percent:
            points = round(self.now) - round(self.before)
            return f"{points:+d} points" if points else "0 points"
        return f"{_digits(self.now / self.before)}×" if self.now and self.before else ""


@dataclass(frozen=True)
class Changes:
    """Two profiles side by side.

    Attributes:
        headline: what became of the device's time; `""` where one of them was not traced.
        sentences: the largest difference of each group but the headline's, the largest three of them, largest first.
        notes: what to bear in mind, a sentence each.
    """

    headline: str
    sentences: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Measure:
    """A figure that profiles are compared by.

    Attributes:
        said: a sentence up to its end, with a place for the number; `""` where the figure is only listed.
        floor: so little of it is as good as none.
    """

    group: Group
    name: str
    unit: Unit
    read: Callable[[Profile], float | None]
    said: str = ""
    floor: Callable[[Profile], float] = lambda _: 1.0


def why_not(now: Profile, before: Profile) -> str:
    """Why two profiles of one lane say nothing about each other, in a sentence; `""` where they do."""
    if now.case != before.case:
        return f"It is a profile of the case {before.case}, and this one of {now.case}: other inputs, other counters."
    if now.size != before.size:
        return f"The case {now.case} had a different size then: {before.size} instead of {now.size}."
    if not (before.kernels or before.timeline.busy_ns):
        return "Nothing was traced or counted in it."
    if not (now.kernels or now.timeline.busy_ns):
        return "Nothing was traced or counted in this one."
    return ""


def changes(now: Profile, before: Profile, name: str) -> Changes:
    """What changed between two profiles of which `why_not` says nothing.

    Args:
        name: what the older one is called in a sentence, such as `your last one`.
    """
    rows, weighed = [], []
    for measure in (*_MEASURES, *_stalls(now, before)):
        row = Row(measure.group, measure.name, measure.unit, measure.read(now), measure.read(before))
        if (row.now is None and row.before is None) or not (row.now or row.before):
            continue
        rows.append(row)
        floor = max(measure.floor(now), measure.floor(before))
        if measure.said and (weight := _weight(row, floor)) >= math.log1p(LEAST_CHANGE):
            weighed.append((weight, row, _sentence(measure.said, row, name)))
    return Changes(_headline(now, before, name), tuple(_told(weighed)), tuple(rows), tuple(_notes(now, before, name)))


def _told(weighed: list[tuple[float, Row, str]]) -> Iterator[str]:
    """The largest of each group: others of it mostly follow from that, as where one stall grows the others shrink."""
    largest: dict[Group, str] = {}
    for _, row, said in sorted(weighed, key=lambda one: -one[0]):
        largest.setdefault(row.group, said)
    return itertools.islice(largest.values(), MOST_TOLD)


def _weight(row: Row, floor: float) -> float:
    """How large a difference is: the logarithm of a factor; fifty points of a share weigh as a factor of two."""
    if row.now is None or row.before is None:
        return 0.0
    if row.unit is Unit.percent:
        return 2 * math.log(2) * abs(row.now - row.before) / _PERCENT
    return abs(math.log((row.now + floor) / (row.before + floor)))


def _sentence(said: str, row: Row, name: str) -> str:
    now, before = row.now or 0.0, row.before or 0.0
    first, second = shown(row.unit, now), shown(row.unit, before)
    if row.unit is Unit.percent:
        return f"{said.format(first)}, against {second} in {name}."
    if not now or not before:
        number = first if now else f"no{_NOUNS[row.unit]}"
        return f"{said.format(number)}, against {second if before else 'none'} in {name}."
    return f"{said.format(_times(now / before, row.unit))} {_joined(now / before)} {name}: {first} against {second}."


def _times(factor: float, unit: Unit) -> str:
    many, fewer = ("much", "less") if unit is Unit.us else ("many", "fewer")
    if factor >= _TIMES_FROM:
        return f"{_digits(factor)} times as {many}{_NOUNS[unit]}"
    percent = _PERCENT * abs(factor - 1)
    amount = f"{percent:.0f}" if percent < _ALL else f"{min(percent, 99.9):.1f}"
    return f"{amount} % {'more' if factor > 1 else fewer}{_NOUNS[unit]}"


def _joined(factor: float) -> str:
    return "as" if factor >= _TIMES_FROM else "than"


def _headline(now: Profile, before: Profile, name: str) -> str:
    first, second = now.timeline.busy_ns / 1e3, before.timeline.busy_ns / 1e3
    if not (first and second):
        return ""
    if abs(first / second - 1) < _SAME_TIME:
        return f"It takes about as much time on the device as {name}: {_us(first)} against {_us(second)}."
    row = Row(Group.time, "", Unit.us, first, second)
    return _sentence("It takes {} on the device", row, name)


def _notes(now: Profile, before: Profile, name: str) -> Iterator[str]:
    for profile, which in ((now, "this one"), (before, name)):
        covered = sum(kernel.share for kernel in profile.kernels)
        if not profile.kernels:
            yield f"Nothing was counted in {which}, so only times are side by side."
        elif covered < _MOST_COVERED:
            yield f"The kernels counted in {which} hold {covered:.0%} of the device's time; others are left out."
    if now.kernels and before.kernels and now.tool != before.tool:
        yield f"Another version of the profiler counted {name}, so small differences may be its own."


def shown(unit: Unit, value: float | None) -> str:
    """A row's number with its unit; `–` where there is none."""
    if value is None:
        return "–"
    return _SHOWN[unit](value)


def _us(value: float) -> str:
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if value >= size:
            return f"{_digits(value / size, 3)} {unit}"
    return f"{_digits(value, 3)} µs"


def _bytes(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{_digits(value / size, 3)} {unit}"
    return f"{value:.0f} B"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= _TEN or value == round(value) else f"{value:.1f}"


def _digits(value: float, digits: int = 2) -> str:
    """Significant digits without an exponent: `1.9`, `12`, `4,096`, `0.045`."""
    if value <= 0 or not math.isfinite(value):
        return "0"
    return f"{value:,.{max(0, digits - 1 - math.floor(math.log10(value)))}f}"


_SHOWN: Mapping[Unit, Callable[[float], str]] = {
    Unit.us: _us,
    Unit.bytes: _bytes,
    Unit.kib: lambda value: f"{_count(value)} KiB",
    Unit.number: _count,
    Unit.percent: lambda value: f"{value:.0f} %",
    Unit.times: lambda value: f"{_digits(value, 3)}×",
}


def _of_call(profile: Profile, *figures: Figure) -> float | None:
    """The sum over all launches of what was counted; `None` where a kernel has no such figure."""
    kernels = profile.kernels
    if not kernels or any(kernel.figure(figure) is None for kernel in kernels for figure in figures):
        return None
    return profile.of_call(kernels, lambda kernel: sum(kernel.figure(figure) or 0.0 for figure in figures))


def _executed(profile: Profile, kind: Mix) -> float | None:
    if not profile.kernels or not all(kernel.mix for kernel in profile.kernels):
        return None
    return float(profile.of_call(profile.kernels, lambda kernel: kernel.mix.get(kind.value, 0)))


def _longest(profile: Profile, figure: Figure) -> float | None:
    return profile.kernels[0].figure(figure) if profile.kernels else None


def _kib(profile: Profile, figure: Figure) -> float | None:
    value = _longest(profile, figure)
    return None if value is None else value / 1024


def _quotient(profile: Profile, above: Figure, below: Figure) -> float | None:
    first, second = _longest(profile, above), _longest(profile, below)
    return first / second if first is not None and second else None


def _least(profile: Profile) -> float | None:
    """Bytes moved, as a multiple of the least possible."""
    moved = _of_call(profile, Figure.dram_read_bytes, Figure.dram_written_bytes)
    return moved / profile.bytes_moved if moved is not None and profile.bytes_moved else None


def _launches(profile: Profile) -> float | None:
    line = profile.timeline
    if line.left_out or not line.call_ns:
        return None
    return float(sum(span.kind is SpanKind.kernel for span in line.spans))


def _traced(profile: Profile, part: str) -> float | None:
    line = profile.timeline
    return {"call": line.call_ns, "busy": line.busy_ns, "idle": line.idle_ns}[part] / 1e3 if line.call_ns else None


def _stalled(profile: Profile, reason: Stall) -> float | None:
    stalls = profile.kernels[0].stalls if profile.kernels else ()
    total = sum(one.samples for one in stalls)
    return _PERCENT * sum(one.samples for one in stalls if one.reason is reason) / total if total else None


def _stalls(now: Profile, before: Profile) -> Iterator[_Measure]:
    """The reasons that either kernel has, most of both first."""
    both = {reason: (_stalled(now, reason) or 0.0) + (_stalled(before, reason) or 0.0) for reason in Stall}
    for reason in sorted(both, key=lambda one: -both[one]):
        if both[reason] < _PERCENT * _LEAST_STALL:
            return
        name = STALLS[reason][0]
        said = "" if reason in _NO_WAIT else f"Its warps wait in {{}} of their samples because of “{name.lower()}”"
        yield _Measure(Group.stalls, name, Unit.percent, partial(_stalled, reason=reason), said)


def _few_bytes(profile: Profile) -> float:
    return max(1.0, _NEGLIGIBLE * profile.bytes_moved)


def _few_events(profile: Profile) -> float:
    return max(1.0, _NEGLIGIBLE * (_of_call(profile, Figure.instructions) or 0.0))


def _mix(kind: Mix, said: str) -> _Measure:
    read = partial(_executed, kind=kind)
    return _Measure(Group.instructions, MIX[kind][0], Unit.number, read, said, _few_events)


_MEASURES = (
    _Measure(Group.time, "Device busy", Unit.us, lambda one: _traced(one, "busy")),
    _Measure(
        Group.time, "Device idle", Unit.us, lambda one: _traced(one, "idle"),
        "It leaves the device idle for {}", lambda one: 1.0 + _LEAST_IDLE * one.timeline.call_ns / 1e3,
    ),
    _Measure(Group.time, "The call, host included", Unit.us, lambda one: _traced(one, "call")),
    _Measure(Group.time, "Launches", Unit.number, _launches, "It launches {} kernels", lambda _: 0.0),
    _Measure(
        Group.memory, "Bytes read", Unit.bytes, lambda one: _of_call(one, Figure.dram_read_bytes),
        "It reads {} from memory", _few_bytes,
    ),
    _Measure(
        Group.memory, "Bytes written", Unit.bytes, lambda one: _of_call(one, Figure.dram_written_bytes),
        "It writes {} to memory", _few_bytes,
    ),
    _Measure(Group.memory, "Bytes against the least possible", Unit.times, _least),
    _Measure(
        Group.memory, "Local memory", Unit.bytes,
        lambda one: _of_call(one, Figure.local_load_bytes, Figure.local_store_bytes),
        "It moves {} of spilled or indexed local memory", _few_bytes,
    ),
    _Measure(
        Group.memory, "L2 hit rate", Unit.percent, lambda one: _longest(one, Figure.l2_hit_percent),
        "It finds {} of its sectors in the L2 cache",
    ),
    _Measure(
        Group.memory, "Sectors per load", Unit.number,
        lambda one: _quotient(one, Figure.global_load_sectors, Figure.global_load_requests),
        "It touches {} sectors of memory with each load of a warp",
    ),
    _Measure(
        Group.memory, "Sectors per store", Unit.number,
        lambda one: _quotient(one, Figure.global_store_sectors, Figure.global_store_requests),
        "It touches {} sectors of memory with each store of a warp",
    ),
    _Measure(
        Group.memory, "Bank conflicts", Unit.number,
        lambda one: _of_call(one, Figure.shared_load_conflicts, Figure.shared_store_conflicts),
        "It has {} bank conflicts", _few_events,
    ),
    _Measure(
        Group.instructions, "All", Unit.number, lambda one: _of_call(one, Figure.instructions),
        "It executes {} instructions",
    ),
    _mix(Mix.tensor, "It executes {} instructions of the tensor cores"),
    _mix(Mix.tma, "It executes {} instructions of the TMA"),
    _mix(Mix.async_copy, "It executes {} asynchronous copies"),
    _mix(Mix.global_load_128, "It executes {} global loads of 128 bits"),
    _mix(Mix.global_load_32, "It executes {} global loads of 32 bits or less"),
    _mix(Mix.atomic, "It executes {} atomics"),
    _mix(Mix.special, "It executes {} special functions"),
    _mix(Mix.barrier, "It executes {} barriers"),
    _Measure(
        Group.launch, "Registers per thread", Unit.number, lambda one: _longest(one, Figure.registers),
        "It uses {} registers per thread",
    ),
    _Measure(
        Group.launch, "Shared memory per block", Unit.kib, lambda one: _kib(one, Figure.shared_bytes),
        "It uses {} of shared memory per block",
    ),
    _Measure(Group.launch, "Blocks", Unit.number, lambda one: _longest(one, Figure.blocks), "It starts {} blocks"),
    _Measure(Group.launch, "Threads per block", Unit.number, lambda one: _longest(one, Figure.threads)),
    _Measure(
        Group.launch, "Occupancy", Unit.percent, lambda one: _longest(one, Figure.occupancy_percent),
        "It reaches an occupancy of {}",
    ),
)  # fmt: skip
