"""Passwords by argon2id, and no difference in time between a wrong password and an unknown person."""

from __future__ import annotations

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from server.errors import InvalidInputError

MIN_CHARS = 10
MAX_CHARS = 200
"""A longer one would only make the server work."""

# OWASP's floor for argon2id. With more memory forty parallel log-ins, one per thread, would take gigabytes; and on
# SQLite a log-in holds the write lock while it verifies, so that it has to stay near 20 ms.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def hash_password(password: str) -> str:
    """Hash a password that a person chose.

    Raises:
        InvalidInputError: it is too short or too long.
    """
    if len(password) < MIN_CHARS:
        raise InvalidInputError(f"A password has at least {MIN_CHARS} characters.", field="password")
    if len(password) > MAX_CHARS:
        raise InvalidInputError(f"A password has at most {MAX_CHARS} characters.", field="password")
    return _HASHER.hash(password)


def is_right(password: str, stored: str | None) -> bool:
    """Whether `password` is the one that `stored` is the hash of; takes as long where there is nobody."""
    try:
        # Beyond the limit it can be nobody's password, and hashing it would be work for an attacker's benefit.
        _HASHER.verify(stored or _nobodys_hash(), password[:MAX_CHARS])
    except (VerifyMismatchError, InvalidHashError, UnicodeEncodeError):
        # The last one: JSON can hold half a surrogate pair, which is no character of a password.
        return False
    return stored is not None and len(password) <= MAX_CHARS


def is_outdated(stored: str) -> bool:
    """Whether it was hashed with other parameters than today's."""
    return _HASHER.check_needs_rehash(stored)


@cache
def _nobodys_hash() -> str:
    return _HASHER.hash("nobody has this password")
