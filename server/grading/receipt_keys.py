"""The keys that sign receipts: the private half is a file of the server's, every public half a row that is kept.

A lost private key costs nothing: another one is made, and receipts that the old one signed can still be checked by its
public half. Whoever steals it can sign receipts that say anything; then rotate it, and say since when.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.signing import SigningKey
from server.config import Config
from server.models import ReceiptKey


def key_of(config: Config) -> SigningKey:
    """The key that signs now; made where there is none."""
    path = config.receipt_key
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # Another process of ours was faster.
            SigningKey.generate().save(path)
    return SigningKey.load(path)


def is_known(session: Session, key: SigningKey) -> bool:
    """Whether its public half is kept."""
    return session.scalar(select(ReceiptKey.id).where(ReceiptKey.public == key.public)) is not None


def keep(session: Session, key: SigningKey, *, now: datetime) -> None:
    """Keep its public half for ever."""
    if not is_known(session, key):
        session.add(ReceiptKey(public=key.public, created_at=now))
        session.flush()


def rotate(session: Session, config: Config, *, now: datetime) -> SigningKey:
    """Make another key sign from now on; the old one's private half is destroyed, its public half kept."""
    old = key_of(config)
    keep(session, old, now=now)
    session.scalars(select(ReceiptKey).where(ReceiptKey.public == old.public)).one().retired_at = now
    config.receipt_key.unlink()
    new = key_of(config)
    keep(session, new, now=now)
    return new


def all_keys(session: Session) -> Sequence[ReceiptKey]:
    """Every key that ever signed, the newest first."""
    return session.scalars(select(ReceiptKey).order_by(ReceiptKey.id.desc())).all()
