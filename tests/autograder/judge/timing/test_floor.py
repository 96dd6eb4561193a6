"""What no device can do: traffic beyond the cache, operations, and which sizes are bounded how."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path

import pytest
import torch

from autograder.assignment import Case, Tolerance, load_assignment
from autograder.contract import Lane
from autograder.judge.correctness.compare import MAX_DIFFERING_SHARE, agree
from autograder.judge.protocol.batch_buffer import bytes_of, max_bytes_held, part_of
from autograder.judge.rules import GPU
from autograder.judge.timing.calibration import calls_of
from autograder.judge.timing.floor import MARGIN, floor_us
from autograder.lanes import SHEETS
from autograder.protocol import MAX_DESCRIPTORS

ROOT = Path(__file__).parents[4] / "assignments"
ADD, MATMUL = load_assignment(ROOT / "vector_add"), load_assignment(ROOT / "matmul_tiled")
SOFTMAX = load_assignment(ROOT / "softmax")
HALF = Case("half", {"m": 4096, "n": 4096, "k": 4096}, "float16")
LARGE = Case("large", {"n": 2**27}, "float32")


def test_a_vector_that_fits_the_cache_has_no_floor_by_its_traffic() -> None:
    small = floor_us(ADD, Case("small", {"n": 2**20}, "float32"), Lane.h200)
    assert small < 0.01


def test_traffic_beyond_the_cache_takes_what_the_memory_takes() -> None:
    moved = 3 * 4 * 2**27 - 50e6
    assert floor_us(ADD, LARGE, Lane.h200) == pytest.approx(MARGIN * moved / 4.8e6)


def test_operations_take_what_the_tensor_cores_take() -> None:
    assert floor_us(MATMUL, HALF, Lane.h200) == pytest.approx(MARGIN * 2 * 4096**3 / 989.4e6)
    exact = dataclasses.replace(HALF, dtype="float32")
    assert floor_us(MATMUL, exact, Lane.h200) == pytest.approx(2 * floor_us(MATMUL, HALF, Lane.h200), rel=0.01)


def test_every_gpu_lane_has_its_facts_and_the_processor_none() -> None:
    assert set(SHEETS) == set(Lane) - {Lane.cpu}
    assert floor_us(ADD, LARGE, Lane.cpu) == 0.0


@pytest.mark.parametrize(
    ("call_us", "memory_gib", "calls", "calls_per_buffer"),
    [
        (376.0, 1000, 40, 2), (376.0, 140, 40, 2), (376.0, 80, 24, 2), (3200.0, 1000, 8, 1), (1e6, 140, 4, 1),
        (180.0, 1000, 80, 5), (124.0, 1000, 120, 8), (50.0, 4000, 200, 20),
        (28.0, 4000, 245, 35), (0.5, 4000, 256, 256),
        (28.0, 140, 24, 24), (0.5, 140, 24, 24),
    ],
)  # fmt: skip
def test_a_batch_is_long_and_fits_the_memory(
    call_us: float, memory_gib: int, calls: int, calls_per_buffer: int
) -> None:
    assert calls_of(ADD, LARGE, call_us, memory_gib * 2**30, GPU) == (calls, calls_per_buffer)
    assert calls % calls_per_buffer == 0
    assert calls // calls_per_buffer <= GPU.max_buffers <= MAX_DESCRIPTORS


@pytest.mark.parametrize(
    ("call_us", "calls", "calls_per_buffer"),
    [(183.0, 110, 5), (100.0, 150, 10), (99.9, 120, 10), (50.0, 200, 20), (1500.0, 16, 1), (3200.0, 8, 1)],
)  # fmt: skip
def test_a_batch_that_moves_little_memory_holds_twice_the_work(
    call_us: float, calls: int, calls_per_buffer: int
) -> None:
    """A product moves 0.1 GB a call: of brief ones 12 GB or 10 ms, of others 15 to 20 ms."""
    assert calls_of(MATMUL, HALF, call_us, 140 * 2**30, GPU) == (calls, calls_per_buffer)


@pytest.mark.parametrize(
    ("rows", "call_us", "memory_mib", "calls"),
    [
        (4096, 540.0, 143155, (28, 1)), (4096, 720.0, 81559, (16, 1)), (1024, 133.0, 143155, (112, 7)),
        (1024, 190.0, 81559, (65, 5)),
    ],
)  # fmt: skip
def test_a_batch_holds_each_input_once_and_each_output_twice(
    rows: int, call_us: float, memory_mib: int, calls: tuple[int, int]
) -> None:
    """A softmax of which a call has a gigabyte of either, or a quarter of that, on an H200 and on an H100."""
    case = Case("long", {"rows": rows, "cols": 131072}, "bfloat16")
    assert calls_of(SOFTMAX, case, call_us, memory_mib * 2**20, GPU) == calls


@pytest.mark.parametrize("assignment", ["vector_add", "softmax", "reduction", "matmul_tiled"])
def test_a_batch_never_takes_more_than_its_share(assignment: str) -> None:
    """Whatever the moment, and if the parts in which the reference is called come out uneven."""
    manifest = load_assignment(ROOT / assignment)
    ranked = [case for case in manifest.cases if case.ranked]
    times_us, memories_gib = (8.0, 30.0, 150.0, 376.0, 900.0, 4000.0), (80, 140, 180)
    assert ranked
    for case, call_us, memory_gib in itertools.product(ranked, times_us, memories_gib):
        calls, calls_per_buffer = calls_of(manifest, case, call_us, memory_gib * 2**30, GPU)
        held = max_bytes_held(*bytes_of(manifest, case), calls, calls_per_buffer)
        fits = calls == 1 or held <= GPU.memory_share * memory_gib * 2**30
        assert fits, f"{case.name}: {calls} calls of {call_us} µs in {memory_gib} GiB"


@pytest.mark.parametrize(
    ("calls", "calls_per_buffer", "part"),
    [(28, 1, 7), (10, 1, 3), (5, 1, 2), (1, 1, 1), (40, 2, 10), (43, 43, 43), (12, 4, 4)],
)
def test_a_part_is_whole_slabs(calls: int, calls_per_buffer: int, part: int) -> None:
    assert part_of(calls, calls_per_buffer) == part
    assert max_bytes_held(0, 1, calls, calls_per_buffer) == max(2 * calls, calls + 2 * part)
    assert max_bytes_held(1, 0, calls, calls_per_buffer) == max(calls + calls_per_buffer, calls + part)


def test_a_batch_has_one_call_at_least() -> None:
    assert calls_of(ADD, LARGE, 376.0, 2**30, GPU) == (1, 1)


def test_a_slab_holds_the_tensors_and_their_guards() -> None:
    inputs, outputs = bytes_of(ADD, LARGE)
    assert 2 * 4 * 2**27 < inputs < 2 * 4 * 2**27 + 2**20
    assert 4 * 2**27 < outputs < 4 * 2**27 + 2**20


BOUNDED, EXACT = Tolerance(kind="bounded"), Tolerance(kind="exact")


def right(dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(10_000, generator=torch.Generator().manual_seed(1)).to(dtype) + 4


def test_the_same_bits_agree_whatever_the_rule() -> None:
    for rule in (BOUNDED, EXACT):
        assert agree(right(), right(), rule)


def test_a_few_neighbours_agree_where_rounding_is_allowed() -> None:
    got = right()
    got.view(torch.int16)[:100] += 1
    assert agree(got, right(), BOUNDED)
    assert not agree(got, right(), EXACT)


@pytest.mark.parametrize("damage", ["many", "two apart", "nan", "sign", "zero", "infinite"])
def test_whatever_is_more_than_rounding_goes_to_the_oracle(damage: str) -> None:
    got = right()
    if damage == "many":
        got.view(torch.int16)[: math.ceil(MAX_DIFFERING_SHARE * 10_000) + 1] += 1
    elif damage == "two apart":
        got.view(torch.int16)[5] += 2
    else:
        got[5] = {"nan": math.nan, "sign": -float(got[5]), "zero": 0.0, "infinite": math.inf}[damage]
    assert not agree(got, right(), BOUNDED)


def test_a_single_wrong_element_of_a_large_product_is_never_agreed_to() -> None:
    """Why no random projection is used for products: this looks at every element, and costs one pass."""
    expected = right(torch.float32).repeat(200)
    got = expected.clone()
    got[1_234_567] += 4e-6
    assert not agree(got, expected, BOUNDED)
