"""Who is asking: a login by its cookie, or a token by `Authorization: Bearer`.

It is found out in a transaction of its own that ends before the endpoint begins: an endpoint's transaction must not
stay open while its request waits for a thread.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from broker.identity import SCHEME
from server import ids, previews
from server.accounts import accounts, places, second_factor
from server.accounts.places import Place
from server.config import Config
from server.db import now
from server.errors import ForbiddenError, SecondFactorError, UnauthenticatedError
from server.http import scopes
from server.http.work import SAFE_METHODS, config_of, database_of
from server.messages import messages
from server.models import ApiToken, LoginSession, Preview, User

PREVIEW_END = "/preview/end"
PREVIEW_FORM = "preview-"
FOR_WEAK_LOGINS = ("/account", "/login", "/logout", "/password", "/second-factor", "/help", "/healthz", "/metrics")
"""Where staff get with less than the second factor that they need: to their account, to the help page, and out."""


@dataclass(frozen=True)
class Identity:
    """A person, and by what they were recognised: exactly one of `login` and `token` is set.

    Attributes:
        unread: how many notifications a browser's person has not read; pages show it.
        preview: `user` is a student whom the login's owner looks as; they only read.
        owes_factor: the login has less than the second factor that staff need here.
    """

    user: User
    login: LoginSession | None = None
    token: ApiToken | None = None
    unread: int = 0
    preview: Preview | None = None
    owes_factor: bool = False

    @property
    def csrf_token(self) -> str:
        """What a form of theirs has to carry; `""` for a token's bearer, who needs none.

        A page that is looked at as somebody else has another one: its forms do nothing once that look is over.
        """
        token = self.login.csrf_token if self.login else ""
        return token if self.preview is None else f"{PREVIEW_FORM}{token}"


def identify(request: Request) -> Identity | None:
    """Who is asking, `None` for a stranger.

    Raises:
        UnauthenticatedError: a bearer token was sent and is not valid, or this is a page; a cookie does not stand in
            for it.
        ForbiddenError: the token does not open this, or a course is looked at as a student, and this is no
            reading of that course.
        SecondFactorError: staff need a second factor here, and this login has none.
    """
    header = request.headers.get("authorization")
    found = _by_header(request, header) if header is not None else _by_cookie(request)
    request.state.identity = found
    if found is not None and found.owes_factor:
        _check_weak_login(request)
    if found is not None and found.preview is not None:
        _check_preview(request, found.preview)
    return found


async def recognised(request: Request) -> Identity | None:
    """As `identify`, in a thread; without one for who brought nothing to be recognised by."""
    if "authorization" not in request.headers and not request.cookies.get(login_cookie(config_of(request))):
        return identify(request)
    return await run_in_threadpool(identify, request)


_described = HTTPBearer(scheme_name="token", description="A person's token, from `POST /tokens`.", auto_error=False)


def require(identity: Identity | None) -> Identity:
    """Who is asking; raises `UnauthenticatedError` for a stranger."""
    if identity is None:
        raise UnauthenticatedError("Log in first.")
    return identity


async def _someone(
    identity: Annotated[Identity | None, Depends(recognised)],
    _scheme: Annotated[HTTPAuthorizationCredentials | None, Depends(_described)] = None,
) -> Identity:
    """`_scheme` is for the API's description only."""
    return require(identity)


async def _admin(identity: Annotated[Identity, Depends(_someone)]) -> Identity:
    if not identity.user.is_admin:
        raise ForbiddenError("Only an admin may do that.")
    return identity


Anyone = Annotated[Identity | None, Depends(recognised)]
Someone = Annotated[Identity, Depends(_someone)]
"""Whoever is asking; a stranger is refused with `UnauthenticatedError`."""
Admin = Annotated[Identity, Depends(_admin)]
"""An admin; anybody else is refused with `ForbiddenError`."""


def client_address(request: Request) -> str:
    """Where the request came from, for the rate limit."""
    return request.client.host if request.client else ""


