"""Make accounts, log people in and out, and give them tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, joinedload

from server import audit, ids
from server.accounts import handles, passwords, places
from server.accounts.places import Place
from server.config import Config
from server.db import after_rollback
from server.errors import ConflictError, InvalidInputError, NotFoundError, TooManyError, UnauthenticatedError
from server.messages import messages
from server.models import ApiToken, LoginAttempt, LoginChallenge, LoginSession, PasswordLink, TokenScope, User

_EMAIL = re.compile(r"[^@\s\x00-\x1f]+@[^@\s\x00-\x1f]+")
_NAME_CHARS = 120
_TOKEN_NAME_CHARS = 80
STUDENT_SCOPES = (TokenScope.read, TokenScope.submit)
_TOKEN_LIVES = timedelta(days=90)
_WINDOW = timedelta(hours=1)
"""Failures of so long count; older ones are swept."""
_FIRST_WAIT = timedelta(seconds=15)
_LONGEST_WAIT = timedelta(minutes=15)
_SEEN_EVERY = timedelta(minutes=5)
"""How old `last_seen_at` and `last_used_at` may grow: a write per request would make every reader a writer."""
_PER_EMAIL = 3
"""So many times as often may an e-mail address fail in all, from places that it has never logged in from."""
_PER_ADDRESS = 10
"""So many times as often may a network address fail in all: a campus may have only one for everybody."""


def create_user(
    session: Session,
    *,
    email: str,
    name: str,
    password: str | None,
    is_admin: bool = False,
    handle: str | None = None,
    actor: User | None = None,
) -> User:
    """Make an account. Without a password somebody logs in from elsewhere, or sets one by an invitation's link.

    Raises:
        InvalidInputError: e-mail address, name or password cannot be taken.
        ConflictError: the e-mail address or the handle has an account.
    """
    user = User(
        email=_checked_email(email),
        name=_checked_text(name, "name", _NAME_CHARS),
        handle=handle or handles.new_handle(session),
        password_hash=None if password is None else passwords.hash_password(password),
        is_admin=is_admin,
        created_at=datetime.now(UTC),
    )
    try:
        with session.begin_nested():
            session.add(user)
    except IntegrityError:
        raise ConflictError("An account with this e-mail address or handle exists already.") from None
    audit.record(
        session,
        action="user.created",
        subject=f"user:{user.id}",
        actor=actor,
        detail={"email": user.email, "is_admin": is_admin},
    )
    return user


def user_by_email(session: Session, email: str) -> User:
    """The account with this e-mail address, for staff commands.

    Raises:
        NotFoundError: there is none.
    """
    user = session.scalar(select(User).where(User.email == email.strip().lower()))
    if user is None:
        raise NotFoundError(f"There is no account with the e-mail address {email.strip()!r}.")
    return user


def lock_user(session: Session, user: User, *, beside: Collection[int] = ()) -> User:
    """Let what a person hands in go one by one, so that numbers and quotas hold; on SQLite all writers queue anyway.

    Args:
        beside: other people to lock with them, all in one order for everybody; their group shares its quota.
    """
    query = select(User).where(User.id.in_(sorted({user.id, *beside}))).order_by(User.id)
    rows = session.scalars(query.with_for_update(key_share=True)).all()
    return next(row for row in rows if row.id == user.id)


def set_password(
    session: Session, user: User, password: str, *, keep: LoginSession | None = None, actor: User | None = None
) -> None:
    """Give an account another password; its logins end, but for `keep`, with its tokens and links to a new password.

    Raises:
        InvalidInputError: the password is too short or too long.
    """
    user.password_hash = passwords.hash_password(password)
    end_everywhere(session, user, keep=keep)
    session.execute(delete(PasswordLink).where(PasswordLink.user_id == user.id))
    audit.record(session, action="user.password_set", subject=f"user:{user.id}", actor=actor)


def change_password(
    session: Session, who: LoginSession, *, current: str, password: str, place: Place, config: Config
) -> None:
    """Give oneself another password; everybody else who is logged in is logged out, and the mailbox is told.

    Raises:
        InvalidInputError: the current password is another, or the new one cannot be taken.
        TooManyError: too many wrong ones.
    """
    user = session.get_one(User, who.user_id)
    try:
        authenticate(session, email=user.email, password=current, place=place, config=config)
    except UnauthenticatedError:
        raise InvalidInputError("That is not your current password.", field="current") from None
    set_password(session, user, password, keep=who, actor=user)
    messages.send_mail(
        session,
        user,
        subject="Your password was changed",
        body="Your password was changed on your account page. All other sessions were logged out and all "
        "command-line tokens were revoked. If this was not you, reset your password at once and tell your course's "
        "staff.",
        url="/account",
    )


def authenticate(session: Session, *, email: str, password: str, place: Place, config: Config) -> User:
    """The person with this e-mail address and password.

    A failure is written down after the transaction that it ends was rolled back, or the rate limit would forget it.
    Where the account knows the place, only what failed there counts, so that no stranger can lock anybody out.

    Raises:
        UnauthenticatedError: there is no such person, or the password is another.
        TooManyError: after too many failures somebody has to wait, longer after each.
    """
    email = plain_email(email)
    user = session.scalar(select(User).where(User.email == email))
    here = refuse_waiting(session, user, email=email, place=place, config=config)
    stored = user.password_hash if user and user.disabled_at is None else None
    if not passwords.is_right(password, stored) or user is None or stored is None:
        after_rollback(session, failure(address=here, email=email))
        raise UnauthenticatedError("No account has this e-mail address and password.")
    if passwords.is_outdated(stored):
        user.password_hash = passwords.hash_password(password)
    return user


def refuse_waiting(session: Session, user: User | None, *, email: str, place: Place, config: Config) -> str:
    """What a failure here counts for, as `failure` takes it.

    Raises:
        TooManyError: after too many failures somebody has to wait, longer after each.
    """
    now, known = datetime.now(UTC), places.known(session, user, place)
    here = place.browser if place.browser in known else place.network
    _have_wait(
        session, and_(LoginAttempt.address == here, LoginAttempt.email == email), config.login_quota_per_hour, now
    )
    if not known:
        elsewhere = LoginAttempt.email == email, LoginAttempt.address.not_in(places.all_known(user))
        _have_wait(session, LoginAttempt.address == here, config.login_quota_per_hour * _PER_ADDRESS, now)
        _have_wait(session, and_(*elsewhere), config.login_quota_per_hour * _PER_EMAIL, now)
    return here


def failure(*, address: str, email: str) -> Callable[[Session], None]:
    """What writes a failed log-in down, for after the rollback."""
    at = datetime.now(UTC)

    def write(session: Session) -> None:
        session.execute(delete(LoginAttempt).where(LoginAttempt.at < at - _WINDOW))
        session.add(LoginAttempt(address=address[:64], email=email, at=at))

    return write


def plain_email(typed: str) -> str:
    """An address as it is stored, `""` for what is in nobody's: a zero byte, or half a surrogate pair.

    No database can be asked for those.
    """
    email = typed.strip().lower()[:254]
    return email if email.isprintable() else ""


def start_login(
    session: Session, user: User, *, place: Place, agent: str, config: Config, is_strong: bool = False
) -> tuple[LoginSession, str]:
    """Start a login for somebody who is known already: its row and the token for the cookie, which is stored nowhere.

    Args:
        is_strong: they came by single sign-on, or with a second factor.
    """
    places.remember(session, user, place)
    token, now = ids.session_token(), datetime.now(UTC)
    login = LoginSession(
        user_id=user.id,
        user=user,
        token_hash=ids.token_hash(token),
        csrf_token=ids.session_token(),
        created_at=now,
        last_seen_at=now,
        expires_at=now + timedelta(days=config.session_days),
        agent=agent[:200],
        address=place.address[:64],
        is_strong=is_strong,
    )
    session.add(login)
    session.execute(delete(LoginSession).where(LoginSession.expires_at < now))
    session.flush()
    return login, token


def session_of(session: Session, token: str) -> LoginSession | None:
    """The login that a cookie's token belongs to, its user loaded; `None` if it ended or the account is closed."""
    login = session.scalar(
        select(LoginSession)
        .where(LoginSession.token_hash == ids.token_hash(token))
        .options(joinedload(LoginSession.user))
    )
    if login is None or login.expires_at <= datetime.now(UTC) or login.user.disabled_at is not None:
        return None
    return login


