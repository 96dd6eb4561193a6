"""What ran on a GPU during one call, as CUPTI saw it: kernels by name, copies, fills; and what the host did meanwhile.

It works within the submission's process, which can keep things from it: a claim, and one look among several.

CUPTI is asked directly. Torch's profiler asks the same library and takes 4.2 s to start in a process, where this takes
0.02 s (H200, torch 2.11), and a check waits for it.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from autograder.runner.report import cut

MOST = 64
_MOST_NAME = 200
_BUFFER_BYTES = 1 << 20
_MOST_BUFFERS = 32
"""A kernel takes some 200 bytes of one: 160 000 kernels. What comes then is not listed."""

_COPY, _FILL, _DRIVER, _RUNTIME, _KERNEL = 1, 2, 4, 5, 10
"""Kinds of records, which begin with their kind (`CUpti_ActivityKind`)."""
_RECORDED = (_KERNEL, _COPY, _FILL, _RUNTIME, _DRIVER)
_KINDS = {_KERNEL: "kernel", _COPY: "copy", _FILL: "fill"}
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_COPY_KIND, _START, _END, _NAME = 4, 16, 24, 104
"""Bytes into a record; the same in `CUpti_ActivityKernel9` and `10`, `Memcpy6` and `Memset4` (CUDA 12.8, 13.0)."""
_CALL_ID, _CALL_START, _CALL_END, _THREAD = 4, 8, 16, 28
"""The same of `CUpti_ActivityAPI`."""
_DOMAINS = {_DRIVER: 1, _RUNTIME: 2}
"""By which CUPTI knows the names of the calls."""
_FLUSH_ALL = 1

_Requested = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_Completed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


HostCall = tuple[int, int, int, int, int]
"""A call of CUDA on the host: kind of record, number of the function, thread, start and end in nanoseconds."""


class TracerError(Exception):
    """CUPTI is not there, or refuses."""


class Tracer:
    """Holds what it needs from before the submission was loaded; nothing is traced until `traced`."""

    def __init__(self) -> None:
        self._cupti = _library()
        self._demangled = _demangler()
        self._buffers: dict[int, Any] = {}
        self._ran: Counter[str] = Counter()
        self._ns: Counter[str] = Counter()
        self._spans: list[tuple[int, int]] = []
        self._listed: list[tuple[int, str, int, int]] = []
        self._host: list[HostCall] = []
        # CUPTI calls these as long as the process lives.
        self._callbacks = (_Requested(self._requested), _Completed(self._completed))
        self._registered = False

    def traced(self, call: Callable[[], int], ran: list[dict[str, Any]]) -> int:
        """Make a call and add to `ran` what it ran, most of the time first, as `protocol.Ran`; what the call gives.

        Raises:
            TracerError: nothing can be traced here.
        """
        try:
            self._begin()
            result = call()
            self._do("cuptiActivityFlushAll", _FLUSH_ALL)
        finally:
            self._end()
        found = sorted(self._ran, key=lambda name: -self._ns[name])
        ran += [
            {"name": cut(self._demangled(name), _MOST_NAME), "calls": self._ran[name], "ns": self._ns[name]}
            for name in found[:MOST]
        ]
        return result

    def listed(self) -> tuple[list[tuple[str, str, int, int]], list[tuple[str, int, int]]]:
        """What the call traced last ran on the device, as kind, name as compiled, start and end, and its calls of CUDA.

        All in nanoseconds of one clock. What a call of the runtime calls of the driver is not listed again.
        """
        device = [(_KINDS.get(kind, "kernel"), name, start, end) for kind, name, start, end in self._listed]
        host: list[tuple[str, int, int]] = []
        until: dict[int, int] = {}
        for kind, number, thread, start, end in sorted(self._host, key=lambda one: (one[3], -one[4])):
            if end > until.get(thread, 0):
                until[thread] = end
                host.append((self._called(kind, number), start, end))
        return device, host

    def now_ns(self) -> int:
        """The time of the clock that `listed` has."""
        found = ctypes.c_uint64()
        self._do("cuptiGetTimestamp", ctypes.byref(found))
        return found.value

    def readable(self, name: str) -> str:
        """A kernel's name as people write it."""
        return cut(self._demangled(name), _MOST_NAME)

    def busy_ns(self) -> int:
        """For how many nanoseconds of the call traced last the device worked; what ran side by side counts once."""
        busy = until = 0
        for start, end in sorted(self._spans):
            busy += max(0, end - max(start, until))
            until = max(until, end)
        return busy

    def waited_for(self) -> list[dict[str, Any]]:
        """Which calls of CUDA the device rested in, the longest first: as `protocol.Ran`, by nanoseconds of rest."""
        rests: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        for kind, number, ns in resting(self._host, self._spans):
            name = self._called(kind, number)
            rests[name] += ns
            calls[name] += 1
        return [{"name": name, "calls": calls[name], "ns": ns} for name, ns in rests.most_common(MOST) if ns > 0]

    def _called(self, kind: int, number: int) -> str:
        """The name of a call, without the version of its interface: `cudaMalloc` of `cudaMalloc_v3020`."""
        name = ctypes.c_char_p()
        if self._cupti is None or self._cupti.cuptiGetCallbackName(_DOMAINS[kind], number, ctypes.byref(name)):
            return "a call"
        return cut((name.value or b"a call").decode(errors="replace").partition("_v")[0], _MOST_NAME)

    def _begin(self) -> None:
        self._ran.clear()
        self._ns.clear()
        self._spans.clear()
        self._listed.clear()
        self._host.clear()
        if not self._registered:
            self._do("cuptiActivityRegisterCallbacks", *self._callbacks)
            self._registered = True
        for kind in _RECORDED:
            self._do("cuptiActivityEnable", kind)

    def _end(self) -> None:
        for kind in _RECORDED:
            if self._cupti is not None:
                self._cupti.cuptiActivityDisable(kind)

    def _do(self, name: str, *arguments: Any) -> None:
        if self._cupti is None:
            raise TracerError("there is no CUPTI")
        if status := getattr(self._cupti, name)(*arguments):
            raise TracerError(f"{name} says {status}")

    def _requested(self, buffer: Any, size: Any, records: Any) -> None:
        """CUPTI wants room for records."""
        records[0] = 0
        if len(self._buffers) == _MOST_BUFFERS:
            buffer[0], size[0] = None, 0
            return
        room = ctypes.create_string_buffer(_BUFFER_BYTES)
        self._buffers[ctypes.addressof(room)] = room
        buffer[0], size[0] = ctypes.addressof(room), _BUFFER_BYTES

    def _completed(self, _context: Any, _stream: int, buffer: int, _size: int, valid: int) -> None:
        """CUPTI has filled a buffer."""
        record = ctypes.c_void_p()
        following = self._cupti.cuptiActivityGetNextRecord if self._cupti is not None else None
        try:
            while following and not following(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(record)):
                self._note(record.value or 0)
        finally:
            self._buffers.pop(buffer, None)

    def _note(self, record: int) -> None:
        kind = ctypes.c_uint32.from_address(record).value
        if kind in _DOMAINS:
            self._host.append(_host_call(kind, record))
            return
        start, end = (ctypes.c_uint64.from_address(record + place).value for place in (_START, _END))
        name = _named(kind, record)
        self._ran[name] += 1
        self._ns[name] += max(0, end - start)
        self._spans.append((start, end))
        self._listed.append((kind, name, start, end))


