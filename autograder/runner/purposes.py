"""What a runner is for: how its toolchain is imported, once, and what each runner does with its channel.

Nothing is imported that another purpose needs: a runner that only reads is there in a moment.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from autograder import languages as records
from autograder.contract import Lane, Language
from autograder.sandbox import Purpose

Serve = Callable[[socket.socket], None]


def warmed(purpose: Purpose, language: Language, lane: Lane) -> Serve:
    """Import everything that a runner of this purpose needs; what it then does with its end of the channel."""
    if purpose is Purpose.read:
        from autograder.compile_checks import reading  # noqa: PLC0415

        return reading.serve
    if purpose is Purpose.profile:
        from autograder.profiling import session as profiling  # noqa: PLC0415
        from autograder.runner import languages  # noqa: PLC0415

        loader = languages.get(language, lane)
        loader.warm()
        return lambda channel: profiling.serve(channel, loader)
    if purpose is Purpose.compile:
        warm: Callable[[], Serve] = records.imported(records.of(language).compiler)
        return warm()
    return _calling(language, lane)


def _calling(language: Language, lane: Lane) -> Serve:
    from autograder.runner import languages, session  # noqa: PLC0415

    loader = languages.get(language, lane)
    loader.warm()
    return lambda channel: session.serve(channel, loader)
