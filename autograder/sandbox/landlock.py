"""Landlock: a process forbids itself the file system except some folders, and signals and sockets to the outside.

It needs no right at all, so it works on a student's laptop; its ABI says what it can forbid:

    ABI   kernel   also forbids
    1     5.13     reading, writing, making, removing
    2     5.19     moving between folders
    3     6.2      truncating
    4     6.7      TCP
    5     6.10     ioctl on devices
    6     6.12     signals to, and abstract unix sockets of, processes outside

It does not hide that a file exists, its size and its times (`stat`).
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress

from autograder.sandbox import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_TCP = 0b11
_ABSTRACT_SOCKETS, _SIGNALS = 0b01, 0b10
_ABI_REFER, _ABI_TRUNCATE, ABI_TCP, _ABI_IOCTL, ABI_SCOPE = 2, 3, 4, 5, 6

_READABLE = _EXECUTE | _READ | _LIST
_DEVICE = _READ | _WRITE | _TRUNCATE
_FOR_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL


def abi() -> int:
    """The kernel's Landlock ABI, 0 where there is none."""
    with suppress(OSError):
        return kernel.syscall("landlock", _CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION))
    return 0


def restrict(
    version: int,
    *,
    readable: Iterable[str],
    writable: Iterable[str],
    devices: Iterable[str],
    gpu: Sequence[str] = (),
    files: bool = True,
    network: bool = False,
    signals: bool = False,
) -> None:
    """Forbid this thread, and all that it starts, everything but the paths given; needs `no_new_privs`.

    Args:
        gpu: devices that are worked with by `ioctl`. With them files of `/proc` may be written: CUDA does not start if
            it cannot name its threads. What a process may write of its own there is for the kernel to say.
        files: whether files are restricted at all.
        network, signals: leave these alone.
    """
    everything = _handled(version) if files else 0
    fields = [everything]
    if version >= ABI_TCP:
        fields.append(0 if network else _TCP)
    if version >= ABI_SCOPE:
        fields.append((0 if network else _ABSTRACT_SOCKETS) | (0 if signals else _SIGNALS))
    if not any(fields):
        return
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    size = ctypes.c_size_t(len(attributes))
    ruleset = kernel.syscall("landlock_create_ruleset", _CREATE, ctypes.c_char_p(attributes), size, ctypes.c_uint(0))
    try:
        if files:
            written = ("/proc",) if gpu else ()
            for paths, rights in (
                (readable, _READABLE), (writable, everything), (devices, _DEVICE), (gpu, _DEVICE | _IOCTL),
                (written, _WRITE | _TRUNCATE),
            ):  # fmt: skip
                for path in paths:
                    _allow(ruleset, path, rights & everything)
        kernel.syscall("landlock_restrict_self", _RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)


def _handled(version: int) -> int:
    rights = _READABLE | _WRITE | _MAKE_AND_REMOVE
    for since, right in ((_ABI_REFER, _REFER), (_ABI_TRUNCATE, _TRUNCATE), (_ABI_IOCTL, _IOCTL)):
        rights |= right if version >= since else 0
    return rights


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _FOR_FILES
        rule = struct.pack("=Qi", rights, place)
        arguments = (ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.c_char_p(rule), ctypes.c_uint(0))
        kernel.syscall(f"landlock_add_rule({path})", _ADD, *arguments)
    finally:
        os.close(place)
