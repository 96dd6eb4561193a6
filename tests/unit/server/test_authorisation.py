"""Who may do what: every route by every role, against one table. A route without a row fails.

To add a route: add a row to `TABLE`, and its body to `BODIES` if it takes one. A row says which status each role gets;
the helpers below name the usual rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import select

from server.accounts import service as accounts
from server.alerts import service as alerts
from server.grading.artefacts import store_artefact
from server.models import AlertKind, Attempt, AttemptState, Lane, Line, Submission, Work
from server.nodes import service as nodes

ROLES = ("anonymous", "stranger", "dropped", "other", "owner", "ta", "instructor", "admin", "node")
"""stranger: instructor of another course; dropped: was a student of this one; other and owner: students of it, the
submission being the owner's; node: the bearer of a node's token."""
PERSONS = {
    "stranger": "stranger", "dropped": "carol", "other": "bob", "owner": "alice", "ta": "tom", "instructor": "ines",
    "admin": "admin",
}  # fmt: skip


def row(default: int, **exceptions: int) -> dict[str, int]:
    """The status of every role."""
    return {role: exceptions.get(role, default) for role in ROLES}


def everyone(status: int) -> dict[str, int]:
    """Log-in is not asked for."""
    return row(status)


def person(status: int, stranger: int = 401) -> dict[str, int]:
    """Anybody with an account; a node is no person. Pages send a stranger who looks to the log-in form: 303."""
    return row(status, anonymous=stranger, node=stranger)


def member(status: int, stranger: int = 401) -> dict[str, int]:
    """Whoever is in the course; for all others it does not exist."""
    return row(status, anonymous=stranger, node=stranger, stranger=404, dropped=404)


def owner_or_staff(status: int, stranger: int = 401) -> dict[str, int]:
    """Whose it is, and the staff of its course; for all others it does not exist."""
    return row(status, anonymous=stranger, node=stranger, stranger=404, dropped=404, other=404)


def owner_only(status: int, stranger: int = 401) -> dict[str, int]:
    """Whose it is; not even an admin."""
    return row(404, anonymous=stranger, node=stranger, owner=status)


def staff_of_any(status: int, stranger: int = 401) -> dict[str, int]:
    """Staff of whichever course, and admins; for all others there is nothing here."""
    return row(status, anonymous=stranger, node=stranger, dropped=404, other=404, owner=404)


def staff_of_course(status: int, stranger: int = 401) -> dict[str, int]:
    """Staff of its course, and admins; for all others, its owner too, it does not exist."""
    return row(404, anonymous=stranger, node=stranger, ta=status, instructor=status, admin=status)


def node_only(status: int) -> dict[str, int]:
    """A node, by its own token; no person."""
    return row(401, node=status)


FORM = {"anonymous": 403}
"""A form of nobody's is refused as forged before anybody asks who sent it."""
API, COURSE, RUNG = "/api/v1", "/courses/{course}", "/courses/{course}/assignments/{slug}"
TABLE: dict[tuple[str, str], dict[str, int]] = {
    ("GET", "/healthz"): everyone(200),
    ("GET", "/metrics"): everyone(404),
    ("GET", f"{API}/openapi.json"): everyone(200),
    ("POST", f"{API}/tokens"): everyone(201),
    ("DELETE", f"{API}/tokens/current"): person(204),
    ("GET", f"{API}/me"): person(200),
    ("GET", f"{API}/courses"): person(200),
    ("GET", f"{API}{COURSE}/assignments"): member(200),
    ("GET", f"{API}{COURSE}/submissions"): member(200),
    ("GET", f"{API}{RUNG}"): member(200),
    ("GET", f"{API}{RUNG}/archive"): member(200),
    ("GET", f"{API}{RUNG}/leaderboard"): member(200),
    ("GET", f"{API}{RUNG}/leaderboard.csv"): member(200),
    ("POST", f"{API}{RUNG}/submissions"): member(201),
    ("GET", f"{API}{RUNG}/quiz"): member(200),
    ("POST", f"{API}{RUNG}/quiz/{{question}}/answers"): member(201),
    ("GET", f"{API}/submissions/{{public_id}}"): owner_or_staff(200),
    ("GET", f"{API}/submissions/{{public_id}}/source"): owner_or_staff(200),
    ("GET", f"{API}/submissions/{{public_id}}/events"): owner_or_staff(200),
    ("POST", f"{API}/submissions/{{public_id}}/cancel"): {**owner_or_staff(403), "owner": 200},
    # What was handed in a moment ago has no grade yet.
    ("GET", f"{API}/submissions/{{public_id}}/receipt"): owner_or_staff(409),
    ("GET", f"{API}/receipts/keys"): everyone(200),
    # No code, no node; here nobody can join at all.
    ("POST", f"{API}/nodes/join"): everyone(409),
    ("GET", f"{API}/bundles/{{bundle_hash}}"): node_only(200),
    ("GET", f"{API}/attempts/{{attempt}}"): node_only(200),
    ("PUT", f"{API}/attempts/{{attempt}}/artefacts/{{name}}"): node_only(204),
    ("GET", f"{API}/attempts/{{attempt}}/artefacts"): staff_of_course(200),
    ("GET", f"{API}/attempts/{{attempt}}/artefacts/{{name}}"): staff_of_course(200),
    # Pages.
    ("GET", "/login"): row(303, anonymous=200, node=200),
    ("POST", "/login"): row(303, anonymous=403, node=303),
    ("POST", "/logout"): person(303),
    ("GET", "/"): row(303, stranger=303, dropped=200, admin=200),
    ("GET", "/components"): everyone(200),
    ("GET", "/account"): person(200, 303),
    ("POST", "/account/tokens"): {**person(201), **FORM},
    ("POST", "/account/tokens/{token_id}/revoke"): owner_only(303),
    ("POST", "/account/sessions/{session_id}/revoke"): owner_only(303),
    ("POST", "/account/courses/{course}/name"): {**member(303), "admin": 404, **FORM},
    ("GET", "/operations"): staff_of_any(200, 303),
    ("POST", "/operations/check"): staff_of_any(303),
    ("POST", "/operations/alerts/{alert_id}/resolve"): {**staff_of_any(303), "stranger": 404},
    ("POST", "/operations/nodes/{name}/{action}"): row(404, anonymous=401, node=401, admin=303),
    ("GET", COURSE): member(200, 303),
    ("GET", f"{COURSE}/queue"): member(200, 303),
    ("GET", RUNG): member(200, 303),
    ("GET", f"{RUNG}/submissions"): member(200, 303),
    ("POST", f"{RUNG}/submissions"): {**member(303), **FORM},
    ("GET", f"{RUNG}/leaderboard"): member(200, 303),
    ("GET", f"{RUNG}/quiz"): member(200, 303),
    ("POST", f"{RUNG}/quiz/{{question}}"): {**member(303), **FORM},
    ("GET", "/submissions/{public_id}"): owner_or_staff(200, 303),
    ("GET", "/submissions/{public_id}/source"): owner_or_staff(200, 303),
    ("GET", "/submissions/{public_id}/diff"): owner_or_staff(200, 303),
    ("GET", "/submissions/{public_id}/receipt"): owner_or_staff(409, 303),
    ("GET", "/submissions/{public_id}/live"): owner_or_staff(200, 303),
    # There is nothing to decide about before there is a result.
    ("POST", "/submissions/{public_id}/review"): {**staff_of_course(409), **FORM},
    ("POST", "/submissions/{public_id}/cancel"): {**owner_or_staff(403), "owner": 303},
}
_SOURCE = "def add_one(x, out, n): ...\n"
_LOGIN = {"email": "alice@example.org", "password": "a long enough password"}
BODIES: dict[tuple[str, str], dict[str, object]] = {
    ("POST", f"{API}/tokens"): {"json": _LOGIN},
    ("POST", f"{API}{RUNG}/submissions"): {"json": {"mode": "run", "source": _SOURCE}},
    ("POST", f"{API}{RUNG}/quiz/{{question}}/answers"): {"json": {"value": 3}},
    ("POST", f"{RUNG}/quiz/{{question}}"): {"data": {"value": "3"}},
    ("POST", f"{API}/nodes/join"): {"json": {"name": "none", "code": "none"}},
    ("GET", f"{API}/attempts/{{attempt}}"): {"params": {"fence": 1}},
    ("PUT", f"{API}/attempts/{{attempt}}/artefacts/{{name}}"): {
        "params": {"fence": 1},
        "content": b"x",
        "headers": {"content-type": "application/octet-stream"},
    },
    ("POST", "/login"): {"data": _LOGIN},
    ("POST", "/account/tokens"): {"data": {"name": "new"}},
    ("POST", "/submissions/{public_id}/review"): {"data": {"decision": "cleared"}},
    ("POST", "/account/courses/{course}/name"): {"data": {"shown": "name"}},
    ("POST", f"{RUNG}/submissions"): {"data": {"mode": "run", "language": "triton", "lane": "cpu", "source": _SOURCE}},
}


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Who may do what does not depend on the database; once is enough."""
    return sqlite_url


@contextmanager
def answer(client: httpx.Client, route: tuple[str, str], path: str) -> Iterator[httpx.Response]:
    """The response's head: streams are not read to their end."""
    with client.stream(route[0], path, **BODIES.get(route, {})) as response:
        yield response


