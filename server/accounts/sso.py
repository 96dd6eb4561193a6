"""Identities that people have elsewhere: begin a log-in there, and say whose account it is that came back."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from server import audit, ids
from server.accounts import accounts
from server.accounts.oidc import Person
from server.accounts.places import network_of
from server.accounts.providers import Provider
from server.db import now
from server.errors import ConflictError, NotFoundError, TooManyError, UnauthenticatedError
from server.messages import messages
from server.models import OutsideIdentity, OutsideLogin, User

BACK_WITHIN = timedelta(minutes=10)
PER_ADDRESS = 300
"""So many may be on their way at once from one network address: a campus may have only one."""
_OVER = "This log-in took too long, is finished already, or began in another browser. Start again."
_NAME_CHARS = 120


@dataclass(frozen=True)
class Departure:
    """Somebody who is sent to a provider: what goes there and what stays in their browser's cookie."""

    state: str
    nonce: str
    verifier: str
    browser: str


def depart(
    session: Session, provider: Provider, *, target: str, address: str, link_to: User | None = None
) -> Departure:
    """Write down that somebody is sent to a provider, to log in or to link what they are there with an account.

    Raises:
        TooManyError: too many are on their way from this network address.
    """
    at, network = now(session), network_of(address)
    session.execute(delete(OutsideLogin).where(OutsideLogin.expires_at < at))
    waiting = select(func.count(OutsideLogin.id)).where(OutsideLogin.address == network)
    if (session.scalar(waiting) or 0) >= PER_ADDRESS:
        raise TooManyError("There were too many log-in attempts. Try again in a few minutes.", retry_after_s=60)
    gone = Departure(
        state=ids.session_token(),
        nonce=ids.session_token(),
        verifier=secrets.token_urlsafe(48),
        browser=ids.session_token(),
    )
    session.add(
        OutsideLogin(
            state_hash=ids.token_hash(gone.state),
            browser_hash=ids.token_hash(gone.browser),
            provider=provider.slug,
            nonce=gone.nonce,
            verifier=gone.verifier,
            target=target[:500],
            user_id=link_to.id if link_to else None,
            address=network,
            expires_at=at + BACK_WITHIN,
        )
    )
    return gone


def arrive(session: Session, provider: Provider, *, state: str, browser: str) -> OutsideLogin:
    """The log-in that this answer belongs to, once.

    Raises:
        UnauthenticatedError: there is none, it is over, or another browser began it.
    """
    taken = delete(OutsideLogin).where(
        OutsideLogin.state_hash == ids.token_hash(state),
        OutsideLogin.browser_hash == ids.token_hash(browser),
        OutsideLogin.provider == provider.slug,
    )
    found = session.execute(taken.returning(OutsideLogin)).scalar_one_or_none()
    if found is None or found.expires_at <= now(session):
        raise UnauthenticatedError(_OVER)
    return found


def account_of(session: Session, provider: Provider, person: Person) -> User:
    """Whose account this is, by the provider's policy; a new one where it may make accounts.

    Raises:
        UnauthenticatedError: it is nobody's, and the message says what to do.
    """
    known = _known(session, person)
    if known is not None:
        user = session.get_one(User, known.user_id)
        if user.disabled_at is not None:
            raise UnauthenticatedError("This account is closed.")
        known.last_used_at = now(session)
        return user
    if not person.email or not provider.takes(person.email):
        raise UnauthenticatedError(
            f"{provider.name} gave no verified e-mail address that is accepted here. If you have an account, log in "
            "with its password and link it on your account page."
        )
    owner = session.scalar(select(User).where(User.email == person.email))
    return _made(session, provider, person) if owner is None else _claimed(session, provider, person, owner)


def link(session: Session, provider: Provider, person: Person, user: User) -> OutsideIdentity:
    """Let this identity log in to this account.

    Raises:
        ConflictError: it logs in to another one.
    """
    known = _known(session, person)
    if known is not None and known.user_id == user.id:
        return known
    at = now(session)
    row = OutsideIdentity(
        user_id=user.id, issuer=person.issuer, subject=person.subject, email=person.email[:254], created_at=at
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        raise ConflictError(f"This identity at {provider.name} logs in to another account.") from None
    detail = {"provider": provider.slug, "identity": row.id}
    audit.record(session, action="user.identity_linked", subject=f"user:{user.id}", actor=user, detail=detail)
    messages.send_mail(
        session,
        user,
        subject=f"{provider.name} can log in to your account",
        body=f"From now on you can log in to your account here through {provider.name}. If you did not link it, "
        f"unlink it on your account page, change your password and tell your course's staff.",
        url="/account",
    )
    return row


def unlink(session: Session, user: User, identity_id: int) -> None:
    """End it.

    Raises:
        NotFoundError: it is not theirs, or not there.
        ConflictError: nothing else lets them in.
    """
    # Two at once must not take away the last two: the account's row is the lock.
    row = session.scalars(select(User).where(User.id == user.id).with_for_update()).one()
    found = identities_of(session, user)
    identity = next((item for item in found if item.id == identity_id), None)
    if identity is None:
        raise NotFoundError("There is no such identity.")
    if row.password_hash is None and len(found) == 1:
        raise ConflictError(
            "This is the only way into your account. Set a password first: “Forgot your password?” sends a link."
        )
    session.delete(identity)
    detail = {"issuer": identity.issuer, "identity": identity.id}
    audit.record(session, action="user.identity_unlinked", subject=f"user:{user.id}", actor=row, detail=detail)


def identities_of(session: Session, user: User) -> Sequence[OutsideIdentity]:
    """Who somebody is elsewhere, the oldest first."""
    query = select(OutsideIdentity).where(OutsideIdentity.user_id == user.id).order_by(OutsideIdentity.id)
    return session.scalars(query).all()


def named(identities: Sequence[OutsideIdentity], providers: Sequence[Provider]) -> Mapping[int, str]:
    """What each identity's provider is called; its issuer where it is none any more."""
    names = {provider.issuer: provider.name for provider in providers}
    return {identity.id: names.get(identity.issuer, identity.issuer) for identity in identities}


def forget_old(session: Session) -> None:
    """Remove log-ins that nobody came back from."""
    session.execute(delete(OutsideLogin).where(OutsideLogin.expires_at < now(session)))


def _known(session: Session, person: Person) -> OutsideIdentity | None:
    same = (OutsideIdentity.issuer == person.issuer, OutsideIdentity.subject == person.subject)
    return session.scalar(select(OutsideIdentity).where(*same))


def _claimed(session: Session, provider: Provider, person: Person, user: User) -> User:
    if user.disabled_at is not None:
        raise UnauthenticatedError("This account is closed.")
    if not provider.links_by_email or user.is_admin:
        # An admin's account is linked by hand: whoever runs the provider must not become one.
        raise UnauthenticatedError(
            f"An account with your e-mail address exists, but {provider.name} is not linked to it. Log in with its "
            "password and link it on your account page."
        )
    link(session, provider, person, user)
    return user


def _made(session: Session, provider: Provider, person: Person) -> User:
    if not provider.makes_accounts:
        raise UnauthenticatedError(
            f"No account here has the e-mail address that {provider.name} gave. Ask the staff of your course."
        )
    name = messages.one_line(person.name, _NAME_CHARS) or person.email.partition("@")[0][:_NAME_CHARS]
    user = accounts.create_user(session, email=person.email, name=name, password=None)
    link(session, provider, person, user)
    return user
