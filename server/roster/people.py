"""A table of people as it was read: what each line says, and which lines cannot be meant. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from server import csv_io
from server.accounts import accounts
from server.csv_io import Column, Trouble
from server.errors import InvalidInputError
from server.models import Role

COLUMNS = (
    Column("email", ("e-mail", "e-mail address", "mail", "SIS Login ID", "login")),
    Column("name", ("full name", "student", "student name"), required=False),
    Column("section", ("sections", "group", "class"), required=False),
    Column("role", ("course role",), required=False),
    Column("student id", ("student number", "SIS User ID", "matriculation number", "id"), required=False),
)
MAX_PEOPLE = 2000
"""At once: whoever else wants to write on SQLite waits for as long as it takes to enrol them."""
STAFF_ONLY_BY_INSTRUCTORS = "Only an instructor can add, change or remove staff."
"""Of staff a TA changes nothing, a section and a student id neither."""
SECTION_CHARS = NUMBER_CHARS = 60
_ROLES = {
    "student": Role.student, "learner": Role.student, "ta": Role.ta, "teaching assistant": Role.ta, "tutor": Role.ta,
    "assistant": Role.ta, "instructor": Role.instructor, "teacher": Role.instructor, "lecturer": Role.instructor,
}  # fmt: skip


@dataclass(frozen=True)
class Person:
    """One line: who, and what it says about them. `None` and `""` are what it does not say."""

    line: int
    email: str
    name: str
    section: str
    role: Role | None
    student_number: str

    def to_json(self) -> dict[str, Any]:
        """Plain."""
        return {**asdict(self), "role": self.role.value if self.role else None}

    def to_cells(self) -> dict[str, str]:
        """What the line says, by the names of `COLUMNS`."""
        role = self.role.value if self.role else ""
        return {
            "email": self.email, "name": self.name, "section": self.section, "role": role,
            "student id": self.student_number,
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Person:
        """What `to_json` gave."""
        return cls(**{**data, "role": Role(data["role"]) if data["role"] else None})


@dataclass(frozen=True)
class People:
    """What a table says.

    Attributes:
        passed_over: columns that nobody asked for, as the table names them.
    """

    lines: tuple[Person, ...]
    troubles: tuple[Trouble, ...]
    passed_over: tuple[str, ...]


def read(data: bytes) -> People:
    """Read a table with a header.

    Raises:
        InvalidInputError: it is too large, is no table, or has no column for e-mail addresses.
    """
    table = csv_io.read(data, COLUMNS)
    if len(table.lines) > MAX_PEOPLE:
        raise InvalidInputError(
            f"The table has {len(table.lines):,} people; at most {MAX_PEOPLE:,} can be imported at once.", field="file"
        )
    lines, troubles = [], list(table.troubles)
    for line in table.lines:
        try:
            lines.append(person(line.cells, line=line.number))
        except InvalidInputError as error:
            troubles.append(Trouble(line.number, error.message, line.cells))
    cells = {line.number: line.cells for line in table.lines}
    said_twice = {one.line: Trouble(one.line, one.message, cells[one.line]) for one in _twice(lines)}
    kept = tuple(line for line in lines if line.line not in said_twice)
    found = sorted([*troubles, *said_twice.values()], key=lambda trouble: trouble.line)
    return People(kept, tuple(found), table.passed_over)


def person(cells: Mapping[str, str], *, line: int) -> Person:
    """What cells by the names of `COLUMNS` say.

    Raises:
        InvalidInputError: one of them cannot be taken.
    """
    return Person(
        line=line,
        email=_email(cells.get("email", "")),
        name=accounts.checked_name(cells["name"]) if cells.get("name", "").strip() else "",
        section=checked_section(cells.get("section", "")),
        role=_role(cells.get("role", "").strip()),
        student_number=checked_number(cells.get("student id", "")),
    )


def _email(text: str) -> str:
    try:
        return accounts.checked_email(text)
    except InvalidInputError:
        said = f"“{' '.join(text.split())[:60]}” is not an e-mail address." if text.strip() else "There is no address."
        raise InvalidInputError(said, field="email") from None


def checked_section(text: str) -> str:
    """A section's name as it is stored.

    Raises:
        InvalidInputError: it is too long, or has characters that nobody sees.
    """
    return _short(text, "section", SECTION_CHARS)


def checked_number(text: str) -> str:
    """A student number as it is stored.

    Raises:
        InvalidInputError: it is too long, or has characters that nobody sees.
    """
    return _short(text, "student id", NUMBER_CHARS)


def _short(text: str, what: str, most: int) -> str:
    text = " ".join(text.split())
    if len(text) > most or not text.isprintable():
        raise InvalidInputError(f"A {what} has at most {most} printable characters.", field=what)
    return text


def _role(text: str) -> Role | None:
    if not text:
        return None
    role = _ROLES.get(text.casefold())
    if role is None:
        raise InvalidInputError(f"“{text[:40]}” is not a role: use student, ta or instructor.", field="role")
    return role


def _twice(lines: Sequence[Person]) -> Iterator[Trouble]:
    """Lines about somebody who stands further up already, and those who share another's student id."""
    by_email: dict[str, Person] = {}
    by_number: dict[str, Person] = {}
    for line in lines:
        first = by_email.setdefault(line.email, line)
        owner = by_number.setdefault(line.student_number, line) if line.student_number else line
        if first is not line:
            yield Trouble(line.line, _again(first, line))
        elif owner is not line:
            yield Trouble(line.line, f"Line {owner.line} has the student id {line.student_number} already.")


def _again(first: Person, line: Person) -> str:
    if first.section != line.section:
        return (
            f"{line.email} is in line {first.line} already, in section “{first.section}”. A person has one section in "
            "a course."
        )
    return f"{line.email} is in line {first.line} already."
