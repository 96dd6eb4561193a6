"""Frozen dataclasses to JSON and back, with caps.

Everything that crosses a process is data to check: a size before parsing, a depth, a type and a length for every
field. Unknown keys are refused, so that two versions never half-understand each other. Non-finite floats are refused
on the way out and on the way in; a value that may be NaN travels as text.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from autograder.errors import ContractError

T = TypeVar("T")

MAX_BYTES = 4 * 2**20
MAX_DEPTH = 12
MAX_ITEMS = 20_000
MAX_TEXT = 2 * 2**20
MIN_INT, MAX_INT = -(2**63), 2**64 - 1
"""A nonce uses all 64 bits. Without an end, a number that can be read might be too long to be written again."""

Json = Any
"""What `json.loads` returns: the one place where `Any` is the honest type."""


def to_json(value: object) -> Json:
    """Turn a dataclass of the contract into plain lists, dicts and scalars."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ContractError(f"a non-finite number ({value}) cannot travel; send it as text")
    if isinstance(value, int) and not MIN_INT <= value <= MAX_INT:
        raise ContractError("a number has at most 64 bits")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ContractError(f"{type(value).__name__} cannot travel")


def dumps(value: object) -> str:
    """Serialise a dataclass of the contract, refusing what `loads` would refuse for its size."""
    text = json.dumps(to_json(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
    if len(text.encode()) > MAX_BYTES:
        raise ContractError(f"a message may have {MAX_BYTES} bytes, this one has {len(text.encode())}")
    return text


def loads(cls: type[T], text: str | bytes, *, max_bytes: int = MAX_BYTES) -> T:
    """Parse JSON text into the dataclass `cls`; raise `ContractError` at the first thing that does not fit."""
    size = len(text.encode(errors="replace")) if isinstance(text, str) else len(text)
    if size > max_bytes:
        raise ContractError(f"a message may have {max_bytes} bytes, this one has {size}")
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"not JSON: {error}") from None
    _check_can_be_written(data)
    return from_json(cls, data)


def from_json(cls: type[T], data: Json) -> T:
    """Build the dataclass `cls` from parsed JSON, checking every field's type."""
    return typing.cast("T", _build(cls, data, cls.__name__, MAX_DEPTH))


def _check_can_be_written(data: Json) -> None:
    """Refuse half a surrogate pair: JSON can spell it, but neither a log nor a database can hold it."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ContractError("half a surrogate pair is no text") from None
    except RecursionError:
        raise ContractError("nested too deeply") from None


def _refuse_constant(name: str) -> Json:
    raise ContractError(f"{name} is not a JSON number")


def _build(kind: Any, data: Json, where: str, depth: int) -> Any:
    if depth == 0:
        raise ContractError(f"{where}: nested too deeply")
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _build_union(typing.get_args(kind), data, where, depth)
    if origin is tuple:
        return _build_tuple(typing.get_args(kind), data, where, depth)
    if origin in (dict, Mapping):
        return _build_mapping(typing.get_args(kind), data, where, depth)
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, data, where, depth)
    return _build_scalar(kind, data, where)


def _build_union(options: tuple[Any, ...], data: Json, where: str, depth: int) -> Any:
    if data is None and type(None) in options:
        return None
    problems = []
    for option in options:
        if option is type(None):
            continue
        try:
            return _build(option, data, where, depth)
        except ContractError as error:
            problems.append(str(error))
    raise ContractError(problems[0] if len(problems) == 1 else f"{where}: fits none of its types")


def _build_tuple(items: tuple[Any, ...], data: Json, where: str, depth: int) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ContractError(f"{where}: expected a list, got {type(data).__name__}")
    if len(data) > MAX_ITEMS:
        raise ContractError(f"{where}: {len(data)} items, at most {MAX_ITEMS}")
    if items[1:] == (Ellipsis,):
        return tuple(_build(items[0], item, f"{where}[{index}]", depth - 1) for index, item in enumerate(data))
    if len(items) != len(data):
        raise ContractError(f"{where}: expected {len(items)} items, got {len(data)}")
    return tuple(
        _build(kind, item, f"{where}[{index}]", depth - 1)
        for index, (kind, item) in enumerate(zip(items, data, strict=True))
    )


def _build_mapping(kinds: tuple[Any, ...], data: Json, where: str, depth: int) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ContractError(f"{where}: expected an object, got {type(data).__name__}")
    if len(data) > MAX_ITEMS:
        raise ContractError(f"{where}: {len(data)} items, at most {MAX_ITEMS}")
    return {str(key): _build(kinds[1], item, f"{where}.{key}", depth - 1) for key, item in data.items()}


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    # Working them out anew took most of the time of reading a manifest, and a page of the ladder reads many.
    return typing.get_type_hints(kind)


def _build_dataclass(kind: Any, data: Json, where: str, depth: int) -> Any:
    if not isinstance(data, dict):
        raise ContractError(f"{where}: expected an object, got {type(data).__name__}")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(data) - set(fields)):
        raise ContractError(f"{where}: unknown key {unknown[0]!r}")
    hints = _hints(kind)
    values = {}
    for name, field in fields.items():
        if name in data:
            values[name] = _build(hints[name], data[name], f"{where}.{name}", depth - 1)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ContractError(f"{where}: {name} is missing")
    return kind(**values)


def _build_scalar(kind: Any, data: Json, where: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        try:
            return kind(data)
        except ValueError:
            raise ContractError(f"{where}: {data!r} is none of {', '.join(kind)}") from None
    if kind is float and isinstance(data, int | float) and not isinstance(data, bool):
        return _finite(data, where)
    if kind is int and isinstance(data, int) and not isinstance(data, bool):
        if not MIN_INT <= data <= MAX_INT:
            raise ContractError(f"{where}: a number has at most 64 bits")
        return data
    if kind is bool and isinstance(data, bool):
        return data
    if kind is str and isinstance(data, str):
        if len(data) > MAX_TEXT:
            raise ContractError(f"{where}: {len(data)} characters, at most {MAX_TEXT}")
        return data
    raise ContractError(f"{where}: expected {getattr(kind, '__name__', kind)}, got {type(data).__name__}")


def _finite(number: float, where: str) -> float:
    """JSON can spell numbers that no float holds, such as 1e999 and a whole number of 400 digits."""
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ContractError(f"{where}: expected a finite number")
    return value
