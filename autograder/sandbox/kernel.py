"""The few Linux calls that Python does not offer, through ctypes; each raises `OSError` when the kernel refuses.

Numbers and flags are those of the kernel's user-space headers; where the two supported machines differ, the number of
this machine is chosen by `platform.machine()`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)

MACHINE = platform.machine()
SUPPORTED = MACHINE in {"x86_64", "aarch64"}

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION = 0x20080522
_MOST_CAPABILITIES = 64

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000
MNT_DETACH = 2
MOUNT_ATTR_RDONLY = 0x1
MOUNT_ATTR_NOSUID = 0x2
MOUNT_ATTR_NODEV = 0x4
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000

_SYS_PIVOT_ROOT = 41 if MACHINE == "aarch64" else 155
_SYS_MOUNT_SETATTR = 442


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(what: str, number: int, *arguments: object) -> int:
    """Make a system call by number; `what` names it in the error."""
    return _checked(int(_libc.syscall(ctypes.c_long(number), *arguments)), what)


def prctl(option: int, *arguments: object) -> None:
    """Change one property of this process."""
    given = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    padding = [ctypes.c_ulong(0)] * (4 - len(given))
    _checked(_libc.prctl(ctypes.c_int(option), *given, *padding), f"prctl({option})")


def unshare(flags: int) -> None:
    """Leave the parent's namespaces for new ones."""
    _checked(_libc.unshare(ctypes.c_int(flags)), f"unshare({flags:#x})")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount `source` at `target`."""
    arguments = (
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(_libc.mount(*arguments), f"mount({source!r}, {target!r})")


def unmount(target: str) -> None:
    """Detach what is mounted at `target`."""
    _checked(_libc.umount2(target.encode(), ctypes.c_int(MNT_DETACH)), f"umount({target!r})")


def restrict_mount(target: str, attributes: int) -> None:
    """Make a mount and everything mounted below it read-only, nosuid and so on."""
    structure = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    where = (ctypes.c_int(_AT_FDCWD), target.encode(), ctypes.c_uint(_AT_RECURSIVE))
    size = ctypes.c_size_t(ctypes.sizeof(structure))
    syscall(f"mount_setattr({target!r})", _SYS_MOUNT_SETATTR, *where, ctypes.byref(structure), size)


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root; the old one is then mounted at `old`."""
    syscall("pivot_root", _SYS_PIVOT_ROOT, new.encode(), old.encode())


def drop_bounding_set() -> None:
    """Close the way back to a capability by executing a file, as far as this process may."""
    for number in range(_MOST_CAPABILITIES):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:
            return


def drop_capabilities() -> None:
    """Give up every capability."""
    prctl(PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _checked(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def data_bytes() -> int:
    """This process's private writable memory, as `RLIMIT_DATA` counts it."""
    return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
