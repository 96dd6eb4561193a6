"""What a runner sees from inside its container: said by a runner of ours, before any runner of somebody else's."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autograder import codec
from autograder.sandbox import kernel, seccomp

TRIAL = "trial"
"""Stands for a language where a runner is to say this and nothing else."""

_NOT_WRITABLE = ("/", "/usr", "/etc", "/dev", "/dev/shm", "/dev/mqueue", "/run", "/sys", "/proc/sys", "/var/tmp")  # noqa: S108
_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
_REFUSED = ("add_key", "request_key", "keyctl", "io_uring_setup", "userfaultfd", "bpf", "perf_event_open", "ptrace")


@dataclass(frozen=True)
class View:
    """What was found.

    Attributes:
        ids: user and group ids: real, effective, saved; then further groups.
        capabilities: of every set, together; 0 if it has none.
        filters: system-call filters that are on.
        interfaces: of the network, beside the loopback.
        processes: ids that can be seen.
        writable: folders, beside its own, in which a file could be made.
        devices: nodes of devices that can be opened.
        allowed: system calls that should have been refused.
        cores_bytes: how large a core file may be.
    """

    ids: tuple[int, ...]
    capabilities: int
    no_new_privileges: bool
    filters: int
    interfaces: tuple[str, ...]
    processes: tuple[int, ...]
    writable: tuple[str, ...]
    devices: tuple[str, ...]
    allowed: tuple[str, ...]
    cores_bytes: int


def serve(channel: socket.socket) -> None:
    """Say what is to be seen, then wait for the judge to hang up."""
    channel.send(codec.dumps(look()).encode())
    channel.recv(1)


def look() -> View:
    """Look around."""
    import resource  # noqa: PLC0415

    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return View(
        ids=(*os.getresuid(), *os.getresgid(), *os.getgroups()),
        capabilities=sum(int(status[name], 16) for name in _CAPABILITIES),
        no_new_privileges=int(status["NoNewPrivs"]) == 1,
        filters=int(status.get("Seccomp_filters", status["Seccomp"])),
        interfaces=tuple(_interfaces()),
        processes=tuple(sorted(int(name) for name in os.listdir("/proc") if name.isdigit())),  # noqa: PTH208
        writable=tuple(folder for folder in _NOT_WRITABLE if _takes_a_file(folder)),
        devices=tuple(sorted(str(path) for path in Path("/dev").rglob("*") if _opens(path))),
        allowed=tuple(name for name in _REFUSED if not _refused(name)),
        cores_bytes=resource.getrlimit(resource.RLIMIT_CORE)[1],
    )


def _interfaces() -> list[str]:
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    return [name for line in lines if (name := line.partition(":")[0].strip()) != "lo"]


def _takes_a_file(folder: str) -> bool:
    path = Path(folder, f"trial-{os.getpid()}")
    with suppress(OSError):
        path.touch()
        path.unlink()
        return True
    return False


def _opens(path: Path) -> bool:
    """Whether it is a device and can be opened; for writing, where a GPU's can."""
    with suppress(OSError):
        if not path.is_symlink() and (path.is_char_device() or path.is_block_device()):
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
            return True
    return False


def _refused(name: str) -> bool:
    """Whether a system call ends in a refusal by the filter, and not in another error."""
    column = 1 if kernel.MACHINE == "aarch64" else 0
    number = next(calls[name][column] for calls in seccomp.REFUSED.values() if name in calls)
    try:
        kernel.syscall(name, number, *([ctypes.c_long(-1)] * 6))
    except OSError as error:
        return error.errno in {errno.EPERM, errno.ENOSYS}
    return False
