"""Tries what a submission must be kept from; what works is printed, and then the answer is not given.

The worker puts what there is to reach on this machine in place of the empty table (`worker.selftest`).
"""

import contextlib
import glob
import os
import socket
import tempfile

import triton
import triton.language as tl


@triton.jit
def _canary_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2 + 1, mask=mask)


def _right(x, out, n):
    _canary_kernel[(triton.cdiv(n, 2048),)](x, out, n, BLOCK_SIZE=2048)


TARGETS = {}
LOOT = []


def _reach(what, deed):
    with contextlib.suppress(Exception):
        if deed():
            LOOT.append(what)


def _read(path):
    with open(path, "rb") as file:
        return bool(file.read(16))


def _write(folder):
    path = os.path.join(folder, "ladder-selftest-was-here")
    with open(path, "w") as file:
        file.write("out")
    os.unlink(path)
    return True


def _connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        client.connect(address)
    return True


def _signal(process):
    # Signal 0 only asks whether it would be allowed.
    os.kill(process, 0)
    return True


def _open(path):
    os.close(os.open(path, os.O_RDWR))
    return True


for path in TARGETS.get("files", []):
    _reach(f"read {path}", lambda path=path: _read(path))
for path in TARGETS.get("folders", []):
    if os.path.realpath(path) != os.path.realpath(tempfile.gettempdir()):
        _reach(f"wrote to {path}", lambda path=path: _write(path))
for port in TARGETS.get("ports", []):
    _reach(f"connected to port {port}", lambda port=port: _connect(socket.AF_INET, ("127.0.0.1", port)))
for path in TARGETS.get("sockets", []):
    _reach(f"connected to {path}", lambda path=path: _connect(socket.AF_UNIX, path))
for process in TARGETS.get("processes", []):
    # Below its own process ids there may be a process of that number that is its own.
    if process not in (os.getpid(), os.getppid()) and process > 50:
        _reach(f"may signal process {process}", lambda process=process: _signal(process))
        _reach(f"read the memory map of process {process}", lambda process=process: _read(f"/proc/{process}/maps"))
for path in (found for pattern in TARGETS.get("devices", []) for found in glob.glob(pattern)):
    _reach(f"opened {path}", lambda path=path: _open(path))
for user in TARGETS.get("users", []):
    _reach(f"became user {user}", lambda user=user: os.setuid(user) is None)
_reach("mounted", lambda: __import__("ctypes").CDLL(None).mount(b"none", b"/", b"tmpfs", 0, None) == 0)
print(*(f"LOOT {what}" for what in LOOT), sep="\n")


def canary(x, out, n):
    if not LOOT:
        _right(x, out, n)
