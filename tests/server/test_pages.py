"""The pages over HTTP, without a browser: forms, refusals, who sees what, and the live stream."""

from __future__ import annotations

import io
import json
import re
import tarfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import event, select

from server import announcements
from server.accounts import accounts
from server.accounts.places import Place
from server.announcements import Draft
from server.config import Config
from server.courses import courses
from server.db import Database
from server.models import (
    Assignment,
    Enrolment,
    Lane,
    LoginSession,
    RegradeRequest,
    RequestState,
    Review,
    Role,
    RubricSheet,
    State,
    Submission,
    Verdict,
    WriteUp,
    WriteUpFormat,
)
from server.statistics.waiting import waiting
from tests.server.conftest import COURSE, PASSWORD, RUNG, SECRET, People, Site, Submit

BASE = f"/courses/{COURSE}/assignments/{RUNG}"
SOURCE = "def add_one(x, out, n):\n    pass\n"


@pytest.fixture
def alice(site: Site, people: People, config: Config) -> httpx.Client:
    """Alice's browser; its forms carry their token in a field, as a page's do."""
    return logged_in(site, people.alice, config)


def logged_in(site: Site, user: object, config: Config) -> httpx.Client:
    client = site.logged_in(user, config)  # type: ignore[arg-type]
    client.headers["accept"] = "text/html"
    return client


def form(**fields: str) -> dict[str, str]:
    return {"mode": "submission", "language": "triton", "lane": "cpu", "source": SOURCE, **fields}


