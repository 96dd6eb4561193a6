"""What a profile's page prints, worked out from the record: words, shares and places; no vendor's counter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autograder.contract import Lane
from autograder.lanes import SHEETS
from autograder.profile_words import LIMITERS, MIX, NEAR, PARTS, SPEED, STALLS
from autograder.profiles import Figure, Mix, Profile, ProfiledKernel, Span, SpanKind, Stall, Timeline
from server.pages.formats import microseconds
from server.pages.labels import LANES

_WIDTH = 1000
_MOST_NOTED = 8
_LEAST_NOTED = 0.01
_LEAST_WIDTH = 1.5
_HALF = 0.5


@dataclass(frozen=True)
class Share:
    """A row: what, how much of it, and what it means."""

    name: str
    count: int
    share: float
    about: str


@dataclass(frozen=True)
class MemoryRow:
    """One level of memory: what was moved, and how well it was used."""

    level: str
    moved: str
    used: str
    about: str


@dataclass(frozen=True)
class Bar:
    """One span of the timeline's picture, in units of a thousandth of its width."""

    x: float
    width: float
    kind: str
    label: str


@dataclass(frozen=True)
class KernelView:
    """One kernel.

    Attributes:
        summary: what bounds it, in a sentence.
        speed: names and percent of the device's limits; `None` where the tool gave none.
        notes: line to note, for the listing.
    """

    kernel: ProfiledKernel
    summary: str
    speed: tuple[tuple[str, float | None], ...]
    memory: tuple[MemoryRow, ...]
    occupancy: tuple[str, ...]
    stalls: tuple[Share, ...]
    mix: tuple[Share, ...]
    notes: Mapping[int, str]
    missing: tuple[tuple[str, str], ...]


def kernels_of(profile: Profile) -> list[KernelView]:
    """Every kernel that was looked at, most of the time first."""
    return [_kernel(kernel, profile) for kernel in profile.kernels]


def _kernel(kernel: ProfiledKernel, profile: Profile) -> KernelView:
    figures = {figure for figure in Figure if figure.value not in kernel.figures}
    return KernelView(
        kernel=kernel,
        summary=_summary(kernel),
        speed=tuple((name, kernel.figure(figure)) for figure, name in SPEED.items()),
        memory=tuple(_memory(kernel)),
        occupancy=tuple(_occupancy(kernel)),
        stalls=tuple(_stalls(kernel)),
        mix=tuple(_mix(kernel)),
        notes=_notes(kernel),
        missing=tuple((figure.value, profile.missing.get(figure.value, "")) for figure in sorted(figures)),
    )


def _summary(kernel: ProfiledKernel) -> str:
    compute, memory = kernel.figure(Figure.compute_percent), kernel.figure(Figure.memory_percent)
    if compute is None or memory is None:
        return "How far it is from the device's limits was not counted."
    if max(compute, memory) < NEAR:
        waits = [one for one in kernel.stalls if one.reason not in {Stall.selected, Stall.not_selected}]
        why = f" Its warps mostly wait: {STALLS[waits[0].reason][0].lower()}." if waits else ""
        return f"It reaches {max(compute, memory):.0f} % of the nearest limit, so latency holds it back.{why}"
    if memory >= compute:
        parts = {name: kernel.figure(figure) for figure, name in SPEED.items() if figure not in _WHOLE}
        part = max(parts, key=lambda name: parts[name] or 0.0)
        part = part if part.startswith("L") else part.lower()
        return f"It is bound by memory: {memory:.0f} % of what the memory system can do, mostly in the {part}."
    return f"It is bound by arithmetic: {compute:.0f} % of what the multiprocessors can do."


_WHOLE = frozenset({Figure.compute_percent, Figure.memory_percent})


