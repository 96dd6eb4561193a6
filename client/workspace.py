"""A rung's folder on the student's machine, as `ladder get` makes it.

vector_add/
    README.md, assignment.toml, problem.py, starters/, milestones/     the server's; `get` renews them
    vector_add.py                                                      the student's; `get` keeps what they changed
    .ladder.toml                                                       where all this came from
"""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from autograder import assignment as rungs
from autograder import languages
from autograder.contract import MAX_SOURCE_BYTES, Language
from autograder.errors import HarnessError
from client.errors import OursError, UsageError

NOTE = ".ladder.toml"


@dataclass(frozen=True)
class Note:
    """What `.ladder.toml` says: `file` is the student's own, relative to the folder."""

    server: str = ""
    course: str = ""
    slug: str = ""
    language: str = ""
    file: str = ""


@dataclass(frozen=True)
class Target:
    """A source and what it is for.

    Attributes:
        server: where the rung's folder came from, `""` where the file lies outside of one.
        folder: the rung's folder, `None` where the file lies outside of one.
        guessed: nobody said which assignment; the file's name is taken for it.
    """

    file: Path
    slug: str
    language: Language
    course: str
    server: str
    folder: Path | None
    guessed: bool = False


def is_rung(folder: Path, slug: str) -> bool:
    """Whether an earlier `get` of this assignment made the folder."""
    return (folder / NOTE).is_file() and _read_note(folder / NOTE).slug == slug


def unpack(archive: bytes, slug: str, folder: Path, *, renew: bool) -> None:
    """Put the server's files into `folder`.

    Args:
        renew: over files that are there already; otherwise one of them that says something else is an error.

    Raises:
        OursError: the archive is not what the server should send.
        UsageError: a file would be lost; nothing was written.
    """
    with tempfile.TemporaryDirectory() as draft:
        try:
            rungs.unpack(archive, Path(draft))
        except HarnessError as error:
            raise OursError(f"the server's archive cannot be unpacked: {error}") from None
        inside = Path(draft, "assignments", slug)
        if not inside.is_dir():
            raise OursError(f"the server's archive has no files of {slug}.")
        if not renew:
            _require_nothing_lost(inside, folder, slug)
        shutil.copytree(inside, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)


def _require_nothing_lost(inside: Path, folder: Path, slug: str) -> None:
    for new in sorted(path for path in inside.rglob("*") if path.is_file()):
        there = folder / new.relative_to(inside)
        if there.exists() and not (there.is_file() and there.read_bytes() == new.read_bytes()):
            raise UsageError(
                f"{there} exists already and was not made by `ladder get {slug}`. Give another folder, or --force to "
                "replace it."
            )


def place_starter(folder: Path, note: Note, starter: str, *, force: bool) -> str:
    """Put the starter where the student edits; say what happened: `written`, `unchanged`, `kept`, or `replaced`."""
    path = folder / note.file
    data = starter.encode()
    if not path.exists():
        path.write_bytes(data)
        return "written"
    if path.read_bytes() == data:
        return "unchanged"
    if not force:
        return "kept"
    path.write_bytes(data)
    return "replaced"


def write_note(folder: Path, note: Note) -> None:
    """Write `.ladder.toml`."""
    # A JSON string is a TOML string.
    lines = [f"{key} = {json.dumps(value)}" for key, value in asdict(note).items()]
    (folder / NOTE).write_text("# Written by `ladder get`.\n" + "\n".join(lines) + "\n", encoding="utf-8")


def find_note(start: Path) -> tuple[Path, Note] | None:
    """The nearest `.ladder.toml` in `start` or above it, with its folder."""
    for folder in (start, *start.parents):
        if (folder / NOTE).is_file():
            return folder, _read_note(folder / NOTE)
    return None


def _read_note(path: Path) -> Note:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return replace(Note(), **{key: str(value) for key, value in data.items() if key in asdict(Note())})
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def find_target(file: Path | None, slug: str | None, language: str | None) -> Target:
    """Guess what is not said: the file from the folder; slug and language from the folder or the file's name.

    Raises:
        UsageError: it cannot be guessed, or there is no such file.
    """
    start = (file.parent if file else Path()).resolve()
    found = find_note(start)
    folder, note = found or (None, Note())
    if file is None:
        if folder is None or not note.file:
            raise UsageError("name a file, or run this in a folder that `ladder get` made.")
        file = folder / note.file
    if not file.is_file():
        raise UsageError(f"there is no file {file}.")
    return Target(
        file=file,
        slug=slug or note.slug or file.stem,
        language=_language(file, language or (note.language if file.name == note.file else "")),
        course=note.course,
        server=note.server,
        folder=folder if not slug or slug == note.slug else None,
        guessed=not slug and not note.slug,
    )


def _language(file: Path, said: str) -> Language:
    if said:
        try:
            return Language(said)
        except ValueError:
            raise UsageError(f"{said!r} is not one of {', '.join(Language)}.") from None
    record = languages.of_file(file.name, file.read_text(encoding="utf-8", errors="replace"))
    if record is not None:
        return Language(record.id)
    raise UsageError(f"{file.name} does not show its language; pass --language {'|'.join(Language)}.")


def read_source(file: Path) -> str:
    """A source as text.

    Raises:
        UsageError: it is empty, longer than is accepted, or not UTF-8.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    if not data.strip():
        raise UsageError(f"{file} is empty.")
    if len(data) > MAX_SOURCE_BYTES:
        raise UsageError(f"{file} has {len(data)} bytes; at most {MAX_SOURCE_BYTES} are accepted.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: byte {error.start} cannot be read.") from None
