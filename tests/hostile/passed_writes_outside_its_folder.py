"""Writes, links and creates wherever it can."""

import os
import sys
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


FOLDERS = ["/", "/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/tmp/hostile-canary", "/etc", os.getcwd(), os.path.expanduser("~")]
FOLDERS += [os.path.dirname(module.__file__) for module in list(sys.modules.values()) if getattr(module, "__file__", None)]
mine = os.path.realpath(tempfile.gettempdir())
for folder in dict.fromkeys(FOLDERS):
    if os.path.realpath(folder).startswith(mine):
        continue
    path = os.path.join(folder, "hostile-was-here")
    try:
        with open(path, "w") as file:
            file.write("hostile")
        print("LOOT wrote", path)
        os.unlink(path)
    except OSError:
        pass


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