def _memory(kernel: ProfiledKernel) -> Iterator[MemoryRow]:
    def number(figure: Figure) -> float | None:
        return kernel.figure(figure)

    read, written = number(Figure.dram_read_bytes), number(Figure.dram_written_bytes)
    rate, percent = number(Figure.dram_bytes_per_s), number(Figure.dram_percent)
    if read is not None and written is not None:
        used = f"{rate / 1e12:.2f} TB/s" if rate is not None else ""
        used += f", {percent:.0f} % of the limit" if percent is not None else ""
        yield MemoryRow("Device memory", f"{_size(read)} read, {_size(written)} written", used.lstrip(", "), "")
    for level, figure in (("L2 cache", Figure.l2_hit_percent), ("L1 cache", Figure.l1_hit_percent)):
        if (hit := number(figure)) is not None:
            yield MemoryRow(level, "", f"{hit:.0f} % of its sectors were hits", "")
    for name, sectors, requests in (
        ("Global loads", Figure.global_load_sectors, Figure.global_load_requests),
        ("Global stores", Figure.global_store_sectors, Figure.global_store_requests),
    ):
        many, asked = number(sectors), number(requests)
        if many is not None and asked:
            yield MemoryRow(
                name, f"{asked:,.0f} requests by warps", f"{many / asked:.1f} sectors of 32 bytes each",
                "neighbouring threads that access neighbouring elements of 4 bytes need 4; more is poor coalescing",
            )  # fmt: skip
    conflicts = [number(Figure.shared_load_conflicts), number(Figure.shared_store_conflicts)]
    if any(conflicts):
        said = f"{conflicts[0] or 0:,.0f} in loads, {conflicts[1] or 0:,.0f} in stores"
        yield MemoryRow("Bank conflicts", said, "", "extra turns of shared memory")
    local = (number(Figure.local_load_bytes) or 0) + (number(Figure.local_store_bytes) or 0)
    if local:
        yield MemoryRow("Local memory", _size(local), "", "spilled registers, or arrays that are indexed")


def _occupancy(kernel: ProfiledKernel) -> Iterator[str]:
    reached, allowed = kernel.figure(Figure.occupancy_percent), kernel.figure(Figure.occupancy_limit_percent)
    if reached is not None and allowed is not None:
        yield f"{reached:.0f} % reached, {allowed:.0f} % possible with this launch."
    limits = {figure: found for figure in LIMITERS if (found := kernel.figure(figure)) is not None}
    if limits:
        least = min(limits.values())
        names = "; ".join(LIMITERS[figure] for figure, found in limits.items() if found == least)
        yield f"At most {least:.0f} blocks fit a multiprocessor, limited by {names}."
    waves = kernel.figure(Figure.waves)
    if waves is not None:
        short = waves < 1
        yield f"The grid is {waves:.2f} waves" + (": it does not fill the device once." if short else ".")


def _stalls(kernel: ProfiledKernel) -> Iterator[Share]:
    total = sum(one.samples for one in kernel.stalls) or 1
    for one in kernel.stalls:
        name, about = STALLS[one.reason]
        yield Share(name, one.samples, one.samples / total, about)


def _mix(kernel: ProfiledKernel) -> Iterator[Share]:
    total = sum(kernel.mix.values()) or 1
    known = {kind.value: kind for kind in Mix}
    for name, count in sorted(kernel.mix.items(), key=lambda one: -one[1]):
        if name in known and count > 0:
            yield Share(MIX[known[name]][0], count, count / total, MIX[known[name]][1])


def _notes(kernel: ProfiledKernel) -> dict[int, str]:
    """The lines with the most samples, with their share and what was waited for."""
    total = sum(one.samples for one in kernel.lines) or 1
    counted = (one for one in kernel.lines if one.line and one.samples >= _LEAST_NOTED * total)
    hot = sorted(counted, key=lambda one: -one.samples)
    notes = {}
    for one in hot[:_MOST_NOTED]:
        reason = next((STALLS[each.reason][0].lower() for each in one.stalls if each.reason is not Stall.selected), "")
        notes[one.line] = f"{one.samples / total:.0%} of samples" + (f": {reason}" if reason else "")
    return notes


