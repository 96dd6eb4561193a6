"""The few Linux calls that Python does not offer, through ctypes; each raises `OSError` when the kernel refuses."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4


def checked(result: int, what: str) -> int:
    """Return what a libc call returned, or raise what `errno` says."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, argument: int = 0) -> None:
    """Change one property of this process."""
    numbers = [ctypes.c_ulong(value) for value in (argument, 0, 0, 0)]
    checked(_libc.prctl(ctypes.c_int(option), *numbers), f"prctl({option})")
