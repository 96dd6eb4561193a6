"""Devices that kernels are compiled for, and what host code is told about them. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.contract import Lane


@dataclass(frozen=True)
class Target:
    """One kind of device. Figures: CUDA C++ programming guide, table of technical specifications; vendor's data sheets.

    Attributes:
        arch: the number that triton calls it by.
        capability: major and minor.
        device: the name that host code sees.
        multiprocessors: of that device.
        shared_bytes: that one block may ask for.
        shared_per_multiprocessor_bytes, l2_bytes, memory_bytes: of that device.
    """

    name: str
    arch: int
    capability: tuple[int, int]
    device: str
    multiprocessors: int
    l2_bytes: int
    memory_bytes: int
    shared_bytes: int = 227 * 1024
    shared_per_multiprocessor_bytes: int = 228 * 1024
    registers: int = 65_536
    threads: int = 1024
    warp: int = 32


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("sm_90a", 90, (9, 0), "NVIDIA H200", 132, 60 * 2**20, 141 * 10**9),
        Target("sm_100a", 100, (10, 0), "NVIDIA B200", 148, 126 * 2**20, 180 * 10**9),
    )
}
LANES: Mapping[str, tuple[Lane, ...]] = {"sm_90a": (Lane.h200, Lane.h100), "sm_100a": (Lane.b200,)}
"""The lanes of each target: whose cases its kernels are compiled from."""
