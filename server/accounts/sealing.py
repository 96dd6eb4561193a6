"""Secrets that the database holds and a copy of it must not tell: encrypted by a key in a file of the server's."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken

from server.errors import LadderError


class SealedError(LadderError):
    """What the database holds was encrypted by another key than this server's."""


def seal(path: Path, text: str, *, owner: int) -> str:
    """The text, readable only by who has the key in `path`, which is made where there is none, and for this owner."""
    return _key(path).encrypt(f"{owner}:{text}".encode()).decode()


def unseal(path: Path, sealed: str, *, owner: int) -> str:
    """What was sealed.

    Raises:
        SealedError: by another key, or for somebody else.
    """
    try:
        whose, _, text = _key(path).decrypt(sealed).decode().partition(":")
    except InvalidToken:
        whose, text = "", ""
    if whose != str(owner):
        raise SealedError(
            "This second factor was set up with another server key and cannot be checked. Use a recovery code, or ask "
            "an admin to reset it."
        )
    return text


def _key(path: Path) -> Fernet:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # Another process of ours was faster.
            _make(path)
    return Fernet(path.read_bytes().strip())


def _make(path: Path) -> None:
    """Its owner's alone from the first byte on, and whole when it appears."""
    new = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(Fernet.generate_key() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link fails where the name is taken.
        os.link(new, path)
    finally:
        new.unlink()