def device_cookie(config: Config) -> str:
    """The name of the cookie by which an account knows a browser that logged in to it before."""
    return "__Host-ladder_device" if is_secure(config) else "ladder_device"


def place_of(request: Request) -> Place:
    """Where a log-in comes from: the network, and the browser by its cookie."""
    return Place(client_address(request), request.cookies.get(device_cookie(config_of(request)), ""))


def place_to_keep(request: Request) -> Place:
    """The same, with a new text for the cookie where the browser has none yet; `keep_device` gives it that."""
    found = place_of(request)
    return found if found.browser else Place(found.address, ids.session_token())


def keep_device(response: Response, config: Config, place: Place) -> None:
    """Let the account know this browser again; it logs nobody in."""
    lasts = int(places.KEPT.total_seconds())
    _set_cookie(response, config, device_cookie(config), place.device, max_age=lasts)


def is_secure(config: Config) -> bool:
    """Whether browsers reach us by https."""
    return config.public_url.startswith("https://")


def login_cookie(config: Config) -> str:
    """The name of the cookie that holds a login's token; the prefix binds it to this host where browsers allow that."""
    return "__Host-ladder_login" if is_secure(config) else "ladder_login"


def outside_cookie(config: Config) -> str:
    """The name of the cookie that ties a log-in elsewhere to the browser that began it."""
    return "__Host-ladder_outside" if is_secure(config) else "ladder_outside"


def set_outside_cookie(response: Response, config: Config, value: str, *, max_age: int) -> None:
    """Remember that this browser is on its way; it comes back by a link from another site, which `lax` allows."""
    _set_cookie(response, config, outside_cookie(config), value, max_age=max_age)


def challenge_cookie(config: Config) -> str:
    """The name of the cookie of a browser whose password was right and which is asked for the second factor."""
    return "__Host-ladder_challenge" if is_secure(config) else "ladder_challenge"


def set_challenge_cookie(response: Response, config: Config, token: str) -> None:
    """Remember that this browser's password was right; without a token forget it."""
    lasts = int(second_factor.ANSWER_WITHIN.total_seconds()) if token else 0
    _set_cookie(response, config, challenge_cookie(config), token, max_age=lasts)


def form_cookie(config: Config) -> str:
    """The name of the cookie that a stranger's form is tied to."""
    return "__Host-ladder_form" if is_secure(config) else "ladder_form"


def preview_cookie(config: Config) -> str:
    """The name of the cookie that says as whom a course is looked at."""
    return "__Host-ladder_preview" if is_secure(config) else "ladder_preview"


def set_preview_cookie(response: Response, config: Config, token: str) -> None:
    """Have this browser look at a course as somebody else, for as long as that lasts."""
    _set_cookie(response, config, preview_cookie(config), token, max_age=int(previews.LASTS.total_seconds()))


def clear_preview_cookie(response: Response, config: Config) -> None:
    """Have this browser see everything as its own person again."""
    response.delete_cookie(preview_cookie(config), path="/", secure=is_secure(config), httponly=True, samesite="lax")


def set_login_cookie(response: Response, config: Config, token: str) -> None:
    """Log the browser in; the stranger's form cookie has done its work."""
    _set_cookie(response, config, login_cookie(config), token, max_age=int(config.session_days * 86_400))
    response.delete_cookie(form_cookie(config), path="/", secure=is_secure(config), httponly=True, samesite="lax")


def clear_login_cookie(response: Response, config: Config) -> None:
    """Log the browser out."""
    response.delete_cookie(login_cookie(config), path="/", secure=is_secure(config), httponly=True, samesite="lax")


def form_token(request: Request, identity: Identity | None) -> str:
    """What a form on this page has to carry as `csrf_token`.

    For a stranger it is the value of a cookie; `keep_form_token` puts it on the response where it is new.
    """
    if identity is not None:
        return identity.csrf_token
    known: str | None = getattr(request.state, "form_token", None) or request.cookies.get(
        form_cookie(config_of(request))
    )
    request.state.form_token = known or ids.session_token()
    token: str = request.state.form_token
    return token


