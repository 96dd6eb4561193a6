"""One loader per language: how its toolchain is warmed, and how a source becomes something to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol

from autograder.contract import Language
from autograder.protocol import Load


class Entry(Protocol):
    """A loaded submission's entry, ready to be called."""

    @property
    def signature(self) -> str:
        """Its own signature, as text."""

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it once with `arguments` in order; the event clock's nanoseconds."""

    def seen(self) -> dict[str, Any]:
        """What the last recorded call launched, as `launches` and `operations` of `protocol.Returned`."""


class Loader(Protocol):
    """What a language has to offer."""

    @property
    def wrappers(self) -> tuple[type[BaseException], ...]:
        """Exceptions by which the toolchain wraps the student's own."""

    def warm(self) -> None:
        """Import the toolchain; runs in the zygote, so it starts no thread and opens nothing."""

    def versions(self) -> dict[str, str]:
        """Names and versions of the toolchain."""

    def load(self, load: Load) -> Entry:
        """Execute the source; raises whatever it raises, or `SubmissionError` where its entry is not right."""


_LOADERS: Mapping[Language, tuple[str, str]] = {
    Language.triton: ("autograder.runner.languages.triton", "TritonLoader"),
}


def get(language: Language) -> Loader:
    """The loader of a language."""
    module, name = _LOADERS[language]
    make: Callable[[], Loader] = getattr(import_module(module), name)
    return make()
