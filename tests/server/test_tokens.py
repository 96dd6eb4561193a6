"""What a token for the command line opens, and when it ends."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import select

from server.accounts import accounts, links
from server.config import load_config
from server.errors import InvalidInputError
from server.http import scopes
from server.models import ApiToken, TokenScope
from tests.server.conftest import COURSE, PASSWORD, RUNG
from tests.server.test_authorisation import API, BODIES, TABLE

STUDENTS = "read", "submit"
TOKENS = f"{API}/tokens"
LOGIN = {"email": "alice@example.org", "password": PASSWORD}
OPEN = ("/metrics", "/healthz")
PAGES = [route for route in TABLE if not route[1].startswith(API) and route[1] not in OPEN]


def _bearer(site, user, *names: str) -> httpx.Client:
    return site.bearer(user, token_scopes=tuple(TokenScope(name) for name in names))


# --- pages are for browsers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["tokens", "sessions/revoke-others", "export", "password"])
def test_a_token_neither_makes_tokens_nor_ends_logins_nor_takes_everything_away(site, people, database, path):
    client = site.bearer(people.alice)
    answer = client.post(f"/account/{path}", data={"name": "child", "days": "30"})
    assert answer.status_code == 401
    with database.reading() as session:
        assert [row.name for row in session.scalars(select(ApiToken))] == ["test"]


def test_no_page_takes_a_token(site, people):
    client = site.bearer(people.admin)
    for method, path in PAGES:
        address = path.format(
            course=COURSE, slug=RUNG, **{name: "1" for name in _names(path) if name not in {"course", "slug"}}
        )
        answer = client.request(method, address, **BODIES.get((method, path), {}))
        found = (answer.status_code, answer.headers.get("location", "/login")[:6])
        assert found in {(401, "/login"), (303, "/login")}, (method, path, found)


def _names(path: str) -> list[str]:
    return [part.split("}")[0] for part in path.split("{")[1:]]


# --- scopes ----------------------------------------------------------------------------------------------------------


def test_every_route_of_the_api_asks_for_one_scope(app):
    routes = {
        (method, route.path)
        for route in iter_route_contexts(app.routes)
        for method in (route.methods or ())
        if method not in {"HEAD", "OPTIONS"} and route.path.startswith(API)
    }
    assert {path for _, path in routes} >= {f"{API}{path}" for path in scopes.FOR_STUDENTS}
    asked = {route: scopes.needed(*route) for route in routes}
    by_staff = {route for route, scope in asked.items() if scope is TokenScope.staff}
    # Whatever the table of roles keeps from students is the staff's, and what a student may send is a submission's.
    forbidden = {route for route in routes if TABLE[route]["owner"] in {401, 403, 404}}
    assert by_staff - forbidden <= {("GET", f"{API}/openapi.json"), ("POST", f"{API}/nodes/join")}
    own = {("GET", f"{API}{path}") for path in ("/receipts/keys",)}
    assert forbidden - by_staff - own <= {("POST", f"{API}/courses/{{course}}/regrade-requests/{{request_id}}/reopen")}
    for (method, _), scope in asked.items():
        assert method == "GET" or scope is not TokenScope.read or "/tokens" in _


@pytest.mark.parametrize("names", [("read",), STUDENTS, ("read", "submit", "staff")], ids=" ".join)
def test_a_token_reaches_what_its_scopes_say_and_nothing_else(served_stage, names):
    served_stage.put_back()
    with ExitStack() as stack:
        site = served_stage.site(stack)
        for method, path in TABLE:
            if not path.startswith(API) or path.endswith(("/events", "openapi.json")) or "/tokens" in path:
                continue
            client = _bearer(site, served_stage.people.ines, *names)
            filled = path.format(
                course=COURSE,
                slug=RUNG,
                public_id=served_stage.made.public_id,
                **{name: "1" for name in _names(path) if name not in {"course", "slug", "public_id"}},
            )
            answer = client.request(method, filled, **BODIES.get((method, path), {}))
            refused = answer.status_code == 403 and "token" in answer.json()["message"]
            assert refused == (scopes.needed(method, path).value not in names), (method, path, answer.text)


def test_without_the_staffs_scope_staff_are_students_to_a_program(site, people, submit):
    theirs = submit(people.bob).public_id
    path = f"/api/v1/submissions/{theirs}"
    for user in (people.tom, people.admin):
        assert _bearer(site, user, *STUDENTS).get(path).status_code == 404
        assert _bearer(site, user, *STUDENTS, "staff").get(path).status_code == 200
    found = _bearer(site, people.tom, *STUDENTS).get(f"/api/v1/courses/{COURSE}/submissions").json()
    assert found == []


# --- how long --------------------------------------------------------------------------------------------------------


def test_a_token_ends_unless_somebody_says_otherwise_within_the_configured_bound(site, people, database, config):
    client = site.browser()
    made = client.post(TOKENS, json=LOGIN).json()
    assert made["scopes"] == ["read", "submit"]
    assert _days(made["expires_at"]) == config.token_days == 90
    longer = client.post(TOKENS, json={**LOGIN, "days": config.token_days_most, "scopes": ["staff"]}).json()
    assert (_days(longer["expires_at"]), longer["scopes"]) == (config.token_days_most, ["read", "staff"])
    for days in (0, -1, config.token_days_most + 1, 10**30):
        answer = client.post(TOKENS, json={**LOGIN, "days": days})
        assert (answer.status_code, answer.json()["field"]) == (422, "days")
    strict = dataclasses.replace(config, token_days=90, token_days_most=7)
    assert accounts.token_end(strict) - datetime.now(UTC) <= timedelta(days=7)
    with pytest.raises(InvalidInputError):
        accounts.token_end(strict, 8)


def _days(text: str) -> int:
    return round((datetime.fromisoformat(text) - datetime.now(UTC)) / timedelta(days=1))


def test_a_reset_password_ends_tokens_too(site, people, database):
    client = site.bearer(people.alice)
    with database.transaction() as session:
        url = links.invite(session, people.alice)
        links.set_password(session, url.partition("token=")[2], "another long password")
    assert client.get("/api/v1/me").status_code == 401


def test_logging_out_everywhere_ends_tokens_too_and_says_so_before(site, people, config):
    program, browser = site.bearer(people.alice), site.logged_in(people.alice, config)
    other = site.bearer(people.bob)
    page = browser.get("/account").text
    assert "Log out everywhere else" in page
    assert "This also revokes all" in page
    assert browser.post("/account/sessions/revoke-others").status_code == 303
    assert program.get("/api/v1/me").status_code == 401
    assert other.get("/api/v1/me").status_code == 200
    assert browser.get("/account").status_code == 200


def test_the_page_makes_a_token_with_the_scopes_and_the_days_that_were_chosen(site, people, config, database):
    browser = site.logged_in(people.tom, config)
    assert browser.post("/account/tokens", data={"name": "x", "days": "30", "scope": ["staff"]}).status_code == 201
    assert browser.post("/account/tokens", data={"name": "y"}).status_code == 201
    with database.reading() as session:
        made = {row.name: (row.scopes, _days(row.expires_at.isoformat())) for row in session.scalars(select(ApiToken))}
    assert made == {"x": ("read staff", 30), "y": ("read", 90)}
    for days in ("0", "400", "x"):
        assert browser.post("/account/tokens", data={"name": "z", "days": days}).status_code == 422


@pytest.mark.parametrize("name", ["LADDER_TOKEN_DAYS", "LADDER_TOKEN_DAYS_MOST"])
@pytest.mark.parametrize("value", ["0", "-1"])
def test_tokens_that_would_be_over_when_they_are_made_are_refused_at_the_start(name, value):
    with pytest.raises(ValueError, match=f"{name} must be 1 or more"):
        load_config({name: value})
    assert load_config({name: "1"})


@pytest.mark.parametrize("value", ["-1", "nan"])
def test_a_limit_below_nought_is_refused_at_the_start(value):
    with pytest.raises(ValueError, match="LADDER_PERSON_REQUESTS_PER_S must be 0 or more"):
        load_config({"LADDER_PERSON_REQUESTS_PER_S": value})
