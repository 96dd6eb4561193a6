"""What a profile says, whoever's counters it was read from.

Standard library only: judge, worker, server and client read it. A page knows these words and no vendor's; an adapter
(`autograder.profiling.ncu`) turns a tool's counters into them. A figure that a tool did not give is absent, and
`Profile.missing` says why in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

MOST_KERNELS = 3
"""So many kernels of a call are looked at with counters: those that hold most of the device's time."""
LEAST_SHARE = 0.05
"""A kernel below this part of the device's time is not looked at, unless it is the longest."""
MOST_SPANS = 600
_ALIKE = 1.5
"""Launches of one kernel that differ in time by less than this factor did the same work."""
MOST_LINES = 200
MOST_STALLS = 8
REPORT = "profile.ncu-rep"
"""The artefact with the tool's own report."""
MAX_REPORT_BYTES = 4 * 2**20


class Figure(StrEnum):
    """One number about one launch of a kernel; the name ends in its unit."""

    duration_us = "duration_us"
    compute_percent = "compute_percent"
    """Of the multiprocessors' busiest pipe, of what it can do."""
    memory_percent = "memory_percent"
    """Of the memory system's busiest part, of what it can do."""
    dram_percent = "dram_percent"
    l2_percent = "l2_percent"
    l1_percent = "l1_percent"
    dram_read_bytes = "dram_read_bytes"
    dram_written_bytes = "dram_written_bytes"
    dram_bytes_per_s = "dram_bytes_per_s"
    l2_hit_percent = "l2_hit_percent"
    l1_hit_percent = "l1_hit_percent"
    global_load_sectors = "global_load_sectors"
    global_load_requests = "global_load_requests"
    global_store_sectors = "global_store_sectors"
    global_store_requests = "global_store_requests"
    shared_load_conflicts = "shared_load_conflicts"
    shared_store_conflicts = "shared_store_conflicts"
    local_load_bytes = "local_load_bytes"
    local_store_bytes = "local_store_bytes"
    registers = "registers"
    """Per thread."""
    shared_bytes = "shared_bytes"
    """Per block."""
    threads = "threads"
    """Per block."""
    blocks = "blocks"
    waves = "waves"
    occupancy_percent = "occupancy_percent"
    """Reached, on average over the time that a multiprocessor had work."""
    occupancy_limit_percent = "occupancy_limit_percent"
    """What the launch allows."""
    blocks_by_registers = "blocks_by_registers"
    """How many blocks a multiprocessor could hold if nothing but registers limited it; the next three likewise."""
    blocks_by_shared_memory = "blocks_by_shared_memory"
    blocks_by_warps = "blocks_by_warps"
    blocks_by_slots = "blocks_by_slots"
    issued_per_cycle = "issued_per_cycle"
    """Instructions that a scheduler issued per active cycle, at most 1."""
    instructions = "instructions"
    """Executed, by warps."""


class Mix(StrEnum):
    """A kind of instruction, by what a rung teaches of it."""

    tensor = "tensor"
    tma = "tma"
    async_copy = "async_copy"
    global_load_128 = "global_load_128"
    global_load_64 = "global_load_64"
    global_load_32 = "global_load_32"
    """A thread loads 32 bits or less."""
    global_store_128 = "global_store_128"
    global_store_64 = "global_store_64"
    global_store_32 = "global_store_32"
    shared = "shared"
    local = "local"
    """Loads and stores of spilled or indexed local memory."""
    atomic = "atomic"
    floating = "floating"
    special = "special"
    """Exponentials, roots, reciprocals, sines."""
    integer = "integer"
    convert = "convert"
    control = "control"
    barrier = "barrier"
    move = "move"
    other = "other"


class Stall(StrEnum):
    """Why a warp was not issued when it was sampled."""

    global_memory = "global_memory"
    shared_memory = "shared_memory"
    memory_queue = "memory_queue"
    """The queue to memory is full; `shared_queue` is that to shared memory and special functions."""
    shared_queue = "shared_queue"
    texture_queue = "texture_queue"
    math_pipe = "math_pipe"
    tensor_wait = "tensor_wait"
    fixed_latency = "fixed_latency"
    barrier = "barrier"
    memory_barrier = "memory_barrier"
    branch = "branch"
    instruction_fetch = "instruction_fetch"
    constant_cache = "constant_cache"
    dispatch = "dispatch"
    sleeping = "sleeping"
    draining = "draining"
    """Stores are still on their way when the warp ends."""
    not_selected = "not_selected"
    """It could be issued, and another warp was."""
    selected = "selected"
    """It was issued: no stall."""
    other = "other"