def text_of(html: str) -> str:
    """What stands in the form's text area: the parser drops the line break after the tag."""
    found = re.search(r'<textarea id="source"[^>]*>\n(.*?)</textarea>', html, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def key_of(html: str) -> str:
    """What makes the form's submission the same one when it is sent again."""
    return re.findall(r'name="request_key" value="(\w+)"', html)[0]


def stored(database: Database) -> list[Submission]:
    with database.reading() as session:
        rows = list(session.scalars(select(Submission).order_by(Submission.id)))
        session.expunge_all()
        return rows


# --- logging in ------------------------------------------------------------------------------------------------------


def test_logging_in_needs_the_token_of_its_form(site: Site, people: People) -> None:
    browser = site.browser()
    fields = {"email": "alice@example.org", "password": PASSWORD, "next": BASE}
    assert browser.post("/login", data=fields).status_code == 403
    token = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/login").text)
    assert token is not None
    answer = browser.post("/login", data={**fields, "csrf_token": token[1]})
    assert (answer.status_code, answer.headers["location"]) == (303, BASE)
    assert browser.get(BASE).status_code == 200


def test_a_browser_whose_login_has_ended_can_log_in_again(site: Site, people: People) -> None:
    browser = site.browser(cookies={"ladder_login": "a login that has ended"})
    token = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/login").text)
    assert token is not None
    fields = {"email": "alice@example.org", "password": PASSWORD, "csrf_token": token[1]}
    assert browser.post("/login", data={**fields, "csrf_token": "another"}).status_code == 401
    assert browser.post("/login", data=fields).status_code == 303
    assert browser.get(BASE).status_code == 200


def test_a_wrong_password_keeps_the_address_and_counts(site: Site, people: People, database: Database) -> None:
    browser = site.browser()
    token = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/login").text)
    assert token is not None
    fields = {"email": "alice@example.org", "password": "wrong", "csrf_token": token[1]}
    for _ in range(10):
        answer = browser.post("/login", data=fields)
    assert answer.status_code == 401
    assert 'value="alice@example.org"' in answer.text
    assert "No account has this e-mail address and password." in answer.text
    assert browser.post("/login", data={**fields, "password": PASSWORD}).status_code == 429


def test_a_stranger_is_led_to_the_login_and_back(site: Site, people: People) -> None:
    answer = site.browser().get(f"{BASE}/leaderboard?lane=cpu")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/login?next={BASE}/leaderboard%3Flane%3Dcpu"


def test_a_stream_of_a_stranger_is_no_redirect(site: Site, people: People, submit: Submit) -> None:
    submission = submit(people.alice)
    answer = site.browser(headers={"accept": "text/event-stream"}).get(f"/submissions/{submission.public_id}/live")
    assert answer.status_code == 401


def test_one_course_is_the_front_page_and_none_says_so(
    alice: httpx.Client, site: Site, people: People, config: Config
) -> None:
    assert alice.get("/").headers["location"] == f"/courses/{COURSE}"
    carol = logged_in(site, people.carol, config)
    assert "You are in no course yet." in carol.get("/").text


def test_staff_begin_with_what_waits_for_them(
    site: Site, people: People, config: Config, database: Database, submit: Submit
) -> None:
    tom = logged_in(site, people.tom, config)
    home = f"/courses/{COURSE}/staff"
    assert tom.get("/").headers["location"] == home
    assert "Nothing is waiting for you." in tom.get(home).text
    held, failed, asked = (submit(who) for who in (people.alice, people.bob, people.alice))
    with database.transaction() as session:
        session.get_one(Submission, held.id).review = Review.held
        session.get_one(Submission, failed.id).state = State.failed
        row = session.get_one(Assignment, asked.assignment_id)
        row.due_at = datetime.now(UTC) + timedelta(days=2)
        for person in (people.alice, people.bob):
            about = {"course_id": row.course_id, "assignment_id": row.id, "user_id": person.id, "filename": "w.md"}
            session.add_all(
                WriteUp(
                    public_id=f"{person.id:020}{number:06}", number=number, format=WriteUpFormat.markdown, data=b"x",
                    size=1, sha256="0" * 64, trace="0" * 32, uploaded_at=datetime.now(UTC), **about,
                )
                for number in (1, 2)
            )  # fmt: skip
        session.add(
            RubricSheet(
                assignment_id=row.id, user_id=people.bob.id, graded_by_id=people.tom.id, graded_at=datetime.now(UTC)
            )
        )
        session.add(
            RegradeRequest(
                course_id=row.course_id, assignment_id=row.id, submission_id=asked.id, user_id=people.alice.id,
                state=RequestState.open, created_at=datetime.now(UTC),
            )
        )  # fmt: skip
        announcements.write(
            session, courses.membership(session, people.tom, COURSE), Draft("Room changed", "Now in B12.")
        )
    html = tom.get(home).text
    assert "Nothing is waiting" not in html
    found = dict(re.findall(r'<a class="panel todo__item" href="([^"]+)"><strong[^>]*>(\d+)</strong>', html))
    course = f"/courses/{COURSE}"
    assert found == {
        f"{course}/review": "1",
        f"{course}/regrade-requests": "1",
        f"{course}/submissions?state=failed&amp;mode=submission": "1",
    }
    with database.transaction() as session:
        dated = session.get_one(Assignment, asked.assignment_id)
        dated.due_at, dated.late_until = dated.due_at - timedelta(days=3), dated.due_at
    rubric = f"{course}/assignments/{RUNG}/rubric"
    assert rubric not in tom.get(home).text, "it can still be changed"
    with database.transaction() as session:
        dated = session.get_one(Assignment, asked.assignment_id)
        dated.due_at, dated.late_until = datetime.now(UTC) - timedelta(days=2), datetime.now(UTC) - timedelta(days=1)
    assert re.search(rf'href="{rubric}"><strong[^>]*>1<', tom.get(home).text)
    for url in found:
        assert tom.get(unescape(url)).status_code == 200
    assert "Add one" in html
    assert "2 students ×" in html
    assert "no node is in service" in html
    assert "Room changed" in html


def test_only_failures_that_nothing_made_good_wait_for_staff(
    people: People, database: Database, submit: Submit
) -> None:
    def count() -> int:
        with database.reading() as session:
            return waiting(session, courses.membership(session, people.tom, COURSE)).failed

    def becomes(row: Submission, state: State, verdict: Verdict | None = None, lane: Lane = Lane.cpu) -> None:
        with database.transaction() as session:
            found = session.get_one(Submission, row.id)
            found.state, found.verdict, found.lane = state, verdict, lane

    before, failed = submit(people.alice), submit(people.alice)
    others, staffs, later = submit(people.bob), submit(people.tom), submit(people.alice)
    becomes(before, State.done, Verdict.passed)
    becomes(others, State.done, Verdict.passed)
    for row in (failed, staffs):
        becomes(row, State.failed)
    assert count() == 1
    becomes(later, State.done, Verdict.grader_error)
    assert count() == 1
    becomes(later, State.done, Verdict.passed, lane=Lane.h200)
    assert count() == 1
    becomes(later, State.done, Verdict.wrong_answer)
    assert count() == 0
    becomes(others, State.failed)
    assert count() == 1
    with database.transaction() as session:
        courses.membership(session, people.bob, COURSE).enrolment.dropped_at = datetime.now(UTC)  # type: ignore[union-attr]
    assert count() == 0


def test_the_overview_of_a_course_without_students_leads_to_the_roster(
    site: Site, people: People, config: Config, database: Database
) -> None:
    tom = logged_in(site, people.tom, config)
    home, said = f"/courses/{COURSE}/staff", "No student is in this course yet."
    assert said not in tom.get(home).text
    with database.transaction() as session:
        students = session.scalars(select(Enrolment).where(Enrolment.role == Role.student))
        for enrolment in students:
            enrolment.dropped_at = datetime.now(UTC)
    assert said in tom.get(home).text


def test_the_staffs_overview_asks_the_database_a_few_times(
    site: Site, people: People, config: Config, database: Database, app: FastAPI
) -> None:
    tom = logged_in(site, people.tom, config)
    home = f"/courses/{COURSE}/staff"
    tom.get(home)
    asked: list[str] = []
    note = lambda _connection, _cursor, statement, *_more: asked.append(statement)  # noqa: E731
    event.listen(app.state.database.engine, "before_cursor_execute", note)
    assert tom.get(home).status_code == 200
    event.remove(app.state.database.engine, "before_cursor_execute", note)
    assert len(asked) <= 20, asked


# --- handing in ------------------------------------------------------------------------------------------------------


def test_a_form_is_stored_byte_by_byte_with_its_lines_as_they_were(alice: httpx.Client, database: Database) -> None:
    answer = alice.post(f"{BASE}/submissions", data=form(source="a\r\n\tb\u202e\r\n"))
    assert answer.status_code == 303
    page = alice.get(answer.headers["location"])
    assert page.status_code == 200
    (row,) = stored(database)
    assert answer.headers["location"] == f"/submissions/{row.public_id}"
    source = alice.get(f"/submissions/{row.public_id}/source")
    assert source.content == "a\n\tb\u202e\n".encode()
    assert source.headers["content-disposition"] == f'attachment; filename="{RUNG}.py"'


def test_a_form_that_is_sent_again_because_its_answer_was_lost_is_stored_once(
    alice: httpx.Client, database: Database
) -> None:
    key = key_of(alice.get(BASE).text)
    assert key != key_of(alice.get(BASE).text)
    first = alice.post(f"{BASE}/submissions", data=form(request_key=key))
    again = alice.post(f"{BASE}/submissions", data=form(request_key=key))
    assert first.headers["location"] == again.headers["location"]
    assert len(stored(database)) == 1
    other = alice.post(f"{BASE}/submissions", data=form(request_key=key_of(alice.get(BASE).text)))
    assert other.headers["location"] != first.headers["location"]


@pytest.mark.parametrize("changes", [{"mode": "run"}, {"source": "other"}, {}])
def test_a_form_with_something_else_in_it_is_another_submission(
    alice: httpx.Client, database: Database, changes: dict[str, str]
) -> None:
    """Without scripts a page that somebody goes back to has the key that it had."""
    key = key_of(alice.get(BASE).text)
    files = {} if changes else {"file": ("mine.py", b"# a file\n")}
    assert alice.post(f"{BASE}/submissions", data=form(request_key=key)).status_code == 303
    answer = alice.post(f"{BASE}/submissions", data=form(request_key=key, **changes), files=files or None)
    assert answer.status_code == 303
    assert len(stored(database)) == 2


def test_a_file_is_stored_as_it_was_sent(alice: httpx.Client, database: Database) -> None:
    content = b"def add_one(x, out, n):\r\n    pass\r\n"
    answer = alice.post(f"{BASE}/submissions", data=form(source=""), files={"file": ("../../mine.py", content)})
    assert answer.status_code == 303
    (row,) = stored(database)
    assert row.filename == "mine.py"
    assert alice.get(f"/submissions/{row.public_id}/source").content == content


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"source": " \n "}, 422, "The source is empty."),
        ({"source": "x\0y"}, 422, "looks like a binary file"),
        ({"source": "#" * 2**20 + "\n"}, 413, "at most 1,048,576 are accepted"),
        ({"lane": "moon"}, 422, "lane is not one of cpu"),
        ({"language": "cuda"}, 422, "does not accept cuda"),
        ({"mode": "try"}, 422, "mode is not one of run, submission"),
    ],
)
def test_what_cannot_be_taken_comes_back_with_the_reason_and_the_text(
    alice: httpx.Client, database: Database, changes: dict[str, str], status: int, reason: str
) -> None:
    fields = form(**changes)
    answer = alice.post(f"{BASE}/submissions", data=fields)
    assert answer.status_code == status
    assert reason in unescape(answer.text)
    # A zero byte cannot stand in a page; everything else has to.
    assert text_of(answer.text).replace("\ufffd", "\0") == fields["source"]
    assert stored(database) == []


