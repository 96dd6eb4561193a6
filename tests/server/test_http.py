"""The edge: who is asking, CSRF, the unit of work, errors, sizes and headers, over real HTTP."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from fastapi import Request
from sqlalchemy import event, func, select
from sqlalchemy.exc import OperationalError
from starlette.responses import Response

from server.accounts import accounts
from server.app import MAX_BODY_BYTES
from server.http import identity
from server.http.identity import Someone
from server.http.work import Work
from server.models import ApiToken, AuditEntry, LoginSession, Submission

SUBMIT = "/api/v1/courses/gpu/assignments/add_one/submissions"
BODY = {"mode": "submission", "source": "def add_one(x, out, n): ...\n"}


# --- who is asking ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer", "Basic YWxpY2U6eA==", "Bearer kn_a_nodes"])
def test_a_wrong_authorization_is_refused_even_beside_a_valid_cookie(site, people, config, header):
    answer = site.logged_in(people.alice, config).get("/api/v1/me", headers={"authorization": header})
    assert answer.status_code == 401
    assert answer.json()["error"] == "UnauthenticatedError"
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_cookie_or_a_token_says_who_one_is_and_that_it_is_in_use(site, people, config, database):
    for client in (site.logged_in(people.alice, config), site.bearer(people.alice)):
        assert client.get("/api/v1/me").json()["email"] == "alice@example.org"
    with database.reading() as session:
        assert session.scalars(select(ApiToken)).one().last_used_at is not None


def test_nobody_waits_to_have_it_written_down_that_they_are_here(site, people, database, app):
    client = site.bearer(people.alice)
    with app.state.seen_slots:
        assert client.get("/api/v1/me").status_code == 200
    with database.reading() as session:
        assert session.scalars(select(ApiToken)).one().last_used_at is None


def test_a_closed_account_is_nobodys_at_once(site, people, config, database):
    clients = [site.logged_in(people.alice, config), site.bearer(people.alice)]
    with database.transaction() as session:
        session.get(type(people.alice), people.alice.id).disabled_at = people.alice.created_at
    assert [client.get("/api/v1/me").status_code for client in clients] == [401, 401]


# --- cross-site request forgery --------------------------------------------------------------------------------------


def test_a_cookie_alone_changes_nothing(site, people, config, database):
    client = site.logged_in(people.alice, config)
    token = client.headers.pop("x-csrf-token")
    for headers in ({}, {"x-csrf-token": ""}, {"x-csrf-token": token + "x"}, {"x-csrf-token": "ä".encode()}):
        answer = client.post(SUBMIT, json=BODY, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (403, "ForbiddenError")
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 0
    assert client.post(SUBMIT, json=BODY, headers={"x-csrf-token": token}).status_code == 201


def test_anothers_csrf_token_is_no_token(site, people, config):
    alice, bob = site.logged_in(people.alice, config), site.logged_in(people.bob, config)
    answer = alice.post(SUBMIT, json=BODY, headers={"x-csrf-token": bob.headers["x-csrf-token"]})
    assert answer.status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example"])
def test_another_origin_is_refused_even_with_the_token(site, people, config, origin):
    answer = site.logged_in(people.alice, config).post(SUBMIT, json=BODY, headers={"origin": origin})
    assert answer.status_code == 403
    assert "another site" in answer.json()["message"]


def test_our_own_origin_and_a_bearer_of_any_origin_are_taken(site, people, config):
    assert site.logged_in(people.alice, config).post(SUBMIT, json=BODY, headers={"origin": site.url}).status_code == 201
    assert (
        site.bearer(people.alice).post(SUBMIT, json=BODY, headers={"origin": "https://tool.example"}).status_code == 201
    )


def test_a_form_field_carries_the_token_as_well(app, site, people, config):
    @app.post("/tests/form")
    async def take(request: Request, who: Someone) -> dict[str, str]:
        return {"name": who.user.name, "word": str((await request.form())["word"])}

    client = site.logged_in(people.alice, config)
    token = client.headers.pop("x-csrf-token")
    good = client.post("/tests/form", data={"csrf_token": token, "word": "hello"})
    assert good.json() == {"name": "Alice", "word": "hello"}
    multipart = client.post("/tests/form", data={"csrf_token": token, "word": "x"}, files={"file": b"a file"})
    assert multipart.status_code == 200
    for data in ({"word": "hello"}, {"csrf_token": "wrong", "word": "hello"}):
        assert client.post("/tests/form", data=data).status_code == 403
    as_file = client.post("/tests/form", data={"word": "x"}, files={"csrf_token": token.encode()})
    assert as_file.status_code == 403


def test_a_login_that_ended_is_told_so_and_not_that_the_form_is_wrong(site, people, config, database):
    client = site.logged_in(people.alice, config)
    with database.transaction() as session:
        accounts.log_out(session, session.scalars(select(LoginSession)).one())
    answer = client.post(SUBMIT, json=BODY)
    assert (answer.status_code, answer.json()["message"]) == (401, "Your session has ended. Log in again.")


def test_a_strangers_form_needs_the_cookie_it_was_made_with(site, people):
    client = site.browser()
    page = client.get("/login")
    token = re.search(r'name="csrf_token" value="([^"]+)"', page.text)[1]
    data = {"email": "alice@example.org", "password": "a long enough password", "csrf_token": token}
    stranger = site.browser()
    assert stranger.post("/login", data=data).status_code == 403
    assert client.post("/login", data={**data, "csrf_token": "x"}).status_code == 403
    assert client.post("/login", data=data).status_code == 303
    assert "ladder_login" in client.cookies


# --- the unit of work ------------------------------------------------------------------------------------------------


def test_a_request_that_fails_after_writing_leaves_nothing(app, site, people, database):
    @app.post("/api/v1/tests/half")
    def half(who: Someone, work: Work) -> None:
        accounts.create_token(work, who.user, name="half")
        raise ZeroDivisionError

    answer = site.bearer(people.alice).post("/api/v1/tests/half")
    assert (answer.status_code, answer.json()["error"]) == (500, "InternalError")
    assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    with database.reading() as session:
        assert session.scalars(select(ApiToken.name)).all() == ["test"]


def test_a_commit_that_fails_is_never_reported_as_success(site, people, database, app):
    client = site.bearer(people.alice)

    def refuse(_connection):
        raise OperationalError("COMMIT", {}, Exception("the disk is full"))

    event.listen(app.state.database.engine, "commit", refuse)
    answer = client.post(SUBMIT, json=BODY)
    event.remove(app.state.database.engine, "commit", refuse)
    assert (answer.status_code, answer.json()["error"]) == (503, "UnavailableError")
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 0
    assert client.post(SUBMIT, json=BODY).status_code == 201


def test_reading_takes_no_write_lock(app, site, people, database):
    client = site.bearer(people.alice)
    client.get("/api/v1/me")
    with database.transaction() as session:
        session.add(AuditEntry(at=people.alice.created_at, action="held", subject="", detail={}))
        session.flush()
        assert client.get("/api/v1/courses/gpu/submissions", timeout=60).status_code == 200


def test_more_writers_at_once_than_threads_all_get_through(site, people, config, database, app):
    """Every one waits for the same lock and needs a thread again to let it go."""
    app.state.config = dataclasses.replace(config, submit_quota_per_minute=1000)
    client, many = site.bearer(people.alice), 60
    client.get("/api/v1/me")
    with ThreadPoolExecutor(many) as pool:
        codes = list(pool.map(lambda _: client.post(SUBMIT, json=BODY).status_code, range(many)))
    assert codes == [201] * many
    with database.reading() as session:
        assert sorted(session.scalars(select(Submission.number))) == list(range(1, many + 1))


# --- errors, sizes, headers ------------------------------------------------------------------------------------------


def test_every_error_of_the_api_has_one_shape(site, people):
    client = site.bearer(people.alice)
    answers = {
        404: client.get("/api/v1/nothing/here"),
        405: client.put("/api/v1/me"),
        422: client.post(SUBMIT, json={"mode": "wrong"}),
        401: site.browser().get("/api/v1/me"),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert set(answer.json()) == {"error", "message", "field"}


def test_bad_json_says_where_and_never_sends_the_source_back(site, people):
    client = site.bearer(people.alice)
    answer = client.post(SUBMIT, json={"mode": "submission", "source": 7, "lane": "MARKER"})
    assert answer.json()["field"] in {"source", "lane"}
    assert "MARKER" not in answer.text
    broken = client.post(SUBMIT, content=b'{"mode": MARKER', headers={"content-type": "application/json"})
    assert broken.status_code == 422
    assert "MARKER" not in broken.text
    unknown = client.post(SUBMIT, json={**BODY, "laen": "cpu"})
    assert (unknown.status_code, unknown.json()["field"]) == (422, "laen")


def test_half_a_surrogate_pair_is_no_text(site, people):
    content = json.dumps({**BODY, "source": "x = '\ud800'"})
    headers = {"content-type": "application/json"}
    answer = site.bearer(people.alice).post(SUBMIT, content=content, headers=headers)
    assert answer.status_code == 422


def test_a_body_that_declares_too_much_is_refused(site, people):
    client = site.bearer(people.alice)
    headers = {"content-type": "application/json"}
    whole = client.post(SUBMIT, content=b"x" * (MAX_BODY_BYTES + 1), headers=headers)
    assert (whole.status_code, whole.json()["error"]) == (413, "TooLargeError")


def test_a_chunked_body_is_cut_off_at_the_limit(site, people):
    address = urlsplit(site.url)
    token = site.bearer(people.alice).headers["authorization"]
    sent = 0
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(
            f"POST {SUBMIT} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: {token}\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        chunk = b"x" * 65_536
        try:
            while sent < 64 * MAX_BODY_BYTES:
                connection.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                sent += len(chunk)
                connection.setblocking(False)
                try:
                    if connection.recv(1, socket.MSG_PEEK):
                        break
                except BlockingIOError:
                    pass
                finally:
                    connection.settimeout(20)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413")
    # What lies in the sockets' buffers beyond the limit is all that was sent in vain.
    assert sent < MAX_BODY_BYTES + 32 * 2**20


@pytest.mark.parametrize("path", ["/api/v1/me", "/healthz", "/login", "/nothing", "/api/v1/openapi.json"])
def test_every_response_has_the_headers_that_protect_its_reader(site, people, path):
    headers = site.browser().get(path).headers
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert re.fullmatch(r"[0-9a-f]{32}", headers["x-request-id"])


def test_a_request_is_one_line_in_the_log_with_its_id_and_without_its_query(site, people, caplog):
    with caplog.at_level(logging.INFO, logger="server.requests"):
        client = site.browser()
        answer = client.get("/healthz?password=secret")
        # The line is written after the response; a second request on the same connection begins after that.
        client.get("/healthz")
    line = next(record.getMessage() for record in caplog.records if record.name == "server.requests")
    assert line.startswith("GET /healthz 200 ")
    assert line.endswith(f"trace={answer.headers['x-request-id']}")


def test_a_submission_keeps_the_id_of_its_request(site, people):
    answer = site.bearer(people.alice).post(SUBMIT, json=BODY)
    assert answer.json()["trace"] == answer.headers["x-request-id"]


def test_cookies_are_bound_to_https_where_that_is_how_we_are_reached(config):
    secure = dataclasses.replace(config, public_url="https://ladder.example")
    for setting, marks in ((config, ()), (secure, ("Secure", "__Host-"))):
        response = Response()
        identity.set_login_cookie(response, setting, "token")
        cookie = response.headers.getlist("set-cookie")[0]
        assert all(mark in cookie for mark in ("HttpOnly", "SameSite=lax", "Path=/", *marks))
        assert ("Secure" in cookie) is (setting is secure)


def test_a_database_that_is_gone_is_a_503(site, people, app):
    app.state.database.dispose()
    broken = threading.Event()

    def refuse(*_args):
        broken.set()
        raise OperationalError("connect", {}, Exception("connection refused"))

    event.listen(app.state.database.engine, "do_connect", refuse)
    answer = site.browser().get("/healthz")
    event.remove(app.state.database.engine, "do_connect", refuse)
    assert broken.is_set()
    assert answer.status_code == 503


@pytest.mark.parametrize("path", ["/courses/gpu/submissions", "/api/v1/courses/gpu/submissions"])
def test_a_zero_byte_in_a_search_is_refused_whatever_the_database(site, people, config, submit, path):
    submit(people.alice)
    client = site.bearer(people.tom) if path.startswith("/api") else site.logged_in(people.tom, config)
    for student in ("%00", "alice%00", "%00%25"):
        assert client.get(f"{path}?student={student}").status_code == 422
    assert client.get(f"{path}?student=alice").status_code == 200
