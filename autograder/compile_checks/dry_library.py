"""The stand-in for CUDA's runtime (`dry_runtime.cpp`), through C: host code runs on it, and its launches are told."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.compile_checks.messages import Reading
from autograder.compile_checks.targets import Target

SOURCE = Path(__file__).with_name("dry_runtime.cpp")
FIRST_ADDRESS = 3 << 44
"""Of the call's tensors; what host code allocates lies before them."""
RESERVED_SHARED = 1024
"""Bytes of shared memory of every block that the system keeps; the tools count them as the kernel's."""

_ROOM = 4096
_THREE = ctypes.c_uint * 3


class _Device(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in (
            "major", "minor", "multiprocessors", "l2", "memory", "shared", "shared_per_multiprocessor", "registers",
            "threads", "warp",
        )),
        ("name", ctypes.c_char * 64),
    )  # fmt: skip


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_char_p), ("grid", _THREE), ("block", _THREE), ("cluster", _THREE),
        ("bytes", ctypes.c_uint64), ("kind", ctypes.c_char_p), ("refusal", ctypes.c_char_p),
    )  # fmt: skip


@dataclass(frozen=True)
class Launch:
    """One launch.

    Attributes:
        function: the kernel's symbol.
        shared_bytes: dynamic.
        kind, refusal: why the device would not take it; `""` where it would.
    """

    function: str
    block: tuple[int, ...]
    cluster: tuple[int, ...]
    shared_bytes: int
    kind: str = ""
    refusal: str = ""


def build(path: str, into: Path) -> bytes:
    """Compile the stand-in with nvcc, which knows where the runtime's headers are; the library's bytes.

    Raises:
        RuntimeError: it does not compile with the headers of this toolkit.
    """
    library = into / "dry.so"
    command = [path, "-std=c++17", "-O1", "-shared", "-cudart", "none", "-Xcompiler", "-fPIC", "-x", "c++"]
    done = subprocess.run(
        [*command, str(SOURCE), "-o", str(library)], capture_output=True, text=True, errors="replace", check=False,
        cwd=into,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"the stand-in for CUDA's runtime does not compile: {done.stderr[-1000:]}")
    return library.read_bytes()


class DryRuntime:
    """The stand-in, loaded so that a library that is loaded after it finds CUDA's functions there."""

    def __init__(self, path: Path, target: Target) -> None:
        self._library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        self._library.dry_looked.restype = ctypes.c_bool
        self._library.dry_launch.restype = ctypes.POINTER(_Launch)
        device = _Device(
            *target.capability, target.multiprocessors, target.l2_bytes, target.memory_bytes, target.shared_bytes,
            target.shared_per_multiprocessor_bytes, target.registers, target.threads, target.warp,
            target.device.encode(),
        )  # fmt: skip
        self._library.dry_device(ctypes.byref(device))

    def know(self, function: str, reading: Reading) -> None:
        """Say what a kernel uses, by its symbol; before the library that has it is loaded."""
        shared = max(0, reading.shared_bytes - RESERVED_SHARED)
        self._library.dry_kernel(function.encode(), reading.registers, shared, reading.stack_bytes)

    def begin(self) -> None:
        """Forget the call before."""
        self._library.dry_begin()

    def looked(self) -> bool:
        """Whether values were copied from the device since."""
        return bool(self._library.dry_looked())

    def launches(self) -> Iterator[Launch]:
        """What was launched since."""
        for number in range(self._library.dry_launches()):
            one = self._library.dry_launch(number).contents
            yield Launch(
                one.kernel.decode(), tuple(one.block), tuple(one.cluster), int(one.bytes), one.kind.decode(),
                one.refusal.decode(),
            )  # fmt: skip

    def plain(self, symbol: str) -> str:
        """A function's name with its types, as C++ has it."""
        into = ctypes.create_string_buffer(_ROOM)
        self._library.dry_plain(symbol.encode(), into, _ROOM)
        return into.value.decode(errors="replace")

    def lacks(self, name: str) -> bool:
        """Whether it has no function of this name."""
        return not hasattr(self._library, name)
