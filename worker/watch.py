"""Looking at the GPU while an attempt runs: what its clocks did, and whether the measurement is to be believed.

All of it is read by the worker, beside the judge; nothing of it passed through a process that a submission could reach.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from types import TracebackType
from typing import Self

from autograder.contract import ClockSample, GpuFacts, GradeResult, Phase, Throttle
from worker.nvml import Gpu, Look

EVERY_S = 0.2
MOST_SAMPLES = 64

NODE_FAULTS = (Throttle.slowdown, Throttle.software_thermal, Throttle.hardware_thermal, Throttle.power_brake)
"""Too hot or too little power: the machine's, never the submission's. The ordinary power limit is none of them."""

HARDWARE_XIDS = frozenset({46, 48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 109, 119, 120, 140, 143})
"""Of the driver's error numbers those that name the hardware or its firmware, whatever ran."""

STUDENT_XIDS = frozenset({13, 31, 43, 45, 68, 69})
"""Those that a kernel can cause: an exception of the engine, a page fault, a reset channel, work that was ended."""


class Watch:
    """Looks at a GPU a few times a second, in a thread, while this context is open."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._started = time.monotonic()
        self._phase: Phase | None = None
        self._samples: list[ClockSample] = []
        self._ecc: int | None = None
        self._xids: list[int] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Self:
        """Begin. Errors from before are not this attempt's."""
        self._gpu.xids()
        self._ecc = self._gpu.uncorrected_ecc()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop looking."""
        self._stopped.set()
        self._thread.join()
        self._xids += self._gpu.xids()

    def enter(self, phase: Phase) -> None:
        """The judge is doing this now."""
        self._phase = phase

    def xids(self) -> tuple[int, ...]:
        """The driver's error numbers of this attempt's time; asked for after the context."""
        return tuple(self._xids)

    def facts(self) -> GpuFacts:
        """What was seen; asked for after the context."""
        before, after = self._ecc, self._gpu.uncorrected_ecc()
        counted = None if before is None or after is None else max(0, after - before)
        facts = GpuFacts(
            name=self._gpu.name,
            uuid=self._gpu.uuid,
            driver=self._gpu.driver,
            samples=thinned(self._samples),
            throttled=throttled(self._samples),
            uncorrected_ecc=counted,
            xids=self.xids(),
        )
        return dataclasses.replace(facts, trouble=trouble(facts))

    def _run(self) -> None:
        while not self._stopped.wait(EVERY_S):
            phase, look = self._phase, self._gpu.look()
            if look is not None:
                self._samples.append(_sample(time.monotonic() - self._started, phase, look))


def _sample(at_s: float, phase: Phase | None, look: Look) -> ClockSample:
    return ClockSample(
        at_s=round(at_s, 2),
        phase=phase,
        sm_mhz=look.sm_mhz,
        memory_mhz=look.memory_mhz,
        temperature_c=look.temperature_c,
        power_w=round(look.power_w, 1),
        throttled=look.throttled,
    )


def throttled(samples: list[ClockSample]) -> tuple[Throttle, ...]:
    """What kept the clocks down at any time while it was measured, in the order of the enum."""
    seen = {reason for sample in samples if sample.phase is Phase.measuring for reason in sample.throttled}
    return tuple(reason for reason in Throttle if reason in seen)


def trouble(facts: GpuFacts) -> str:
    """Why what was measured is not to be believed, which is the node's fault; `""` if it is."""
    found = [
        f"its clocks were throttled while it measured ({reason})" for reason in facts.throttled if reason in NODE_FAULTS
    ]
    if facts.uncorrected_ecc:
        found.append(f"{facts.uncorrected_ecc} memory errors were not corrected")
    found += [f"the driver reported Xid {xid}" for xid in facts.xids if xid in HARDWARE_XIDS]
    return "; ".join(found)


def thinned(samples: list[ClockSample]) -> tuple[ClockSample, ...]:
    """At most `MOST_SAMPLES`, in order; those while measuring first, then of the others what there is room for."""
    measuring = [sample for sample in samples if sample.phase is Phase.measuring]
    kept = _evenly(measuring, MOST_SAMPLES)
    others = [sample for sample in samples if sample.phase is not Phase.measuring]
    kept += _evenly(others, MOST_SAMPLES - len(kept))
    return tuple(sorted(kept, key=lambda sample: sample.at_s))


def _evenly(samples: list[ClockSample], count: int) -> list[ClockSample]:
    if len(samples) <= count:
        return list(samples)
    return [samples[index * len(samples) // count] for index in range(count)]


def with_facts(result: GradeResult, facts: GpuFacts) -> GradeResult:
    """A result with what was seen. Where the node was at fault, what was measured is to be measured again."""
    named = {"gpu uuid": facts.uuid, "gpu driver": facts.driver, "gpu clocks": clocks(facts)}
    again = facts.trouble if result.measurements else ""
    return dataclasses.replace(
        result,
        gpu=facts,
        environment=result.environment | {name: text for name, text in named.items() if text},
        remeasure=result.remeasure or again,
    )


def clocks(facts: GpuFacts) -> str:
    """Medians while measuring, in words; `""` where nothing was measured."""
    seen = [sample for sample in facts.samples if sample.phase is Phase.measuring]
    if not seen:
        return ""
    sm, memory, heat = (
        sorted(getattr(sample, name) for sample in seen)[len(seen) // 2]
        for name in ("sm_mhz", "memory_mhz", "temperature_c")
    )
    power = sorted(sample.power_w for sample in seen)[len(seen) // 2]
    return f"{sm} MHz SM, {memory} MHz memory, {heat} °C, {power:.0f} W while measuring"