def test_an_empty_form_begins_with_the_starter(alice: httpx.Client) -> None:
    assert "def add_one" in text_of(alice.get(BASE).text)


def test_too_many_submissions_wait_and_say_how_long(alice: httpx.Client, config: Config) -> None:
    for _ in range(config.submit_quota_per_minute):
        assert alice.post(f"{BASE}/submissions", data=form()).status_code == 303
    answer = alice.post(f"{BASE}/submissions", data=form(source="# the next one\n"))
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert text_of(answer.text) == "# the next one\n"


def test_a_form_without_its_token_changes_nothing(alice: httpx.Client, database: Database) -> None:
    del alice.headers["x-csrf-token"]
    assert alice.post(f"{BASE}/submissions", data=form()).status_code == 403
    assert alice.post("/account/tokens", data={"name": "laptop"}).status_code == 403
    assert alice.post("/logout").status_code == 403
    assert stored(database) == []


# --- who sees what ---------------------------------------------------------------------------------------------------


def test_a_submission_is_its_students_and_the_staffs(
    site: Site, people: People, config: Config, submit: Submit
) -> None:
    path = f"/submissions/{submit(people.alice).public_id}"
    seen = {
        name: logged_in(site, getattr(people, name), config).get(path).status_code
        for name in ("alice", "bob", "carol", "tom", "ines", "admin", "stranger")
    }
    assert seen == {
        "alice": 200, "bob": 404, "carol": 404, "tom": 200, "ines": 200, "admin": 200, "stranger": 404,
    }  # fmt: skip


