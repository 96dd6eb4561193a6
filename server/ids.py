"""Names and secrets that the server makes: public ids, traces, tokens and their hashes."""

from __future__ import annotations

import hashlib
import secrets
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no I, L, O or U."""
PUBLIC_ID_CHARS = 26
TOKEN_START_CHARS = 10
"""So much of an API token is stored in clear, so that its owner can tell tokens apart."""


def public_id() -> str:
    """A new id for URLs: 48 bits of milliseconds, then 80 random bits; ids sort by the time they were made."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (2**48 - 1)) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5))


def trace_id() -> str:
    """A new id that follows one HTTP request to the last log line of its grading."""
    return secrets.token_hex(16)


def session_token() -> str:
    """A new secret for a cookie or a form."""
    return secrets.token_urlsafe(32)


def api_token() -> str:
    """A new secret for the command line; its prefix lets secret scanners know it."""
    return f"kl_{secrets.token_urlsafe(32)}"


def token_hash(token: str) -> str:
    """What the database keeps of a token. Tokens have 256 random bits, so that a plain digest suffices."""
    return hashlib.sha256(token.encode()).hexdigest()
