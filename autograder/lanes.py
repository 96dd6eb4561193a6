"""The lanes that have a device: of each, what it is called, how it is told from others, and what it can do.

A further lane is a name in `contract.Lane` and a record here; manifests that say `gpu` have it then. Standard library
only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autograder.contract import Lane
from autograder.errors import GpuError

ALL_GPUS = "gpu"
"""In a manifest: every lane with a device."""
_OTHERS = re.compile(r"PCIe|NVL|MIG")
"""Cards of the same chip with other clocks or memory, and parts of one: each would need a lane of its own."""


@dataclass(frozen=True)
class DataSheet:
    """What a device can do by its data sheet: the lines that no time crosses. Dense rates, without sparsity.

    Attributes:
        memory_tb_s: memory bandwidth, 1e12 bytes per second.
        l2_bytes: size of the L2 cache.
        tflops: the fastest way there is to multiply numbers of a dtype, 1e12 operations per second; for float32 that is
            TF32 on the tensor cores, which no exercise has to allow.
    """

    memory_tb_s: float
    l2_bytes: int
    tflops: Mapping[str, float]


@dataclass(frozen=True)
class Device:
    """The device of one lane.

    Attributes:
        title: what people call it, and a whole word of its name by the driver.
        capability: major and minor.
        target: what compilers call it.
    """

    title: str
    capability: tuple[int, int]
    target: str
    sheet: DataSheet

    def is_called(self, name: str, capability: tuple[int, int]) -> bool:
        """Whether a device is one of these."""
        # A whole word: a GH200 is no H200.
        named = re.search(rf"\b{self.title}\b", name) is not None and _OTHERS.search(name) is None
        return named and capability == self.capability


_HOPPER = {"float16": 989.4, "bfloat16": 989.4, "float32": 494.7, "float64": 66.9, "int8": 1978.9}
_BLACKWELL = {"float16": 2250.0, "bfloat16": 2250.0, "float32": 1125.0, "float64": 40.0, "int8": 4500.0}

DEVICES: Mapping[Lane, Device] = {
    # NVIDIA H200 Tensor Core GPU data sheet, SXM; computes as an H100.
    Lane.h200: Device("H200", (9, 0), "sm_90a", DataSheet(4.8, 50 * 10**6, _HOPPER)),
    # NVIDIA H100 Tensor Core GPU data sheet, SXM5; "H100 architecture" white paper, table 3 (L2: 50 MB).
    Lane.h100: Device("H100", (9, 0), "sm_90a", DataSheet(3.35, 50 * 10**6, _HOPPER)),
    # NVIDIA HGX B200 data sheet, an eighth of the board's figures; L2 as the driver reports it on a B200, 126 MB.
    Lane.b200: Device("B200", (10, 0), "sm_100a", DataSheet(8.0, 126 * 10**6, _BLACKWELL)),
}
"""The typical one first; of lanes with one target, the one from whose cases kernels are compiled."""
TYPICAL = next(iter(DEVICES))
"""Whose balance says what a rung is limited by on a lane without a device."""
SHEETS: Mapping[Lane, DataSheet] = {lane: device.sheet for lane, device in DEVICES.items()}
TITLES: Mapping[Lane, str] = {lane: DEVICES[lane].title if lane in DEVICES else lane.upper() for lane in Lane}


def of_target(target: str) -> tuple[Lane, ...]:
    """The lanes whose devices are compiled for as `target`: whose cases its kernels are compiled from."""
    return tuple(lane for lane, device in DEVICES.items() if device.target == target)


def lane_of(name: str, capability: tuple[int, int]) -> Lane:
    """The lane of a device.

    Args:
        name: as the driver gives it, such as "NVIDIA H200".
        capability: major and minor.

    Raises:
        GpuError: it belongs to none.
    """
    lane = next((lane for lane, device in DEVICES.items() if device.is_called(name, capability)), None)
    if lane is None:
        raise GpuError(f"{name} ({capability[0]}.{capability[1]}) belongs to no lane; there are {', '.join(DEVICES)}")
    return lane


def check(lane: Lane, name: str, capability: tuple[int, int]) -> None:
    """Refuse a device of another lane: results of two lanes are never mixed."""
    if not DEVICES[lane].is_called(name, capability):
        raise GpuError(f"{name} ({capability[0]}.{capability[1]}) is no device of the lane {lane}")


def expanded(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest's tables with `gpu` written out: in lists of lanes, and as what the table of each such lane has.

    What a lane's own table sets stands before what `gpu` sets. What has another shape is left as it is, for whoever
    reads it to refuse.
    """
    found = dict(manifest)
    tables = found.get("lane")
    if isinstance(tables, Mapping) and isinstance(common := tables.get(ALL_GPUS), Mapping):
        own = {name: table for name, table in tables.items() if name != ALL_GPUS}
        found["lane"] = own | {lane.value: {**common, **own.get(lane.value, {})} for lane in DEVICES}
    for key in ("case", "family"):
        if isinstance(rows := found.get(key), list):
            found[key] = [_with_lanes(row) for row in rows]
    return found


def _with_lanes(row: Any) -> Any:
    if not isinstance(row, Mapping) or not isinstance(lanes := row.get("lanes"), list):
        return row
    written = [lane for one in lanes for lane in (DEVICES if one == ALL_GPUS else (one,))]
    return {**row, "lanes": list(dict.fromkeys(written))}
