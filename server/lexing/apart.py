"""Lexing in a process of its own: what a student wrote holds up nobody but itself."""

from __future__ import annotations

from collections.abc import Sequence

from pygments.token import string_to_tokentype

from server.apart.asking import APART, Apart
from server.lexing import lexers
from server.lexing.lexers import Token


def tokens(code: str, language: str, *, seconds: float, apart: Apart = APART) -> Sequence[Token]:
    """Every character of the code, in order.

    Raises:
        GivenUpError: it takes more than so many seconds of processor time, or there was no turn for it.
        NoProcessError: the process could not be begun, or has died.
    """
    found = apart.ask(lexers.named_tokens, code, language, seconds=seconds)
    return [(string_to_tokentype(kind.removeprefix("Token.")), value) for kind, value in found]
