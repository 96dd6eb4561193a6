"""What the judge and a runner that looks at one call with a tool say to each other. Standard library only.

judge → runner     Ask, with the source, one descriptor per input, and one of fixed size for each of its files
runner → judge     Answer, or Raised where the submission's call did not return
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.contract import Lane, Language
from autograder.profiles import MAX_REPORT_BYTES
from autograder.protocol import TensorSpec
from autograder.sanitizer import Check

FILES: Mapping[str, int] = {
    "trace": 2**20,
    "raw": 2 * 2**20,
    "details": 2 * 2**20,
    "source": 8 * 2**20,
    "report": MAX_REPORT_BYTES,
}
"""What comes back of a profile, with the most bytes taken: the traced call, three pages as CSV, the tool's report."""
_LOG_BYTES = 2**20
BUDGET_S = 55.0
"""For everything after the runner has started."""


def logs_of(checks: Iterable[Check]) -> Mapping[str, int]:
    """What comes back of a sanitizer run, with the most bytes taken of each."""
    return {check.value: _LOG_BYTES for check in checks}


@dataclass(frozen=True)
class Ask:
    """Profile or sanitize one call of this source.

    Attributes:
        sanitize: checks of the sanitizer, each in a process of its own, instead of tracer and profiler.
        source_bytes: of UTF-8 in the first descriptor.
        tensors: of the call, in the entry's order; there is a descriptor for each that is not writable.
        budget_s: when it has to be done.
        adapter: as in `protocol.Load`.
    """

    filename: str
    language: Language
    lane: Lane
    entry: str
    arguments: tuple[str, ...]
    signatures: tuple[tuple[str, ...], ...]
    source_bytes: int
    tensors: tuple[TensorSpec, ...]
    scalars: dict[str, int | float]
    budget_s: float
    adapter: str = ""
    sanitize: tuple[Check, ...] = ()

    @property
    def files(self) -> Mapping[str, int]:
        """What comes back, with the most bytes taken of each."""
        return logs_of(self.sanitize) or FILES


@dataclass(frozen=True)
class Answer:
    """What was found.

    Attributes:
        sizes: bytes in each of the files, in their order; 0 where there is nothing.
        problems: why something is not there: `trace`, `counters`, or one of the files.
        tool: with its version; `""` where there is none.
    """

    sizes: tuple[int, ...]
    problems: dict[str, str]
    tool: str = ""


@dataclass(frozen=True)
class Ran:
    """A kernel of the traced call.

    Attributes:
        name: as compiled, by which the tool is told of it.
        shown: as people write it.
    """

    name: str
    shown: str
    calls: int
    ns: int


@dataclass(frozen=True)
class Traced:
    """The traced call, as the runner's file `trace` has it.

    Attributes:
        kernels: most time first.
        spans: kind, name, start and end in nanoseconds from the call's beginning.
        left_out: spans beyond the most that are listed.
    """

    kernels: tuple[Ran, ...]
    spans: tuple[tuple[str, str, int, int], ...]
    call_ns: int
    busy_ns: int
    left_out: int
