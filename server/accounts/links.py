"""Links that let somebody set a password, once: asked for by whoever forgot theirs, or sent with an invitation.

What is answered never says whether an address has an account. The table holds only the link's hash; its text stands in
the mail, which is erased once it was sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import quote

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session, joinedload

from server import audit, ids
from server.accounts import accounts, places
from server.accounts.places import Place, network_of
from server.db import now
from server.errors import NotFoundError, TooManyError
from server.messages import messages
from server.models import LinkPurpose, LinkRequest, PasswordLink, User

RESET_FOR = timedelta(hours=1)
INVITED_FOR = timedelta(days=14)
PER_EMAIL = 3
PER_ADDRESS = 60
"""So often in `_WINDOW`: a campus may have one address for everybody, a person has one mailbox."""
_WINDOW = timedelta(hours=1)
_KEPT = timedelta(days=1)
PAGE = "/password"
_GONE = "This link has been used or has expired. Ask for a new one."


@dataclass(frozen=True)
class Opened:
    """A link that is still good, and whose password it sets."""

    user: User
    purpose: LinkPurpose


def request_reset(session: Session, *, email: str, address: str) -> None:
    """Send a link to whoever has an account with this address; nothing says whether anybody does.

    Raises:
        TooManyError: it was asked for too often for this address, or from this network address.
    """
    email, at, address = accounts.plain_email(email), now(session), network_of(address)
    _refuse_too_many(session, email=email, address=address, at=at)
    session.add(LinkRequest(address=address, email=email, at=at))
    user = session.scalar(select(User).where(User.email == email, User.disabled_at.is_(None)))
    if user is None:
        return
    url = _new_link(session, user, LinkPurpose.reset, at + RESET_FOR)
    audit.record(session, action="user.reset_asked", subject=f"user:{user.id}", detail={"from": address})
    messages.send_mail(
        session,
        user,
        subject="Set a new password",
        body="Somebody, probably you, asked to reset your password. Open this link within an hour to set a new one. "
        "If this was not you, ignore this mail: your password stays as it is.",
        url=url,
    )


def invite(session: Session, user: User, *, to: str = "Kernel Ladder", actor: User | None = None) -> str:
    """Make the link with which somebody sets their first password, mail it, and return its path on our host.

    An older invitation of theirs ends. It is for staff who enrol people; the path is a secret until it is used.

    Args:
        to: what they are invited to, such as a course's title.
    """
    url = _new_link(session, user, LinkPurpose.invitation, now(session) + INVITED_FOR)
    audit.record(session, action="user.invited", subject=f"user:{user.id}", actor=actor)
    messages.send_mail(
        session,
        user,
        subject=f"Your account for {to}",
        body=f"An account was created for you in {to}. Open this link within {INVITED_FOR.days} days to choose its"
        f" password, then log in with {user.email}.",
        url=url,
    )
    return url


def opened(session: Session, token: str) -> Opened:
    """Whose password this link sets; looking at it does not use it up.

    Raises:
        NotFoundError: it was used, is too old, or never was.
    """
    link = session.scalar(
        select(PasswordLink)
        .join(User, User.id == PasswordLink.user_id)
        .where(
            PasswordLink.token_hash == ids.token_hash(token),
            PasswordLink.expires_at > now(session),
            User.disabled_at.is_(None),
        )
        .options(joinedload(PasswordLink.user))
    )
    if link is None:
        raise NotFoundError(_GONE)
    return Opened(link.user, link.purpose)


def set_password(session: Session, token: str, password: str, *, place: Place | None = None) -> User:
    """Use the link up: its password is the account's from now on, every login, token and other link of theirs ends.

    Args:
        place: where it is used; whoever has the mailbox may log in from there, whatever failed before.

    Raises:
        InvalidInputError: the password is too short or too long; the link stays good.
        NotFoundError: as `opened`.
    """
    found = opened(session, token)
    # Two may have opened it; the row's lock lets one of them through.
    taken = delete(PasswordLink).where(PasswordLink.token_hash == ids.token_hash(token)).returning(PasswordLink.user_id)
    if session.execute(taken).one_or_none() is None:
        raise NotFoundError(_GONE)
    accounts.set_password(session, found.user, password, actor=found.user)
    if place is not None:
        places.remember(session, found.user, place)
    messages.send_mail(
        session,
        found.user,
        subject="Your password was set",
        body="Your password was set by the link in a mail. All sessions were logged out and all command-line tokens "
        "were revoked. If this was not you, reset your password at once and tell your course's staff.",
        url="/account",
    )
    return found.user


def forget_old(session: Session, *, now: datetime) -> None:
    """Remove links that are over, and what the rate limit does not need any more."""
    session.execute(delete(PasswordLink).where(PasswordLink.expires_at < now))
    session.execute(delete(LinkRequest).where(LinkRequest.at < now - _KEPT))


def _new_link(session: Session, user: User, purpose: LinkPurpose, until: datetime) -> str:
    token = ids.session_token()
    session.execute(delete(PasswordLink).where(PasswordLink.user_id == user.id, PasswordLink.purpose == purpose))
    session.add(
        PasswordLink(
            user_id=user.id,
            purpose=purpose,
            token_hash=ids.token_hash(token),
            created_at=now(session),
            expires_at=until,
        )
    )
    session.flush()
    # After the question mark: the log has each request's path.
    return f"{PAGE}?token={quote(token)}"


def _refuse_too_many(session: Session, *, email: str, address: str, at: datetime) -> None:
    for whose, most in ((LinkRequest.email == email, PER_EMAIL), (LinkRequest.address == address, PER_ADDRESS)):
        count, oldest = session.execute(
            select(func.count(), func.min(LinkRequest.at)).where(whose, LinkRequest.at > at - _WINDOW)
        ).one()
        if count >= most:
            raise TooManyError(
                "Too many password resets were requested. Check your mailbox, or try again in an hour.",
                retry_after_s=max(1.0, (oldest + _WINDOW - at).total_seconds()),
            )