def keep_form_token(request: Request, response: Response) -> None:
    """Give a stranger's browser the cookie that its form was made with."""
    config = config_of(request)
    token: str | None = getattr(request.state, "form_token", None)
    if token is not None and request.cookies.get(form_cookie(config)) != token:
        _set_cookie(response, config, form_cookie(config), token, max_age=None)


def _set_cookie(response: Response, config: Config, name: str, value: str, *, max_age: int | None) -> None:
    response.set_cookie(name, value, max_age=max_age, path="/", secure=is_secure(config), httponly=True, samesite="lax")


def _by_header(request: Request, header: str) -> Identity | None:
    scheme, _, text = header.partition(" ")
    if scheme.lower() == SCHEME.lower():
        # No person's; the routes for nodes look at it themselves.
        return None
    if scheme.lower() != "bearer":
        raise UnauthenticatedError("The Authorization header has to hold a bearer token.")
    with database_of(request).reading() as session:
        token = accounts.token_of(session, text.strip())
        session.expunge_all()
    if token is None:
        raise UnauthenticatedError("This token is not valid or has expired. Make a new one with `ladder login`.")
    scopes.check(request, token, weak_staff=config_of(request).staff_second_factor == "optional")
    if accounts.is_stale(token.last_used_at):
        _mark_seen(request, token_id=token.id)
    return Identity(token.user, token=token)


def _by_cookie(request: Request) -> Identity | None:
    text = request.cookies.get(login_cookie(config_of(request)))
    if not text:
        return None
    with database_of(request).reading() as session:
        login = accounts.session_of(session, text)
        # Here, where there is a connection: a page that asked for a second one while it holds its own could wait for
        # others that do the same.
        is_page = not request.url.path.startswith("/api/")
        unread = messages.unread(session, login.user_id) if login is not None and is_page else 0
        preview = _preview_of(request, session, login)
        owes = login is not None and _owes_factor(request, session, login)
        session.expunge_all()
    if login is None:
        return None
    if accounts.is_stale(login.last_seen_at):
        _mark_seen(request, login_id=login.id)
    if preview is not None and not owes:
        return Identity(preview.student, login=login, preview=preview)
    return Identity(login.user, login=login, unread=unread, owes_factor=owes)


def _owes_factor(request: Request, session: Session, login: LoginSession) -> bool:
    return second_factor.owes(session, login.user, is_strong=login.is_strong, config=config_of(request))


def _check_weak_login(request: Request) -> None:
    path = request.url.path
    if not any(path == place or path.startswith(f"{place}/") for place in FOR_WEAK_LOGINS):
        raise SecondFactorError("Staff need a second factor here. Set one up on your account page first.")


def _preview_of(request: Request, session: Session, login: LoginSession | None) -> Preview | None:
    """What this browser looks at as somebody else; whether this request belongs to it is noted for `_check_preview`."""
    token = request.cookies.get(preview_cookie(config_of(request)))
    found = previews.opened(session, login, token, now=now(session)) if login is not None and token else None
    if found is not None:
        request.state.shown_at = found.shown_at
        request.state.in_preview = previews.may_open(session, found, request.url.path)
    return found


def _check_preview(request: Request, preview: Preview) -> None:
    if request.url.path == PREVIEW_END and request.method == "POST":
        return
    if request.method not in SAFE_METHODS:
        raise ForbiddenError(
            f"You are viewing this course as {preview.student.name}, so nothing can be changed. Leave this view first."
        )
    if not request.state.in_preview:
        raise ForbiddenError(
            f"You are viewing {preview.course.title} as {preview.student.name}. Leave this view to open anything else."
        )


def _mark_seen(request: Request, *, login_id: int | None = None, token_id: int | None = None) -> None:
    """Write it down unless somebody else is at it: a course that comes back at once must not fill every thread."""
    slots: threading.Semaphore = request.app.state.seen_slots
    if not slots.acquire(blocking=False):
        return
    try:
        with database_of(request).transaction() as session:
            accounts.mark_seen(session, login_id=login_id, token_id=token_id)
    finally:
        slots.release()
