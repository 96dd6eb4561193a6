"""Packets of a runner's channel: what is written is read again; of anything else comes `ContractError`."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import wire_format
from autograder.compile_checks.messages import Ended, Reading, Readings
from autograder.errors import ContractError
from autograder.protocol import MAX_PACKET, RUNNER_SAYS, Raised, Returned

KINDS = (*RUNNER_SAYS, Readings, Ended)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def test_what_is_written_is_read_again() -> None:
    said = Readings((Reading(readable=True, registers=40),))
    assert wire_format.decode(wire_format.encode(said), Returned, Readings) == said


@pytest.mark.parametrize("kind", [[], {}, ["Returned"], None, 1, True, "Load", "returned", ""])
def test_a_packet_of_no_kind_that_belongs_is_refused(kind: object) -> None:
    with pytest.raises(ContractError, match="no kind that belongs"):
        wire_format.decode(json.dumps({"is": kind, "nonce": 1}).encode(), Returned, Raised)


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b"null", b'"Returned"', b"{", b"\xff", b"[" * 50_000])
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(ContractError):
        wire_format.decode(text, *KINDS)


@given(kind=ANYTHING | st.sampled_from([kind.__name__ for kind in KINDS]), rest=st.dictionaries(st.text(), ANYTHING))
def test_nothing_else_comes_of_a_hostile_packet(kind: object, rest: dict[str, object]) -> None:
    with contextlib.suppress(ContractError):
        wire_format.decode(json.dumps({**rest, "is": kind}).encode(), *KINDS)


def test_a_long_packet_is_neither_sent_nor_read() -> None:
    with pytest.raises(ContractError, match="bytes"):
        wire_format.encode(Raised(0, "load", "E", "x" * MAX_PACKET))
    with pytest.raises(ContractError, match="too long"):
        wire_format.decode(b" " * (MAX_PACKET + 1), Raised)
