"""Whether bytes can be taken as the source of a submission, said so that a student can act on it."""

from __future__ import annotations

import re

from autograder.assignment import EXTENSIONS
from autograder.contract import MAX_SOURCE_BYTES, Language
from server.errors import InvalidInputError, TooLargeError

_FILENAME_CHARS = 120
_UNSAFE = re.compile(r"[^\w .+-]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
"""All but tabulator, line feed, form feed and carriage return. JSON writes each of these with six characters: a source
full of them would be stored and then fit into no message to a node."""


def check_source(source: bytes) -> None:
    """Refuse what is no source.

    Raises:
        TooLargeError: more than `MAX_SOURCE_BYTES`.
        InvalidInputError: empty, binary, not UTF-8, or with control characters; the message says which byte.
    """
    if len(source) > MAX_SOURCE_BYTES:
        raise TooLargeError(f"The source has {len(source):,} bytes; at most {MAX_SOURCE_BYTES:,} are accepted.")
    if not source.strip():
        raise InvalidInputError("The source is empty.", field="source")
    if (position := source.find(b"\0")) >= 0:
        raise InvalidInputError(
            f"The source looks like a binary file: byte {position + 1:,} is zero. Submit the source's text.",
            field="source",
        )
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise InvalidInputError(
            f"The source is not UTF-8: byte {error.start + 1:,} (0x{source[error.start]:02x}, line {line}) cannot be "
            "read. Save the file as UTF-8.",
            field="source",
        ) from None
    if found := _CONTROL.search(source):
        line = source.count(b"\n", 0, found.start()) + 1
        raise InvalidInputError(
            f"The source has a control character: byte {found.start() + 1:,} (0x{found[0][0]:02x}, line {line}). "
            f"In a string, write it as \\x{found[0][0]:02x}.",
            field="source",
        )


def clean_filename(filename: str, language: Language) -> str:
    """The last part of an uploaded file's name with nothing surprising in it; a default where nothing is left."""
    return clean_name(filename) or f"submission.{EXTENSIONS[language]}"


def clean_name(filename: str) -> str:
    """The last part of a file's name with nothing surprising in it; empty where nothing is left."""
    name = _UNSAFE.sub("_", filename.replace("\\", "/").rsplit("/", 1)[-1]).strip(" .")
    return name[-_FILENAME_CHARS:]
