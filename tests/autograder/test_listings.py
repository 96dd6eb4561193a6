"""Machine code as text: which line each instruction came from, what is not printed, and how large a file may be."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import codec, listings
from autograder.errors import ContractError
from autograder.listings import KernelListing, Listings, Row, pack, ptx_rows, rows_of, sass_rows, text_of, unpack

TEXTS = Path(__file__).parents[1] / "fixtures" / "listings"
"""What nvdisasm and triton 3.9 made of the vector addition in tests/browser/results.py, for sm_90a."""
KERNEL = KernelListing("add", "large", 0, "BLOCK=1024", "9\tLDC R1", "9\tret")


def test_real_machine_code_is_laid_to_the_lines_of_the_kernel() -> None:
    rows = list(sass_rows((TEXTS / "vector_add.sass").read_text(), "vector_add.py"))
    assert rows[0] == Row(9, "LDC R1, c[0x0][0x28]")
    stores = [row.line for row in rows if "STG" in row.text]
    loads = [row.line for row in rows if "LDG" in row.text]
    assert set(stores) == {15}
    assert set(loads) == {13, 14}
    assert {row.line for row in rows} == {0, 9, 11, 12, 13, 14, 15}


def test_real_ptx_is_laid_to_the_lines_of_the_kernel() -> None:
    rows = list(ptx_rows((TEXTS / "vector_add.ptx").read_text(), "vector_add.py"))
    assert {row.line for row in rows if "st.global" in row.text} == {15}
    assert {row.line for row in rows if "ld.global" in row.text} == {13, 14}
    # Neither registers that are declared nor what debuggers read.
    assert not any(row.text.startswith(".") for row in rows)


def test_what_was_inlined_from_elsewhere_belongs_to_the_line_that_called_it() -> None:
    sass = (
        '\t//## File "/usr/triton/language/standard.py", line 290 inlined at "/tmp/kernel.py", line 14\n'
        '\t//## File "/tmp/kernel.py", line 14\n'
        "        /*0010*/                   FADD R1, R2, R3 ;\n"
        '\t//## File "/usr/triton/language/standard.py", line 12\n'
        "        /*0020*/                   FADD R4, R2, R3 ;\n"
    )
    assert list(sass_rows(sass, "kernel.py")) == [Row(14, "FADD R1, R2, R3"), Row(0, "FADD R4, R2, R3")]
    ptx = (
        '.file 1 "/tmp/kernel.py"\n.file 2 "/usr/standard.py"\n{\n'
        ".loc 2 290 12, function_name $L__1, inlined_at 1 14 4\n add.f32 %f1, %f2, %f3;\n"
        ".loc 2 12 12\n add.f32 %f4, %f2, %f3;\n}\n"
    )
    assert [row.line for row in ptx_rows(ptx, "kernel.py")] == [14, 0]


def test_a_file_whose_name_only_ends_alike_is_another() -> None:
    text = '//## File "/x/notkernel.py", line 3\n /*0000*/ NOP ;\n'
    assert list(sass_rows(text, "kernel.py")) == [Row(0, "NOP")]


def test_rows_survive_and_nothing_in_them_can_break_out_of_its_row() -> None:
    rows = [Row(3, "MOV\tR1"), Row(0, "a\x1b[31m\u202e")]
    assert rows_of(text_of(rows)) == (Row(3, "MOV R1"), Row(0, "a�[31m�"))


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    rows_of(text)
    rows_of(text_of(list(sass_rows(text, "kernel.py"))))
    rows_of(text_of(list(ptx_rows(text, "kernel.py"))))


def test_a_long_listing_ends_with_how_much_is_missing() -> None:
    rows = rows_of(text_of([Row(1, "NOP")] * (listings.MOST_ROWS + 5)))
    assert len(rows) == listings.MOST_ROWS
    assert rows[-1] == Row(0, "… 6 more rows")


def test_a_file_comes_back_as_it_was() -> None:
    made = Listings("sm_90a", (KERNEL, replace(KERNEL, launch=1)), left_out=2)
    assert unpack(pack(made)) == made


def test_kernels_without_room_are_counted_and_the_first_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings, "MOST_TEXT", 2 * len(KERNEL.sass + KERNEL.ptx))
    found = unpack(pack(Listings("sm_90a", (KERNEL,) * 5, left_out=1)))
    assert (len(found.kernels), found.left_out) == (2, 4)
    monkeypatch.setattr(listings, "MOST_BYTES", 10)
    assert unpack(pack(Listings("sm_90a", (KERNEL,)))) == Listings("sm_90a", (), 1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no compressed text",
        zlib.compress(b"{}"),
        zlib.compress(b'{"target": 3}'),
        zlib.compress(b" " * (codec.MAX_BYTES + 1)),
        pack(Listings("sm_90a", (KERNEL,)))[:-10],
    ],
    ids=["empty", "other", "no fields", "another type", "a bomb", "cut off"],
)
def test_what_is_no_such_file_is_refused(data: bytes) -> None:
    with pytest.raises(ContractError):
        unpack(data)