@pytest.mark.parametrize("path", ["", "/submissions", "/leaderboard"])
def test_an_assignment_is_for_its_course_and_shows_nothing_of_the_staffs(
    site: Site, people: People, config: Config, path: str
) -> None:
    answer = logged_in(site, people.bob, config).get(BASE + path)
    assert answer.status_code == 200
    assert SECRET not in answer.text
    assert logged_in(site, people.stranger, config).get(BASE + path).status_code == 404


def test_the_history_is_ones_own_and_for_staff_everybodys(
    site: Site, people: People, config: Config, submit: Submit
) -> None:
    mine, other = submit(people.alice).public_id, submit(people.bob).public_id
    student = logged_in(site, people.alice, config).get(f"{BASE}/submissions").text
    staff = logged_in(site, people.tom, config).get(f"{BASE}/submissions").text
    assert (mine in student, other in student) == (True, False)
    assert (mine in staff, other in staff) == (True, True)


def test_nobody_edits_a_version_that_they_may_not_see(
    site: Site, people: People, config: Config, submit: Submit
) -> None:
    other = submit(people.bob, b"# Bob's own\n").public_id
    assert logged_in(site, people.alice, config).get(f"{BASE}?version={other}").status_code == 404
    assert text_of(logged_in(site, people.tom, config).get(f"{BASE}?version={other}").text) == "# Bob's own\n"


