"""How much one person, and one network, may ask of a process: requests a second, requests at once, open streams.

    network   an IPv4 address, or the /64 of an IPv6 address; counted before anything else is done (`Networks`)
    person    by login or token, whatever their address (`limited`); a node is no person. A login or token
              that came too fast is refused until its time is up, without asking the database whose it is

Each process counts for itself. What it remembers is bounded: who asks for nothing is forgotten first, and with them
nothing but that they had used up part of their allowance. This machine itself is no network that is counted: whatever
comes from it without a proxy's word for somebody else is ours.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from server.accounts.places import network_of
from server.config import Config
from server.errors import TooManyError
from server.http.error_responses import ErrorPage, render
from server.http.identity import Identity, login_cookie, recognised
from server.http.work import config_of

BURST_S = 10.0
"""So many seconds' worth of requests may come at once."""
MOST_KNOWN = 20_000
"""Of persons, and of networks."""
RETRY_S = 5.0
"""When to come again where it is not known when something ends."""
STREAMS = ("/events", "/live")
"""Ends of addresses whose answers last."""
_UNCOUNTED = ("/static/", "/healthz", "/metrics")
"""Files that browsers keep, and what watches us."""


@dataclass(frozen=True)
class Allowance:
    """What one of them may ask for; 0 is without a limit."""

    per_s: float
    at_once: int
    streams: int


@dataclass(slots=True)
class _Use:
    """What one of them asks for: the requests left of the burst at a time, and what is being answered."""

    left: float
    at: float
    at_once: int = 0
    streams: int = 0


class Rates:
    """Counts for one kind of asker. Used by one event loop, without a wait inside."""

    def __init__(
        self, allowance: Allowance, *, most_known: int = MOST_KNOWN, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._allowance = allowance
        self._most_known = most_known
        self._clock = clock
        self._known: OrderedDict[str | int, _Use] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def enter(self, who: str | int, *, is_stream: bool) -> None:
        """Count a request that begins.

        Raises:
            TooManyError: it is one too many, and counts for nothing.
        """
        use = self._use(who)
        self._refuse(use, is_stream=is_stream)
        use.left -= 1
        if is_stream:
            use.streams += 1
        else:
            use.at_once += 1

    def leave(self, who: str | int, *, is_stream: bool) -> None:
        """Count its end."""
        use = self._known[who]
        if is_stream:
            use.streams -= 1
        else:
            use.at_once -= 1

    def wait_s(self, who: str | int) -> float:
        """How long until they may ask again, for as far as it is their rate that is in the way."""
        use, per_s = self._known.get(who), self._allowance.per_s
        return (1 - use.left) / per_s if use is not None and per_s and use.left < 1 else 0.0

    def _use(self, who: str | int) -> _Use:
        now, most = self._clock(), max(1.0, self._allowance.per_s * BURST_S)
        use = self._known.get(who)
        if use is None:
            self._forget_one()
            use = self._known[who] = _Use(most, now)
        use.left = min(most, use.left + (now - use.at) * self._allowance.per_s)
        use.at = now
        self._known.move_to_end(who)
        return use

    def _forget_one(self) -> None:
        """Make room by whoever was quiet for longest; whose requests are being answered is not forgotten."""
        if len(self._known) < self._most_known:
            return
        for who, use in self._known.items():
            if not (use.at_once or use.streams):
                del self._known[who]
                return

    def _refuse(self, use: _Use, *, is_stream: bool) -> None:
        allowed = self._allowance
        if allowed.per_s and use.left < 1:
            wait_s = max(1, math.ceil((1 - use.left) / allowed.per_s))
            raise TooManyError(
                f"More than {allowed.per_s:g} requests a second for too long. Wait {wait_s} s.",
                retry_after_s=wait_s,
            )
        if is_stream and allowed.streams and use.streams >= allowed.streams:
            raise TooManyError(
                f"{use.streams} live pages are open already. Close some and reload this one.",
                retry_after_s=RETRY_S,
            )
        if not is_stream and allowed.at_once and use.at_once >= allowed.at_once:
            raise TooManyError(f"{use.at_once} requests are still being answered.", retry_after_s=RETRY_S)


class TooFast:
    """Logins and tokens that came too fast, by a hash of this process's own: until when, and what was said."""

    def __init__(self, *, most_known: int = MOST_KNOWN, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_known = most_known
        self._clock = clock
        self._until: OrderedDict[int, tuple[float, str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def add(self, credential: str, wait_s: float, said: str) -> None:
        """Refuse it for so long."""
        while len(self._until) >= self._most_known:
            self._until.popitem(last=False)
        self._until[hash(credential)] = (self._clock() + wait_s, said)

    def check(self, credential: str) -> None:
        """Refuse it again while its time is not up.

        Raises:
            TooManyError: as it was said.
        """
        until, said = self._until.get(hash(credential), (0.0, ""))
        left_s = until - self._clock()
        if left_s > 0:
            raise TooManyError(said, retry_after_s=max(1.0, left_s))
        self._until.pop(hash(credential), None)


def for_persons(config: Config) -> Rates:
    """As it is configured."""
    return Rates(Allowance(config.person_requests_per_s, config.person_requests_at_once, config.person_streams))


def for_networks(config: Config) -> Rates:
    """As it is configured."""
    return Rates(Allowance(config.network_requests_per_s, config.network_requests_at_once, config.network_streams))


class Networks:
    """Middleware: what one network asks for."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        self._app = app
        self._config = config
        self._rates = for_networks(config)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] != "http" or scope["path"].startswith(_UNCOUNTED):
            await self._app(scope, receive, send)
            return
        network = "" if _is_own(scope) else network_of(scope["client"][0])
        is_stream = _is_stream(scope["path"])
        try:
            too_fast: TooFast = scope["app"].state.too_fast
            if len(too_fast):
                too_fast.check(_credential(Request(scope), self._config))
            if network:
                self._rates.enter(network, is_stream=is_stream)
        except TooManyError as refused:
            request = Request(scope)
            page = ErrorPage(
                refused.status,
                TooManyError.__name__,
                refused.message,
                trace=request.state.trace,
                retry_after_s=refused.retry_after_s,
            )
            await render(request, page)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            if network:
                self._rates.leave(network, is_stream=is_stream)


async def limited(request: Request, identity: Annotated[Identity | None, Depends(recognised)]) -> AsyncIterator[None]:
    """Count what a person asks for, until it is answered.

    Raises:
        TooManyError: it is one too many.
    """
    if identity is None:
        yield
        return
    # Who previews a course as a student counts as who they are.
    person = identity.login.user_id if identity.login else identity.user.id
    rates: Rates = request.app.state.persons
    is_stream = _is_stream(request.url.path)
    try:
        rates.enter(person, is_stream=is_stream)
    except TooManyError as error:
        if wait_s := rates.wait_s(person):
            too_fast: TooFast = request.app.state.too_fast
            too_fast.add(_credential(request, config_of(request)), wait_s, error.message)
        raise
    try:
        yield
    finally:
        rates.leave(person, is_stream=is_stream)


def _credential(request: Request, config: Config) -> str:
    return request.headers.get("authorization") or request.cookies.get(login_cookie(config), "")


def _is_stream(path: str) -> bool:
    return path.endswith(STREAMS)


def _is_own(scope: Scope) -> bool:
    try:
        return scope["client"] is None or ipaddress.ip_address(scope["client"][0]).is_loopback
    except ValueError:
        return False
