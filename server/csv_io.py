"""Tables in and out as CSV: what comes from a spreadsheet is bytes of an unknown program, what goes there may be run.

Nothing that is read is changed silently: a file that cannot be read as a table is refused whole, a line that does not
fit is named and left out.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from server.errors import InvalidInputError

MAX_BYTES = 2 * 2**20
"""Of a table that is read: a roster of 20 000 people."""

MAX_ROWS = 20_000

_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Column:
    """A column to read: its name, other names that programs give it, and whether a table may lack it."""

    name: str
    others: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True)
class Trouble:
    """A line that does not fit, and why; lines count from 1, the header's.

    Attributes:
        cells: what it says, by the names of the columns; nothing where that could not be read.
    """

    line: int
    message: str
    cells: dict[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Line:
    """One line's cells by the names of `Column`s, stripped; a cell that is not there is empty."""

    number: int
    cells: dict[str, str]


@dataclass(frozen=True)
class Table:
    """What was read.

    Attributes:
        passed_over: the columns of the file that nobody asked for, as it names them.
    """

    lines: tuple[Line, ...]
    troubles: tuple[Trouble, ...]
    passed_over: tuple[str, ...]


def read(data: bytes, columns: Sequence[Column], *, max_bytes: int = MAX_BYTES) -> Table:
    """Read a table with a header, as spreadsheets write it: UTF-8 or UTF-16 by its mark; commas, semicolons or tabs.

    Raises:
        InvalidInputError: it is too large, is not text, has no header, or lacks a required column.
    """
    if len(data) > max_bytes:
        raise InvalidInputError(
            f"The file has {len(data) / 2**20:.1f} MiB; a table may have at most {max_bytes / 2**20:g} MiB.",
            field="file",
        )
    rows = _numbered(_decoded(data))
    _, header = next(rows, (0, []))
    if not any(header):
        raise InvalidInputError("The file is empty. Its first line must name the columns.", field="file")
    places = _places(header, columns)
    lines, troubles = [], []
    for number, cells in rows:
        if any(cells[len(header) :]):
            troubles.append(Trouble(number, f"It has {len(cells)} cells, the header has {len(header)}."))
        elif any(cells):
            lines.append(Line(number, {name: _at(cells, place) for name, place in places.items()}))
        if len(lines) + len(troubles) > MAX_ROWS:
            raise InvalidInputError(f"A table may have at most {MAX_ROWS:,} lines; this one has more.", field="file")
    passed_over = tuple(name for place, name in enumerate(header) if place not in places.values() and name)
    return Table(tuple(lines), tuple(troubles), passed_over)


def write(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table for a spreadsheet (RFC 4180); no cell of it is taken for a formula."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\r\n")
    table.writerow([cell(name) for name in header])
    table.writerows([cell(value) for value in row] for row in rows)
    return text.getvalue()


def cell(value: object) -> str:
    """A cell that no spreadsheet takes for a formula: a name may begin with `=`. `None` is an empty one."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _decoded(data: bytes) -> str:
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InvalidInputError(
            f"Line {line} is not UTF-8. Save the table as “CSV UTF-8” and try again.", field="file"
        ) from None
    if "\0" in text:
        raise InvalidInputError("This is not a CSV file: it contains zero bytes.", field="file")
    return text


def _numbered(text: str) -> Iterator[tuple[int, list[str]]]:
    """Every row's stripped cells and the line it begins on."""
    first = text.partition("\n")[0]
    # `max` keeps the first of equals: a header of one column is read with commas.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    begins = 1
    try:
        for cells in reader:
            yield begins, [cell.strip() for cell in cells]
            begins = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInputError(f"Line {begins} cannot be read as CSV: {error}.", field="file") from None


def _places(header: Sequence[str], columns: Sequence[Column]) -> dict[str, int]:
    """Where each column stands."""
    places: dict[str, int] = {}
    for column in columns:
        known = {_plain(name) for name in (column.name, *column.others)}
        found = [place for place, name in enumerate(header) if _plain(name) in known]
        if len(found) > 1:
            raise InvalidInputError(f"The header names the column “{column.name}” twice.", field="file")
        if found:
            places[column.name] = found[0]
        elif column.required:
            named = ", ".join(f"“{name}”" for name in header if name)
            raise InvalidInputError(f"There is no column “{column.name}”; the header has {named}.", field="file")
    return places


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _at(cells: Sequence[str], place: int) -> str:
    return cells[place] if place < len(cells) else ""
