"""The system calls that a runner is refused, and the filter that refuses them.

A list of what is refused rather than of what is allowed: a toolchain uses hundreds of calls, differently in every
version, and a runner has no file, process or device of anybody else's within reach anyway. What is refused are doors to
the kernel that a kernel exercise never opens, and everything that would undo another measure:

    group          why it is refused
    -------------  ---------------------------------------------------------------------------------------------------
    sockets        no network, no socket of another program; `socketpair` for streams stays, as nothing else is reached
    debugging      reading or steering another process's memory, registers and descriptors
    namespaces     mounts and new user namespaces bring back capabilities and files
    kernel         modules, kexec, BPF, perf, userfaultfd, io_uring (a second road to all others), clocks, swap, quotas
    keys           key rings outlive the runner
    memory kept    System V and POSIX queues and shared memory outlive the runner where there is no IPC namespace
    by handle      files opened by number instead of by path pass every check of paths
    page cache     what one runner has read of a file that all may read, another one could find there: hidden sizes
    shared files   one runner's locks on such a file are seen by all others, and so is what it opens; nothing that runs
                   here locks or watches a file, and `fcntl` with these commands is refused like `flock`
    asynchronous   how much is set up at a time is limited for the whole machine, so one runner could use it up
    wake-ups       signals that a stopped process arranges for itself (timers, parent's death, descriptors) end a freeze
    priorities     a user may slow down, pin or limit every process of their own, the judge's too where that is the same
                   user; `prlimit` and `sched_setaffinity` only of itself
    core files     the limit on them is what keeps a crash from a root program of the machine's (`sandbox/limits.py`)
    signals        where there is neither a process namespace nor Landlock's scope: only to itself

Refused calls fail with EPERM. What is newer than `NEWEST` was not looked at and fails with ENOSYS, as on an older
kernel; so does `clone3`, so that libc falls back to `clone`, whose flags a filter can see. Calls of another machine's
numbering (i386, x32) kill the process.
"""

from __future__ import annotations

import ctypes
import errno
import resource
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from autograder.sandbox import kernel

