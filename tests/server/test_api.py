"""The API over real HTTP, as a program uses it."""

from __future__ import annotations

import io
import tarfile
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx
import pytest
from httpx_sse import ServerSentEvent, connect_sse
from sqlalchemy import event, select

from server.models import ApiToken, LoginAttempt, Phase, State, Submission, Verdict

SUBMIT = "/api/v1/courses/gpu/assignments/add_one/submissions"
SOURCE = "# naïve ∑\ndef add_one(x, out, n): ...\n"
BODY = {"mode": "submission", "lane": "cpu", "language": "triton", "filename": "kernel.py", "source": SOURCE}
SECRET = "SECRET-OF-THE-STAFF"


def _change(database, public_id, **values):
    with database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == public_id)).one()
        for name, value in values.items():
            setattr(row, name, value)
        row.revision += 1


@pytest.mark.parametrize("text", [r"\ud800", r"alice\u0000@example.org"])
def test_what_no_database_can_look_for_is_nobodys(site, people, text):
    for body in (f'{{"email": "{text}", "password": "x"}}', f'{{"email": "alice@example.org", "password": "{text}"}}'):
        answer = site.browser().post("/api/v1/tokens", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]) == (401, "UnauthenticatedError")


def test_a_zero_byte_in_an_address_names_nothing(site, people, config):
    answer = site.logged_in(people.alice, config).get("/api/v1/courses/%00/assignments")
    # SQLite looks for it and finds nothing; PostgreSQL refuses to look.
    assert answer.status_code in {404, 422}


def test_a_zero_byte_writes_one_line_into_the_log(site, people, caplog):
    """Anybody can send one as often as they like: no traceback of ours, and nothing of what they sent."""
    caplog.set_level("WARNING", "server")
    assert site.browser().get("/badge/%00said-so/add_one.svg").status_code in {404, 422}
    assert "said-so" not in caplog.text
    assert "Traceback" not in caplog.text
    assert len(caplog.text) < 500


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_a_program_logs_in_works_and_logs_out(site, people, database):
    client = site.browser()
    login = {"email": "Alice@example.org", "password": "a long enough password", "name": "laptop"}
    made = client.post("/api/v1/tokens", json=login)
    assert made.status_code == 201
    client.headers["authorization"] = f"Bearer {made.json()['token']}"
    assert client.get("/api/v1/me").json()["handle"] == people.alice.handle
    assert client.delete("/api/v1/tokens/current").status_code == 204
    assert client.get("/api/v1/me").status_code == 401
    with database.reading() as session:
        assert session.scalars(select(ApiToken)).one().revoked_at is not None


def test_a_body_that_is_no_text_is_a_422_as_described(site, people):
    client = site.bearer(people.alice)
    paths = ["/api/v1/courses/gpu/assignments/add_one/submissions", "/api/v1/tokens"]
    for path in paths:
        for body, kind in ((b"\xff\xfe{", "application/json"), (b"--x\r\nbroken", "multipart/form-data; boundary=x")):
            answer = client.post(path, content=body, headers={"content-type": kind})
            assert (answer.status_code, answer.json()["error"]) == (422, "InvalidInputError"), (path, kind)


def test_a_wrong_password_is_a_401_that_is_written_down_and_limited(site, people, database):
    client = site.browser()
    login = {"email": "alice@example.org", "password": "wrong password"}
    codes = [client.post("/api/v1/tokens", json=login).status_code for _ in range(11)]
    assert codes == [401] * 10 + [429]
    last = client.post("/api/v1/tokens", json={**login, "password": "a long enough password"})
    assert (last.status_code, last.json()["error"]) == (429, "TooManyError")
    assert 1 <= int(last.headers["retry-after"]) <= 60
    with database.reading() as session:
        assert len(session.scalars(select(LoginAttempt)).all()) == 10


def test_a_login_has_no_token_to_revoke(site, people, config):
    assert site.logged_in(people.alice, config).delete("/api/v1/tokens/current").status_code == 422


# --- courses and assignments -----------------------------------------------------------------------------------------


