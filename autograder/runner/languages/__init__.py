"""One loader per language: how its toolchain is warmed, and how a source becomes something to call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from autograder import languages
from autograder.contract import Lane, Language
from autograder.protocol import Load, TensorSpec
from autograder.runner.batch import Slab


class Entry(Protocol):
    """A function of a loaded submission, ready to be called."""

    @property
    def signature(self) -> str:
        """Its own signature, as text."""

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it once with `arguments` in order; the event clock's nanoseconds."""

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """Call it once for each list of arguments, and wait when all are made; the event clock's nanoseconds."""

    def seen(self) -> dict[str, Any]:
        """What the last recorded call launched, as `launches` and `operations` of `protocol.Returned`."""


@runtime_checkable
class Counting(Protocol):
    """An entry whose recorded calls can be counted (`autograder.counters`)."""

    def begin_counting(self) -> None:
        """Count the next recorded call, from nothing."""

    def counted(self) -> dict[str, int]:
        """What it did, by counter; no call is counted any more."""


class Mapped(Protocol):
    """One tensor of a call, in memory that the judge has revealed."""

    @property
    def spec(self) -> TensorSpec:
        """What the judge said of it."""

    @property
    def tensor(self) -> Any:
        """As the entry gets it."""

    def was_written(self) -> bool:
        """Whether an input differs from what the judge gave."""

    def close(self) -> None:
        """The call is over."""


class Loader(Protocol):
    """What a language has to offer on a lane."""

    @property
    def wrappers(self) -> tuple[type[BaseException], ...]:
        """Exceptions by which the toolchain wraps the student's own."""

    def warm(self) -> None:
        """Import the toolchain; runs in the zygote, so it starts no thread and opens nothing."""

    def begin(self) -> None:
        """Get ready for one submission, shut in already; here a GPU is first used."""

    def map(self, spec: TensorSpec, descriptor: int) -> Mapped:
        """Map a tensor of a call."""

    def slab(self, specs: Sequence[TensorSpec]) -> Slab:
        """Room for all inputs, or all outputs, of one call of a batch."""

    def awake(self) -> None:
        """Called before the judge starts its clock for a batch, after the process was stopped."""

    def versions(self) -> dict[str, str]:
        """Names and versions of the toolchain."""

    def made(self) -> Path | None:
        """The folder of what compilers make of a source, where that is worth handing on."""

    def load(self, load: Load) -> dict[str, Entry]:
        """Execute the source, once; the functions of `load.each()` by name.

        Raises whatever the source raises, or `SubmissionError` where a function is not right.
        """


def get(language: Language, lane: Lane) -> Loader:
    """The loader of a language on a lane, as its record names it."""
    make: Callable[[], Loader] = languages.imported(languages.of(language).loader(lane))
    return make()
