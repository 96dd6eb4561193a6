"""What ends a command: one tree, each with the exit status that a script sees.

    ClientError              a click.ClickException: its message goes to stderr
    ├── UsageError       2   something about how the command was called, or about a file on this machine
    │   └── NotThereError    the server has nothing of that name
    ├── OursError        3   our side failed: the server, the judge, a node
    └── ReachError       4   the server cannot be reached, or does not let you in
        ├── CodeNeededError  it asks for the code of a second factor
        └── NoAnswerError    it was reached, and what it did is not known

A verdict is not an error: 0 is passed, 1 is any other verdict of the student's.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

PASSED = 0
NOT_PASSED = 1
USAGE = 2
OURS = 3
REACH = 4

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: object) -> str:
    """The text without what could steer a terminal."""
    return _CONTROL.sub("�", str(text))


class ClientError(click.ClickException):
    """Something that the reader of the message can act on."""

    exit_code = OURS

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # When it is shown, the command that raised it is no longer current.
        context = click.get_current_context(silent=True)
        self._as_json = context is not None and bool(context.params.get("as_json"))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it; as a JSON document where the command was asked for JSON."""
        if self._as_json:
            click.echo(json.dumps({"error": self.message, "exit_code": self.exit_code}))
            return
        click.echo(f"ladder: {clean(self.message)}", file=file or sys.stderr, err=True)


class UsageError(ClientError):
    """Something about how the command was called, or about a file on this machine."""

    exit_code = USAGE


class NotThereError(UsageError):
    """The server has nothing of that name."""


class OursError(ClientError):
    """Our side failed: the server, the judge or a node."""

    exit_code = OURS


class ReachError(ClientError):
    """The server cannot be reached, or does not let you in."""

    exit_code = REACH


class CodeNeededError(ReachError):
    """The server asks for the code of a second factor."""


class NoAnswerError(ReachError):
    """A request was sent and no answer came: it may have been done all the same."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system refuses in this block is said in a sentence about `path`, or about the file that it names."""
    try:
        yield
    except OSError as error:
        named = error.filename if isinstance(error.filename, str) else path
        raise UsageError(f"{named} cannot be written: {error.strerror or error}.") from None
