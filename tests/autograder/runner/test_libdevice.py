"""Functions of libdevice on the CPU lane."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import triton

from autograder import protocol
from autograder.runner.languages import libdevice
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.kernel_talk import HEAD, answer, elementwise, numbers, output, problem

LIBDEVICE = f"""\
{HEAD}
from triton.language.extra import libdevice
from triton.language.extra.libdevice import rsqrt
tanh = libdevice.tanh
"""
FUNCTIONS: list[tuple[str, Callable[[float], float]]] = [
    ("rsqrt(x)", lambda x: 1 / math.sqrt(x)),
    ("tanh(x)", math.tanh),
    ("tl.extra.cuda.libdevice.fast_expf(x)", math.exp),
    ("tl.extra.libdevice.erf(x)", math.erf),
    ("libdevice.pow(x, x + 1.0)", lambda x: x ** (x + 1)),
    ("libdevice.normcdf(x)", lambda x: (1 + math.erf(x / math.sqrt(2))) / 2),
    ("libdevice.tgamma(x) + libdevice.lgamma(x)", lambda x: math.gamma(x) + math.lgamma(x)),
    ("libdevice.cospi(x) * libdevice.sinpi(x)", lambda x: math.cos(math.pi * x) * math.sin(math.pi * x)),
    ("libdevice.ldexp(x, 3)", lambda x: 8 * x),
    ("libdevice.round(x * 4.0) + libdevice.rint(x)", lambda x: math.floor(4 * x + 0.5) + round(x)),
    ("libdevice.float2int_ru(x * 9.0).to(tl.float32)", lambda x: math.ceil(9 * x)),
    ("libdevice.popc(libdevice.float_as_int(x)).to(tl.float32)", lambda x: bits(x).bit_count()),
    ("libdevice.clz(libdevice.float_as_int(x)).to(tl.float32)", lambda x: 32 - bits(x).bit_length()),
    ("libdevice.fma(x, x, x)", lambda x: x * x + x),
    ("libdevice.isnan(x / (x - x) * 0.0).to(tl.float32)", lambda _: 1),
]


def bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


@pytest.mark.parametrize(("value", "exact"), FUNCTIONS, ids=[value for value, _ in FUNCTIONS])
def test_functions_of_libdevice(sandbox: ProcessSandbox, value: str, exact: Callable[[float], float]) -> None:
    expected = [exact(float(x)) for x in numbers()]
    np.testing.assert_allclose(output(sandbox, elementwise(value, LIBDEVICE)), expected, rtol=3e-7)


LOADED_AGAIN = f"""\
{HEAD}
import importlib.util

def found(name):
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

declared, computed = found("triton.language.extra.libdevice"), found("triton.language.extra.cuda.libdevice")
rsqrt, tanh = declared.rsqrt, computed.tanh
"""


@pytest.mark.parametrize(
    ("value", "exact"),
    [("rsqrt(x)", lambda x: 1 / math.sqrt(x)), ("tanh(x)", math.tanh), ("declared.erf(x)", math.erf)],
)
def test_copies_of_its_modules_compute_too(
    sandbox: ProcessSandbox, value: str, exact: Callable[[float], float]
) -> None:
    expected = [exact(float(x)) for x in numbers()]
    np.testing.assert_allclose(output(sandbox, elementwise(value, LOADED_AGAIN)), expected, rtol=3e-7)


def test_what_computes_them_is_no_operation_of_the_submission(sandbox: ProcessSandbox) -> None:
    said, _ = answer(sandbox, elementwise("libdevice.erf(x) + libdevice.lgamma(x)", LIBDEVICE), numbers())
    assert isinstance(said, protocol.Returned)
    assert said.operations == {}


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ("libdevice.jn(tl.full((N,), 2, tl.int32), x)", "GpuOnly", "`__nv_jnf`"),
        ("libdevice.fast_tanhf(x)", "AttributeError", "no `fast_tanhf` for NVIDIA's GPUs"),
    ],
)
def test_functions_that_are_not_there_are_named(sandbox: ProcessSandbox, value: str, kind: str, said: str) -> None:
    raised = problem(sandbox, elementwise(value, LIBDEVICE))
    assert raised.kind == kind
    assert said in raised.message


def test_all_that_triton_knows_is_computed_but_what_is_left_out_on_purpose() -> None:
    table = Path(triton.__file__).parent / "language/extra/cuda/libdevice.py"
    symbols = set(re.findall(r'"(__nv_\w+)"', table.read_text()))
    missing = {symbol for symbol in symbols if libdevice.function(symbol) is None}
    assert len(symbols) > 300
    assert missing == {"__nv_rcp64h", "__nv_jn", "__nv_jnf", "__nv_yn", "__nv_ynf"}


@pytest.mark.parametrize(
    ("symbol", "values", "expected"),
    [
        ("__nv_fadd_rd", (1.0, -(2.0**-40)), np.nextafter(np.float32(1), np.float32(0))),
        ("__nv_fadd_ru", (1.0, -(2.0**-40)), 1.0),
        ("__nv_fadd_rz", (-1.0, 2.0**-40), -np.nextafter(np.float32(1), np.float32(0))),
        ("__nv_fdiv_ru", (1.0, 3.0), np.nextafter(np.float32(1 / 3), np.float32(0)) + np.float32(2**-25)),
        ("__nv_fsqrt_rd", (2.0,), np.float32(1.4142135)),
        ("__nv_float2int_rn", (2.5,), 2),
        ("__nv_float2int_ru", (3e9,), 2**31 - 1),
        ("__nv_tgammaf", (5.0,), 24.0),
        ("__nv_roundf", (-2.5,), -3.0),
    ],
)
def test_roundings_and_limits(symbol: str, values: tuple[float, ...], expected: float) -> None:
    compute = libdevice.function(symbol)
    assert compute is not None
    assert np.float32(compute(*(np.array([value], "f4") for value in values))[0]) == np.float32(expected)


@pytest.mark.parametrize(
    ("symbol", "values", "expected"),
    [
        ("__nv_mulhi", (-5, 2**30), -2),
        ("__nv_mul24", (0x7FFFFF, 3), 0x7FFFFF * 3),
        ("__nv_byte_perm", (0x33221100, 0x77665544, 0x7250), 0x77225500),
        ("__nv_brev", (1,), -(2**31)),
        ("__nv_ffs", (8,), 4),
        ("__nv_hadd", (-3, 2), -1),
        ("__nv_sad", (3, -4, 10), 17),
        ("__nv_uint2float_rn", (-1,), 2.0**32),
    ],
)
def test_integers(symbol: str, values: tuple[int, ...], expected: float) -> None:
    compute = libdevice.function(symbol)
    assert compute is not None
    assert float(compute(*(np.array([value], "i4") for value in values))[0]) == expected