REFUSED: Final[dict[str, dict[str, tuple[int, int]]]] = {
    "sockets": {
        "socket": (41, 198), "connect": (42, 203), "accept": (43, 202), "accept4": (288, 242), "bind": (49, 200),
        "listen": (50, 201),
    },
    "debugging": {
        "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
        "process_madvise": (440, 440), "pidfd_getfd": (438, 438), "kcmp": (312, 272), "vmsplice": (278, 75),
        "move_pages": (279, 239), "migrate_pages": (256, 238), "personality": (135, 92),
    },
    "namespaces": {
        "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
        "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
        "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
        "statmount": (457, 457), "listmount": (458, 458), "lsm_set_self_attr": (460, 460),
    },
    "kernel": {
        "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
        "perf_event_open": (298, 241), "userfaultfd": (323, 282), "init_module": (175, 105), "finit_module": (313, 273),
        "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
        "swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60), "quotactl_fd": (443, 443),
        "acct": (163, 89),
        "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
        "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116), "vhangup": (153, 58),
    },
    "keys": {"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219)},
    "memory kept": {
        "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191),
        "msgget": (68, 186), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    },
    "by handle": {
        "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fanotify_init": (300, 262),
        "fanotify_mark": (301, 263), "lookup_dcookie": (212, 18),
    },
    "page cache": {"fadvise64": (221, 223), "readahead": (187, 213), "cachestat": (451, 451)},
    "shared files": {
        "flock": (73, 32), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27), "inotify_rm_watch": (255, 28),
    },
    "asynchronous": {"io_setup": (206, 0), "io_submit": (209, 2)},
    "wake-ups": {"timer_create": (222, 107)},
    "priorities": {
        "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118),
        "sched_setscheduler": (144, 119), "sched_setattr": (314, 274),
    },
}  # fmt: skip
_CUDA_CALLS: Final = frozenset({"socket", "bind", "listen", "accept", "accept4"})
"""What CUDA calls when it starts; `socket` for unix sockets only."""
_PROFILER_CALLS: Final = frozenset({"connect", "flock"})
"""What a profiler calls beside, of its own unix socket and of a lock file in its own folder."""
_ONLY_X86: Final = {"iopl": 172, "ioperm": 173, "modify_ldt": 154, "uselib": 134, "inotify_init": 253}
_SIGNALS: Final = {"tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)}
_PIDFD_SEND_SIGNAL: Final = 424
_CLONE3: Final = 435
NEWEST: Final = 462
"""`mseal` of Linux 6.10: the newest call that was looked at; from 424 on, numbers are the same on both machines."""
_BY_ARGUMENT: Final = {
    "clone": (56, 220), "socketpair": (53, 199), "prctl": (157, 167), "fcntl": (72, 25), "ioctl": (16, 29),
    "kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261), "sched_setaffinity": (203, 122),
    "preadv2": (327, 286), "setrlimit": (160, 164),
}  # fmt: skip

_NEW_NAMESPACES: Final = 0x7E02_0000
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX = 8, 10, 15
_LOCKS: Final = (5, 6, 7, 36, 37, 38)
"""Commands of `fcntl`: to ask for a lock, to take one, to wait for one; of the process, and of the open file."""
_F_SETLEASE, _F_GETLEASE, _F_NOTIFY = 1024, 1025, 1026
_FCNTL_REFUSED: Final = (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, *_LOCKS, _F_SETLEASE, _F_GETLEASE, _F_NOTIFY)
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_ARCHITECTURE = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_X32 = 0x4000_0000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_MODE_FILTER = 2
_EPERM = _ERRNO | errno.EPERM
_ENOSYS = _ERRNO | errno.ENOSYS


@dataclass(frozen=True)
class Step:
    """One instruction of classic BPF: skip `yes` or `no` instructions after a comparison."""

    code: int
    value: int
    yes: int = 0
    no: int = 0


def install(*, network: bool, signals_to: int | None, gpu: bool = False, profiler: bool = False) -> None:
    """Put the filter on this thread and all that it starts, for good; needs `no_new_privs`.

    Args:
        network: leave the socket calls alone.
        signals_to: if set, the only process that may be signalled.
        gpu: allow what CUDA does when it starts: it listens on a unix socket. Only where a network namespace keeps that
            to the runner itself.
        profiler: allow what a profiler does beside it: it connects to that socket, and locks files of its own folder.
    """
    steps = program(kernel.MACHINE, network=network, signals_to=signals_to, gpu=gpu, profiler=profiler)
    code = b"".join(struct.pack("=HBBI", step.code, step.yes, step.no, step.value) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a count, padding, a pointer.
    filters = struct.pack("=H6xQ", len(steps), ctypes.addressof(buffer))
    kernel.prctl(kernel.PR_SET_SECCOMP, _MODE_FILTER, ctypes.c_char_p(filters))


def program(
    machine: str, *, network: bool, signals_to: int | None, gpu: bool = False, profiler: bool = False
) -> list[Step]:
    """The filter for a machine."""
    column = 1 if machine == "aarch64" else 0
    allowed = (_CUDA_CALLS if gpu else frozenset()) | (_PROFILER_CALLS if profiler else frozenset())
    commands = [one for one in _FCNTL_REFUSED if not (profiler and one in _LOCKS)]
    steps = [
        Step(_LOAD, _ARCHITECTURE_AT),
        Step(_EQUAL, _ARCHITECTURE[machine], yes=1),
        Step(_RETURN, _KILL),
        Step(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        steps += [Step(_AT_LEAST, _X32, no=1), Step(_RETURN, _KILL)]
    steps += [Step(_AT_LEAST, NEWEST + 1, no=1), Step(_RETURN, _ENOSYS)]
    steps += [
        step
        for number in _refused(column, network=network, signals=signals_to is None, allowed=allowed)
        for step in _refuse(number)
    ]
    steps += [Step(_EQUAL, _CLONE3, no=1), Step(_RETURN, _ENOSYS)]
    by_argument = {name: numbers[column] for name, numbers in _BY_ARGUMENT.items()}
    steps += _block(by_argument["clone"], [*_if_bits(0, _NEW_NAMESPACES)])
    steps += _block(by_argument["prctl"], [*_if_value(0, [kernel.PR_SET_PDEATHSIG])])
    steps += _block(by_argument["fcntl"], [*_if_value(1, commands)])
    steps += _block(by_argument["ioctl"], [*_if_value(1, [_TIOCSTI, _TIOCLINUX])])
    # Not waiting for a disk is the flag that says whether it would have to be waited for.
    steps += _block(by_argument["preadv2"], _unless_value(5, 0))
    steps += _block(by_argument["prlimit64"], [*_unless_value(0, 0), *_no_other_limit_on_cores()])
    steps += _block(by_argument["setrlimit"], [*_if_value(0, [resource.RLIMIT_CORE])])
    steps += _block(by_argument["sched_setaffinity"], _unless_value(0, 0))
    if gpu and not network:
        steps += _block(REFUSED["sockets"]["socket"][column], _unless_value(0, socket.AF_UNIX))
    if not network:
        steps += _block(by_argument["socketpair"], _only_stream_pairs())
    if signals_to is not None:
        steps += _block(by_argument["kill"], _unless_value(0, signals_to))
        steps += _block(by_argument["tgkill"], _unless_value(0, signals_to))
    return [*steps, Step(_RETURN, _ALLOW)]


def _refused(column: int, *, network: bool, signals: bool, allowed: frozenset[str]) -> Iterator[int]:
    for group, calls in REFUSED.items():
        if not (network and group == "sockets"):
            yield from (numbers[column] for name, numbers in calls.items() if name not in allowed)
    if column == 0:
        yield from _ONLY_X86.values()
    if not signals:
        yield from (numbers[column] for numbers in _SIGNALS.values())
        yield _PIDFD_SEND_SIGNAL


def _refuse(number: int) -> Iterable[Step]:
    return Step(_EQUAL, number, no=1), Step(_RETURN, _EPERM)


def _block(number: int, inside: list[Step]) -> list[Step]:
    """Steps for one call that looks at its arguments; what they let through is allowed."""
    return [Step(_EQUAL, number, no=len(inside) + 1), *inside, Step(_RETURN, _ALLOW)]


def _argument(index: int) -> Step:
    # The low half of a 64-bit argument, on a little-endian machine.
    return Step(_LOAD, _ARGUMENTS_AT + 8 * index)


def _if_bits(index: int, bits: int) -> list[Step]:
    return [_argument(index), Step(_ANY_BIT, bits, no=1), Step(_RETURN, _EPERM)]


def _if_value(index: int, values: Iterable[int]) -> list[Step]:
    return [
        _argument(index),
        *(step for value in values for step in (Step(_EQUAL, value, no=1), Step(_RETURN, _EPERM))),
    ]


def _unless_value(index: int, value: int) -> list[Step]:
    return [_argument(index), Step(_EQUAL, value, yes=1), Step(_RETURN, _EPERM)]


def _no_other_limit_on_cores() -> list[Step]:
    """`prlimit64` may read every limit, and set every one but that on core files."""
    return [
        _argument(1),
        Step(_EQUAL, resource.RLIMIT_CORE, yes=1),
        Step(_RETURN, _ALLOW),
        *_unless_value(2, 0),
        # The pointer's other half.
        Step(_LOAD, _ARGUMENTS_AT + 8 * 2 + 4),
        Step(_EQUAL, 0, yes=1),
        Step(_RETURN, _EPERM),
    ]


def _only_stream_pairs() -> list[Step]:
    """Pairs of unix streams: a datagram socket could send to any address, connected or not."""
    return [
        *_unless_value(0, socket.AF_UNIX),
        _argument(1),
        Step(_AND, 0xF),
        Step(_EQUAL, socket.SOCK_STREAM, yes=2),
        Step(_EQUAL, socket.SOCK_SEQPACKET, yes=1),
        Step(_RETURN, _EPERM),
    ]


def supported() -> bool:
    """Whether a filter can be written for this machine."""
    return kernel.SUPPORTED and sys.byteorder == "little"
