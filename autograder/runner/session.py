"""One runner's life, after it was shut in: say Ready, load one source, answer calls until the judge hangs up."""

from __future__ import annotations

import gc
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from autograder.protocol import Arm, Call, Load
from autograder.runner import compile_cache, wire
from autograder.runner.batch import BatchPlan
from autograder.runner.languages import Counting, Entry, Loader, Mapped
from autograder.runner.memory import Words
from autograder.runner.report import SubmissionError, describe
from autograder.runner.trace import Tracer


def serve(channel: socket.socket, loader: Loader) -> None:
    """Run until the judge hangs up or the submission ends the process."""
    # They stay open as long as the process.
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    Session(wire.Wire(channel), loader).run()


class Called(NamedTuple):
    """A function that calls may name, and the names of its arguments in order."""

    entry: Entry
    arguments: tuple[str, ...]


class Session:
    """Holds every function it needs from before the submission was loaded."""

    def __init__(self, line: wire.Wire, loader: Loader) -> None:
        self._line = line
        self._loader = loader
        self._pause = time.sleep
        self._flush = (sys.stdout.flush, sys.stderr.flush)
        self._garbage = (gc.collect, gc.disable, gc.enable, gc.isenabled)
        self._tracer = Tracer()
        self._filename = ""
        self._unpacked: set[Path] = set()

    def run(self) -> None:
        """Answer the judge."""
        self._loader.begin()
        self._line.send("Ready", {"versions": self._loader.versions()})
        received = self._line.receive()
        if received is None:
            return
        message, descriptors = received
        words = Words(*descriptors[:2])
        load = wire.to_load(message, descriptors)
        self._unpack(descriptors[len(descriptors) - load.packs :])
        wire.close(descriptors)
        self._filename = load.filename
        entries = self._load(load)
        while entries is not None and (received := self._line.receive()) is not None:
            if received[0]["is"] == "Arm":
                self._batch(entries, words, wire.to_arm(received[0]), received[1])
            elif received[0]["is"] == "Pack":
                self._pack(received[1])
            else:
                self._answer(entries, words, wire.to_call(received[0]), received[1])
        while entries is None and self._line.receive() is not None:
            pass

    def _unpack(self, packs: list[int]) -> None:
        """Have what was compiled elsewhere; where that goes wrong, everything is compiled here."""
        if packs and (folder := self._loader.made()) is not None:
            self._unpacked = compile_cache.unpack_all(packs, folder)

    def _pack(self, descriptors: list[int]) -> None:
        with suppress(Exception):
            if (folder := self._loader.made()) is not None:
                compile_cache.pack(folder, descriptors[0], self._unpacked)
        wire.close(descriptors)
        self._line.send("Packed", {})

    def _load(self, load: Load) -> dict[str, Called] | None:
        """The functions that calls may name; the only one is called `""`."""
        found: list[dict[str, Entry]] = []
        problem = self._guard(lambda: found.append(self._loader.load(load)))
        if problem is not None:
            self._line.send("Raised", {"nonce": 0, "stage": "load", **problem})
            return None
        entries = {one.entry: Called(found[0][one.entry], one.arguments) for one in load.each()}
        self._line.send("Loaded", {"signature": "; ".join([one.entry.signature for one in entries.values()])})
        return entries if load.functions else {"": entries[load.entry]}

    def _answer(self, entries: dict[str, Called], words: Words, call: Call, descriptors: list[int]) -> None:
        entry, names = entries[call.function]
        mapped = [self._loader.map(spec, number) for spec, number in zip(call.tensors, descriptors, strict=True)]
        values: dict[str, Any] = {one.spec.name: one.tensor for one in mapped} | call.scalars
        arguments = [values[name] for name in names]
        while words.allowed() != call.nonce:
            self._pause(0.0001)
        counting = entry if call.count and isinstance(entry, Counting) else None
        if counting is not None:
            counting.begin_counting()
        event_ns: list[int] = []
        ran: list[dict[str, Any]] = []
        problem = self._guard(lambda: event_ns.append(self._called(entry, arguments, call, ran)))
        if problem is not None:
            self._line.send("Raised", {"nonce": call.nonce, "stage": "call", **problem})
            self._let_go(mapped, descriptors)
            return
        seen = entry.seen() if call.record else {}
        if counting is not None:
            seen |= {"counters": counting.counted()}
        if call.trace:
            seen |= {"ran": ran, "busy_ns": self._tracer.busy_ns(), "waited_for": self._tracer.waited_for()}
        if call.record:
            seen["written"] = [one.spec.name for one in mapped if one.was_written()]
        words.finish(call.nonce, event_ns[0])
        self._line.send("Returned", {"nonce": call.nonce, **seen})
        self._let_go(mapped, descriptors)
        self._line.send("Released", {"nonce": call.nonce})

    def _called(self, entry: Entry, arguments: list[Any], call: Call, ran: list[dict[str, Any]]) -> int:
        """Call once; a traced call adds to `ran`. As a batch of one, for then nothing of ours runs on the device."""
        if not call.trace:
            return entry.call(arguments, record=call.record)
        return self._tracer.traced(lambda: entry.batch(iter([arguments])), ran)

    def _batch(self, entries: dict[str, Called], words: Words, arm: Arm, outputs: list[int]) -> None:
        entry, names = entries[arm.function]
        plan = BatchPlan(self._loader, arm, names, outputs)
        wire.close(outputs)
        with self._no_garbage_collected():
            self._revealed(entry, words, arm, plan)

    @contextmanager
    def _no_garbage_collected(self) -> Iterator[None]:
        """Not while the judge's clock runs: looking through a compiler's objects takes two milliseconds of ten."""
        collect, disable, enable, is_on = self._garbage
        collect()
        was_on = is_on()
        disable()
        try:
            yield
        finally:
            if was_on:
                enable()

    def _revealed(self, entry: Entry, words: Words, arm: Arm, plan: BatchPlan) -> None:
        self._line.send("Armed", {"nonce": arm.nonce})
        received = self._line.receive(meanwhile=self._awake)
        if received is None:
            return
        reveal, inputs = wire.to_reveal(received[0]), received[1]
        while words.allowed() != reveal.nonce:
            self._pause(0.0001)
        event_ns: list[int] = []
        problem = self._guard(lambda: event_ns.append(entry.batch(plan.calls(inputs, reveal.drawn))))
        if problem is not None:
            self._line.send("Raised", {"nonce": reveal.nonce, "stage": "call", **problem})
        else:
            words.finish(reveal.nonce, event_ns[0])
            self._line.send("Returned", {"nonce": reveal.nonce})
        wire.close(inputs)
        plan.close()
        self._line.send("Released", {"nonce": reveal.nonce})

    def _awake(self) -> None:
        """It is a rehearsal: what stops it, as too little memory does, stops the call too, which can be told of."""
        with suppress(Exception):
            self._loader.awake()

    def _let_go(self, mapped: list[Mapped], descriptors: list[int]) -> None:
        """The judge has its answer; it waits until the memory is free, for then no later call pays for it."""
        wire.close(descriptors)
        for one in mapped:
            one.close()

    def _guard(self, work: Callable[[], None]) -> dict[str, Any] | None:
        """Run the student's code; what went wrong, if anything did."""
        problem: dict[str, Any] | None = None
        try:
            work()
        except SubmissionError as error:
            problem = {**describe(error, self._filename, self._loader.wrappers), "stage": error.stage}
        except BaseException as error:  # noqa: BLE001 -- the untrusted call: SystemExit and KeyboardInterrupt too.
            problem = describe(error, self._filename, self._loader.wrappers)
        for flush in self._flush:
            with suppress(Exception):
                flush()
        return problem
