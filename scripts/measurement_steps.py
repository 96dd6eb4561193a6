"""Where a measurement's seconds go: the judge's steps with a clock around each, for `measurement.py read --part steps`.

The device is waited for before and after every step. So a step has its own work and nothing else, what is usually done
beside something else shows as time of its own, and a measurement takes longer than it does without.
"""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from autograder.contract import Lane
from autograder.judge.correctness import checker
from autograder.judge.protocol import batch_buffer, batch_inputs, buffers, devices, runner_client

Steps = dict[str, dict[str, float]]


class Clock:
    """What each step took by itself: what it called that is a step too is not in it. For one thread, as measuring is.

    Attributes:
        names: of all steps.
    """

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._synchronize = synchronize
        self.names: set[str] = set()
        self._inner: list[float] = []
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._times: defaultdict[str, int] = defaultdict(int)

    def around(self, name: str, done: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed as the step `name`."""
        self.names.add(name)

        @functools.wraps(done)
        def timed(*args: Any, **options: Any) -> Any:
            self._synchronize()
            began = time.monotonic()
            self._inner.append(0.0)
            try:
                return done(*args, **options)
            finally:
                self._synchronize()
                took = time.monotonic() - began
                self._seconds[name] += took - self._inner.pop()
                self._times[name] += 1
                if self._inner:
                    self._inner[-1] += took

        return timed

    def taken(self) -> Steps:
        """By step, seconds and how often; and forget them."""
        found = {name: {"seconds": self._seconds[name], "times": self._times[name]} for name in self._seconds}
        self._seconds.clear()
        self._times.clear()
        return found


@contextmanager
def clocked(lane: Lane) -> Iterator[Clock]:
    """Put the clock around the steps of a judge of this process, as long as this is entered."""
    device = devices.of(lane)
    clock = Clock(device.synchronize)
    steps: list[tuple[str, Any, str]] = [
        ("draw inputs", checker.Checker, "draw"),
        ("images of them", buffers, "image_of"),
        ("images of them", batch_inputs, "image_of"),
        ("images of them", batch_inputs, "write_image"),
        ("prints", batch_inputs, "digest_of"),
        ("make a call's memory", buffers.Buffers, "make"),
        ("make a batch's memory", batch_buffer.BatchMemory, "__init__"),
        ("write a batch's memory", batch_buffer.BatchMemory, "fill"),
        ("a batch's inputs back", batch_inputs.DrawnInputs, "read_back_inputs"),
        ("a batch's inputs back", batch_inputs.StoredInputs, "read_back_inputs"),
        ("let a batch's memory go", batch_buffer.BatchMemory, "close"),
        ("let a call's memory go", buffers.Buffers, "release"),
        ("give back what torch keeps", type(device), "trim_cache"),
        ("wait for a quiet device", type(device), "wait_until_idle"),
        ("empty its caches", type(device), "flush_l2"),
        ("copy a batch's outputs beforehand", runner_client.RunnerClient, "_copying"),
        ("exchange a call", runner_client.RunnerClient, "call"),
        ("exchange a batch", runner_client.RunnerClient, "batch"),
        ("look at guards and inputs", checker.Checker, "_around"),
        ("look at guards and inputs", checker.Checker, "_broken_rules"),
        ("compare outputs", checker.Checker, "verify"),
    ]
    with ExitStack() as patched:
        for name, owner, attribute in steps:
            timed = clock.around(name, getattr(owner, attribute))
            patched.enter_context(mock.patch.object(owner, attribute, timed))
        yield clock


def shown(steps: Steps) -> str:
    """A table of one measurement, the longest step first."""
    lines = [f"  {'step':34} {'s':>7} {'times':>6} {'ms each':>8}"]
    for name, one in sorted(steps.items(), key=lambda item: -item[1]["seconds"]):
        each_ms = 1e3 * one["seconds"] / one["times"]
        lines.append(f"  {name:34} {one['seconds']:7.3f} {one['times']:6.0f} {each_ms:8.2f}")
    return "\n".join(lines)
