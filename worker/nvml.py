"""What NVML says of one GPU: clocks, temperature, power, errors, and who uses it.

NVML counts and reports, and needs no torch; it neither opens a CUDA context nor changes anything, so it may be asked
while a kernel is timed. What a driver or a container does not tell is `None`, or nothing: a fact that is missing is
never made up.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from autograder.contract import Lane, Throttle
from autograder.lanes import lane_of
from worker.node_errors import GpuUnknownError

logger = logging.getLogger(__name__)

# Bits of NVML's "clocks event reasons".
_REASONS = {
    0x001: Throttle.idle,
    0x002: Throttle.set_clocks,
    0x004: Throttle.power_cap,
    0x008: Throttle.slowdown,
    0x010: Throttle.sync_boost,
    0x020: Throttle.software_thermal,
    0x040: Throttle.hardware_thermal,
    0x080: Throttle.power_brake,
    0x100: Throttle.display,
}
_MOST_EVENTS = 64
LIBRARY = "pynvml"
"""What the package `nvidia-ml-py` installs."""

T = TypeVar("T")


@dataclass(frozen=True)
class Look:
    """One look at its clocks and its heat."""

    sm_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    throttled: tuple[Throttle, ...]


@dataclass(frozen=True)
class Use:
    """A process that has memory of it; `used_bytes` is `None` where the driver does not say."""

    pid: int
    used_bytes: int | None


class Gpu:
    """One GPU, by NVML.

    Attributes:
        uuid, name, capability: of the device.
        driver: the driver's version.
    """

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self.uuid: str = nvml.nvmlDeviceGetUUID(handle)
        self.name: str = nvml.nvmlDeviceGetName(handle)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        self.capability: tuple[int, int] = (int(major), int(minor))
        self.driver: str = nvml.nvmlSystemGetDriverVersion()
        self._events = self._listen()

    @property
    def tells_xids(self) -> bool:
        """Whether the driver's errors are told here."""
        return self._events is not None

    def lane(self) -> Lane:
        """The lane it belongs to.

        Raises:
            GpuError: none.
        """
        return lane_of(self.name, self.capability)

    def look(self) -> Look | None:
        """Clocks, temperature, power and what keeps the clocks down, now; `None` if the driver does not answer."""
        nvml, handle = self._nvml, self._handle
        try:
            reasons = int(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
            return Look(
                sm_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                memory_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
                temperature_c=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
                power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
                throttled=tuple(reason for bit, reason in _REASONS.items() if reasons & bit),
            )
        except nvml.NVMLError as error:
            logger.warning("NVML does not say how the GPU does: %s", error)
            return None

    def used_bytes(self) -> int | None:
        """Its memory that is taken, by whomever."""
        return self._ask(lambda: int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used))

    def users(self) -> tuple[Use, ...] | None:
        """The processes that compute on it; `None` where they are not told."""
        found = self._ask(lambda: self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        if found is None:
            return None
        return tuple(Use(int(one.pid), one.usedGpuMemory) for one in found)

    def uncorrected_ecc(self) -> int | None:
        """Memory errors that were not corrected, since the driver was loaded."""
        nvml = self._nvml
        return self._ask(
            lambda: int(
                nvml.nvmlDeviceGetTotalEccErrors(
                    self._handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
                )
            )
        )

    def xids(self) -> tuple[int, ...]:
        """The driver's error numbers since this was last asked; none where they are not told."""
        return tuple(self._waiting()) if self._events is not None else ()

    def _waiting(self) -> Iterator[int]:
        for _ in range(_MOST_EVENTS):
            try:
                yield int(self._nvml.nvmlEventSetWait_v2(self._events, 0).eventData)
            except self._nvml.NVMLError:  # Nothing waits.
                return

    def _listen(self) -> Any:
        nvml = self._nvml
        with contextlib.suppress(nvml.NVMLError):
            events = nvml.nvmlEventSetCreate()
            nvml.nvmlDeviceRegisterEvents(self._handle, nvml.nvmlEventTypeXidCriticalError, events)
            return events
        logger.warning("the driver does not tell its errors (Xid) here")
        return None

    def _ask(self, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except self._nvml.NVMLError:
            return None


def open_gpu(wanted: str = "", nvml: Any = None) -> Gpu | None:
    """The one GPU that this worker serves; `None` where there is no GPU or no NVML.

    Args:
        wanted: its UUID, or the beginning of it; may be left out where there is only one.
        nvml: the library; a test brings its own.

    Raises:
        GpuUnknownError: there is none like it, or several and none was named.
    """
    nvml = nvml or _library()
    if nvml is None:
        return None
    found = _handles(nvml)
    fitting = [handle for uuid, handle in found.items() if uuid.startswith(wanted)]
    if not found and not wanted:
        return None
    if len(fitting) != 1:
        there = ", ".join(found) or "none"
        raise GpuUnknownError(f"set LADDER_GPU to the UUID of one GPU; it is {wanted!r}, and there are: {there}")
    return Gpu(nvml, fitting[0])


def _library() -> Any:
    """NVML, initialised; `None` where package or driver are missing."""
    try:
        nvml = importlib.import_module(LIBRARY)
    except ModuleNotFoundError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def _handles(nvml: Any) -> dict[str, Any]:
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    return {nvml.nvmlDeviceGetUUID(handle): handle for handle in handles}
