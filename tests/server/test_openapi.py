"""The API as its own description says it is: no request makes it fail, and every answer is one that it describes.

Schemathesis makes requests from the OpenAPI, right ones and wrong ones, and each role sends them, at addresses that
exist and at others. Who may do what is the table of `test_authorisation`; here strangers and another student try what
they can think of at what is not theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from requests import PreparedRequest
from requests.auth import AuthBase
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from broker.identity import NodeKey, Sender
from server.config import Config
from server.db import Database
from tests.doubles.machines import make_node
from tests.server.conftest import COURSE, RUNG, People, Site, Submit, a_token

NOT_THEIRS = ("{public_id}", "{attempt}")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BOUNDED = settings(
    max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture
def known(people: People, submit: Submit) -> dict[str, Any]:
    """Addresses that exist: Alice's submission and what is around it."""
    made = submit(people.alice)
    return {"course": COURSE, "slug": RUNG, "public_id": made.public_id}


@pytest.fixture
def tokens(database: Database, people: People) -> dict[str, str]:
    """Of each person's role; a stranger has none, and a node has a key."""
    persons = {"other": people.bob, "owner": people.alice, "ta": people.tom}
    with database.transaction() as session:
        return {role: a_token(session, user) for role, user in persons.items()}


class Signed(AuthBase):
    """Signs a request as the node does."""

    def __init__(self, key: NodeKey) -> None:
        self._sender = Sender("anvil", key)

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        body = request.body or b""
        content = body.encode() if isinstance(body, str) else bytes(body)
        said = self._sender.authorization(str(request.method), request.path_url, content)
        request.headers["Authorization"] = said
        return request


@pytest.fixture
def signed(database: Database, people: People) -> Signed:
    with database.transaction() as session:
        return Signed(make_node(session, name="anvil", now=people.alice.created_at)[1])


def _operations(app: FastAPI) -> Iterator[Any]:
    """Every operation but the streams, which end when a grading does."""
    for found in schemathesis.openapi.from_dict(app.openapi()).get_all_operations():
        operation = found.ok()
        if "/events" not in operation.path:
            yield operation


@pytest.mark.full("slow")
@pytest.mark.parametrize("role", ["nobody", "other", "owner", "ta", "node"])
def test_whatever_is_sent_is_answered_as_described(
    *, app: FastAPI, site: Site, known: dict[str, Any], tokens: dict[str, str], signed: Signed, role: str
) -> None:
    headers = {"authorization": f"Bearer {tokens[role]}"} if role in tokens else {}
    auth = signed if role == "node" else None
    for operation in _operations(app):
        _try(operation, site.url, known, headers, auth, guest=role in {"nobody", "other"})


def _try(
    operation: Any, url: str, known: dict[str, Any], headers: dict[str, str], auth: Signed | None, *, guest: bool
) -> None:
    @BOUNDED
    @given(case=operation.as_strategy(), there=st.booleans())
    def answers(case: Case, there: bool) -> None:
        if there:
            names = set(case.path_parameters) & set(known)
            case.path_parameters = {**case.path_parameters, **{name: known[name] for name in names}}
        if case.path.endswith("/tokens/current"):
            return  # It would end what the others are made with.
        response = case.call(base_url=url, headers=headers, auth=auth, timeout=60)
        case.validate_response(response, checks=CHECKS)
        if guest and any(name in case.path for name in NOT_THEIRS):
            assert response.status_code >= 400

    answers()


JSON = {"content-type": "application/json"}
HUGE = "9" * 40
PLACES = (
    ("POST", f"/account/tokens/{HUGE}/revoke"),
    ("POST", f"/account/sessions/{HUGE}/revoke"),
    ("POST", f"/account/tokens/-{HUGE}/revoke"),
    ("POST", f"/operations/alerts/{HUGE}/resolve"),
    ("GET", f"/api/v1/courses/{COURSE}/submissions?limit={HUGE}"),
    ("GET", f"/api/v1/courses/{COURSE}/submissions?before=%00&assignment=%00"),
    ("GET", f"/api/v1/courses/{COURSE}/submissions?before=%ED%A0%80"),
    ("GET", f"/api/v1/courses/%00/assignments/{'x' * 5000}"),
    ("GET", "/api/v1/submissions/%00"),
    ("GET", f"/api/v1/submissions/{'0' * 5000}"),
    ("GET", f"/courses/{COURSE}/assignments/{RUNG}?version=%00"),
    ("GET", f"/courses/{COURSE}/assignments/{RUNG}/submissions?before=%00"),
    ("GET", f"/courses/{COURSE}/assignments/{RUNG}/leaderboard?lane=%00"),
)
BODIES = (
    '{"email": "a\\u0000@example.org", "password": "\\u0000"}',
    '{"email": "\\ud800@example.org", "password": "\\udfff"}',
    '{"email": "a@example.org", "password": "' + "x" * 200_000 + '"}',
    '{"mode": "submission", "source": "\\ud800"}',
    '{"mode": "submission", "source": "\\u0000"}',
    '{"mode": "submission", "source": "x = 1", "filename": "\\ud800\\u0000/../.."}',
    '{"mode": "submission", "source": ' + HUGE + "e" + HUGE + "}",
    "[" * 50_000,
    '{"a":' * 50_000,
    "NaN",
    "\xff\xfe",
    "",
)


@pytest.mark.parametrize("place", PLACES, ids=range(len(PLACES)))
def test_no_address_makes_it_fail(
    site: Site, people: People, config: Config, known: dict[str, Any], place: tuple[str, str]
) -> None:
    response = site.logged_in(people.tom, config).request(*place)
    assert response.status_code < 500, response.text


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_no_body_makes_it_fail(site: Site, people: People, known: dict[str, Any], body: str) -> None:
    client = site.bearer(people.alice)
    for place in ("/api/v1/tokens", f"/api/v1/courses/{COURSE}/assignments/{RUNG}/submissions"):
        response = client.post(place, content=body.encode("latin-1"), headers=JSON)
        assert response.status_code < 500, response.text
        assert response.status_code >= 400 or "filename" in body
