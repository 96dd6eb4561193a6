"""Pseudonyms: what a leaderboard shows unless a student chooses to stand there by name."""

from __future__ import annotations

import secrets

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.models import User

_ADJECTIVES = (
    "amber", "brisk", "calm", "clever", "copper", "daring", "eager", "fleet", "gentle", "golden", "keen", "lucid",
    "mellow", "nimble", "patient", "quiet", "rapid", "sharp", "silver", "steady", "sunny", "tidy", "vivid", "witty",
)  # fmt: skip
_NOUNS = (
    "badger", "beaver", "bison", "crane", "dolphin", "falcon", "ferret", "gecko", "heron", "ibis", "jaguar", "kestrel",
    "lemur", "lynx", "marten", "narwhal", "ocelot", "osprey", "otter", "puffin", "raven", "stoat", "tapir", "wombat",
)  # fmt: skip


def new_handle(session: Session) -> str:
    """A pseudonym that nobody has: two words, and a number of two digits or, in a crowd, more."""
    for digits in (2, 2, 2, 3, 4, 6, 9):
        number = secrets.randbelow(9 * 10 ** (digits - 1)) + 10 ** (digits - 1)
        handle = f"{secrets.choice(_ADJECTIVES)}-{secrets.choice(_NOUNS)}-{number}"
        if session.scalar(select(User.id).where(User.handle == handle)) is None:
            return handle
    return f"student-{secrets.token_hex(8)}"