def resting(host: Sequence[HostCall], spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Kind and number of every call of CUDA, and for how many of its nanoseconds the device did nothing.

    What a call of the runtime calls of the driver is not counted again.
    """
    busy: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if busy and start <= busy[-1][1]:
            busy[-1] = (busy[-1][0], max(busy[-1][1], end))
        else:
            busy.append((start, end))
    until: dict[int, int] = {}
    for kind, number, thread, start, end in sorted(host, key=lambda one: (one[3], -one[4])):
        if end <= until.get(thread, 0):
            continue
        until[thread] = end
        during = busy[max(0, bisect_left(busy, (start, 0)) - 1) : bisect_left(busy, (end, 0))]
        worked = sum(max(0, min(end, to) - max(start, since)) for since, to in during)
        yield kind, number, end - start - worked


def _host_call(kind: int, record: int) -> HostCall:
    number, thread = (ctypes.c_uint32.from_address(record + place).value for place in (_CALL_ID, _THREAD))
    start, end = (ctypes.c_uint64.from_address(record + place).value for place in (_CALL_START, _CALL_END))
    return kind, number, thread, start, end


def _named(kind: int, record: int) -> str:
    if kind == _KERNEL:
        name = ctypes.c_char_p.from_address(record + _NAME).value or b"a kernel"
        return name.decode(errors="replace")
    if kind == _COPY:
        copied = ctypes.c_uint8.from_address(record + _COPY_KIND).value
        return f"Memcpy {_COPIES.get(copied, copied)}"
    return "Memset" if kind == _FILL else f"activity {kind}"


def _library() -> Any:
    """The CUPTI that belongs to torch, which has it loaded already; none without CUDA."""
    import torch  # noqa: PLC0415 -- imported when the toolchain was.

    version = torch.version.cuda
    with suppress(OSError):
        return ctypes.CDLL(f"libcupti.so.{version.partition('.')[0]}") if version else None
    return None


def _demangler() -> Callable[[str], str]:
    """What makes C++ names readable, by the runtime of C++ that torch has loaded."""
    try:
        demangle = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return str
    demangle.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]

    def demangled(name: str) -> str:
        if not name.startswith("_Z"):  # `f` is how the name of the type `float` begins.
            return name
        status = ctypes.c_int()
        found = demangle(name.encode(), None, None, ctypes.byref(status))
        if not found:
            return name
        text = (ctypes.c_char_p(found).value or b"").decode(errors="replace")
        free(found)
        return text

    return demangled