def log_out(session: Session, login: LoginSession) -> None:
    """End a login."""
    session.execute(delete(LoginSession).where(LoginSession.id == login.id))


def sessions_of(session: Session, user: User) -> list[LoginSession]:
    """Where a person is logged in, the one last seen first."""
    query = select(LoginSession).where(LoginSession.user_id == user.id, LoginSession.expires_at > datetime.now(UTC))
    return list(session.scalars(query.order_by(LoginSession.last_seen_at.desc())))


def revoke_session(session: Session, user: User, session_id: int) -> None:
    """End one of a person's own logins.

    Raises:
        NotFoundError: it is not theirs, or not there.
    """
    login = session.scalar(select(LoginSession).where(LoginSession.id == session_id, LoginSession.user_id == user.id))
    if login is None:
        raise NotFoundError("That login does not exist.")
    session.delete(login)


def end_everywhere(session: Session, user: User, *, keep: LoginSession | None) -> None:
    """End a person's logins, but for this one, and their tokens: who broke in may have made some."""
    theirs = delete(LoginSession).where(LoginSession.user_id == user.id)
    session.execute(theirs.where(LoginSession.id != keep.id) if keep else theirs)
    session.execute(delete(LoginChallenge).where(LoginChallenge.user_id == user.id))
    tokens = update(ApiToken).where(ApiToken.user_id == user.id, ApiToken.revoked_at.is_(None))
    session.execute(tokens.values(revoked_at=datetime.now(UTC)))


