"""The filter's numbers of system calls are those of libseccomp, on both machines."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable

import pytest

from autograder.sandbox import seccomp

Number = Callable[[str, str], int]
UNKNOWN = -1


@pytest.fixture(scope="module")
def number() -> Number:
    """The number of a call by name and machine; negative where this libseccomp, or that machine, has none."""
    name = ctypes.util.find_library("seccomp")
    if name is None:
        pytest.skip("libseccomp is not installed")
    resolve = ctypes.CDLL(name).seccomp_syscall_resolve_name_arch
    resolve.argtypes = (ctypes.c_uint32, ctypes.c_char_p)
    resolve.restype = ctypes.c_int
    return lambda call, machine: int(resolve(seccomp._ARCHITECTURE[machine], call.encode()))


def test_what_is_refused_or_looked_into_has_its_number(number: Number) -> None:
    tables = {**seccomp._BY_ARGUMENT, **seccomp._SIGNALS}
    tables |= {call: numbers for group in seccomp.REFUSED.values() for call, numbers in group.items()}
    tables |= {call: (there, None) for call, there in seccomp._ONLY_X86.items()}
    tables |= {"pidfd_send_signal": (seccomp._PIDFD_SEND_SIGNAL,) * 2, "clone3": (seccomp._CLONE3,) * 2}
    other = {
        (call, machine): (ours, theirs)
        for call, numbers in tables.items()
        for machine, ours in zip(("x86_64", "aarch64"), numbers, strict=True)
        if ours is not None and (theirs := number(call, machine)) not in (ours, UNKNOWN)
    }
    assert other == {}


def test_most_of_the_calls_are_known_to_libseccomp(number: Number) -> None:
    calls = [call for group in seccomp.REFUSED.values() for call in group]
    assert sum(number(call, "x86_64") != UNKNOWN for call in calls) > 0.9 * len(calls)
