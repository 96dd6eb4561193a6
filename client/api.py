"""The server's API, as methods that return parsed JSON; however a request fails, it becomes a `ClientError`."""

from __future__ import annotations

import ipaddress
import json
import secrets
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx
import httpx_sse

from client.account import Account
from client.errors import (
    ClientError,
    CodeNeededError,
    NoAnswerError,
    NotThereError,
    OursError,
    ReachError,
    UsageError,
)

Json = Any
"""What `json.loads` returns: the one place where `Any` is the honest type."""

TIMEOUT = httpx.Timeout(30.0, connect=10.0)
STREAM_TIMEOUT = httpx.Timeout(30.0, connect=10.0, read=60.0)
"""The server sends a comment to a quiet stream at least every 15 seconds."""

AGAIN_S = 1.0
"""How long a submission that got no answer waits before it is sent again."""

RECONNECTS = 30
"""Times that a broken stream is opened again before we give up; a stream that says something starts the count anew."""


class Api:
    """One server, as one user."""

    def __init__(self, account: Account) -> None:
        headers = {"User-Agent": "ladder"}
        if account.token:
            headers["Authorization"] = f"Bearer {account.token}"
        self.server = account.server
        try:
            self._http = httpx.Client(
                base_url=f"{account.server}/api/v1",
                headers=headers,
                timeout=TIMEOUT,
                # A proxy that the environment names is for other machines.
                trust_env=not is_this_machine(account.server),
            )
        except httpx.InvalidURL as error:
            raise UsageError(f"{account.server} is not an address: {error}") from None

    def __enter__(self) -> Self:
        """Nothing is opened before the first request."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()

    def create_token(
        self, email: str, password: str, name: str, *, staff: bool = False, days: int | None = None, code: str = ""
    ) -> Json:
        """Log in: `{"token": …}`, shown this once.

        Args:
            staff: it may do what the staff of a course may, too.
            days: how long it lives; the server says if nobody does.
            code: of the second factor.

        Raises:
            CodeNeededError: the server asks for a code.
        """
        body = {"email": email, "password": password, "name": name, "days": days, **({"code": code} if code else {})}
        scopes = ["read", "submit", *(["staff"] if staff else [])]
        return self._json("POST", "/tokens", json={**body, "scopes": scopes})

    def revoke_token(self) -> None:
        """Make the token that this client uses worthless."""
        self._request("DELETE", "/tokens/current")

    def me(self) -> Json:
        """Who the token belongs to."""
        return self._json("GET", "/me")

    def courses(self) -> list[Json]:
        """The courses that they are enrolled in."""
        return _items(self._json("GET", "/courses"))

    def receipt(self, public_id: str, copy: str | None = None) -> Json:
        """The signed receipt of a grade."""
        return self._json("GET", f"/submissions/{quote(public_id)}/receipt", params={"copy": copy} if copy else None)

    def receipt_keys(self) -> list[Json]:
        """The public keys that receipts were ever signed with."""
        return _items(self._json("GET", "/receipts/keys"))

    def assignments(self, course: str) -> list[Json]:
        """The course's assignments that they may see, by rung."""
        return _items(self._json("GET", f"/courses/{quote(course)}/assignments"))

    def assignment(self, course: str, slug: str) -> Json:
        """One assignment with its starters, cases and limits."""
        return self._json("GET", _assignment(course, slug))

    def archive(self, course: str, slug: str) -> bytes:
        """The handout's files as a tar."""
        return self._request("GET", f"{_assignment(course, slug)}/archive").content

    def milestones(self, course: str, slug: str) -> list[Json]:
        """The steps to its reference kernel, with the sources of those that are open to them."""
        return _items(self._json("GET", f"{_assignment(course, slug)}/milestones"))

    def submit(self, course: str, slug: str, submission: Json) -> Json:
        """Hand in `{"mode", "lane", "language", "filename", "source"}`, of a profile `case` too; returns it as stored.

        Where no answer comes, or that of a server in trouble, it is sent once more. Its key is the same, so that it is
        stored once.
        """
        doubt = f" It may have been stored: check with `ladder status {slug}`."
        options: dict[str, Any] = {"json": submission, "headers": {"Idempotency-Key": secrets.token_hex(16)}}
        try:
            return self._sent_twice(f"{_assignment(course, slug)}/submissions", doubt=doubt, **options)
        except KeyboardInterrupt:
            raise NoAnswerError(f"interrupted before {self.server} answered.{doubt}") from None

    def _sent_twice(self, url: str, **options: Any) -> Json:
        try:
            return self._json("POST", url, **options)
        except (NoAnswerError, OursError) as first:
            time.sleep(AGAIN_S)
            try:
                return self._json("POST", url, **options)
            except (ReachError, OursError) as second:
                # Where only the first may have been stored, that one is in doubt.
                raise (first if isinstance(first, NoAnswerError) else second) from None

    def submissions(self, course: str, slug: str | None = None) -> list[Json]:
        """Their newest submissions in the course, or of one assignment of it, newest first."""
        parameters = {"assignment": slug} if slug else {}
        return _items(self._json("GET", f"/courses/{quote(course)}/submissions", params=parameters))

    def submission(self, public_id: str) -> Json:
        """One submission with everything that they may see of it."""
        return self._json("GET", f"/submissions/{quote(public_id)}")

    def cancel(self, public_id: str) -> Json:
        """Take a waiting submission out of the queue; it as it is then."""
        return self._json("POST", f"/submissions/{quote(public_id)}/cancel")

    def source(self, public_id: str) -> str:
        """The text that was handed in."""
        return self._request("GET", f"/submissions/{quote(public_id)}/source").text

    def report(self, public_id: str) -> bytes:
        """The profiler's own report of a profile."""
        return self._request("GET", f"/submissions/{quote(public_id)}/profile/report").content

    def trace(self, public_id: str) -> Json:
        """The timeline of a profile, as Perfetto opens it."""
        return self._json("GET", f"/submissions/{quote(public_id)}/profile/trace")

    def changes(self, public_id: str, against: str = "") -> Json:
        """A profile held against another: `last`, `best` or a milestone's file; `""` lets the server choose."""
        parameters = {"against": against} if against else {}
        return self._json("GET", f"/submissions/{quote(public_id)}/profile/changes", params=parameters)

    def leaderboard(
        self, course: str, slug: str, lane: str | None, *, language: str | None = None, section: str | None = None
    ) -> Json:
        """The ranking on one lane."""
        asked = {"lane": lane, "language": language, "section": section}
        parameters = {name: value for name, value in asked.items() if value}
        return self._json("GET", f"{_assignment(course, slug)}/leaderboard", params=parameters)

    def shared_entry(self, course: str, slug: str, entry: str) -> Json:
        """An entry's note and source; `entry` is the `shared` of one of the ranking's."""
        return self._json("GET", f"{_assignment(course, slug)}/leaderboard/entries/{quote(entry)}")

    def standings(self, course: str, lane: str | None) -> Json:
        """All boards of the course together."""
        return self._json("GET", f"/courses/{quote(course)}/standings", params={"lane": lane} if lane else {})

    def grades(self, course: str) -> Json:
        """One's own grades and late days."""
        return self._json("GET", f"/courses/{quote(course)}/grades")

    def quiz(self, course: str, slug: str) -> Json:
        """The questions of an assignment, with one's own answers."""
        return self._json("GET", f"{_assignment(course, slug)}/quiz")

    def answer(self, course: str, slug: str, question: str, response: Json) -> Json:
        """Answer one of them with `{"value"}` or `{"options"}`; the question as it is then."""
        return self._json("POST", f"{_assignment(course, slug)}/quiz/{quote(question)}/answers", json=response)

    def follow(self, public_id: str, *, pause_s: float = 1.0) -> Iterator[Json]:
        """Yield the submission each time it changes, until it does not change any more.

        A broken stream is opened again: every event carries the whole submission, so nothing is missed.

        Raises:
            ReachError: the server stayed away.
        """
        failures = 0
        while failures <= RECONNECTS:
            try:
                for event in self._events(public_id):
                    failures = 0
                    if event.event == "submission":
                        yield json.loads(event.data)
                    elif event.event == "end":
                        return
            except (httpx.HTTPError, OursError, NoAnswerError) as error:
                problem = str(error) or type(error).__name__
            else:
                problem = "the stream ended early"
            failures += 1
            time.sleep(pause_s)
        raise ReachError(
            f"{self.server} could not be reached again ({problem}). Your submission is stored: `ladder status "
            f"{public_id}`."
        )

    def _events(self, public_id: str) -> Iterator[httpx_sse.ServerSentEvent]:
        url = f"/submissions/{quote(public_id)}/events"
        with httpx_sse.connect_sse(self._http, "GET", url, timeout=STREAM_TIMEOUT) as source:
            if source.response.status_code != httpx.codes.OK:
                source.response.read()
                raise self._refusal(source.response)
            yield from source.iter_sse()

    def _json(self, method: str, url: str, **options: Any) -> Json:
        response = self._request(method, url, **options)
        try:
            return response.json()
        except ValueError:
            raise OursError(f"{self.server} did not answer with JSON. Is it a Kernel Ladder server?") from None

    def _request(self, method: str, url: str, *, doubt: str = "", **options: Any) -> httpx.Response:
        """Send it; `doubt` says what may have happened all the same where it was sent and no answer came."""
        try:
            response = self._http.request(method, url, **options)
        except httpx.InvalidURL as error:
            raise UsageError(f"{self.server} is not an address: {error}") from None
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            raise ReachError(f"{self.server} cannot be reached: {str(error) or type(error).__name__}") from None
        except httpx.HTTPError as error:
            raise NoAnswerError(f"{self.server} did not answer: {str(error) or type(error).__name__}.{doubt}") from None
        if not response.is_success:
            raise self._refusal(response, doubt)
        return response

    def _refusal(self, response: httpx.Response, doubt: str = "") -> ClientError:
        message = _said(response, "message", "detail") or (
            f"the server answered {response.status_code} {response.reason_phrase}."
        )
        if response.has_redirect_location:
            return ReachError(_moved(self.server, response))
        if response.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            needs_code = _said(response, "error") == "SecondFactorError"
            return CodeNeededError(message) if needs_code else ReachError(message)
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS and (after := response.headers.get("Retry-After")):
            return UsageError(f"{message} Try again in {after} s.")
        if response.is_client_error:
            return NotThereError(message) if response.status_code == httpx.codes.NOT_FOUND else UsageError(message)
        if response.status_code in {httpx.codes.BAD_GATEWAY, httpx.codes.GATEWAY_TIMEOUT}:
            # A proxy speaks: what the server behind it did, it does not know either.
            return NoAnswerError(f"{self.server} did not answer: {message}{doubt}")
        return OursError(f"{message} This is our fault, not yours.")


def is_this_machine(server: str) -> bool:
    """Whether an address leads nowhere else."""
    try:
        host = urlsplit(server).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _assignment(course: str, slug: str) -> str:
    return f"/courses/{quote(course)}/assignments/{quote(slug)}"


def _items(data: Json) -> list[Json]:
    """A list, whether it comes alone or in a page."""
    items = data.get("items", data) if isinstance(data, dict) else data
    if not isinstance(items, list):
        raise OursError("the server did not answer with a list.")
    return items


def _moved(server: str, response: httpx.Response) -> str:
    """Where a server that moved, or that is reached by https only, wants to be asked."""
    target = response.url.join(response.headers["location"])
    address = f"{target.scheme}://{target.netloc.decode('ascii')}"
    if address == server:
        return f"{server} redirects to {target}. Is it a Kernel Ladder server, and are you on its network?"
    return f"{server} redirects to {address}. If you trust that address: `ladder login {address}`."


def _said(response: httpx.Response, *keys: str) -> str:
    """The first of these texts that the answer has, `""` if none."""
    try:
        data = response.json()
    except ValueError:
        data = None
    if isinstance(data, dict):
        for key in keys:
            if isinstance(data.get(key), str):
                return str(data[key])
    return ""
