"""The runner's own writing and reading of packets says what `autograder.protocol` says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import protocol, wire_format
from autograder.contract import Language
from autograder.runner import wire

SAID = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(SAID)
def test_what_it_writes_is_json(value: object) -> None:
    assert json.loads(wire.to_text(value)) == value


def test_it_reads_a_call_as_the_judge_wrote_it() -> None:
    spec = protocol.TensorSpec("x", "float32", (3, 4), (4, 1), 256, 4096, writable=True)
    call = protocol.Call(2**64 - 1, (spec,), {"n": 12}, record=False)
    read = wire.to_call(json.loads(wire_format.encode(call)))
    assert (read.nonce, read.scalars, read.record) == (call.nonce, call.scalars, call.record)
    assert [tuple(read.tensors[0].shape), tuple(read.tensors[0].stride)] == [spec.shape, spec.stride]


@pytest.mark.parametrize("ghost", [False, True])
def test_it_reads_a_load_as_the_judge_wrote_it(ghost: bool) -> None:
    load = protocol.Load("def run(): pass", "mine.py", Language.triton, "run", ("x",), ghost=ghost)
    assert wire.to_load(json.loads(wire_format.encode(load)), []) == load
