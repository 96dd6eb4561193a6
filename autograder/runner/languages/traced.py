"""Languages whose entry is called once for every layout of its tensors, and says what there is to launch.

What comes of that, a program, is called as often as it takes. Sizes and strides are constants of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from autograder.runner.report import SubmissionError

VECTOR_BYTES = 16
"""The widest access of a thread: what is so aligned is said to be."""
KIND = "CompilationError"
LAUNCH_KIND = "LaunchError"


@dataclass(frozen=True)
class Layout:
    """A tensor as a program is compiled for it.

    Attributes:
        stride: in elements.
        aligned: bytes that its address is a multiple of.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    aligned: int


@dataclass(frozen=True)
class Launch:
    """One launch of a program.

    Attributes:
        grid, block: of their sizes those that are known when it is compiled.
        shared_bytes: dynamic; 0 too where it is not known by then.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int = 0


@dataclass(frozen=True)
class Program:
    """A compiled entry.

    Attributes:
        call: it, of tensors and numbers in the order of the entry's arguments, sizes and strides left out.
        code, ptx: where the compiler keeps them.
    """

    call: Callable[..., Any]
    launches: tuple[Launch, ...]
    code: bytes = b""
    ptx: str = ""


class CompileError(Exception):
    """A language or a compiler behind it refuses an entry; its cause is what was raised.

    Attributes:
        kernel: of which it was, `""` where it was none's.
        told: the same for a student.
    """

    def __init__(self, kernel: str, told: SubmissionError) -> None:
        self.kernel = kernel
        self.told = told
        super().__init__(told.message)


class Compiler(Protocol):
    """Makes programs of one submission's entry, and calls them.

    Attributes:
        fixed, given: places of the entry's arguments that are sizes and strides, and of all others.
    """

    fixed: list[int]
    given: list[int]

    @property
    def kernel(self) -> str:
        """Whose body is traced now, by its function's name."""

    def program(self, given: Sequence[Layout | int | float], fixed: Sequence[int]) -> Program:
        """Call the entry and compile what there is to launch.

        Args:
            given: what a call is made with, in order.
            fixed: sizes and strides, in order.

        Raises:
            CompileError: it is refused.
            BaseException: whatever the entry raises.
        """

    def tensor(self, tensor: Any, layout: Layout) -> Any:
        """A tensor as a program of its layout takes it."""

    def number(self, place: int, value: float) -> Any:
        """A number as a program takes it, by its place among the entry's arguments."""

    def launch(self, program: Program, arguments: Iterable[Any]) -> None:
        """Call a program.

        Raises:
            SubmissionError: the device does not take it.
        """


class Clock(Protocol):
    """Times calls on a device."""

    def time_ns(self, call: Callable[[], object]) -> int:
        """Nanoseconds of one."""

    def total_ns(self, work: Callable[[], object]) -> int:
        """Nanoseconds of several."""


def places(words: Sequence[str]) -> tuple[list[int], list[int]]:
    """Of a signature's words, the places of sizes and strides, and of all others."""
    fixed = [place for place, word in enumerate(words) if word == "integer"]
    return fixed, [place for place in range(len(words)) if place not in fixed]


class Programs:
    """One submission's entry, by the layouts that it was compiled for.

    Attributes:
        last: what was called last.
    """

    def __init__(self, compiler: Compiler) -> None:
        self.last: Program | None = None
        self._compiler = compiler
        self._known: dict[tuple[Any, ...], Program] = {}

    def call(self, arguments: list[Any]) -> None:
        """Queue it on the default stream, which is torch's current one.

        Raises:
            SubmissionError: it cannot be compiled, or the device does not take it.
        """
        compiler = self._compiler
        fixed = tuple(int(arguments[place]) for place in compiler.fixed)
        given = [(place, arguments[place]) for place in compiler.given]
        layouts = [_layout(value) if hasattr(value, "data_ptr") else value for _, value in given]
        key = (fixed, *(one for one in layouts if isinstance(one, Layout)))
        program = self._known.get(key)
        if program is None:
            program = self._known[key] = self._compiled(layouts, fixed)
        self.last = program
        called_with = (
            compiler.tensor(value, layout) if isinstance(layout, Layout) else compiler.number(place, value)
            for (place, value), layout in zip(given, layouts, strict=True)
        )
        compiler.launch(program, called_with)

    def _compiled(self, layouts: list[Any], fixed: tuple[int, ...]) -> Program:
        try:
            return self._compiler.program(layouts, fixed)
        except CompileError as error:
            raise error.told from None


def _layout(tensor: Any) -> Layout:
    aligned = VECTOR_BYTES if tensor.data_ptr() % VECTOR_BYTES == 0 else tensor.element_size()
    return Layout(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), tensor.stride(), aligned)


class TracedEntry:
    """An entry that is traced, compiled and called."""

    def __init__(self, signature: str, compiler: Compiler, clock: Clock) -> None:
        self.signature = signature
        self._programs = Programs(compiler)
        self._clock = clock

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; device nanoseconds."""
        took = self._clock.time_ns(lambda: self._programs.call(arguments))
        if not record:
            self._programs.last = None
        return took

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """Queue one after the other, wait for all; device nanoseconds."""
        return self._clock.total_ns(lambda: self._all(calls))

    def _all(self, calls: Iterator[list[Any]]) -> None:
        for arguments in calls:
            self._programs.call(arguments)

    def seen(self) -> dict[str, Any]:
        """Kernels of the program that the last recorded call ran, by the names that the device shows them by."""
        last = self._programs.last
        launches = [{"kernel": one.kernel, "grid": list(one.grid), "calls": 1} for one in last.launches] if last else []
        return {"launches": launches, "operations": {}}
