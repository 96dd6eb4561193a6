"""The second factor of staff: codes of an authenticator app (TOTP, RFC 6238, by pyotp), and recovery codes.

A code is good for its half minute and the one on either side, because clocks differ, and once. What fails counts as a
failed log-in does, so that the wait grows. The secret is encrypted in the database, recovery codes are hashed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyotp
from pyotp.exceptions import OTPVerificationError
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session, joinedload

from server import audit, ids
from server.accounts import accounts, sealing
from server.accounts.places import Place
from server.config import Config
from server.db import after_rollback, now
from server.errors import ConflictError, ForbiddenError, InvalidInputError, SecondFactorError, UnauthenticatedError
from server.messages import messages
from server.models import (
    ApiToken,
    Enrolment,
    LoginChallenge,
    LoginSession,
    RecoveryCode,
    Role,
    SecondFactor,
    User,
)

ISSUER = "Kernel Ladder"
SKEW = 1
"""How many half minutes a phone's clock may be away."""
RECOVERY_CODES = 10
ANSWER_WITHIN = timedelta(minutes=10)
"""So long after the password the code may come."""
SET_UP_WITHIN = timedelta(hours=1)
MOST_FAILURES = 5
"""So many wrong codes end the log-in, and the mailbox is told: whoever types them knows the password."""
_LETTERS = "abcdefghjkmnpqrstvwxyz23456789"
_PARTS, _PART_CHARS = 4, 4
"""Of a recovery code: 78 bits, so that a plain digest suffices."""
_SEPARATORS = re.compile(r"[\s-]+")
_WRONG = "That code is wrong, has expired, or has been used already."
_STAFF = (Role.ta, Role.instructor)


@dataclass(frozen=True)
class Begun:
    """A second factor that is being set up.

    Attributes:
        secret: for who types it, in groups of four.
        uri: for who scans it.
    """

    secret: str
    uri: str


@dataclass(frozen=True)
class Standing:
    """What somebody's page says of their second factor.

    Attributes:
        since: when it was set up; `None`: there is none.
        codes_left: recovery codes that were not used.
    """

    since: datetime | None
    codes_left: int


def is_staff(session: Session, user: User) -> bool:
    """Whether somebody is an admin, or of the staff of any course."""
    courses = select(Enrolment.id).where(
        Enrolment.user_id == user.id, Enrolment.role.in_(_STAFF), Enrolment.dropped_at.is_(None)
    )
    return user.is_admin or session.scalar(courses.limit(1)) is not None


def owes(session: Session, user: User, *, is_strong: bool, config: Config) -> bool:
    """Whether this person came with less than the staff need here."""
    return config.staff_second_factor == "required" and not is_strong and is_staff(session, user)


def is_set(session: Session, user: User) -> bool:
    """Whether somebody's password alone does not log them in."""
    return _confirmed(session, user) is not None


def standing(session: Session, user: User) -> Standing:
    """What their page says of it."""
    row = _confirmed(session, user)
    left = session.scalar(select(func.count(RecoveryCode.id)).where(RecoveryCode.user_id == user.id)) or 0
    return Standing(row.confirmed_at if row else None, left if row else 0)


def begin(session: Session, user: User, *, config: Config) -> None:
    """Make a secret for their app; it counts once they have shown a code of it.

    Raises:
        ForbiddenError: they are staff of nothing.
        ConflictError: they have a second factor.
    """
    if not is_staff(session, user):
        raise ForbiddenError("A second factor is for the staff of a course.")
    if is_set(session, user):
        raise ConflictError("You have a second factor already. Turn it off before you set up another.")
    session.execute(delete(SecondFactor).where(SecondFactor.user_id == user.id))
    secret = sealing.seal(config.second_factor_key, pyotp.random_base32(), owner=user.id)
    session.add(SecondFactor(user_id=user.id, secret=secret, created_at=now(session)))
    session.flush()


def begun(session: Session, user: User, *, config: Config) -> Begun | None:
    """What is being set up; `None`: nothing, or it took too long."""
    row = session.get(SecondFactor, user.id)
    if row is None or row.confirmed_at is not None or row.created_at < now(session) - SET_UP_WITHIN:
        return None
    secret = sealing.unseal(config.second_factor_key, row.secret, owner=user.id)
    grouped = " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))
    return Begun(grouped, pyotp.TOTP(secret, name=user.email, issuer=ISSUER).provisioning_uri())


def confirm(session: Session, user: User, code: str, *, login: LoginSession, place: Place, config: Config) -> list[str]:
    """Turn on what was begun, and make recovery codes, which are shown this once; every other login and token ends.

    Raises:
        InvalidInputError: the code is wrong.
        ConflictError: nothing is being set up.
        TooManyError: after too many failures.
    """
    row = _locked(session, user)
    if row is None or begun(session, user, config=config) is None:
        raise ConflictError("No setup is in progress, or it took too long. Start again.")
    here = accounts.refuse_waiting(session, user, email=user.email, place=place, config=config)
    if not _is_next_code(session, row, _plain(code), config):
        _count(session, user, here)
        raise InvalidInputError(_WRONG, field="code")
    row.confirmed_at = now(session)
    accounts.end_everywhere(session, user, keep=login)
    login.is_strong = True
    audit.record(session, action="user.second_factor_set", subject=f"user:{user.id}", actor=user)
    _tell(session, user, "A second factor was added to your account", "A second factor was set up for your account.")
    return _new_codes(session, user)


