"""Devices that kernels are compiled for, and what host code is told about them. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace


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

    def as_triton_says(self) -> dict[str, int]:
        """The properties of the device by the names of triton's driver."""
        return {
            "max_shared_mem": self.shared_bytes,
            "multiprocessor_count": self.multiprocessors,
            "max_num_regs": self.registers,
            "warpSize": self.warp,
        }

    def as_torch_says(self) -> SimpleNamespace:
        """The properties of the device by the names of `torch.cuda.get_device_properties`."""
        return SimpleNamespace(
            name=self.device,
            major=self.capability[0],
            minor=self.capability[1],
            total_memory=self.memory_bytes,
            multi_processor_count=self.multiprocessors,
            max_threads_per_multi_processor=2 * self.threads,
            max_threads_per_block=self.threads,
            regs_per_multiprocessor=self.registers,
            shared_memory_per_block=48 * 1024,
            shared_memory_per_block_optin=self.shared_bytes,
            shared_memory_per_multiprocessor=self.shared_per_multiprocessor_bytes,
            L2_cache_size=self.l2_bytes,
            warp_size=self.warp,
            gcnArchName=self.device,
        )


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("sm_90a", 90, (9, 0), "NVIDIA H200", 132, 60 * 2**20, 141 * 10**9),
        Target("sm_100a", 100, (10, 0), "NVIDIA B200", 148, 126 * 2**20, 180 * 10**9),
    )
}
