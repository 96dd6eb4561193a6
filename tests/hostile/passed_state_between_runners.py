"""Looks for a word from an earlier runner of the same source wherever one could be left, then leaves one itself: files,
shared memory, sockets without a name in the file system, System V memory, keyrings."""

import ctypes
import os
import socket
import tempfile

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


WORD = b"hostile-state"


def _places():
    for folder in (tempfile.gettempdir(), "/tmp", "/dev/shm", "/var/tmp", "/run", os.path.expanduser("~"), os.getcwd()):
        yield os.path.join(folder, "hostile-state")


def _in_files():
    return any(os.path.exists(place) for place in _places())


def _in_sockets():
    try:
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect(b"\0" + WORD)
    except OSError:
        return False
    return True


def _in_shared_memory():
    return libc.shmget(0x4C4F4F54, 4096, 0) >= 0


def _in_keyrings():
    return libc.syscall(250, 10, -4, b"user", WORD, 0) > 0  # keyctl(KEYCTL_SEARCH, user keyring)


libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
for search in (_in_files, _in_sockets, _in_shared_memory, _in_keyrings):
    if search():
        os._exit(3)
for place in _places():
    try:
        with open(place, "wb") as file:
            file.write(WORD)
    except OSError:
        pass
try:
    LEFT = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    LEFT.bind(b"\0" + WORD)
except OSError:
    pass
libc.shmget(0x4C4F4F54, 4096, 0o1666)
libc.syscall(248, b"user", WORD, WORD, len(WORD), -4)  # add_key to the user keyring


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