def check(session: Session, user: User, code: str, *, place: Place, config: Config) -> None:
    """See that this is a code of their app, or one of their recovery codes, which it uses up.

    Raises:
        InvalidInputError: it is neither.
        TooManyError: after too many failures.
    """
    _check(session, user, code, place=place, config=config)


def renew_codes(session: Session, user: User, code: str, *, place: Place, config: Config) -> list[str]:
    """Make other recovery codes; the old ones end.

    Raises:
        InvalidInputError, TooManyError: as `check`.
    """
    check(session, user, code, place=place, config=config)
    audit.record(session, action="user.recovery_codes_made", subject=f"user:{user.id}", actor=user)
    return _new_codes(session, user)


def remove(session: Session, user: User, code: str, *, place: Place, config: Config) -> None:
    """Turn it off; what came with it is worth a password alone from now on.

    Raises:
        InvalidInputError, TooManyError: as `check`.
    """
    check(session, user, code, place=place, config=config)
    _forget(session, user)
    audit.record(session, action="user.second_factor_removed", subject=f"user:{user.id}", actor=user)
    _tell(session, user, "Your second factor was turned off", "The second factor of your account was turned off.")


def reset(session: Session, user: User, *, actor: User | None = None, reason: str = "") -> None:
    """Take it from who lost it, on an admin's word: every login and token of theirs ends.

    Raises:
        ConflictError: there is none.
    """
    if session.get(SecondFactor, user.id) is None:
        raise ConflictError(f"{user.email} has no second factor.")
    _forget(session, user)
    accounts.end_everywhere(session, user, keep=None)
    audit.record(session, action="user.second_factor_reset", subject=f"user:{user.id}", actor=actor, reason=reason)
    _tell(session, user, "Your second factor was reset", "An admin removed the second factor from your account.")


def log_in(
    session: Session, *, email: str, password: str, place: Place, agent: str, config: Config
) -> tuple[LoginSession | None, str]:
    """Start a login: its row, and the token for its cookie, which is stored nowhere.

    Where the account has a second factor there is no login yet: the text is the challenge's, for `answer`.

    Raises:
        UnauthenticatedError, TooManyError: as `accounts.authenticate`.
    """
    user = accounts.authenticate(session, email=email, password=password, place=place, config=config)
    if is_set(session, user):
        return None, _challenge(session, user)
    return accounts.start_login(session, user, place=place, agent=agent, config=config)


def challenged(session: Session, token: str) -> User:
    """Who is asked for a code.

    Raises:
        UnauthenticatedError: nobody, or it took too long, or too many codes were wrong.
    """
    return _challenged(session, token).user


def answer(
    session: Session, token: str, code: str, *, place: Place, agent: str, config: Config
) -> tuple[LoginSession, str]:
    """Start the login that was asked for its second factor.

    Raises:
        UnauthenticatedError: as `challenged`.
        InvalidInputError, TooManyError: as `check`.
    """
    row = _challenged(session, token)
    _check(session, row.user, code, place=place, config=config, challenge=row)
    session.execute(delete(LoginChallenge).where(LoginChallenge.id == row.id))
    return accounts.start_login(session, row.user, place=place, agent=agent, config=config, is_strong=True)


def for_token(session: Session, user: User, code: str, *, wants_staff: bool, place: Place, config: Config) -> bool:
    """Whether a token that is made with a password now is made with more; the staff's scope asks for that.

    Raises:
        SecondFactorError: a code is missing.
        ForbiddenError: a second factor has to be set up first.
        InvalidInputError, TooManyError: as `check`.
    """
    if is_set(session, user):
        if code:
            check(session, user, code, place=place, config=config)
        elif wants_staff:
            raise SecondFactorError("A token with the scope staff also needs the code of your second factor.")
        return bool(code)
    if wants_staff and owes(session, user, is_strong=False, config=config):
        raise ForbiddenError(
            "Staff need a second factor or single sign-on here. Set up a second factor on your account page in a "
            "browser."
        )
    return False


def forget_old(session: Session) -> None:
    """Remove log-ins that nobody finished."""
    session.execute(delete(LoginChallenge).where(LoginChallenge.expires_at < now(session)))


def _check(
    session: Session,
    user: User,
    code: str,
    *,
    place: Place,
    config: Config,
    challenge: LoginChallenge | None = None,
) -> None:
    row, plain = _locked(session, user), _plain(code)
    here = accounts.refuse_waiting(session, user, email=user.email, place=place, config=config)
    if row is not None and row.confirmed_at is not None and _is_taken(session, row, user, plain, config):
        return
    _count(session, user, here, challenge)
    raise InvalidInputError(_WRONG, field="code")


