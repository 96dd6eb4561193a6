"""Devices that kernels are compiled for, and what host code is told about them. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

NVIDIA, AMD = "nvidia", "amd"
_INSTRUCTIONS = (("wgmma", "wgmma"), ("tcgen05", "tcgen05"), ("tma", "TMA"), ("ldg128", "LDG.128"))


@dataclass(frozen=True)
class Target:
    """One kind of device. Figures: CUDA C++ programming guide, table of technical specifications; vendor's data sheets.

    Attributes:
        arch: what triton calls it by; a number for NVIDIA's.
        vendor: who makes the device.
        capability: major and minor.
        device: the name that host code sees.
        multiprocessors: of that device.
        shared_bytes: that one block may ask for.
        shared_per_multiprocessor_bytes, l2_bytes, memory_bytes: of that device.
        registers: of 32 bits, of one multiprocessor (AMD: compute unit).
        warp: threads of one (AMD: wavefront).
        instructions: kinds that are told of: the field of `contract.CompiledKernel`, and what people call it.
    """

    name: str
    arch: int | str
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
    vendor: str = NVIDIA
    instructions: tuple[tuple[str, str], ...] = _INSTRUCTIONS

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
            gcnArchName=str(self.arch) if self.vendor == AMD else self.device,
        )


def _cdna(name: str, device: str, units: int, memory_bytes: int, shared_bytes: int) -> Target:
    """One of AMD's, whose L2 is that of one of eight dies.

    Figures: AMD Instinct MI300X and MI355X data sheets; CDNA 3 and CDNA 4 instruction set architecture guides.
    """
    return Target(
        name, name, (9, int(name[-2])), device, units, 4 * 2**20, memory_bytes, shared_bytes, shared_bytes,
        registers=131_072, warp=64, vendor=AMD,
        instructions=(("mfma", "MFMA"), ("ldg128", "128-bit loads")),
    )  # fmt: skip


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("sm_90a", 90, (9, 0), "NVIDIA H200", 132, 60 * 2**20, 141 * 10**9),
        Target("sm_100a", 100, (10, 0), "NVIDIA B200", 148, 126 * 2**20, 180 * 10**9),
        _cdna("gfx942", "AMD Instinct MI300X", 304, 192 * 10**9, 64 * 1024),
        _cdna("gfx950", "AMD Instinct MI355X", 256, 288 * 10**9, 160 * 1024),
    )
}


def of_vendor(vendor: str) -> Mapping[str, Target]:
    """The targets of one vendor, by name."""
    return {name: target for name, target in TARGETS.items() if target.vendor == vendor}


def instructions_of(name: str) -> tuple[tuple[str, str], ...]:
    """Kinds of instructions that are told of for a target, which may be one that is no longer known."""
    return TARGETS[name].instructions if name in TARGETS else _INSTRUCTIONS
