"""The staff matmul on a GPU, by descriptors and without: edges, strides and alignments that no ranked case has."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
FACTOR = 1.5
"""Of the tolerance in assignment.toml."""
UNTOUCHED = 7.0
Shape = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]
"""m, n and k; how rows of a, b and c are padded; and where each begins, in elements."""


def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def staff() -> Any:
    return load("reference/matmul_tiled/solutions/triton.py")


@pytest.fixture(scope="module")
def problem() -> Any:
    return load("assignments/matmul_tiled/problem.py")


def laid_out(values: torch.Tensor, pad: int, offset: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A view with these values whose rows are padded and which begins at an offset; and all of its memory."""
    rows, columns = values.shape
    whole = torch.full((rows * (columns + pad) + offset,), UNTOUCHED, dtype=values.dtype, device="cuda")
    view = whole.as_strided((rows, columns), (columns + pad, 1), offset)
    view.copy_(values)
    return view, whole


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("shape", "described"),
    [
        (((1, 8, 8), (0, 0, 0), (0, 0, 0)), True),
        (((129, 264, 72), (0, 0, 0), (0, 0, 0)), True),
        (((3, 4096, 8), (0, 0, 0), (0, 0, 0)), True),
        (((4096, 8, 4096), (0, 0, 0), (0, 0, 0)), True),
        (((1030, 776, 520), (0, 0, 0), (0, 0, 0)), True),
        (((2000, 2000, 2000), (0, 0, 0), (0, 0, 0)), True),
        (((130, 136, 40), (8, 16, 24), (8, 16, 8)), True),
        (((130, 136, 40), (8, 16, 3), (0, 0, 0)), False),
        (((130, 136, 40), (0, 0, 0), (1, 0, 3)), False),
        (((1, 1, 1), (0, 0, 0), (0, 0, 0)), False),
        (((33, 77, 111), (0, 0, 0), (0, 0, 0)), False),
    ],
)
def test_every_edge_is_right_and_nothing_else_is_written(
    staff: Any, problem: Any, dtype: torch.dtype, shape: Shape, described: bool
) -> None:
    size, pads, offsets = shape
    m, n, k = size
    generator = torch.Generator(device="cuda")
    generator.seed()
    made = problem.make_inputs(generator=generator, dtype=dtype, distribution="decades", m=m, n=n, k=k)
    a, _ = laid_out(made["a"], pads[0], offsets[0])
    b, _ = laid_out(made["b"], pads[1], offsets[1])
    c, whole = laid_out(torch.full((m, n), torch.nan, dtype=dtype, device="cuda"), pads[2], offsets[2])
    assert all(staff._has_descriptor(matrix) for matrix in (a, b, c)) == described
    staff.matmul(a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0))
    allowed = FACTOR * torch.finfo(dtype).eps * problem.error_scale(**made)["c"]
    assert bool(((c.double() - problem.expected(**made)["c"]).abs() <= allowed).all())
    c.fill_(UNTOUCHED)
    assert bool((whole == UNTOUCHED).all())
