"""NVML's double: the functions of `pynvml` that `worker.nvml` calls, over a state that a test sets.

One device unless `uuids` says otherwise; all of them share the state.
"""

# ruff: noqa: N802, ARG002 -- the names and arguments are those of pynvml

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace


class NvmlError(Exception):
    """As `pynvml.NVMLError`."""


@dataclass
class FakeNvml:
    """Stands where the module `pynvml` is expected."""

    name: str = "NVIDIA H200"
    uuids: tuple[str, ...] = ("GPU-aaaa",)
    capability: tuple[int, int] = (9, 0)
    sm_mhz: int = 1980
    temperature_c: int = 41
    power_mw: int = 120_000
    reasons: int = 0
    used: int = 600 * 2**20
    processes: list[tuple[int, int | None]] | None = field(default_factory=list)
    ecc: int | None = 0
    xids: list[int] = field(default_factory=list)
    tells_xids: bool = True
    answers: bool = True

    NVMLError = NvmlError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    nvmlEventTypeXidCriticalError = 8  # noqa: N815

    def nvmlDeviceGetCount(self):
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetUUID(self, handle):
        return self.uuids[handle]

    def nvmlDeviceGetName(self, handle):
        return self.name

    def nvmlDeviceGetCudaComputeCapability(self, handle):
        return self.capability

    def nvmlSystemGetDriverVersion(self):
        return "580.159.04"

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):
        if not self.answers:
            raise NvmlError("GPU is lost")
        return self.reasons

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return self.sm_mhz if kind == self.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetTemperature(self, handle, kind):
        return self.temperature_c

    def nvmlDeviceGetPowerUsage(self, handle):
        return self.power_mw

    def nvmlDeviceGetMemoryInfo(self, handle):
        if not self.answers:
            raise NvmlError("GPU is lost")
        return SimpleNamespace(used=self.used)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        if self.processes is None:
            raise NvmlError("Not Supported")
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in self.processes]

    def nvmlDeviceGetTotalEccErrors(self, handle, error, counter):
        if self.ecc is None:
            raise NvmlError("Not Supported")
        return self.ecc

    def nvmlEventSetCreate(self):
        if not self.tells_xids:
            raise NvmlError("Not Supported")
        return "events"

    def nvmlDeviceRegisterEvents(self, handle, kinds, events):
        assert (kinds, events) == (8, "events")

    def nvmlEventSetWait_v2(self, events, timeout_ms):
        assert timeout_ms == 0
        if not self.xids:
            raise NvmlError("Timeout")
        return SimpleNamespace(eventData=self.xids.pop(0))
