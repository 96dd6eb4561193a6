"""Programs in Triton for one block of 64 numbers, or of 16 × 16, run by a real runner on the CPU lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder import protocol
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.runner_talk import Tensor, talking

Array = np.ndarray[Any, Any]
HEAD = """\
import torch
import triton
import triton.language as tl
"""
RUN = """\

def run(x, out):
    kernel[(1,)](x, out, 64)
"""


def elementwise(value: str, head: str = HEAD) -> str:
    """A kernel that stores a value made of `x`, a block of 64."""
    return f"""\
{head}

@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, {value})

{RUN}"""


def numbers() -> Array:
    return np.random.default_rng(5).uniform(0.1, 0.9, 64).astype("f4")


def answer(sandbox: ProcessSandbox, source: str, x: Array) -> tuple[object, Array]:
    """What the runner says to one call, and the output."""
    given, out = Tensor("x", x, writable=False), Tensor("out", np.full_like(x, np.nan), writable=True)
    with talking(sandbox) as talk:
        loaded = talk.load(source, "run", ("x", "out"))
        said = talk.call(given, out) if isinstance(loaded, protocol.Loaded) else loaded
    return said, np.array(out.view)


def output(sandbox: ProcessSandbox, source: str, x: Array | None = None) -> Array:
    said, out = answer(sandbox, source, numbers() if x is None else x)
    assert isinstance(said, protocol.Returned), said
    return out


def problem(sandbox: ProcessSandbox, source: str) -> protocol.Raised:
    said, _ = answer(sandbox, source, numbers())
    assert isinstance(said, protocol.Raised)
    return said
