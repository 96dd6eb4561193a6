"""Ways to look faster than one is, with knobs: the staff kernel's own source, and what is put around its entry.

Each does all the work, and every output is right. What they forge, hide or slow is in their knobs; `search` turns them.
"""

from __future__ import annotations

from dataclasses import dataclass

FORGES = """
import gc as _gc

_forged = []


def _forge():
    for clock in _gc.get_objects():
        if type(clock).__name__ == "EventClock":
            for name, value in list(vars(clock).items()):
                if getattr(value, "__name__", "") == "elapsed_time":
                    setattr(clock, name, lambda *events, _true=value: _true(*events) * {scale!r})
                    _forged.append(clock)


_inner = {entry}


def {entry}(*arguments):
    if not _forged:
        _forge()
    _inner(*arguments)


{entry}.__signature__ = __import__("inspect").signature(_inner)
"""
"""Every time that the runner's clock reads is multiplied by `scale`."""

SLOWS = """
import gc as _gc
import torch as _torch

_hooked = []
_host = _torch.empty({chunk!r}, dtype=_torch.uint8, pin_memory=True)
_device = _torch.empty({chunk!r}, dtype=_torch.uint8, device="cuda")
_stream = _torch.cuda.Stream()


def _work():
    with _torch.cuda.stream(_stream):
        for _ in range({copies!r}):
            _host.copy_(_device, non_blocking=True)


def _hook():
    for clock in _gc.get_objects():
        if type(clock).__name__ == "EventClock":
            for name, value in list(vars(clock).items()):
                if getattr(value, "__name__", "") == "synchronize":
                    setattr(clock, name, lambda *args, _true=value: (_true(*args), _work()))
                    _hooked.append(clock)


_slowing = {entry}


def {entry}(*arguments):
    if not _hooked:
        _hook()
    _slowing(*arguments)


{entry}.__signature__ = __import__("inspect").signature(_slowing)
"""
"""After each of its calls `copies` copies of `chunk` bytes over PCIe are left queued, while others are measured."""

TAKES_OVER = """
import gc as _gc
import inspect as _inspect
import json as _json
import mmap as _mmap
import os as _os
import socket as _socket

import torch as _torch
from cuda.bindings import driver as _d

_FD = _d.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
_EARLY, _CLAIM_NS, _SCALE, _MERGED = {early!r}, {claim_ns!r}, {scale!r}, {merged!r}


class _Bytes:
    def __init__(self, address, size):
        self.__cuda_array_interface__ = {{"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}}


def _access():
    access = _d.CUmemAccessDesc()
    access.location.type = _d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = 0
    access.flags = _d.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return [access]


def _page():
    wanted = _d.CUmemAllocationProp()
    wanted.type = _d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = _d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.location.id = 0
    wanted.requestedHandleTypes = _FD
    return _d.cuMemCreate(2**21, wanted, 0)[1]


def _attach(address, descriptor, size):
    handle = _d.cuMemImportFromShareableHandle(descriptor, _FD)[1]
    _d.cuMemMap(address, size, 0, handle, 0)
    _d.cuMemSetAccess(address, size, _access(), 1)
    _d.cuMemRelease(handle)


def _reserved(size):
    return int(_d.cuMemAddressReserve(size, 0, 0, 0)[1])


def _let_go(spaces):
    for address, size in spaces:
        _d.cuMemUnmap(address, size)
        _d.cuMemAddressFree(address, size)


def _tensor(address, spec):
    dtype = getattr(_torch, spec["dtype"])
    flat = _torch.as_tensor(_Bytes(address, spec["bytes"]), device="cuda").view(dtype)
    return flat.as_strided(spec["shape"], spec["stride"], spec["offset"] // dtype.itemsize)


def _channel():
    for descriptor in range(256):
        try:
            end = _socket.socket(fileno=_os.dup(descriptor))
        except OSError:
            continue
        if end.type == _socket.SOCK_SEQPACKET:
            return end
    raise LookupError


def _words():
    found = [memoryview(item) for item in _gc.get_objects() if type(item) in (_mmap.mmap, memoryview)]
    found = [view for view in found if view.nbytes == 4096]
    return next(v for v in found if v.readonly).cast("B"), next(v for v in found if not v.readonly).cast("B")


_work = {entry}
_order = tuple(_inspect.signature(_work).parameters)


def {entry}(*arguments):
    _work(*arguments)
    _torch.cuda.synchronize()
    judge, mine = _words()
    end = _channel()
    scratch = _torch.empty(2**28, dtype=_torch.uint8, device="cuda")
    first, last = (_torch.cuda.Event(enable_timing=True) for _ in range(2))

    def say(nonce, nanoseconds):
        mine[8:16] = int(nanoseconds).to_bytes(8, "little")
        mine[:8] = nonce.to_bytes(8, "little")
        end.send(b'{{"is":"Returned","nonce":%d}}' % nonce)

    nonce = int.from_bytes(bytes(judge[:8]), "little")
    say(nonce, 1000)
    end.send(b'{{"is":"Released","nonce":%d}}' % nonce)
    while True:
        packet, descriptors, _, _ = _socket.recv_fds(end, 2**18, 128)
        if not packet:
            _os._exit(0)
        said = _json.loads(packet)
        nonce = said["nonce"]
        if said["is"] == "Arm":
            _batch(said, descriptors, end, say)
            continue
        values, spaces = dict(said["scalars"]), []
        for spec, descriptor in zip(said["tensors"], descriptors):
            address = _reserved(spec["bytes"])
            _attach(address, descriptor, spec["bytes"])
            spaces.append((address, spec["bytes"]))
            values[spec["name"]] = _tensor(address, spec)
        arguments = [values[name] for name in _order]
        scratch.zero_()
        first.record()
        _work(*arguments)
        last.record()
        if not _EARLY:
            _torch.cuda.synchronize()
        say(nonce, _CLAIM_NS or first.elapsed_time(last) * 1e6 * _SCALE)
        _torch.cuda.synchronize()
        del arguments, values
        _let_go(spaces)
        for descriptor in descriptors:
            _os.close(descriptor)
        end.send(b'{{"is":"Released","nonce":%d}}' % nonce)


def _batch(arm, outputs, end, say):
    written = [spec for spec in arm["tensors"] if spec["writable"]]
    read = [spec for spec in arm["tensors"] if not spec["writable"]]
    together = arm.get("together", 1)
    spaces, slabs = [], []
    for descriptor in outputs:
        answer, asked = _reserved(written[0]["bytes"]), _reserved(read[0]["bytes"])
        _attach(answer, descriptor, written[0]["bytes"])
        spaces += [(answer, written[0]["bytes"]), (asked, read[0]["bytes"])]
        # Tensors ask the driver about their memory, so a page of its own stands in for the inputs until they come.
        page = _page()
        _d.cuMemMap(asked, 2**21, 0, page, 0)
        _d.cuMemSetAccess(asked, 2**21, _access(), 1)
        slabs.append((asked, [_placed(arm, number, answer, written, asked, read) for number in range(together)]))
        _d.cuMemUnmap(asked, 2**21)
        _d.cuMemRelease(page)
    end.send(b'{{"is":"Armed","nonce":%d}}' % arm["nonce"])
    packet, inputs, _, _ = _socket.recv_fds(end, 2**18, 128)
    if not packet:
        _os._exit(0)
    nonce = _json.loads(packet)["nonce"]
    for descriptor, (asked, calls) in zip(inputs, slabs):
        _attach(asked, descriptor, read[0]["bytes"])
        for arguments in () if _MERGED else calls:
            _work(*arguments)
    if _MERGED:
        _all_in_one([arguments for _, calls in slabs for arguments in calls])
    if not _EARLY:
        _torch.cuda.synchronize()
    say(nonce, 1000)
    _torch.cuda.synchronize()
    slabs.clear()
    _let_go(spaces)
    for descriptor in (*outputs, *inputs):
        _os.close(descriptor)
    end.send(b'{{"is":"Released","nonce":%d}}' % nonce)


def _placed(arm, number, answer, written, asked, read):
    # The arguments of one call of a slab.
    values = dict(arm["scalars"])
    for address, specs in ((answer, written), (asked, read)):
        farther = number * (specs[0]["bytes"] // arm.get("together", 1))
        values |= {{spec["name"]: _tensor(address, {{**spec, "offset": spec["offset"] + farther}}) for spec in specs}}
    return [values[name] for name in _order]
"""
"""Speaks the protocol itself, with as little of its own as Python needs, and says `claim_ns` or its time × `scale`.

With `early` it says that it is done when everything is launched; the snapshot then has to find the answer.
"""