def test_a_student_finds_the_assignment_and_everything_public_about_it(site, people):
    client = site.bearer(people.alice)
    (course,) = client.get("/api/v1/courses").json()
    assert (course["slug"], course["role"]) == ("gpu", "student")
    (summary,) = client.get("/api/v1/courses/gpu/assignments").json()
    assert summary["points"] == {"correctness": 60.0, "speed": 40.0, "quiz": 6.0}
    read = client.get("/api/v1/courses/gpu/assignments/add_one").json()
    assert read["signature"] == "add_one(x, out, n)"
    assert [case["name"] for case in read["cases"]] == ["small", "ranked"]
    assert [argument["role"] for argument in read["arguments"]] == ["input", "output", "size"]
    assert read["handout"].startswith("# Add one")
    assert set(read["starters"]) == {"triton"}
    assert read["lanes"] == ["cpu", "h200"]
    assert SECRET not in str(read)


def test_the_archive_is_a_tar_of_the_public_files(site, people):
    answer = site.bearer(people.alice).get("/api/v1/courses/gpu/assignments/add_one/archive")
    assert answer.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        assert "assignments/add_one/problem.py" in tar.getnames()
        assert all(name.startswith("assignments/add_one/") for name in tar.getnames())
    assert SECRET.encode() not in answer.content


# --- submissions -----------------------------------------------------------------------------------------------------


def test_a_submission_is_accepted_found_and_read_back(site, people):
    client = site.bearer(people.alice)
    made = client.post(SUBMIT, json=BODY)
    assert made.status_code == 201
    read = made.json()
    assert (read["number"], read["state"], read["position"], read["verdict"]) == (1, "queued", None, None)
    assert (read["course"], read["assignment"], read["author"]) == ("gpu", "add_one", "Alice")
    again = client.get(f"/api/v1/submissions/{read['public_id']}").json()
    assert (again["position"], again["wait"]["has_node"], again["wait"]["likely_s"]) == (0, False, None)
    assert {**again, "position": None, "wait": None} == read
    source = client.get(f"/api/v1/submissions/{read['public_id']}/source")
    assert source.content == SOURCE.encode()
    assert source.headers["content-type"] == "text/plain; charset=utf-8"
    (listed,) = client.get("/api/v1/courses/gpu/submissions?assignment=add_one&mode=submission").json()
    assert listed["public_id"] == read["public_id"]