@dataclass(frozen=True)
class StalledFor:
    """Samples of warps that waited for one reason."""

    reason: Stall
    samples: int


@dataclass(frozen=True)
class LineCost:
    """What one line of the student's file cost in a kernel.

    Attributes:
        line: from 1; 0 for what belongs to no line of the file, such as a library's code.
        instructions: executed, by warps.
        samples: of warps at this line, issued or not.
        stalls: of those, by reason, most first.
    """

    line: int
    instructions: int
    samples: int
    stalls: tuple[StalledFor, ...] = ()


@dataclass(frozen=True)
class Hint:
    """Advice of the tool's own.

    Attributes:
        rule: the tool's name of it.
        estimate_percent: by how much it expects the kernel to get faster at most; `None` where it does not say.
        topic: a word that handouts have sections for; `""` where none fits.
    """

    rule: str
    text: str
    estimate_percent: float | None = None
    topic: str = ""


@dataclass(frozen=True)
class ProfiledKernel:
    """One launch of one kernel under counters.

    Attributes:
        share: of the device's time in the traced call, 0 to 1.
        calls: launches of this kernel in that call; the first of them was looked at.
    """

    name: str
    share: float
    calls: int
    figures: dict[str, float] = field(default_factory=dict)
    mix: dict[str, int] = field(default_factory=dict)
    stalls: tuple[StalledFor, ...] = ()
    lines: tuple[LineCost, ...] = ()
    hints: tuple[Hint, ...] = ()

    def figure(self, name: Figure) -> float | None:
        """A figure, `None` where the tool gave none."""
        return self.figures.get(name)


class SpanKind(StrEnum):
    """What a stretch of a timeline is."""

    kernel = "kernel"
    copy = "copy"
    fill = "fill"
    host = "host"
    """A call of the driver or its runtime on the host."""


@dataclass(frozen=True)
class Span:
    """One thing that ran during the traced call; nanoseconds from its beginning."""

    kind: SpanKind
    name: str
    start_ns: int
    end_ns: int
    stream: int = 0


@dataclass(frozen=True)
class Timeline:
    """The traced call.

    Attributes:
        call_ns: from the call to the end of the device's last work.
        busy_ns: for how long of it the device worked; what ran side by side counts once.
        left_out: spans beyond `MOST_SPANS`.
    """

    spans: tuple[Span, ...] = ()
    call_ns: int = 0
    busy_ns: int = 0
    left_out: int = 0

    @property
    def idle_ns(self) -> int:
        """How long the device had nothing to do."""
        return max(0, self.call_ns - self.busy_ns)


@dataclass(frozen=True)
class Profile:
    """A profile of one call of one public case.

    Attributes:
        case: its name.
        size: in words, `n=1,048,576`.
        tool: what read the counters, with its version.
        flops, bytes_moved: of the call by the assignment's formulas: useful work and compulsory traffic.
        kernels: those that hold the time, most first.
        missing: why something is not there, by what is not: a figure's name, `counters`, `lines`, `report` or `trace`.
        report_bytes: of the tool's own report, 0 where none was kept.
    """

    case: str
    size: str
    tool: str
    flops: float
    bytes_moved: float
    kernels: tuple[ProfiledKernel, ...] = ()
    timeline: Timeline = Timeline()
    missing: dict[str, str] = field(default_factory=dict)
    report_bytes: int = 0
    seconds: float = 0.0

    def of_call(self, kernels: Iterable[ProfiledKernel], count: Callable[[ProfiledKernel], float]) -> float:
        """A count over all launches of these kernels, of each of which the first launch was counted."""
        return sum(self._launches_of(kernel) * count(kernel) for kernel in kernels)

    def _launches_of(self, kernel: ProfiledKernel) -> float:
        """How many times its first launch, which was counted, all launches of a kernel are.

        Launches of different sizes count by their time in the trace, as many passes over less and less data do.
        """
        spans = self.timeline.spans
        took = [one.end_ns - one.start_ns for one in spans if one.kind is SpanKind.kernel and one.name == kernel.name]
        if len(took) != kernel.calls or min(took) <= 0 or max(took) < _ALIKE * min(took):
            return kernel.calls
        return sum(took) / took[0]
