"""Opens whatever the driver has in /dev and /proc beside what one GPU needs, by name and through the descriptors that it is sent.

Class B6 and F8, invariant 12."""

import os

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048, num_warps=8)


ALLOWED = ("/dev/nvidiactl", "/dev/nvidia-uvm")


def _reach():
    gpus = [f"/dev/nvidia{minor}" for minor in range(64) if os.path.exists(f"/dev/nvidia{minor}")]
    if len(gpus) > 1:
        print("LOOT other GPUs", gpus, flush=True)
    for path in ("/dev/nvidia-uvm-tools", "/dev/nvidia-modeset", "/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2", "/dev/nvidia-caps-imex-channels/channel0", "/dev/dri/card0", "/dev/dri/renderD128", "/dev/mem", "/dev/kmsg", "/dev/kvm"):
        try:
            os.close(os.open(path, os.O_RDWR))
            print("LOOT", path, flush=True)
        except OSError:
            pass


def _reopen():
    for number in range(3, 64):
        try:
            name = os.readlink(f"/proc/self/fd/{number}")
            again = os.open(f"/proc/self/fd/{number}", os.O_RDWR)
        except OSError:
            continue
        if name.startswith("/dev/") and name not in ALLOWED and not name.startswith(("/dev/nvidia", "/dev/null")):
            print("LOOT", name, flush=True)
        os.close(again)


_reach()


def vector_add(x, y, out, n):
    _reopen()
    _honest(x, y, out, n)
