"""Triton, compiled for the GPU of the lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from autograder.gpu.driver import load_driver
from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.gpu import GpuMemory
from autograder.runner.languages import Entry

SCRATCH_BYTES = 256 * 2**20
"""Written before every call: several times any L2 cache."""

COVERS = 8
"""How often it is written: half a millisecond in which the host queues the call. What launches by way of Python takes
50 to 150 µs for that, up to 450 on a core that somebody else works on, and the device would wait for it while the event
clock runs."""


class TritonGpuLoader(GpuMemory):
    """Imports torch and triton in the zygote, and takes a context of the GPU in the runner: CUDA survives no fork."""

    def __init__(self) -> None:
        self.wrappers: tuple[type[BaseException], ...] = ()
        self._versions: dict[str, str] = {}
        self._clock: EventClock
        self._record: Any
        self._operations: Any
        self._switch_ghosts: Callable[[bool], None]
        self._touch: Callable[[], object]

    def warm(self) -> None:
        """Import everything; nothing here may touch the GPU."""
        # The toolchain is imported when a zygote asks for it; other processes read this module's interface without it.
        import torch  # noqa: PLC0415
        import triton  # noqa: PLC0415

        torch.set_num_threads(1)
        from autograder.runner.languages import driver_module, launches, touch  # noqa: PLC0415
        from autograder.runner.record import OperationRecorder, Record  # noqa: PLC0415

        load_driver()
        driver_module.build()
        touch.compile_ahead()
        self._record = Record()
        self._operations = OperationRecorder(self._record)
        self._switch_ghosts = launches.install(self._record)
        self._versions = {"torch": torch.__version__, "triton": triton.__version__, "cuda": str(torch.version.cuda)}

    def begin(self) -> None:
        """Take a context, and make everything that a call needs."""
        import torch  # noqa: PLC0415

        torch.cuda.init()  # type: ignore[no-untyped-call]
        self._clock = EventClock()
        super().begin()
        from autograder.runner.languages.touch import Touch  # noqa: PLC0415

        self._touch = Touch()
        self._versions["gpu"] = torch.cuda.get_device_name(0)

    def awake(self) -> None:
        """Map, allocate and launch as at the beginning of a batch, by way of torch and triton's launcher."""
        self.rehearse(lambda: self._clock.total_ns(self._touch))

    def versions(self) -> dict[str, str]:
        """Versions of torch, triton and CUDA, and the GPU's name."""
        return self._versions

    def made(self) -> Path:
        """Triton's cache: kernels by what they were made of."""
        from triton import knobs  # noqa: PLC0415

        return Path(knobs.cache.dir)

    def load(self, load: Load) -> dict[str, Entry]:
        """Execute the source and find its functions; what it finds by tuning goes to where its kernels go."""
        from triton import knobs  # noqa: PLC0415
        from triton.runtime.jit import KernelInterface  # noqa: PLC0415

        knobs.autotuning.cache = load.tuned
        self._switch_ghosts(load.ghost)
        module = source.execute(load)
        found = {one.entry: source.find_entry(module, one, (KernelInterface,)) for one in load.each()}
        return {
            name: TritonGpuEntry(entry, signature, self._record, self._operations, self._clock)
            for name, (entry, signature) in found.items()
        }


class EventClock:
    """Times a call by events of the device, with a cold L2 cache and no launch to wait for.

    The functions are those of before the submission was loaded. It can forge the time all the same: the judge holds it
    against its own clock.
    """

    def __init__(self) -> None:
        import torch  # noqa: PLC0415

        self._first, self._last = _events(torch.cuda.Event)
        self._scratch = torch.empty(SCRATCH_BYTES, dtype=torch.uint8, device="cuda")
        self._speck = self._scratch[:1]
        self._zero = torch.Tensor.zero_
        self._mark = torch.cuda.Event.record
        self._between = torch.cuda.Event.elapsed_time
        self._wait = torch.cuda.synchronize
        self.time_ns(lambda: None)

    def time_ns(self, call: Callable[[], object]) -> int:
        """Nanoseconds on the device from the call's first work to its last; all streams have ended then."""
        for _ in range(COVERS):
            self._zero(self._scratch)
        self._mark(self._first)
        call()
        self._mark(self._last)
        self._wait()
        return int(self._between(self._first, self._last) * 1e6)

    def total_ns(self, work: Callable[[], object]) -> int:
        """Nanoseconds on the device from the first of `work` to its last, nothing written before."""
        self._mark(self._first)
        work()
        self._mark(self._last)
        self._wait()
        return int(self._between(self._first, self._last) * 1e6)

    def touch(self) -> None:
        """One tiny kernel, not waited for."""
        self._zero(self._speck)


def _events(event: Any) -> tuple[Any, Any]:
    return event(enable_timing=True), event(enable_timing=True)


class TritonGpuEntry:
    """A host function that launches kernels."""

    def __init__(
        self, entry: Callable[..., Any], signature: str, record: Any, operations: Any, clock: EventClock
    ) -> None:
        self._entry = entry
        self._record = record
        self._operations = operations
        self._clock = clock
        self.signature = signature

    def call(self, arguments: list[Any], *, record: bool) -> int:
        """Call it; device nanoseconds."""
        if not record:
            return self._clock.time_ns(lambda: self._entry(*arguments))
        self._record.clear()
        return self._clock.time_ns(lambda: self._recorded(arguments))

    def batch(self, calls: Iterator[list[Any]]) -> int:
        """Queue one after the other, wait for all; device nanoseconds."""
        return self._clock.total_ns(lambda: self._all(calls))

    def _all(self, calls: Iterator[list[Any]]) -> None:
        for arguments in calls:
            self._entry(*arguments)

    def _recorded(self, arguments: list[Any]) -> None:
        self._record.recording = True
        try:
            with self._operations:
                self._entry(*arguments)
        finally:
            self._record.recording = False

    def seen(self) -> dict[str, Any]:
        """Kernels and operations of the last recorded call."""
        seen: dict[str, Any] = self._record.seen()
        return seen
