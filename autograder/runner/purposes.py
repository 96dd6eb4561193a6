"""What a runner is for: how its toolchain is imported, once, and what each runner does with its channel."""

from __future__ import annotations

import socket
from collections.abc import Callable

from autograder.contract import Lane, Language
from autograder.runner import languages, session
from autograder.sandbox import Purpose

Serve = Callable[[socket.socket], None]


def warmed(purpose: Purpose, language: Language, lane: Lane) -> Serve:
    """Import everything that a runner of this purpose needs; what it then does with its end of the channel."""
    if purpose is Purpose.compile:
        # What a compiler imports is of no use to the others.
        from autograder.compile_checks import session as compiling  # noqa: PLC0415

        compiling.warm()
        return compiling.serve
    loader = languages.get(language, lane)
    loader.warm()
    return lambda channel: session.serve(channel, loader)
