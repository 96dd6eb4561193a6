"""Hooks in triton's compiled launches: what was launched, and ghosts.

Written against triton 3.6 and 3.9, whose names agree; `install` fails loudly if a name is gone. Autotuners and
heuristics launch through the same method, so the candidates that are tried count too. A kernel that was compiled ahead
(`kernel.warmup(…)`, which launches nothing) is launched by another door, `compiled[grid](…)`: it is watched as well.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from triton.compiler.compiler import CompiledKernel
from triton.runtime.jit import JITFunction

from autograder.runner.record import Record


def install(record: Record) -> Callable[[bool], None]:
    """Hook into launches; what is returned switches ghosts on and off."""
    state = {"ghosts": False, "inside": False}
    _watch_functions(record, state)
    _watch_compiled(record, state)

    def switch(on: bool) -> None:
        state["ghosts"] = on

    return switch


def _watch_functions(record: Record, state: dict[str, bool]) -> None:
    original = JITFunction.run

    @functools.wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if record.recording and not warmup:
            record.launched(str(self.__name__), _sizes(grid, kwargs))
        if state["ghosts"] and not warmup:
            return None
        state["inside"] = True
        try:
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)
        finally:
            state["inside"] = False

    JITFunction.run = run


def _watch_compiled(record: Record, state: dict[str, bool]) -> None:
    """What launches a compiled kernel is its property `run`, called with the grid's three sizes first."""
    launcher = CompiledKernel.run.fget

    def run(self: Any) -> Any:
        launch = launcher(self)
        if state["inside"]:
            return launch

        def call(*args: Any) -> Any:
            if record.recording:
                record.launched(str(self.name), _sizes(args[:3], {}))
            return None if state["ghosts"] else launch(*args)

        return call

    CompiledKernel.run = property(run)


def _sizes(grid: Any, arguments: dict[str, Any]) -> tuple[int, ...]:
    """The grid's sizes, none where they depend on what the launch itself works out."""
    try:
        sizes = grid(arguments) if callable(grid) else grid
        return tuple(int(size) for size in sizes)
    except Exception:  # noqa: BLE001 -- the grid is the student's function, called once more than they wrote.
        return ()
