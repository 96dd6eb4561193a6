"""Memory for a call: layout, guards, poison, seals, snapshots."""

from __future__ import annotations

import dataclasses
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.assignment import DTYPE_BYTES, Case, Layout, load_assignment
from autograder.judge.defences import ALL_ON
from autograder.judge.protocol.buffers import (
    GUARD_BYTES,
    Buffers,
    Part,
    SharedTensor,
    Snapshot,
    draw_filling,
    elements,
    layout_of,
    overflows,
    typed,
)
from autograder.judge.protocol.tensors import dtype_of
from autograder.protocol import TensorSpec

DOUBLE = load_assignment(Path(__file__).parents[3] / "fixtures" / "assignments" / "double")
A, OUT, NEGATIVE = DOUBLE.arguments[:3]
PLAIN = Case("plain", {"m": 6, "n": 10}, "float32")
PADDED = dataclasses.replace(PLAIN, layout={"a": Layout(pad=3, offset=1), "out": Layout(pad=5)})
VALUES = torch.arange(60, dtype=torch.float32).reshape(6, 10)


@pytest.fixture(params=[PLAIN, PADDED], ids=["plain", "padded"])
def tensors(request: pytest.FixtureRequest) -> Iterator[tuple[SharedTensor, ...]]:
    buffers = Buffers(DOUBLE, ALL_ON)
    made = buffers.make(request.param, {"a": VALUES})
    for tensor in made:
        tensor.fill()
    yield made
    buffers.release(made)


def overflow(snapshot: Snapshot) -> tuple[int, int, int]:
    """Guard elements of one that were changed."""
    return overflows([snapshot])[0]


def theirs(tensor: SharedTensor) -> torch.Tensor:
    """The tensor as a runner maps it."""
    memory = mmap.mmap(tensor.descriptor, tensor.spec.bytes)
    return torch.frombuffer(memory, dtype=torch.uint8)


def test_a_runner_finds_the_input_where_the_spec_says(tensors: tuple[SharedTensor, ...]) -> None:
    a = tensors[0]
    assert torch.equal(elements(theirs(a).view(torch.float32), a.spec), VALUES)


def test_an_untouched_output_is_poison_within_whole_guards(tensors: tuple[SharedTensor, ...]) -> None:
    for tensor in tensors[1:]:
        snapshot = tensor.snapshot()
        assert bool(snapshot.untouched().all())
        assert overflow(snapshot) == (0, 0, 0)


def test_poison_is_nan_or_an_integer_that_is_not_zero(
    tensors: tuple[SharedTensor, ...],
) -> None:
    _, out, negative = tensors
    assert bool(out.snapshot().values().isnan().all())
    assert bool((negative.snapshot().values() != 0).all())


def test_what_the_runner_writes_is_in_the_snapshot_and_later_writes_are_not(tensors: tuple[SharedTensor, ...]) -> None:
    out = tensors[1]
    mapped = elements(theirs(out).view(torch.float32), out.spec)
    mapped.copy_(2 * VALUES)
    snapshot = out.snapshot()
    mapped.fill_(0.0)
    assert torch.equal(snapshot.values(), 2 * VALUES)
    assert not bool(snapshot.untouched().any())
    assert overflow(snapshot) == (0, 0, 0)


@pytest.mark.parametrize("which", [0, 1], ids=["input", "output"])
@pytest.mark.parametrize("where", ["before", "after", "far_before", "far_after"])
def test_a_write_outside_is_found_and_placed(tensors: tuple[SharedTensor, ...], where: str, which: int) -> None:
    one = tensors[which]
    flat = theirs(one).view(torch.float32)
    first = one.spec.offset // 4
    last = first + sum((length - 1) * step for length, step in zip(one.spec.shape, one.spec.stride, strict=True))
    place = {"before": first - 1, "after": last + 1, "far_before": 0, "far_after": flat.numel() - 1}[where]
    flat[place] = 1.0
    assert overflow(one.snapshot()) == ((0, 1, 0) if "after" in where else (1, 0, 0))


@pytest.mark.parametrize("which", range(3))
def test_of_several_that_are_looked_at_together_each_has_its_own(tensors: tuple[SharedTensor, ...], which: int) -> None:
    theirs(tensors[which])[0] ^= 1
    found = overflows([tensor.snapshot() for tensor in tensors])
    assert found == [(int(number == which), 0, 0) for number in range(3)]
    assert overflows([]) == []