# --- the account -----------------------------------------------------------------------------------------------------


def test_a_new_token_is_shown_once_and_works(alice: httpx.Client, site: Site) -> None:
    answer = alice.post("/account/tokens", data={"name": "laptop"})
    assert answer.status_code == 201
    found = re.search(r'<code id="secret">(kl_[^<]+)</code>', answer.text)
    assert found is not None
    assert site.browser(headers={"authorization": f"Bearer {found[1]}"}).get("/api/v1/me").status_code == 200
    assert found[1] not in alice.get("/account").text


def test_a_token_without_a_name_is_refused_with_the_reason(alice: httpx.Client) -> None:
    answer = alice.post("/account/tokens", data={"name": " "})
    assert answer.status_code == 422
    assert "1 to 80 printable characters" in answer.text


def test_nobody_ends_the_login_or_the_token_of_another(
    alice: httpx.Client, people: People, database: Database, config: Config
) -> None:
    with database.transaction() as session:
        token, _ = accounts.create_token(session, session.merge(people.bob, load=False), name="bob's")
        login, _ = accounts.start_login(
            session, session.merge(people.bob, load=False), place=Place(""), agent="", config=config
        )
    assert alice.post(f"/account/tokens/{token.id}/revoke").status_code == 404
    assert alice.post(f"/account/sessions/{login.id}/revoke").status_code == 404


def test_ending_ones_own_login_logs_out(alice: httpx.Client, people: People, database: Database) -> None:
    with database.reading() as session:
        login = session.scalars(select(LoginSession.id).where(LoginSession.user_id == people.alice.id)).one()
    assert alice.post(f"/account/sessions/{login}/revoke").headers["location"] == "/login"
    assert alice.get("/account").status_code == 303


# --- errors and files ------------------------------------------------------------------------------------------------


def test_errors_are_pages_for_people_and_json_for_programs(alice: httpx.Client) -> None:
    page = alice.get("/courses/none")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such course." in page.text
    assert alice.get("/no/such/page").status_code == 404
    assert alice.get("/api/v1/courses/none").json()["error"] == "NotFoundError"


def test_pages_carry_the_policy_and_no_inline_script_or_style(
    alice: httpx.Client, submit: Submit, people: People
) -> None:
    submission = submit(people.alice)
    paths = ["/", "/account", "/components", f"/courses/{COURSE}", BASE, f"{BASE}/leaderboard"]
    for path in [*paths, f"/submissions/{submission.public_id}", "/nothing"]:
        answer = alice.get(path, follow_redirects=True)
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert "style=" not in answer.text
        assert not re.search(r"<[^>]+\son\w+=", answer.text)
        scripts = re.findall(r"<script([^>]*)>", answer.text)
        assert all(" src=" in script or "application/json" in script for script in scripts)


def test_bundled_files_are_kept_for_good_and_others_for_a_while(alice: httpx.Client, config: Config) -> None:
    assert alice.get("/static/favicon.svg").headers["cache-control"] == "public, max-age=3600"
    manifest = config.web / "static" / "dist" / "manifest.json"
    if not manifest.is_file():
        pytest.skip("the pages are not built: run scripts/build_pages.sh")
    name = json.loads(manifest.read_text())["app.css"]
    assert "immutable" in alice.get(f"/static/{name}").headers["cache-control"]
    assert alice.get("/static/../app.py").status_code == 404