@pytest.mark.parametrize(
    ("status", "field", "changes"),
    [
        (422, "source", {"source": ""}),
        (422, "source", {"source": "a\0b"}),
        (413, "", {"source": "#" * (2**20 + 1)}),
        (422, "language", {"language": "cuda"}),
        (422, "lane", {"lane": "b200"}),
        (422, "lane", {"lane": "tpu"}),
        (422, "mode", {"mode": "both"}),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_field(site, people, status, field, changes):
    answer = site.bearer(people.alice).post(SUBMIT, json={**BODY, **changes})
    assert (answer.status_code, answer.json()["field"]) == (status, field)
    assert answer.json()["message"]


def test_the_largest_source_arrives_even_if_every_character_is_escaped(site, people):
    source = "é" * 2**19
    answer = site.bearer(people.alice).post(SUBMIT, json={**BODY, "source": source})
    assert answer.status_code == 201


def test_the_history_is_read_in_pages(site, people):
    client = site.bearer(people.alice)
    made = [client.post(SUBMIT, json=BODY).json()["public_id"] for _ in range(3)]
    first = client.get("/api/v1/courses/gpu/submissions?limit=2").json()
    assert [item["public_id"] for item in first] == made[:0:-1]
    rest = client.get(f"/api/v1/courses/gpu/submissions?limit=2&before={first[-1]['public_id']}").json()
    assert [item["public_id"] for item in rest] == made[:1]
    assert client.get("/api/v1/courses/gpu/submissions?limit=1000").status_code == 422


def test_a_list_asks_the_database_a_fixed_number_of_times(site, people, app):
    """Without what the process's own thread asks for its sign of life, whenever that is."""
    client = site.bearer(people.tom)
    counts = []
    for _ in range(2):
        for _ in range(3):
            client.post(SUBMIT, json=BODY)
        statements = []

        def note(*args, statements=statements):
            if threading.current_thread().name != "presence":
                statements.append(args[2])

        event.listen(app.state.database.engine, "before_cursor_execute", note)
        assert client.get("/api/v1/courses/gpu/submissions").status_code == 200
        event.remove(app.state.database.engine, "before_cursor_execute", note)
        counts.append(sum(text.startswith("SELECT") for text in statements))
    assert counts[0] == counts[1]


# --- following -------------------------------------------------------------------------------------------------------


@contextmanager
def _following(client, public_id):
    with connect_sse(client, "GET", f"/api/v1/submissions/{public_id}/events") as source:
        yield source.iter_sse()


def test_a_submission_is_followed_to_its_end(site, people, database):
    client = site.bearer(people.alice)
    public_id = client.post(SUBMIT, json=BODY).json()["public_id"]
    with _following(client, public_id) as events:
        first = next(events)
        assert (first.event, first.json()["state"]) == ("submission", "queued")
        _change(database, public_id, state=State.running, phase=Phase.checking)
        second = next(events)
        assert (second.json()["state"], second.json()["phase"]) == ("running", "checking")
        _change(database, public_id, state=State.done, verdict=Verdict.passed, phase=None)
        rest: list[ServerSentEvent] = list(events)
    assert [item.event for item in rest] == ["submission", "end"]
    assert rest[0].json()["verdict"] == "passed"


def test_a_finished_submission_is_sent_once_and_ended(site, people, database):
    client = site.bearer(people.alice)
    public_id = client.post(SUBMIT, json=BODY).json()["public_id"]
    _change(database, public_id, state=State.failed, finished_at=datetime.now(UTC))
    with _following(client, public_id) as events:
        received = list(events)
    assert [item.event for item in received] == ["submission", "end"]
    assert received[0].json()["is_final"]


def test_who_may_see_no_more_is_sent_no_more(site, people, database):
    client = site.bearer(people.alice)
    public_id = client.post(SUBMIT, json=BODY).json()["public_id"]
    with _following(client, public_id) as events:
        assert next(events).event == "submission"
        with database.transaction() as session:
            for token in session.scalars(select(ApiToken)):
                token.revoked_at = datetime.now(UTC)
        _change(database, public_id, state=State.done)
        assert list(events) == []


def test_watchers_hold_no_connection_of_the_database(site, people, app):
    many = 30
    client = site.bearer(people.alice, limits=httpx.Limits(max_connections=many + 1))
    public_id = client.post(SUBMIT, json=BODY).json()["public_id"]
    opened = threading.Barrier(many + 1)
    leave = threading.Event()

    def watch():
        with _following(client, public_id) as events:
            next(events)
            opened.wait()
            leave.wait()

    threads = [threading.Thread(target=watch) for _ in range(many)]
    for thread in threads:
        thread.start()
    opened.wait()
    while app.state.live.watchers < many:
        time.sleep(0.01)
    # The listener's own question is the only one that may be on its way.
    assert app.state.database.engine.pool.checkedout() <= 1
    assert client.get("/api/v1/me").status_code == 200
    leave.set()
    for thread in threads:
        thread.join()


# --- description -----------------------------------------------------------------------------------------------------


def test_the_description_names_every_route_with_its_errors(app):
    paths = app.openapi()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert operation["tags"], (method, path)
            assert operation["description"], (method, path)
    assert paths["/api/v1/me"]["get"]["security"] == [{"token": []}]
    assert "security" not in paths["/healthz"]["get"]
    responses = paths["/api/v1/courses/{course}/assignments/{slug}/submissions"]["post"]["responses"]
    assert {"201", "401", "403", "404", "409", "413", "422", "429", "503"} == set(responses)
    for status in ("404", "422"):
        assert responses[status]["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorRead")
