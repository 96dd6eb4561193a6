"""Read one of an author's TOML files into dataclasses, and say what is wrong with it: key, line and a suggestion."""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
import types
import typing
from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from autograder.errors import ManifestError

T = TypeVar("T")

_PART = re.compile(r"(.+?)\[(\d+)\]")


class Reader:
    """A TOML file, built into dataclasses with errors an author can act on.

    Args:
        plurals: how the dataclass names what the file names in the singular: `[[case]]` becomes `cases`. Errors use the
            file's names.
        what: what the file describes, for messages: "a quiz".

    Raises:
        ManifestError: the file cannot be read, or is not TOML.
    """

    def __init__(self, path: Path, *, what: str, plurals: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.what = what
        self.plurals = dict(plurals or {})
        self.singulars = {plural: name for name, plural in self.plurals.items()}
        try:
            self.text = path.read_text(encoding="utf-8")
            self.data = tomllib.loads(self.text)
        except OSError as error:
            raise ManifestError(path, "", f"cannot be read ({error.strerror})") from None
        except ValueError as error:
            found = re.search(r"line (\d+)", str(error))
            raise ManifestError(path, "", f"is not TOML: {error}", line=int(found[1]) if found else None) from None

    def read(self, cls: type[T]) -> T:
        """The whole file as `cls`."""
        for plural in self.data.keys() & self.singulars.keys():
            problem, hint = f"is not a key that {self.what} has", f"Did you mean {self.singulars[plural]!r}?"
            raise ManifestError(self.path, plural, problem, line=self._line(plural), suggestion=hint)
        return typing.cast("T", self._dataclass(cls, {self.plurals.get(k, k): v for k, v in self.data.items()}, ""))

    def error(self, key: str, problem: str, suggestion: str = "") -> ManifestError:
        """An error at the line that sets `key`, such as `case[2].dtype`: the third `[[case]]` and what follows it."""
        key = ".".join(self._in_the_file(part) for part in key.split("."))
        return ManifestError(self.path, key, problem, line=self._line(key), suggestion=suggestion)

    def nearest(self, value: str, known: Collection[str]) -> str:
        """A suggestion: the known name that `value` is most like, else all of them."""
        return self.alike(value, known) or f"Known: {', '.join(known)}."

    def alike(self, value: str, known: Collection[str]) -> str:
        """A suggestion: the known name that `value` is most like; nothing where it is like none of them."""
        near = difflib.get_close_matches(value, [str(name) for name in known], n=1)
        return f"Did you mean {near[0]!r}?" if near else ""

    def _in_the_file(self, part: str) -> str:
        name, bracket, index = part.partition("[")
        return self.singulars.get(name, name) + bracket + index

    def _line(self, key: str) -> int | None:
        begin, end = 0, len(self.text)
        for part in key.split("."):
            if found := _PART.fullmatch(part):
                begin, end = self._table(found[1], int(found[2]), begin, end)
        name = re.escape(_PART.sub(r"\1", key.rpartition(".")[2]))
        # A key at the beginning of a line first: the same name may stand in an inline table above it.
        sets = (
            rf"^[ \t]*(?:\[+[^\]\n]*\b{name}\b[^\n]*\]+|\"?{name}\"?[ \t]*=)",
            rf"^[^\n#]*[{{,][ \t]*\"?{name}\"?[ \t]*=",
        )
        places = (re.compile(pattern, re.MULTILINE).search(self.text, begin, end) for pattern in sets)
        place = next((place.start() for place in places if place), None)
        if place is None and begin:
            place = self.text.index("[", begin)  # What is meant is not in the file: its table's header.
        return None if place is None else self.text.count("\n", 0, place) + 1

    def _table(self, name: str, index: int, begin: int, end: int) -> tuple[int, int]:
        """Where the `index`-th `[[name]]` between two places begins and ends; these two, if it is a plain list."""
        headers = re.compile(rf"^[ \t]*\[\[(?:[^\]\n]*\.)?[ \t]*{re.escape(name)}[ \t]*\]\]", re.MULTILINE)
        starts = [found.start() for found in headers.finditer(self.text, begin, end)]
        if index >= len(starts):
            return begin, end
        return starts[index], starts[index + 1] if index + 1 < len(starts) else end

    def _dataclass(self, cls: Any, data: Any, where: str) -> Any:
        if not isinstance(data, Mapping):
            raise self.error(where, f"has to be a table, not {type(data).__name__}")
        fields = {item.name: item for item in dataclasses.fields(cls)}
        hints = typing.get_type_hints(cls)
        for key in data:
            if key not in fields:
                known = sorted(fields if where else (self.singulars.get(name, name) for name in fields))
                hint = self.nearest(key, known)
                raise self.error(_join(where, key), f"is not a key that {self.what} has", hint)
        values = {}
        for name, item in fields.items():
            if name in data:
                values[name] = self._value(hints[name], data[name], _join(where, name))
            elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
                raise self.error(where, f"{self.singulars.get(name, name)!r} is missing")
        return cls(**values)

    def _value(self, kind: Any, data: Any, where: str) -> Any:
        origin, items = typing.get_origin(kind), typing.get_args(kind)
        if origin is tuple:
            if not isinstance(data, list):
                raise self.error(where, f"has to be a list, not {type(data).__name__}")
            return tuple(self._value(items[0], item, f"{where}[{index}]") for index, item in enumerate(data))
        if origin is dict:
            if not isinstance(data, Mapping):
                raise self.error(where, f"has to be a table, not {type(data).__name__}")
            return {key: self._value(items[1], item, _join(where, key)) for key, item in data.items()}
        if origin is types.UnionType:
            return self._value(items[0], data, where)
        if dataclasses.is_dataclass(kind):
            return self._dataclass(kind, data, where)
        return self._scalar(kind, data, where)

    def _scalar(self, kind: Any, data: Any, where: str) -> Any:
        if issubclass(kind, StrEnum):
            if data in list(kind):
                return kind(data)
            raise self.error(where, f"{data!r} is none of {', '.join(kind)}", self.alike(str(data), kind))
        if kind is float and isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        if isinstance(data, kind) and not (kind is int and isinstance(data, bool)):
            return data
        raise self.error(where, f"has to be {kind.__name__}, not {type(data).__name__}")


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