ATTEMPT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def _leave_a_file(session, submission_id) -> None:
    """The node works on this submission, and has left a file."""
    if session.scalar(select(Attempt.id)) is not None:
        return
    node, at = nodes.find_node(session, name="node-1"), datetime.now(UTC)
    attempt = Attempt(
        public_id=ATTEMPT, submission_id=submission_id, node_id=node.id, fence=1, lane=Lane.cpu, line=Line.submission,
        work=Work.all, state=AttemptState.running, dispatched_at=at, lease_expires_at=at,
    )  # fmt: skip
    session.add(attempt)
    session.flush()
    store_artefact(session, node, attempt=ATTEMPT, fence=1, name="node-1", data=b"x", now=at)


@pytest.fixture
def fill(*, database, people, submit, config) -> Callable[[str], str]:
    """Put ids that belong to Alice into a path; what a request uses up is made anew for each."""
    made = submit(people.alice)
    with database.reading() as session:
        bundle = session.get(Submission, made.id, options=[]).version_id
        bundle_hash = session.get(nodes.Bundle, session.scalar(nodes.select(nodes.Bundle.hash))).hash
    assert bundle

    def call(path: str) -> str:
        with database.transaction() as session:
            token, _text = accounts.create_token(session, people.alice, name="to revoke")
            login_id = 0
            if "session_id" in path:
                alice = accounts.user_by_email(session, "alice@example.org")
                login, _text = accounts.start_login(session, alice, address="", agent="", config=config)
                login_id = login.id
            if "{attempt}" in path:
                _leave_a_file(session, made.id)
            subject = f"course:{people.course.slug}"
            alerts.raise_alert(session, AlertKind.accounts_wrong, subject, "…", people.alice.created_at)
            alert_id = alerts.open_alerts(session)[0].id
        return path.format(
            course="gpu",
            slug="add_one",
            question="waves",
            public_id=made.public_id,
            token_id=token.id,
            session_id=login_id,
            bundle_hash=bundle_hash,
            alert_id=alert_id,
            attempt=ATTEMPT,
            name="node-1",
            action="drain",
        )

    return call


@pytest.fixture
def client_of(site, database, people, config) -> Callable[[str, str], httpx.Client]:
    """A new client of this role: with a token for the API, with a login for pages."""
    with database.transaction() as session:
        _node, node_token = nodes.create_node(session, name="node-1", now=people.alice.created_at)

    def call(role: str, path: str) -> httpx.Client:
        if role == "anonymous":
            return site.browser()
        if role == "node":
            return site.browser(headers={"authorization": f"Bearer {node_token}"})
        user = getattr(people, PERSONS[role])
        return site.bearer(user) if path.startswith(API) else site.logged_in(user, config)

    return call


def test_every_route_has_its_row_and_every_row_its_route(app):
    routes = {
        (method, route.path)
        for route in iter_route_contexts(app.routes)
        for method in (route.methods or ())
        if method not in {"HEAD", "OPTIONS"}
    }
    assert routes == set(TABLE)


@pytest.mark.parametrize("route", TABLE, ids=" ".join)
def test_each_role_gets_what_the_table_says(*, route, fill, client_of, app):
    found = {}
    for role in ROLES:
        with answer(client_of(role, route[1]), route, fill(route[1])) as response:
            found[role] = response.status_code
    assert found == TABLE[route]
