"""Names, arguments and statements of a kernel mean on the CPU lane what they mean on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autograder.sandbox.process import ProcessSandbox
from tests.autograder.kernel_talk import HEAD, RUN, Array, elementwise, numbers, output, problem

SCALARS = f"""\
{HEAD}

@triton.jit
def kernel(x_ptr, out_ptr, big, wide: tl.int64, flag, eps=0.1, N: tl.constexpr = 64):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at).to(tl.float16)
    tl.static_assert((x * eps).dtype == tl.float32)
    tl.static_assert(eps.dtype == tl.float32)
    tl.static_assert(big.dtype == tl.int64)
    tl.static_assert((wide * 3).dtype == tl.int64)
    half = (big // 2 + wide.to(tl.int64)).to(tl.float32)
    tl.store(out_ptr + at, x * eps.to(tl.float32) + half * flag.to(tl.float32))


def run(x, out):
    kernel[[1]](x, out, 2**31, 1, True)
"""

NAMES = (
    """\
import triton
import triton.language
from triton.language import arange, constexpr, exp, load, math, store, where, zeros
from triton.language.math import rsqrt


@triton.jit
def twice(x):
    return x + x


@triton.jit
def kernel(x_ptr, out_ptr, N: constexpr):
    at = arange(0, N)
    x = load(x_ptr + at)
    y = where(x > 0.5, twice(exp(x)), rsqrt(x)) + zeros((N,), dtype=triton.language.float32)
    store(out_ptr + at, math.abs(-y))

"""
    + RUN
)

ONE_AFTER_ALL = f"""\
{HEAD}

@triton.jit(do_not_specialize=["programs"])
def kernel(x_ptr, out_ptr, programs, rows, N: tl.constexpr):
    at = tl.arange(0, N)
    count = rows
    factor = programs.to(tl.float32) + count.to(tl.float32) + tl.cast(rows, tl.float32)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * factor)


def run(x, out):
    kernel[(1,)](x, out, 1, 1, 64)
"""

FOUR_SIZES = f"""\
{HEAD}

@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.program_id(2) * N + tl.arange(0, N)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at))


def run(x, out):
    kernel[(1, 1, 2, 5)](x, out, 16)
    kernel[lambda arguments: [1, 1, 64 // arguments["N"], 5]](x, out, 16)
"""

STATEMENTS = f"""\
{HEAD}
SCALE: tl.constexpr = tl.constexpr(2.0)


def make(shift):
    @triton.jit
    def kernel(x_ptr, out_ptr, n, N: tl.constexpr):
        for i in range(0, n, 16):
            inside = min(n - i.to(tl.int32), 16)
            at = i + tl.arange(0, 16)
            x = tl.load(x_ptr + at, mask=(at < n) and not (at >= i + inside), other=0.0)
            low, count = tl.minimum(x, 0.5), 0
            x = tl.where((tl.max(x, 0) > -1.0) & (x == x), max(low, 0.25), 7.0)
            while count < 2 and inside > 0:
                count += 1
            y = (SCALE * x).to(tl.float32) + (count if count > 0 else 7) + shift
            tl.store(out_ptr + at, y, mask=at < n or at < 0)

    return kernel


kernel = make(tl.constexpr(3))

def run(x, out):
    kernel[(1,)](x, out, 64, 64)
"""


def scalars(x: Array) -> Array:
    return x.astype("f2").astype("f4") * np.float32(0.1) + np.float32(2**30 + 1)


def names(x: Array) -> Array:
    return np.where(x > 0.5, 2 * np.exp(x), 1 / np.sqrt(x))


def statements(x: Array) -> Array:
    return 2 * np.clip(x, 0.25, 0.5) + 2 + 3


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(SCALARS, scalars, id="arguments have types"),
        pytest.param(NAMES, names, id="names are imported"),
        pytest.param(ONE_AFTER_ALL, lambda x: 3 * x, id="an argument that is 1 and is no constant"),
        pytest.param(FOUR_SIZES, lambda x: 2 * x, id="a grid's fourth size is left unread"),
        pytest.param(STATEMENTS, statements, id="loops, min, max, and, or, not, closures"),
    ],
)
def test_a_kernel_means_what_it_means_on_a_gpu(
    sandbox: ProcessSandbox, source: str, expected: Callable[[Array], Array]
) -> None:
    x = numbers()
    np.testing.assert_allclose(output(sandbox, source), expected(x), rtol=1e-6)


ONE = f"""\
{HEAD}

@triton.jit
def kernel(x_ptr, out_ptr, programs, N: tl.constexpr):
    tl.store(out_ptr + programs.to(tl.int64) + tl.arange(0, N), 1.0)


def run(x, out):
    kernel[(1,)](x, out, 1, 64)
"""


@pytest.mark.parametrize(
    ("source", "kind", "said"),
    [
        (ONE, "AttributeError", "'constexpr' object has no attribute 'to': this argument is 1 here"),
        (elementwise("x if x > 0.5 else 0.0"), "SeveralConditionsError", "more than one value is ambiguous"),
    ],
)
def test_what_a_gpu_does_not_take_is_refused_here(sandbox: ProcessSandbox, source: str, kind: str, said: str) -> None:
    raised = problem(sandbox, source)
    assert raised.kind == kind
    assert said in raised.message
