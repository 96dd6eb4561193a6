"""Where somebody logged in before: what they never lose because strangers fail at their account.

A place is a network (an IPv4 address, or the /64 of an IPv6 address) or a browser, which has a cookie since it logged
in. The table holds the cookie's hash, bound to the account.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Select, delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from server import ids
from server.db import now
from server.models import KnownPlace, User

KEPT = timedelta(days=400)
MOST = 100
"""So many places of one account are known, those that it logged in from last."""
_SUBNET = 64
_DEVICE_CHARS = 100


@dataclass(frozen=True)
class Place:
    """Where a log-in comes from.

    Attributes:
        address: the network address, for people to read.
        device: the text of the browser's cookie; `""`: it has none.
    """

    address: str
    device: str = ""

    @property
    def network(self) -> str:
        """What quotas count."""
        return network_of(self.address)

    @property
    def browser(self) -> str:
        """The mark of the browser, `""` if it has none."""
        return f"device:{ids.token_hash(self.device)[:48]}" if 0 < len(self.device) <= _DEVICE_CHARS else ""


def network_of(address: str) -> str:
    """The network that an address belongs to: whoever has one IPv6 address has a /64 of them."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.ip_network((int(found), _SUBNET), strict=False))
        found = found.ipv4_mapped
    return str(found)


def known(session: Session, user: User | None, place: Place) -> frozenset[str]:
    """Which of the place's two marks this account has logged in from."""
    if user is None:
        return frozenset()
    query = select(KnownPlace.mark).where(KnownPlace.user_id == user.id, KnownPlace.mark.in_(_marks(place)))
    return frozenset(session.scalars(query))


def all_known(user: User | None) -> Select[str]:
    """A query for every mark that this account has logged in from."""
    return select(KnownPlace.mark).where(KnownPlace.user_id == (user.id if user else None))


def remember(session: Session, user: User, place: Place) -> None:
    """This account logged in from here."""
    at = now(session)
    session.execute(delete(KnownPlace).where(KnownPlace.user_id == user.id, KnownPlace.seen_at < at - KEPT))
    for mark in _marks(place):
        _remember(session, user, mark, at)
    newest = select(KnownPlace.id).where(KnownPlace.user_id == user.id).order_by(KnownPlace.seen_at.desc())
    more = session.scalars(newest.order_by(KnownPlace.id.desc()).offset(MOST)).all()
    session.execute(delete(KnownPlace).where(KnownPlace.id.in_(more)))


def _remember(session: Session, user: User, mark: str, at: datetime) -> None:
    row = session.scalar(select(KnownPlace).where(KnownPlace.user_id == user.id, KnownPlace.mark == mark))
    if row is not None:
        row.seen_at = at
        return
    try:
        with session.begin_nested():
            session.add(KnownPlace(user_id=user.id, mark=mark, seen_at=at))
    except IntegrityError:
        # Another log-in wrote it down a moment ago.
        return


def _marks(place: Place) -> list[str]:
    return [mark for mark in (place.network, place.browser) if mark]
