"""Tables: what spreadsheets write is read, what is no table is refused with its line, nothing written is a formula."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server import csv_io
from server.csv_io import Column, Line, Trouble
from server.errors import InvalidInputError

COLUMNS = (Column("email", ("Mail", "e-mail address")), Column("name"), Column("section", required=False))


def read(text: str, encoding: str = "utf-8") -> csv_io.Table:
    return csv_io.read(text.encode(encoding), COLUMNS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_is_read_as_programs_write_it(encoding: str, separator: str, end: str) -> None:
    rows = [
        ["Name", "E-Mail address", "Section"],
        ["Ada Łuk", "ada@example.org", "A"],
        ["", "", ""],
        ["Bo", "bo@x.org"],
    ]
    table = read(end.join(separator.join(row) for row in rows) + end, encoding)
    assert table.lines == (
        Line(2, {"email": "ada@example.org", "name": "Ada Łuk", "section": "A"}),
        Line(4, {"email": "bo@x.org", "name": "Bo", "section": ""}),
    )
    assert table.troubles == ()


def test_a_cell_may_hold_separators_and_line_ends_and_lines_are_counted_on() -> None:
    table = read('email,name\na@x.org,"Ada,\nthe first"\nb@x.org,Bo\n')
    assert [(line.number, line.cells["name"]) for line in table.lines] == [(2, "Ada,\nthe first"), (4, "Bo")]


def test_columns_that_nobody_asked_for_are_named() -> None:
    assert read("email,name,Points,\na@x.org,Ada,3,\n").passed_over == ("Points",)


def test_a_line_with_too_many_cells_is_named_and_left_out() -> None:
    table = read("email,name\na@x.org,Ada,Lovelace\nb@x.org,Bo\n")
    assert table.troubles == (Trouble(2, "It has 3 cells, the header has 2."),)
    assert [line.number for line in table.lines] == [3]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"name\nAda\n", "no column .email.; the header has .name."),
        (b"email,name,Mail\n", "twice"),
        (b"email,name\na@x.org,Jos\xe9\n", "Line 2 is not UTF-8"),
        (b"PK\x03\x04\0\0", "zero bytes"),
        (b'email,name\na@x.org,"Ada\n', "Line 2 cannot be read"),
        (b'email,name\n"a"b,c\n', "Line 2 cannot be read"),
        (b"email,name\n" + b"a,b\n" * (csv_io.MAX_ROWS + 1), "20,000 lines"),
        (b"x" * (csv_io.MAX_BYTES + 1), "a table may have at most 2 MiB"),
    ],
)
def test_what_is_no_table_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as refused:
        csv_io.read(data, COLUMNS)
    assert refused.value.field == "file"


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        csv_io.read(b"email,name\n" + data, COLUMNS)
    except InvalidInputError:
        return


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_cell_is_a_formula(begins: str) -> None:
    text = csv_io.write(["name"], [[f"{begins}HYPERLINK(1)"]])
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == [f"'{begins}HYPERLINK(1)"]


def test_numbers_stay_numbers_and_nothing_is_empty() -> None:
    assert csv_io.write(["a", "b", "c"], [[-1.5, None, "x,y"]]) == 'a,b,c\r\n-1.5,,"x,y"\r\n'
