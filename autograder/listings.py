"""Machine code and PTX as text, each line with the line of the source that it came from; one file for each target.

What is in them was said by processes that had loaded the submission, or read from bytes which such a process left: text
to show, never a fact to reckon with. Standard library only: the judge writes these files, the server reads them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from autograder import codec
from autograder.errors import ContractError

PREFIX = "machine-code."
"""A file's name is this and the target."""
MOST_BYTES = 900_000
"""Of a file; a node may leave 1 MiB."""
MOST_TEXT = 3 * 2**20
"""Of all listings of one target together, before they are compressed."""
MOST_ROWS = 8_000
"""Of one listing."""
MOST_CHARACTERS = 160
"""Of one row."""

_NUMBERED = re.compile(r"(\d{1,6})\t(.*)")
_SASS = re.compile(r"\s*/\*[0-9a-f]{1,8}\*/\s+(\S.*?)\s*;?\s*$")
_LABEL = re.compile(r"\s*(\.L_x_\d+|\$?[A-Za-z_][\w$]*):\s*$")
_PLACE = re.compile(r'"([^"]{1,400})", line (\d{1,6})')
_FILE = re.compile(r'\s*\.file\s+(\d{1,4})\s+"([^"]{1,400})"')
_LOC = re.compile(r"\s*\.loc\s+(\d{1,4})\s+(\d{1,6})\s+\d+(.*)")
_INLINED = re.compile(r"inlined_at\s+(\d{1,4})\s+(\d{1,6})")


@dataclass(frozen=True)
class Row:
    """An instruction or a label; `line` is the source's, 0 where it came from none of its lines."""

    line: int
    text: str


@dataclass(frozen=True)
class KernelListing:
    """One kernel's code; `case`, `launch` and `config` as in `contract.CompiledKernel`.

    Attributes:
        sass, ptx: rows as `line TAB text`, one to a line; `""` where there is none.
    """

    kernel: str
    case: str
    launch: int
    config: str
    sass: str = ""
    ptx: str = ""


@dataclass(frozen=True)
class Listings:
    """Every kernel of one target whose code there was room for; `left_out` counts the others."""

    target: str
    kernels: tuple[KernelListing, ...] = ()
    left_out: int = 0


def rows_of(text: str) -> tuple[Row, ...]:
    """A listing's rows; what is no row is left out."""
    found = (_NUMBERED.fullmatch(line) for line in text.split("\n")[:MOST_ROWS])
    return tuple(Row(int(row[1]), row[2][:MOST_CHARACTERS]) for row in found if row)


def text_of(rows: Sequence[Row]) -> str:
    """Rows as one text, without characters that do not print; a last row says how many more there are."""
    kept = [f"{row.line}\t{_printable(row.text)}" for row in rows[:MOST_ROWS]]
    left = len(rows) - len(kept)
    return "\n".join([*kept[: MOST_ROWS - 1], f"0\t… {left + 1} more rows"] if left else kept)


def sass_rows(text: str, filename: str) -> Iterator[Row]:
    """The instructions of `nvdisasm -c -gi`, each with its line of the file of that name, inlined or not."""
    line, in_places = 0, False
    for raw in text.split("\n"):
        if raw.lstrip().startswith("//##"):
            # The places of one instruction follow each other, the innermost first.
            line = 0 if not in_places else line
            line = next((int(place[1]) for place in _PLACE.findall(raw) if _is(place[0], filename)), line)
            in_places = True
        elif found := _SASS.match(raw):
            in_places = False
            yield Row(line, found[1])
        elif found := _LABEL.match(raw):
            in_places = False
            yield Row(0, f"{found[1]}:")


def ptx_rows(text: str, filename: str) -> Iterator[Row]:
    """The instructions and labels of PTX, by its `.file` and `.loc`; directives and debug sections are left out."""
    files = {found[1] for found in map(_FILE.match, text.split("\n")) if found and _is(found[2], filename)}
    line, inside = 0, False
    for raw in text.split("\n"):
        row = raw.partition("//")[0].strip().rstrip(";")
        if row.startswith(".section"):
            # Nothing but debug information follows.
            return
        if found := _LOC.match(raw):
            line = _line_in(found, files)
        elif row == "{":
            inside = True
        elif inside and row and row != "}" and not row.startswith((".", "$L__tmp", "$L__func")):
            yield Row(0 if row.endswith(":") else line, " ".join(row.split()))


def _line_in(loc: re.Match[str], files: set[str]) -> int:
    """Of a place in another file, the line that it was inlined at."""
    if loc[1] in files:
        return int(loc[2])
    inlined = _INLINED.search(loc[3])
    return int(inlined[2]) if inlined and inlined[1] in files else 0


def _is(path: str, filename: str) -> bool:
    return path == filename or path.endswith(f"/{filename}")


def _printable(text: str) -> str:
    kept = text.replace("\t", " ")[:MOST_CHARACTERS]
    return "".join(letter if letter.isprintable() else "�" for letter in kept)


def pack(listings: Listings) -> bytes:
    """A file's bytes; kernels that there is no room for are counted as left out, the last first."""
    kernels, room = [], MOST_TEXT
    for kernel in listings.kernels:
        room -= len(kernel.sass.encode()) + len(kernel.ptx.encode())
        if room < 0:
            break
        kernels.append(kernel)
    while True:
        left_out = listings.left_out + len(listings.kernels) - len(kernels)
        data = zlib.compress(codec.dumps(replace(listings, kernels=tuple(kernels), left_out=left_out)).encode())
        if len(data) <= MOST_BYTES or not kernels:
            return data
        kernels.pop()


def unpack(data: bytes) -> Listings:
    """What a file says.

    Raises:
        ContractError: it is no such file, or larger than one may be.
    """
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(data, codec.MAX_BYTES + 1)
    except zlib.error as error:
        raise ContractError("a listing is no compressed text") from error
    if reader.unconsumed_tail or len(text) > codec.MAX_BYTES:
        raise ContractError(f"listings have at most {codec.MAX_BYTES:,} bytes")
    return codec.loads(Listings, text)