def token_end(config: Config, days: int | None = None) -> datetime:
    """When a token ends that is made now; without `days` as long from now as it is usual here.

    Raises:
        InvalidInputError: it would live longer than the configuration allows, or not at all.
    """
    most = config.token_days_most
    if days is not None and not 1 <= days <= most:
        raise InvalidInputError(f"A token is valid for 1 to {most} days.", field="days")
    return datetime.now(UTC) + timedelta(days=min(config.token_days, most) if days is None else days)


def create_token(
    session: Session,
    user: User,
    *,
    name: str,
    expires_at: datetime | None = None,
    scopes: Collection[TokenScope] = STUDENT_SCOPES,
    is_strong: bool = False,
) -> tuple[ApiToken, str]:
    """Make a token for the command line: its row, and the text, which is shown once and stored nowhere.

    Args:
        expires_at: as `token_end` says; `None`: in 90 days.
        scopes: what it opens; it reads in any case.
        is_strong: whoever makes it came by single sign-on, or with a second factor.

    Raises:
        InvalidInputError: the name is empty or too long.
    """
    text = ids.api_token()
    token = ApiToken(
        user_id=user.id,
        name=_checked_text(name, "name", _TOKEN_NAME_CHARS),
        token_hash=ids.token_hash(text),
        start=text[: ids.TOKEN_START_CHARS],
        created_at=datetime.now(UTC),
        expires_at=expires_at or datetime.now(UTC) + _TOKEN_LIVES,
        scopes=" ".join(scope for scope in TokenScope if scope in {TokenScope.read, *scopes}),
        is_strong=is_strong,
    )
    session.add(token)
    session.flush()
    return token, text


def token_of(session: Session, text: str) -> ApiToken | None:
    """The token with this text, its user loaded; `None` if it ended or the account is closed."""
    token = session.scalar(
        select(ApiToken).where(ApiToken.token_hash == ids.token_hash(text)).options(joinedload(ApiToken.user))
    )
    if token is None or token.revoked_at is not None or token.user.disabled_at is not None:
        return None
    return token if token.expires_at > datetime.now(UTC) else None


def user_of_token(session: Session, text: str) -> User | None:
    """Whose token this is; `None` as `token_of`."""
    token = token_of(session, text)
    return token.user if token else None


def tokens_of(session: Session, user: User) -> list[ApiToken]:
    """A person's tokens that were not revoked, newest first."""
    query = select(ApiToken).where(ApiToken.user_id == user.id, ApiToken.revoked_at.is_(None))
    return list(session.scalars(query.order_by(ApiToken.id.desc())))


def revoke_token(session: Session, user: User, token_id: int) -> None:
    """End one of a person's own tokens.

    Raises:
        NotFoundError: it is not theirs, or not there.
    """
    token = session.scalar(select(ApiToken).where(ApiToken.id == token_id, ApiToken.user_id == user.id))
    if token is None or token.revoked_at is not None:
        raise NotFoundError("There is no such token.")
    token.revoked_at = datetime.now(UTC)


def is_stale(seen_at: datetime | None) -> bool:
    """Whether a *last seen* is old enough to be written anew."""
    return seen_at is None or datetime.now(UTC) - seen_at > _SEEN_EVERY


def mark_seen(session: Session, *, login_id: int | None = None, token_id: int | None = None) -> None:
    """Write down that a login or a token is in use."""
    now = datetime.now(UTC)
    if login_id is not None and (login := session.get(LoginSession, login_id)) is not None:
        login.last_seen_at = now
    if token_id is not None and (token := session.get(ApiToken, token_id)) is not None:
        token.last_used_at = now


def checked_email(email: str) -> str:
    """An address as an account would have it.

    Raises:
        InvalidInputError: it is none.
    """
    return _checked_email(email)


def checked_name(name: str) -> str:
    """A person's name as an account would have it.

    Raises:
        InvalidInputError: it is empty, too long, or has characters that nobody sees.
    """
    return _checked_text(name, "name", _NAME_CHARS)


def _checked_email(email: str) -> str:
    email = email.strip().lower()
    if not _EMAIL.fullmatch(email) or len(email) > 254:  # noqa: PLR2004  # what a mailbox name may have, RFC 5321
        raise InvalidInputError("That is not an e-mail address.", field="email")
    return email


def _checked_text(text: str, field: str, most: int) -> str:
    text = " ".join(text.split())
    if not text or len(text) > most or not text.isprintable():
        raise InvalidInputError(f"A {field} has 1 to {most} printable characters.", field=field)
    return text


def _have_wait(session: Session, whose: ColumnElement[bool], free: int, now: datetime) -> None:
    """Refuse until it is time after the last failure: each one beyond `free` doubles the wait, up to a bound."""
    count, newest = session.execute(
        select(func.count(), func.max(LoginAttempt.at)).where(whose, LoginAttempt.at > now - _WINDOW)
    ).one()
    if count < free:
        return
    wait = min(_FIRST_WAIT * 2 ** min(count - free, 10), _LONGEST_WAIT)
    left_s = (newest + wait - now).total_seconds()
    if left_s > 0:
        raise TooManyError(
            f"Too many failed log-ins. Wait {math.ceil(left_s)} s, then try again. Each failure makes the wait longer.",
            retry_after_s=max(1.0, left_s),
        )