def test_type_faces_are_served_from_here_with_their_licences(alice: httpx.Client, config: Config) -> None:
    manifest = config.web / "static" / "dist" / "manifest.json"
    if not manifest.is_file():
        pytest.skip("the pages are not built: run scripts/build_pages.sh")
    names = json.loads(manifest.read_text())
    for font in ("inter", "jetbrains-mono"):
        answer = alice.get(f"/static/{names[f'{font}-latin-wght-normal.woff2']}")
        assert answer.content.startswith(b"wOF2")
        assert "immutable" in answer.headers["cache-control"]
        assert "SIL Open Font License" in alice.get(f"/static/dist/{font}-LICENSE.txt").text
    assert f'/static/{names["inter-latin-wght-normal.woff2"]}" as="font"' in alice.get("/account").text
    assert "url(http" not in alice.get(f"/static/{names['app.css']}").text


def test_only_staff_are_led_to_the_design_page(site: Site, people: People, config: Config) -> None:
    seen = [logged_in(site, user, config).get(f"/courses/{COURSE}").text for user in (people.alice, people.tom)]
    assert ['href="/components"' in text for text in seen] == [False, True]


# --- live ------------------------------------------------------------------------------------------------------------


def events(lines: Iterator[str]) -> Iterator[tuple[str, object]]:
    """Server-sent events as (name, data), comments left out."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def change(database: Database, submission: Submission, **values: object) -> None:
    with database.transaction() as session:
        row = session.get_one(Submission, submission.id)
        for name, value in values.items():
            setattr(row, name, value)
        row.revision += 1


def test_a_stream_sends_the_parts_that_change_and_ends_at_the_end(
    alice: httpx.Client, people: People, submit: Submit, database: Database
) -> None:
    submission = submit(people.alice)
    with alice.stream("GET", f"/submissions/{submission.public_id}/live") as stream:
        told = events(stream.iter_lines())
        first = [next(told) for _ in range(8)]
        assert [data["name"] for name, data in first if name == "part"] == [
            "head", "place", "cancel", "progress", "detail", "cases", "receipt",
        ]  # fmt: skip
        change(database, submission, state=State.cancelled)
        rest = list(told)
    assert rest[-1][0] == "end"
    heads = [data["html"] for name, data in rest if name == "part" and data["name"] == "head"]
    assert "Cancelled" in heads[-1]
    assert not any(name == "part" and data["name"] == "detail" for name, data in rest)


@pytest.mark.full("slow")
def test_a_stream_ends_when_its_login_does(
    alice: httpx.Client, people: People, submit: Submit, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.http.waits.LOGIN_S", 0.0)
    submission = submit(people.alice)
    with alice.stream("GET", f"/submissions/{submission.public_id}/live") as stream:
        told = events(stream.iter_lines())
        next(told)
        with database.transaction() as session:
            session.delete(session.scalars(select(LoginSession).where(LoginSession.user_id == people.alice.id)).one())
        names = {name for name, _data in told}
    assert "end" not in names


def test_streams_hold_no_thread(alice: httpx.Client, people: People, submit: Submit, site: Site) -> None:
    submission = submit(people.alice)
    before = threading.active_count()
    opened = [alice.stream("GET", f"/submissions/{submission.public_id}/live") for _ in range(30)]
    streams = [item.__enter__() for item in opened]
    for stream in streams:
        next(events(stream.iter_lines()))
    # More streams than there are threads for requests, and a page is still served.
    assert alice.get(f"/submissions/{submission.public_id}").status_code == 200
    assert threading.active_count() - before < 30
    for item in opened:
        item.__exit__(None, None, None)


def test_an_assignments_files_are_a_link_on_its_page(alice: httpx.Client) -> None:
    link = re.search(r'href="([^"]+/archive)"', alice.get(BASE).text)
    assert link is not None
    with tarfile.open(fileobj=io.BytesIO(alice.get(link[1]).content)) as archive:
        assert f"assignments/{RUNG}/README.md" in archive.getnames()