MERGES = '''
@triton.jit
def _all_kernel(table_ptr, n, TYPE: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=1) * 3
    x_ptr = tl.load(table_ptr + row).to(tl.pointer_type(TYPE))
    y_ptr = tl.load(table_ptr + row + 1).to(tl.pointer_type(TYPE))
    out_ptr = tl.load(table_ptr + row + 2).to(tl.pointer_type(TYPE))
    x_ptr, y_ptr, out_ptr = tl.multiple_of(x_ptr, 16), tl.multiple_of(y_ptr, 16), tl.multiple_of(out_ptr, 16)
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


def _all_in_one(calls):
    """One launch for all vector additions of a batch."""
    rows = [tensor.data_ptr() for call in calls for tensor in call[:3]]
    table = _torch.tensor(rows, dtype=_torch.int64).cuda()
    n = calls[0][3]
    _all_kernel[(triton.cdiv(n, 2048), len(calls))](table, n, TYPE=tl.float32, BLOCK_SIZE=2048, num_warps=8)
'''
"""All calls of a batch in one launch; for vector add."""


@dataclass(frozen=True)
class Knobs:
    """One way to cheat.

    Attributes:
        scale: what the reported time is multiplied by.
        takes_over: speaks the protocol itself.
        merged: does all calls of a batch in one launch.
        early: says so before the work is done; `claim_ns` is then what it reports.
        copies, chunk: what is left queued while the reference is measured.
    """

    scale: float = 1.0
    takes_over: bool = False
    merged: bool = False
    early: bool = False
    claim_ns: int = 0
    copies: int = 0
    chunk: int = 0

    @property
    def name(self) -> str:
        """In words, for the table."""
        parts = []
        if self.takes_over:
            parts.append("speaks the protocol itself" + ", merged" * self.merged + ", early" * self.early)
        if self.copies:
            parts.append(f"leaves {self.copies} copies of {self.chunk // 1024} KiB queued")
        if self.scale < 1 or self.claim_ns:
            parts.append("forges its time")
        return "; ".join(parts) or "honest"


def source_of(staff: str, entry: str, knobs: Knobs) -> str:
    """The staff kernel's source with the cheat around its entry."""
    text = staff
    if knobs.copies:
        text += SLOWS.format(entry=entry, copies=knobs.copies, chunk=knobs.chunk)
    if knobs.takes_over:
        text += TAKES_OVER.format(
            entry=entry, early=knobs.early, claim_ns=knobs.claim_ns, scale=knobs.scale, merged=knobs.merged
        )
        text += MERGES if knobs.merged else ""
    elif knobs.scale != 1:
        text += FORGES.format(entry=entry, scale=knobs.scale)
    return text