@pytest.mark.parametrize("which", [0, 1], ids=["input", "output"])
def test_a_write_between_rows_is_found(which: int) -> None:
    buffers = Buffers(DOUBLE, ALL_ON)
    made = buffers.make(PADDED, {"a": VALUES})
    one = made[which]
    one.fill()
    theirs(one).view(torch.float32)[one.spec.offset // 4 + 10] = 0.0
    assert overflow(one.snapshot()) == (0, 0, 1)
    buffers.release(made)


@pytest.mark.parametrize(
    ("shape", "stride", "guards"),
    [((), (), 15), ((0,), (1,), 16), ((0, 3), (3, 1), 16), ((1, 3), (5, 1), 13), ((2, 3), (5, 1), 10)],
)
def test_every_word_that_is_no_element_is_guard(shape: tuple[int, ...], stride: tuple[int, ...], guards: int) -> None:
    """Without dimensions, empty, one row of a padded matrix, two: each word is written by itself."""
    spec = TensorSpec("out", "float32", shape, stride, 4 * 4, 4 * 16, writable=True)
    tensor = SharedTensor(spec, Part(torch.zeros(spec.bytes, dtype=torch.uint8)), draw_filling(spec, poison=True), None)
    seen = 0
    for word in range(16):
        tensor.fill()
        tensor.memory.view.view(torch.int32)[word] = 1
        seen += sum(overflow(tensor.snapshot()))
    assert seen == guards


def test_a_sealed_input_cannot_be_mapped_for_writing_by_anybody(tensors: tuple[SharedTensor, ...]) -> None:
    a = tensors[0]
    a.seal(size=True, writing=True)
    with pytest.raises(PermissionError):
        mmap.mmap(a.descriptor, a.spec.bytes)
    again = os.open(f"/proc/self/fd/{a.descriptor}", os.O_RDWR)
    with pytest.raises(PermissionError):
        os.pwrite(again, b"x", 0)
    os.close(again)
    assert a.snapshot().rewritten() == 0
    assert a.snapshot().memory is a.image, "what is unchanged is not copied"


def test_a_sealed_tensor_cannot_be_resized_or_unsealed(tensors: tuple[SharedTensor, ...]) -> None:
    out = tensors[1]
    out.seal(size=True, writing=False)
    for size in (0, 2 * out.spec.bytes):
        with pytest.raises(PermissionError):
            os.ftruncate(out.descriptor, size)
    theirs(out)[0] = 1


def test_a_rewritten_input_is_found(tensors: tuple[SharedTensor, ...]) -> None:
    a = tensors[0]
    elements(theirs(a).view(torch.float32), a.spec)[2, 3] = -1.0
    assert a.snapshot().rewritten() == 1
    assert overflow(a.snapshot()) == (0, 0, 0)


def test_every_call_has_memory_of_its_own() -> None:
    buffers = Buffers(DOUBLE, ALL_ON)
    one, other = (buffers.make(PLAIN, {"a": VALUES}) for _ in range(2))
    inodes = {os.fstat(tensor.descriptor).st_ino for tensor in (*one, *other)}
    assert len(inodes) == 6
    buffers.release([*one, *other])
    assert all(tensor.descriptor == -1 for tensor in (*one, *other))


def test_without_fresh_buffers_memory_is_used_again() -> None:
    buffers = Buffers(DOUBLE, dataclasses.replace(ALL_ON, fresh_buffers=False))
    one = buffers.make(PLAIN, {"a": VALUES})
    buffers.release(one)
    other = buffers.make(PLAIN, {"a": VALUES})
    assert [tensor.descriptor for tensor in one] == [tensor.descriptor for tensor in other]
    buffers.close()


def test_without_poison_an_output_starts_as_zeros() -> None:
    filling = draw_filling(layout_of(OUT, DOUBLE, PLAIN), poison=False)
    assert filling.poison == 0
    assert filling.guard != 0


@given(
    st.sampled_from(sorted(DTYPE_BYTES)),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_a_layout_keeps_guards_alignment_and_room(dtype: str, m: int, n: int, pad: int, offset: int) -> None:
    case = Case("any", {"m": m, "n": n}, dtype, layout={"a": Layout(pad, offset)})
    spec = layout_of(A, DOUBLE, case)
    size = DTYPE_BYTES[dtype]
    assert spec.offset == GUARD_BYTES + offset * size
    assert spec.stride == (n + pad, 1)
    end = spec.offset + ((m - 1) * (n + pad) + n) * size
    assert spec.bytes - end >= GUARD_BYTES
    assert spec.bytes % mmap.PAGESIZE == 0
    assert GUARD_BYTES % 256 == 0


@given(st.sampled_from(sorted(DTYPE_BYTES)))
def test_guards_of_floating_types_are_nan_and_differ_between_input_and_output(dtype: str) -> None:
    case = dataclasses.replace(PLAIN, dtype=dtype)
    fillings = []
    for argument in (A, OUT):
        spec = layout_of(argument, DOUBLE, case)
        filling = draw_filling(spec, poison=True)
        assert filling.guard != filling.poison
        memory = torch.zeros(spec.bytes, dtype=torch.uint8)
        typed(memory, spec).fill_(filling.guard)
        if dtype_of(dtype).is_floating_point:
            assert bool(memory.view(dtype_of(dtype)).isnan().all())
        else:
            assert filling.guard not in {0, 1}
        fillings.append(filling)
    if dtype_of(dtype).is_floating_point:
        assert fillings[0].guard != fillings[1].guard