def roofline_data(profile: Profile, lane: Lane, dtype: str) -> dict[str, Any] | None:
    """The data of the roofline's chart: the traced call by the bytes that were counted, and by the least possible.

    `None` where nothing was counted, the lane has no data sheet, or the rung does no arithmetic.
    """
    sheet, time_us = SHEETS.get(lane), profile.timeline.busy_ns / 1e3
    moved = counted_bytes(profile)
    if sheet is None or not profile.flops or not moved or not time_us or dtype not in sheet.tflops:
        return None
    dots = [
        {
            "case": profile.case, "who": who, "label": f"{label} traffic", "x": profile.flops / size,
            "tflops": profile.flops / time_us / 1e6, "tb": size / time_us / 1e6,
        }
        for who, label, size in (("this", "measured", moved), ("reference", "least", profile.bytes_moved))
        if size
    ]  # fmt: skip
    peaks = [{"dtype": dtype, "tflops": sheet.tflops[dtype]}]
    return {"device": LANES[lane], "memory": sheet.memory_tb_s, "peaks": peaks, "dots": dots}


def counted_bytes(profile: Profile) -> float:
    """Bytes that the call's kernels moved to and from the device's memory, each launch as the one counted."""
    both = (Figure.dram_read_bytes, Figure.dram_written_bytes)
    return sum(kernel.calls * kernel.figures.get(figure, 0) for kernel in profile.kernels for figure in both)


def traffic(profile: Profile) -> str:
    """The bytes that were moved beside the least possible, in a sentence; `""` where they were not counted."""
    moved = counted_bytes(profile)
    if not moved or not profile.bytes_moved:
        return ""
    cached = " Less than 1 means that some of it stayed in the L2 cache." if moved < profile.bytes_moved else ""
    times = f"{moved / profile.bytes_moved:.2f} times the least possible ({_size(profile.bytes_moved)})"
    return f"Its kernels moved {_size(moved)} to and from the device's memory, {times}.{cached}"


def bars(timeline: Timeline) -> tuple[tuple[str, tuple[Bar, ...]], ...]:
    """The timeline's two rows, for a picture of `_WIDTH` units."""
    length = timeline.call_ns or 1

    def bar(span: Span) -> Bar:
        width = max(_LEAST_WIDTH, _WIDTH * (span.end_ns - span.start_ns) / length)
        label = f"{span.name}, {microseconds((span.end_ns - span.start_ns) / 1e3)}"
        return Bar(min(_WIDTH - _LEAST_WIDTH, _WIDTH * span.start_ns / length), width, span.kind.value, label)

    device = tuple(bar(span) for span in timeline.spans if span.kind is not SpanKind.host)
    host = tuple(bar(span) for span in timeline.spans if span.kind is SpanKind.host)
    return (("Device", device), ("Host", host))


def host_cost(timeline: Timeline) -> str:
    """What the host cost, in a sentence; `""` where nothing was traced."""
    if not timeline.call_ns or not timeline.busy_ns:
        return ""
    idle, launches = timeline.idle_ns / timeline.call_ns, sum(one.kind is SpanKind.kernel for one in timeline.spans)
    said = (
        f"The call took {microseconds(timeline.call_ns / 1e3)}: the device was busy for "
        f"{microseconds(timeline.busy_ns / 1e3)} and idle for {microseconds(timeline.idle_ns / 1e3)}."
    )
    if idle < _HALF:
        return said
    many = f" in {launches} launches" if launches > 1 else ""
    more = "fewer launches, or more work in each, would help more than a faster kernel"
    return f"{said} Most of the call is the host's{many}: {more}."


def _size(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def missing_parts(profile: Profile) -> list[tuple[str, str]]:
    """What is missing as a whole, with the reason."""
    return [(PARTS[name], why) for name, why in profile.missing.items() if name in PARTS]
