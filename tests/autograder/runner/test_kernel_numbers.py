"""Roundings of a kernel on the CPU lane are those of a GPU, and reductions are trees."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autograder import protocol
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.kernel_talk import HEAD, RUN, Array, elementwise, numbers, output
from tests.autograder.runner_talk import Tensor, talking

CONTRACTED = elementwise("x * 1.44269504 - tl.max(x * 1.44269504, 0)")


BEFORE_A_LOOP = f"""\
{HEAD}

@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    scaled = tl.load(x_ptr + at) * 1.44269504
    largest = tl.max(scaled, 0)
    for _ in range(1):
        tl.store(out_ptr + at, scaled - largest)

{RUN}"""


def test_a_product_is_not_rounded_before_a_sum(sandbox: ProcessSandbox) -> None:
    x = numbers() * np.float32(1000)
    scale = np.float32(1.44269504)
    largest = (x * scale).max()
    once = (x.astype("f8") * float(scale) - float(largest)).astype("f4")
    np.testing.assert_array_equal(output(sandbox, CONTRACTED, x), once)
    apart = [
        CONTRACTED.replace("64)", "64, enable_fp_fusion=False)"),
        BEFORE_A_LOOP,
    ]
    for source in apart:
        np.testing.assert_array_equal(output(sandbox, source, x), x * scale - largest)


DOT = f"""\
{HEAD}

@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)
    x = tl.load(x_ptr + at)
    one = tl.where(tl.arange(0, N)[:, None] == tl.arange(0, N), 1.0, 0.0)
    tl.store(out_ptr + at, tl.dot(x, one, PRECISION))


def run(x, out):
    kernel[(1,)](x, out, 16)
"""


@pytest.mark.parametrize(
    ("said", "kept_bits"),
    [("", 10), ("input_precision='tf32'", 10), ("input_precision='ieee'", 23), ("allow_tf32=False", 23)],
)
def test_a_product_of_matrices_reads_tf32_unless_it_is_told_otherwise(
    sandbox: ProcessSandbox, said: str, kept_bits: int
) -> None:
    x = np.random.default_rng(5).uniform(-2, 2, (16, 16)).astype("f4")
    mask = np.uint32(0xFFFFFFFF << 23 - kept_bits & 0xFFFFFFFF)
    read = (x.view(np.uint32) & mask).view("f4")
    np.testing.assert_array_equal(output(sandbox, DOT.replace("PRECISION", said), x), read)


WELFORD = f"""\
{HEAD}

@triton.jit
def merge(mean, m2, weight, mean_other, m2_other, weight_other):
    delta = mean_other - mean
    total = weight + weight_other
    part = tl.where(total == 0.0, 0.0, weight_other / total)
    return mean + delta * part, m2 + m2_other + delta * delta * weight * part, total


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    mean, m2, weight = tl.reduce((x, x * 0.0, x * 0.0 + 1.0), 0, merge)
    tl.store(out_ptr + at, tl.where(at == 0, mean, tl.where(at == 1, m2 / weight, weight)))

{RUN}"""

BY_CONDITION = f"""\
{HEAD}
N = tl.constexpr(64)


@triton.jit
def later_if_larger(a, b):
    if a > b:
        return a
    return (b if b > a else a) if N == 64 else b


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.reshape(tl.load(x_ptr + at), (N // 16, 16))
    x = tl.reshape(x + x.reduce(1, later_if_larger, keep_dims=True), (N,))
    tl.store(out_ptr + at, tl.associative_scan(x, 0, later_if_larger))

{RUN}"""

RECURRENCE = f"""\
{HEAD}

@triton.jit
def step(a, b, a_next, b_next):
    return a * a_next, b * a_next + b_next


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    _, forward = tl.associative_scan((x, x), 0, step)
    _, backward = tl.associative_scan((x, x), 0, step, reverse=True)
    tl.store(out_ptr + at, forward + backward)

{RUN}"""


def welford(x: Array) -> Array:
    exact = x.astype("f8")
    return np.concatenate([[exact.mean(), exact.var()], np.full(62, 64.0)])


def by_condition(x: Array) -> Array:
    rows = x.reshape(4, 16)
    return np.maximum.accumulate((rows + rows.max(axis=1, keepdims=True)).reshape(-1))


def recurrence(x: Array) -> Array:
    def one_way(values: Array) -> Array:
        made, last = [], 0.0
        for value in values.astype("f8"):
            last = last * value + value
            made.append(last)
        return np.array(made)

    return one_way(x) + one_way(x[::-1])[::-1]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(WELFORD, welford, id="a reduction by one's own function"),
        pytest.param(BY_CONDITION, by_condition, id="a scan that decides by an if"),
        pytest.param(RECURRENCE, recurrence, id="a scan of pairs"),
    ],
)
def test_reductions_and_scans_by_ones_own_function(
    sandbox: ProcessSandbox, source: str, expected: Callable[[Array], Array]
) -> None:
    np.testing.assert_allclose(output(sandbox, source), expected(numbers()), rtol=3e-7)


def test_sums_of_halves_are_rounded_at_every_step(sandbox: ProcessSandbox) -> None:
    x = np.where(np.arange(64) == 0, 2048, 1).astype("f4")
    summed = output(sandbox, elementwise("x * 0.0 + tl.sum(x.to(tl.float16), 0)"), x)
    assert summed[0] < x.sum()
    summed = output(sandbox, elementwise("tl.cumsum(x.to(tl.float16), 0)"), x)
    assert summed[-1] < x.sum()
    np.testing.assert_array_equal(output(sandbox, elementwise("tl.cumsum(x, 0)"), x), x.cumsum())


@pytest.mark.parametrize(
    "value", ["tl.exp(x * 1000)", "x / (x - x)", "tl.log(-x)", "x * 1e38 * 1e38", "tl.sum(x * 1e38) + x"]
)
def test_what_overflows_is_silent_as_on_a_gpu(sandbox: ProcessSandbox, value: str) -> None:
    """A warning of numpy would tell a student of lines of ours, with the paths of this machine."""
    x = numbers()
    with talking(sandbox) as talk:
        talk.load(elementwise(value), "run", ("x", "out"))
        out = Tensor("out", np.zeros_like(x), writable=True)
        said = talk.call(Tensor("x", x, writable=False), out)
        assert isinstance(said, protocol.Returned), said
        assert not np.isfinite(np.array(out.view)).any()
        assert talk.runner.log() == ""
