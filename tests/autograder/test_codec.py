"""Dataclasses to JSON and back: whole round trips, and caps on everything."""

from __future__ import annotations

import dataclasses
import json
import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import codec, contract
from autograder.contract import (
    CaseFinished,
    CaseResult,
    Event,
    Finding,
    FindingKind,
    Frame,
    GradeRequest,
    GradeResult,
    Lane,
    Language,
    Launch,
    Measurement,
    Mismatch,
    Mode,
    Pair,
    Pattern,
    Phase,
    PhaseStarted,
    PhaseTime,
    StudentError,
    Verdict,
    Visibility,
)
from autograder.errors import ContractError

texts = st.text(max_size=30)
names = st.text(string.ascii_letters, min_size=1, max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
wholes = st.integers(min_value=-(2**63), max_value=2**63)
frames = st.builds(Frame, wholes, texts, texts)
errors = st.builds(StudentError, texts, texts, st.lists(frames, max_size=3).map(tuple))
rows = st.lists(wholes, max_size=4).map(tuple)
mismatches = st.builds(
    Mismatch,
    output=texts,
    shape=rows,
    dtype=texts,
    wrong=wholes,
    total=wholes,
    pattern=st.sampled_from(Pattern),
    where=texts,
    index=rows,
    expected=texts,
    got=texts,
    tolerance=texts,
    map=st.lists(rows, max_size=3).map(tuple),
    tile=st.tuples(wholes, wholes),
)
cases = st.builds(
    CaseResult,
    name=texts,
    category=texts,
    group=texts,
    visibility=st.sampled_from(Visibility),
    ranked=st.booleans(),
    verdict=st.none() | st.sampled_from(Verdict),
    message=texts,
    mismatch=st.none() | mismatches,
    error=st.none() | errors,
    seconds=st.none() | numbers,
)
pairs = st.builds(Pair, numbers, numbers, numbers, numbers)
measurements = st.builds(
    Measurement,
    case=texts,
    clock=texts,
    **dict.fromkeys(
        [
            "ratio",
            "ratio_low",
            "ratio_high",
            "time_us",
            "time_low_us",
            "time_high_us",
            "reference_us",
            "flops",
            "bytes_moved",
        ],
        numbers,
    ),
    pairs=st.lists(pairs, max_size=3).map(tuple),
)
findings = st.builds(Finding, st.sampled_from(FindingKind), texts, st.dictionaries(texts, texts, max_size=3))
launches = st.builds(Launch, texts, rows, wholes)
phase_times = st.builds(PhaseTime, st.sampled_from(Phase), numbers, numbers)
results = st.builds(
    GradeResult,
    verdict=st.sampled_from(Verdict),
    explanation=texts,
    cases=st.lists(cases, max_size=3).map(tuple),
    error=st.none() | errors,
    measurements=st.lists(measurements, max_size=2).map(tuple),
    findings=st.lists(findings, max_size=2).map(tuple),
    launches=st.lists(launches, max_size=2).map(tuple),
    held=st.booleans(),
    held_reason=texts,
    log=texts,
    phases=st.lists(phase_times, max_size=3).map(tuple),
    environment=st.dictionaries(names, texts, max_size=3),
    promises=st.lists(names, max_size=3).map(tuple),
)
requests = st.builds(
    GradeRequest,
    slug=texts,
    bundle=texts,
    language=st.sampled_from(Language),
    lane=st.sampled_from(Lane),
    mode=st.sampled_from(Mode),
    source=texts,
    filename=texts,
)
events = st.one_of(
    st.builds(Event, phase=st.builds(PhaseStarted, st.sampled_from(Phase), numbers)),
    st.builds(Event, case=st.builds(CaseFinished, wholes, wholes, cases)),
    st.builds(Event, result=results),
)


@given(results | requests | events)
def test_whatever_is_sent_arrives_unchanged(value: object) -> None:
    assert codec.loads(type(value), codec.dumps(value)) == value


@given(results)
def test_the_text_is_json_and_says_every_field(result: GradeResult) -> None:
    assert set(json.loads(codec.dumps(result))) == {field.name for field in dataclasses.fields(result)}


def test_a_message_may_come_as_bytes() -> None:
    launch = Launch("äöü", (1, 2), 3)
    assert codec.loads(Launch, codec.dumps(launch).encode()) == launch


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_do_not_leave(number: float) -> None:
    with pytest.raises(ContractError, match="non-finite"):
        codec.dumps(PhaseTime(Phase.checking, 0.0, number))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_numbers_beyond_64_bits_do_not_leave(number: int) -> None:
    with pytest.raises(ContractError, match="64 bits"):
        codec.dumps(Launch("k", (1,), number))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_finite_do_not_enter(word: str) -> None:
    with pytest.raises(ContractError, match="not a JSON number"):
        codec.loads(PhaseTime, f'{{"phase":"checking","started_at":0.0,"seconds":{word}}}')


LAUNCH = {"kernel": "k", "grid": [1], "calls": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"more": 1}, "unknown key 'more'"),
        ({"kernel": 3}, "Launch.kernel: expected str"),
        ({"kernel": None}, "Launch.kernel: expected str"),
        ({"calls": "1"}, "Launch.calls: expected int"),
        ({"calls": 1.0}, "Launch.calls: expected int"),
        ({"calls": True}, "Launch.calls: expected int"),
        ({"grid": {"0": 1}}, "Launch.grid: expected a list"),
        ({"grid": [1, "2"]}, r"Launch.grid\[1\]: expected int"),
        ({"grid": [1] * (codec.MAX_ITEMS + 1)}, "at most"),
        ({"kernel": "x" * (codec.MAX_TEXT + 1)}, "characters, at most"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(change: dict[str, object], words: str) -> None:
    with pytest.raises(ContractError, match=words):
        codec.loads(Launch, json.dumps(LAUNCH | change))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"x"', "null", "\ud800", "[" * 100_000])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ContractError):
        codec.loads(Launch, text)


def test_half_a_surrogate_pair_is_refused_wherever_it_stands() -> None:
    with pytest.raises(ContractError, match="surrogate"):
        codec.loads(Launch, '{"kernel":"\\ud800","grid":[],"calls":1}')
    with pytest.raises(ContractError, match="surrogate"):
        codec.loads(Launch, '{"kernel":"k","grid":[],"calls":1,"\\udfff":1}')


def test_a_missing_field_is_named() -> None:
    with pytest.raises(ContractError, match="calls is missing"):
        codec.loads(Launch, '{"kernel":"k","grid":[]}')


def test_an_unknown_member_of_an_enum_is_refused() -> None:
    with pytest.raises(ContractError, match="'great' is none of passed"):
        codec.loads(GradeResult, '{"verdict":"great","explanation":"","cases":[]}')


def test_a_pair_of_fixed_length_has_that_length() -> None:
    data = codec.to_json(
        Mismatch("o", (1,), "f", 1, 1, Pattern.tail, "w", (0,), "1", "2", "0"),
    )
    with pytest.raises(ContractError, match="expected 2 items, got 3"):
        codec.from_json(Mismatch, data | {"tile": [1, 2, 3]})


def test_a_message_that_is_too_long_is_refused_on_both_sides() -> None:
    many = Launch("x" * codec.MAX_TEXT, (), 1)
    result = GradeResult(Verdict.passed, "", (), launches=(many, many, many))
    with pytest.raises(ContractError, match="bytes"):
        codec.dumps(result)
    with pytest.raises(ContractError, match="bytes"):
        codec.loads(Launch, " " * (codec.MAX_BYTES + 1))


def test_what_is_no_dataclass_of_the_contract_cannot_travel() -> None:
    with pytest.raises(ContractError, match="object cannot travel"):
        codec.dumps(PhaseStarted(Phase.checking, object()))  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Nested:
    inner: Nested | None = None


def test_depth_is_capped() -> None:
    text = '{"inner":' * 40 + "null" + "}" * 40
    with pytest.raises(ContractError, match="nested too deeply"):
        codec.loads(Nested, text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(json_values, st.sampled_from([GradeResult, GradeRequest, Event, contract.Envelope, contract.GradeTask]))
def test_no_json_gets_in_by_any_other_way_than_fitting_or_a_contract_error(data: object, cls: type) -> None:
    try:
        value = codec.loads(cls, json.dumps(data))
    except (ContractError, ValueError):
        return
    assert isinstance(value, cls)


@dataclasses.dataclass(frozen=True)
class Number:
    """One float."""

    value: float
    others: tuple[float | None, ...] = ()


@pytest.mark.parametrize(
    "spelling", ["1e999", "-1e999", "1" + "0" * 400, "-1" + "0" * 400, "9" * 309 + ".0", "NaN", "Infinity", "-Infinity"]
)
@pytest.mark.parametrize("text", ['{{"value": {}}}', '{{"value": 0, "others": [null, {}]}}'])
def test_a_number_that_is_not_finite_is_refused_however_it_is_spelled(spelling: str, text: str) -> None:
    with pytest.raises(ContractError):
        codec.loads(Number, text.format(spelling))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400])
def test_one_that_is_parsed_already_is_refused_too(value: float) -> None:
    with pytest.raises(ContractError, match="value"):
        codec.from_json(Number, {"value": value})


@pytest.mark.parametrize("value", [0, -1.5, 1e308, 2**64])
def test_a_finite_number_comes_in_as_a_float(value: float) -> None:
    assert codec.from_json(Number, {"value": value}) == Number(float(value))