def _is_taken(session: Session, row: SecondFactor, user: User, plain: str, config: Config) -> bool:
    return _use_recovery_code(session, user, plain) or _is_next_code(session, row, plain, config)


def _count(session: Session, user: User, here: str, challenge: LoginChallenge | None = None) -> None:
    """Write the failure down after the transaction that it ends was rolled back."""
    after_rollback(session, accounts.failure(address=here, email=user.email))
    if challenge is not None:
        after_rollback(session, _failed_challenge(challenge.id))


def _failed_challenge(challenge_id: int) -> Callable[[Session], None]:
    def write(session: Session) -> None:
        found = session.get(LoginChallenge, challenge_id, with_for_update=True)
        if found is None:
            return
        found.failures += 1
        if found.failures >= MOST_FAILURES:
            session.delete(found)
            _tell(
                session,
                session.get_one(User, found.user_id),
                "Somebody knows your password",
                f"Somebody logged in with your password and typed {MOST_FAILURES} wrong codes for the second factor. "
                "The log-in was refused. If this was not you, change your password now.",
            )

    return write


def _is_next_code(session: Session, row: SecondFactor, plain: str, config: Config) -> bool:
    """Whether the app shows it now; no code of this half minute or before is taken again."""
    if not plain.isdigit():
        return False
    totp = pyotp.TOTP(sealing.unseal(config.second_factor_key, row.secret, owner=row.user_id))
    try:
        step = totp.verify_and_get_timecode(plain, for_time=now(session), valid_window=SKEW)
    except OTPVerificationError:
        return False
    newer = update(SecondFactor).where(SecondFactor.user_id == row.user_id, SecondFactor.last_step < step)
    taken = session.execute(newer.values(last_step=step).returning(SecondFactor.user_id)).one_or_none()
    return taken is not None


def _use_recovery_code(session: Session, user: User, plain: str) -> bool:
    mine = (RecoveryCode.user_id == user.id, RecoveryCode.code_hash == ids.token_hash(plain))
    if session.execute(delete(RecoveryCode).where(*mine).returning(RecoveryCode.id)).one_or_none() is None:
        return False
    left = standing(session, user).codes_left
    audit.record(session, action="user.recovery_code_used", subject=f"user:{user.id}", actor=user)
    _tell(session, user, "A recovery code was used", f"A recovery code of your account was used; you have {left} left.")
    return True


def _new_codes(session: Session, user: User) -> list[str]:
    session.execute(delete(RecoveryCode).where(RecoveryCode.user_id == user.id))
    plain = ["".join(secrets.choice(_LETTERS) for _ in range(_PARTS * _PART_CHARS)) for _ in range(RECOVERY_CODES)]
    session.add_all(RecoveryCode(user_id=user.id, code_hash=ids.token_hash(code)) for code in plain)
    session.flush()
    return ["-".join(code[at : at + _PART_CHARS] for at in range(0, len(code), _PART_CHARS)) for code in plain]


def _plain(code: str) -> str:
    """What was typed, as codes are stored; `""` for what is none, such as half a surrogate pair."""
    plain = _SEPARATORS.sub("", code[:100]).lower()
    return plain if plain.isascii() else ""


def _challenge(session: Session, user: User) -> str:
    forget_old(session)
    token = ids.session_token()
    expires = now(session) + ANSWER_WITHIN
    session.add(LoginChallenge(user_id=user.id, token_hash=ids.token_hash(token), expires_at=expires))
    session.flush()
    return token


def _challenged(session: Session, token: str) -> LoginChallenge:
    query = select(LoginChallenge).where(LoginChallenge.token_hash == ids.token_hash(token))
    found = session.scalar(query.options(joinedload(LoginChallenge.user)))
    if found is None or found.expires_at <= now(session) or found.user.disabled_at is not None:
        raise UnauthenticatedError("It took too long, or there were too many wrong codes. Log in again.")
    return found


def _confirmed(session: Session, user: User) -> SecondFactor | None:
    query = select(SecondFactor).where(SecondFactor.user_id == user.id, SecondFactor.confirmed_at.is_not(None))
    return session.scalar(query)


def _locked(session: Session, user: User) -> SecondFactor | None:
    return session.scalar(select(SecondFactor).where(SecondFactor.user_id == user.id).with_for_update())


def _forget(session: Session, user: User) -> None:
    for table in (SecondFactor, RecoveryCode, LoginChallenge):
        session.execute(delete(table).where(table.user_id == user.id))
    # Nobody tells a single sign-on from a code afterwards: who came by the former logs in once more.
    for weak in (LoginSession, ApiToken):
        session.execute(update(weak).where(weak.user_id == user.id).values(is_strong=False))


def _tell(session: Session, user: User, subject: str, body: str) -> None:
    advice = " If this was not you, change your password and tell your course's staff."
    messages.send_mail(session, user, subject=subject, body=body + advice, url="/account")
