"""A kernel names and calls on the CPU lane what it may on a GPU."""

from __future__ import annotations

import pytest

from autograder.sandbox.process import ProcessSandbox
from tests.autograder.kernel_talk import HEAD, elementwise, numbers, output, problem

HOST = f"""\
{HEAD}
import types

import numpy as np

host = types.ModuleType("host")
host.double = lambda x: x * 2
host.Double = type("Double", (), {{"__call__": lambda self, x: x * 2}})
host.doubled = host.Double()
double = host.double
SCALE = 2.0
HALF = 0.5
ANNOTATED: tl.constexpr = 2.0
"""


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ("x * SCALE", "NameError", "Cannot access global variable SCALE"),
        ("x * ANNOTATED", "NameError", "Cannot access global variable ANNOTATED"),
        ("double(x)", "NameError", "Cannot access global variable double"),
        ("abs(x)", "NameError", "abs is not defined in a kernel"),
        ("eval('x')", "NameError", "eval is not defined in a kernel"),
        ("host.double(x)", "TypeError", "A kernel calls <lambda>, which is plain Python"),
        ("host.doubled(x)", "TypeError", "A kernel calls Double, which is plain Python"),
        ("host.Double()(x)", "TypeError", "A kernel calls Double, which is plain Python"),
        ("np.sqrt(x)", "TypeError", "A kernel calls sqrt, which is plain Python"),
        ("torch.sqrt(x)", "TypeError", "sqrt, which is plain Python"),
    ],
)
def test_what_a_compiler_refuses_is_refused(sandbox: ProcessSandbox, value: str, kind: str, said: str) -> None:
    raised = problem(sandbox, elementwise(value, HOST))
    assert raised.kind == kind
    assert said in raised.message
    assert [frame.function for frame in raised.frames] == ["run", "kernel"]


USED = f"""\
{HEAD}
import math
from collections import namedtuple

import triton.language.extra.libdevice
from triton.language.extra import libdevice

TWO = tl.constexpr(2.0)
TYPE = tl.float32
Pair = namedtuple("Pair", ["one", "other"])
DEFAULT = 4
HALF = 0.5


@triton.jit
def doubled(x, times: tl.constexpr = DEFAULT):
    return x * times / 2


@triton.constexpr_function
def half_of(n):
    return n // 2


def host_only(n):
    return n * 2
"""


@pytest.mark.parametrize(
    "value",
    [
        "x * TWO",
        "doubled(x)",
        "x.to(TYPE) * 2",
        "Pair(x, x)[0] + Pair(x, x).other",
        "x * math.sqrt(4)",
        "x * (len((N, N)) if isinstance(N, int) else float(3))",
        "libdevice.add_rn(x, x) if hasattr(libdevice, 'add_rn') else x * 2",
        "x * triton.cdiv(N, N // 2)",
        "x * half_of(4)",
        "x * 2 if N == 64 else host_only(x)",
        "x * {'HALF': 2}['HALF']",
        "x * tl.multiple_of(N // 32, 2)",
        "tl.max_contiguous(x, N) * 2",
        "x * 2 if tl.static_print(N) is None else x",
        "tl.where(tl.max(x, 0) > min(N, 3), x, x * 2)",
    ],
)
def test_what_a_compiler_takes_is_taken(sandbox: ProcessSandbox, value: str) -> None:
    x = numbers()
    assert output(sandbox, elementwise(value, USED), x) == pytest.approx(x * 2)


SHADOWED = f"""\
{HEAD}
SCALE = 3.0
at = None


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    SCALE = 2.0
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * SCALE)


def run(x, out):
    kernel[(1,)](x, out, 64)
"""


def test_a_kernels_own_name_hides_a_global_one(sandbox: ProcessSandbox) -> None:
    x = numbers()
    assert output(sandbox, SHADOWED, x) == pytest.approx(x * 2)


CLOSED_OVER = f"""\
{HEAD}

def made(scale):
    @triton.jit
    def kernel(x_ptr, out_ptr, N: tl.constexpr):
        at = tl.arange(0, N)
        tl.store(out_ptr + at, tl.load(x_ptr + at) * scale)

    return kernel


def run(x, out):
    made(SCALE)[(1,)](x, out, 64)
"""


def test_so_does_a_variable_of_the_function_around_a_kernel(sandbox: ProcessSandbox) -> None:
    x = numbers()
    assert output(sandbox, CLOSED_OVER.replace("SCALE", "tl.constexpr(2.0)"), x) == pytest.approx(x * 2)
    assert "global variable scale" in problem(sandbox, CLOSED_OVER.replace("SCALE", "2.0")).message


WITHOUT_A_TEXT = f"""\
{HEAD}
made = {{"tl": tl}}
exec("def kernel(x_ptr, out_ptr, N): tl.store(out_ptr + tl.arange(0, 64), 1.0)", made)
kernel = triton.jit(made["kernel"])


def run(x, out):
    kernel[(1,)](x, out, 64)
"""


def test_a_kernel_without_a_text_is_refused(sandbox: ProcessSandbox) -> None:
    assert "should be defined in a Python file" in problem(sandbox, WITHOUT_A_TEXT).message


ONCE = f"""\
{HEAD}
import types

state = types.ModuleType("state")
state.calls = 0


@triton.constexpr_function
def called(n):
    state.calls += 1
    return state.calls


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * called(N))


def run(x, out):
    for _ in range(3):
        kernel[(4,)](x, out, 64)
"""


def test_a_function_of_constants_is_called_when_constants_are_new(sandbox: ProcessSandbox) -> None:
    x = numbers()
    assert output(sandbox, ONCE, x) == pytest.approx(x)
