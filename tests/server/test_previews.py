"""Staff look at a course as a student does, at a chosen time: they see what is theirs there, and change nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from autograder.contract import Language
from server import db, drafts, previews
from server.accounts.places import Place
from server.courses import courses
from server.errors import ForbiddenError, NotFoundError
from server.gradebook import extensions
from server.models import Assignment, AuditEntry, Enrolment, LoginSession, Preview, Role, User

COURSE, RUNG, SECRET = "gpu", "add_one", "SECRET-OF-THE-STAFF"
HOME, PATH = f"/courses/{COURSE}", f"/courses/{COURSE}/preview"
RUNG_PATH = f"{HOME}/assignments/{RUNG}"


@pytest.fixture
def dates(database, people):
    """Set the rung's dates."""

    def call(**given):
        with database.transaction() as session:
            session.execute(update(Assignment).where(Assignment.slug == RUNG).values(**given))

    return call


@pytest.fixture
def look(site, people, config):
    """A browser of a member of the staff that looks as a student."""

    def call(student=people.alice, at="", user=people.tom):
        browser = site.logged_in(user, config)
        started = browser.post(PATH, data={"student": student.email, "at": at})
        assert (started.status_code, started.headers["location"]) == (303, HOME)
        page = browser.get(HOME)
        assert page.status_code == 200
        return browser, page.text

    return call


def test_every_page_is_the_students_and_says_so(look, people, submit):
    mine, others = submit(people.alice), submit(people.bob)
    browser, page = look()
    assert "You are viewing this course as <strong>Alice</strong>" in page
    assert "Gradebook" not in page
    assert browser.get(f"/submissions/{mine.public_id}").status_code == 200
    assert browser.get(f"/submissions/{others.public_id}").status_code == 404
    assert browser.get(f"{HOME}/roster").status_code == 403
    refused = browser.get(f"{HOME}/schedule")
    assert (refused.status_code, "Leave this view" in refused.text) == (403, True)


def test_the_clock_of_its_pages_is_the_chosen_one(look, dates, database, people):
    opens = datetime.now(UTC).replace(microsecond=0, second=0) + timedelta(days=30)
    dates(open_at=opens, due_at=opens + timedelta(days=7), late_until=opens + timedelta(days=9))
    browser, page = look()
    assert RUNG_PATH not in page
    assert browser.get(RUNG_PATH).status_code == 404
    browser, page = look(at=f"{opens + timedelta(hours=1):%Y-%m-%dT%H:%M}")
    assert RUNG_PATH in page
    assert "in 6 days" in browser.get(f"{RUNG_PATH}/quiz").text
    assert browser.get(f"/api/v1{RUNG_PATH}").status_code == 200
    browser, _page = look(at=f"{opens + timedelta(days=10):%Y-%m-%dT%H:%M}")
    assert "takes no more answers" in browser.get(f"{RUNG_PATH}/quiz").text


def test_milestones_are_closed_in_it_until_the_student_may_read_them(look, dates):
    due = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(days=7)
    dates(due_at=due)
    browser, _page = look()
    page = browser.get(f"{RUNG_PATH}/milestones").text
    assert "until the due date has passed" in page
    assert "<pre" not in page
    browser, _page = look(at=f"{due + timedelta(hours=1):%Y-%m-%dT%H:%M}")
    assert "<pre" in browser.get(f"{RUNG_PATH}/milestones").text


def test_an_extension_of_the_student_holds_in_it(look, dates, database, people):
    due = datetime.now(UTC).replace(microsecond=0, second=0)
    dates(due_at=due, late_until=due)
    with database.transaction() as session:
        member = courses.membership(session, people.tom, COURSE)
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        extensions.give(
            session, member, assignment_ids=[row.id], user_ids=[people.alice.id], days=5, reason="ill", now=due
        )
    at = f"{due + timedelta(days=2):%Y-%m-%dT%H:%M}"
    assert "takes no more answers" not in look(at=at)[0].get(f"{RUNG_PATH}/quiz").text
    assert "takes no more answers" in look(people.bob, at=at)[0].get(f"{RUNG_PATH}/quiz").text


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        (
            "post",
            f"{RUNG_PATH}/submissions",
            {"data": {"mode": "run", "language": "triton", "lane": "cpu", "source": "x"}},
        ),
        ("post", f"{RUNG_PATH}/quiz/waves", {"data": {"value": "7"}}),
        ("post", f"/api/v1{RUNG_PATH}/quiz/waves/answers", {"json": {"value": 7}}),
        ("post", f"/api/v1{RUNG_PATH}/submissions", {"json": {"mode": "run", "source": "x"}}),
        ("post", "/account/tokens", {"data": {"name": "mine"}}),
        ("post", f"{HOME}/schedule", {"data": {}}),
        ("delete", "/api/v1/tokens/current", {}),
        ("post", "/logout", {}),
    ],
)
def test_nothing_can_be_changed_in_it(look, method, path, body):
    browser, _page = look()
    refused = getattr(browser, method)(path, **body)
    assert refused.status_code == 403
    assert "nothing can be changed" in refused.text


def test_it_opens_this_course_and_nothing_else_of_the_student(look, database, people, config, submit):
    with database.transaction() as session:
        other = courses.course_by_slug(session, "other")
        courses.enrol(session, course=other, user=session.get_one(User, people.alice.id), role=Role.student)
    browser, _page = look()
    for path in (
        "/",
        "/account",
        "/courses/other",
        "/api/v1/me",
        "/api/v1/courses",
        "/api/v1/courses/other/submissions",
    ):
        refused = browser.get(path)
        assert (path, refused.status_code) == (path, 403)
    assert browser.get("/submissions/01ARZ3NDEKTSV4RRFFQ69G5FAV").status_code == 403
    assert browser.get("/help").status_code == 200


def test_what_the_student_has_not_handed_in_is_not_shown(look, people, database, site, config):
    with database.transaction() as session:
        member = courses.membership(session, people.alice, COURSE)
        detail = courses.assignment_of(session, member, RUNG)
        now = db.now(session)
        drafts.save(session, member, detail, language=Language.triton, text="MY-DRAFT", revision=0, now=now)
    assert "MY-DRAFT" in site.logged_in(people.alice, config).get(RUNG_PATH).text
    browser, _ = look()
    page = browser.get(RUNG_PATH)
    assert (page.status_code, "MY-DRAFT" in page.text) == (200, False)
    assert "MY-DRAFT" not in browser.get(f"/api/v1/courses/{COURSE}/assignments/{RUNG}/drafts").text


def test_leaving_it_is_one_click_and_its_forms_do_nothing_afterwards(look, people, database, config):
    browser, page = look()
    token = page.split('name="csrf_token" value="', 1)[1].split('"', 1)[0]
    assert token != browser.headers["x-csrf-token"]
    del browser.headers["x-csrf-token"]
    left = browser.post("/preview/end", data={"csrf_token": token})
    assert (left.status_code, left.headers["location"]) == (303, PATH)
    page = browser.get(PATH)
    assert page.status_code == 200
    assert "You are viewing this course as" not in page.text
    # A page that was still open: its form is the student's, and the browser is the TA's again.
    stale = browser.post(f"{RUNG_PATH}/quiz/waves", data={"value": "7", "csrf_token": token})
    assert stale.status_code == 403


@pytest.fixture
def started(database, people, config):
    """A look of Tom's at Alice's, with its login and token."""
    from server.accounts import accounts  # noqa: PLC0415  # beside what it is for

    now = datetime.now(UTC)
    with database.transaction() as session:
        tom = session.get_one(User, people.tom.id)
        login, _text = accounts.start_login(session, tom, place=Place(""), agent="", config=config)
        member = courses.membership(session, tom, COURSE)
        _row, token = previews.start(session, member, login, student_id=people.alice.id, shown_at=None, now=now)
    return login.id, token, now


def _opened(database, started, after=timedelta(), login_id=None):
    first, token, now = started
    with database.reading() as session:
        login = session.get_one(LoginSession, login_id or first)
        session.refresh(login, ["user"])
        return previews.opened(session, login, token, now=now + after) is not None


def test_it_ends_by_itself_and_belongs_to_its_login(database, started, people, config):
    assert _opened(database, started)
    assert not _opened(database, started, previews.LASTS)
    from server.accounts import accounts  # noqa: PLC0415  # beside what it is for

    with database.transaction() as session:
        bob = session.get_one(User, people.bob.id)
        other, _text = accounts.start_login(session, bob, place=Place(""), agent="", config=config)
    assert not _opened(database, started, login_id=other.id)


@pytest.mark.parametrize("who", ["alice", "tom"])
def test_it_is_over_when_either_of_the_two_leaves_the_course(database, started, people, who):
    with database.transaction() as session:
        gone = update(Enrolment).where(Enrolment.user_id == getattr(people, who).id)
        session.execute(gone.values(dropped_at=datetime.now(UTC)))
    assert not _opened(database, started)


def test_only_staff_look_and_only_as_students(database, people, config, site):
    browser = site.logged_in(people.tom, config)
    for student in (people.ines.email, people.carol.email, people.stranger.email, people.alice.id):
        assert browser.post(PATH, data={"student": student}).status_code == 422
    empty = browser.post(PATH, data={"student": "", "at": ""})
    assert (empty.status_code, "Choose a student." in empty.text) == (422, True)
    bad = browser.post(PATH, data={"student": people.alice.name, "at": "<b>soon"})
    assert (bad.status_code, "&lt;b&gt;soon" in bad.text) == (422, True)
    assert site.logged_in(people.alice, config).post(PATH, data={"student": people.bob.email}).status_code == 403
    for user, student, kind in ((people.alice, people.bob, ForbiddenError), (people.tom, people.ines, NotFoundError)):
        with database.transaction() as session:
            member = courses.membership(session, user, COURSE)
            with pytest.raises(kind):
                previews.start(
                    session, member, LoginSession(id=1), student_id=student.id, shown_at=None, now=db.now(session)
                )


def test_each_start_stands_in_the_audit_log(look, people, database):
    look(at="2026-12-24T18:00")
    with database.reading() as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "preview.started")).one()
        assert (entry.actor_id, entry.subject) == (people.tom.id, f"user:{people.alice.id}")
        assert entry.detail["shown_at"] == "2026-12-24T18:00:00+00:00"
        assert session.scalars(select(Preview.student_id)).one() == people.alice.id


def test_the_times_to_choose_are_those_of_the_student_who_is_chosen(site, people, config, dates, database):
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    dates(due_at=now + timedelta(days=1), late_until=now + timedelta(days=2))
    with database.transaction() as session:
        tom = courses.membership(session, people.tom, COURSE)
        row = session.scalars(select(Assignment)).one()
        extensions.give(
            session, tom, assignment_ids=[row.id], user_ids=[people.alice.id], due_at=now + timedelta(days=5),
            days=None, late_until=None, reason="Ill.", now=now,
        )  # fmt: skip
    browser = site.logged_in(people.tom, config)
    theirs = f'value="{now + timedelta(days=5):%Y-%m-%dT%H:%M}">'
    assert f"{theirs}" in browser.get(f"{PATH}?student={people.alice.id}").text
    assert "is due for them" in browser.get(f"{PATH}?student={people.alice.id}").text
    assert theirs not in browser.get(f"{PATH}?student={people.bob.id}").text
    assert theirs not in browser.get(PATH).text


def test_only_a_reading_session_can_be_shown_another_time(database):
    at = datetime(2026, 12, 24, tzinfo=UTC)
    with database.transaction() as session, pytest.raises(ValueError, match="only what is read"):
        db.show_at(session, at)
    with database.reading() as session:
        db.show_at(session, at)
        assert db.now(session) == at


def test_solutions_are_shown_once_released_and_the_students_own_time_is_over(site, people, config, dates, database):
    path = f"{RUNG_PATH}/solutions"
    student, staff = site.logged_in(people.alice, config), site.logged_in(people.tom, config)
    assert SECRET in staff.get(path).text
    assert student.get(path).status_code == 404
    past = datetime.now(UTC) - timedelta(days=1)
    dates(due_at=past, late_until=past, solutions_released_at=datetime.now(UTC) + timedelta(days=1))
    assert student.get(path).status_code == 404
    dates(solutions_released_at=past)
    page = student.get(path)
    assert page.status_code == 200
    assert "Only staff see this page" not in page.text
    with database.transaction() as session:
        member = courses.membership(session, people.tom, COURSE)
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        extensions.give(
            session, member, assignment_ids=[row.id], user_ids=[people.alice.id], days=5, reason="ill", now=past
        )
    assert student.get(path).status_code == 404
    assert site.logged_in(people.bob, config).get(path).status_code == 200


NEVER = {"late_until": None}
CLOSED = {"late_until": timedelta(days=-1)}


@pytest.mark.parametrize(
    ("ends", "slack_s", "shown"),
    [
        ({"due_at": timedelta(days=-1), **NEVER}, 0, False),
        ({"due_at": None, **NEVER}, 0, True),
        ({"due_at": timedelta(days=-2), **CLOSED}, 0, True),
        ({"due_at": timedelta(days=-2), **CLOSED}, 24 * 3600 + 600, False),
    ],
)
def test_solutions_are_not_shown_while_a_submission_would_still_count(
    *, site, people, config, dates, database, submit, ends, slack_s, shown
):
    now = datetime.now(UTC)
    at = {name: None if after is None else now + after for name, after in ends.items()}
    dates(**at, solutions_released_at=now - timedelta(hours=1))
    with database.transaction() as session:
        courses.course_by_slug(session, COURSE).slack_s = slack_s
    status = site.logged_in(people.alice, config).get(f"{RUNG_PATH}/solutions").status_code
    assert (status == 200) is shown
    if not shown:
        submit(people.alice)
    staff = site.logged_in(people.tom, config).get(f"{RUNG_PATH}/solutions").text
    assert ("Only staff see this page" not in staff) is shown
    assert ("for as long as the course runs" in staff) is (ends["due_at"] is not None and ends["late_until"] is None)


def test_an_extension_leaves_solutions_hidden_where_nothing_closes(site, people, config, dates, database):
    past = datetime.now(UTC) - timedelta(days=1)
    dates(due_at=past, late_until=None, solutions_released_at=past)
    with database.transaction() as session:
        member = courses.membership(session, people.tom, COURSE)
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        extensions.give(
            session, member, assignment_ids=[row.id], user_ids=[people.alice.id], due_at=past + timedelta(hours=1),
            late_until=past + timedelta(hours=2), reason="ill", now=past,
        )  # fmt: skip
    assert site.logged_in(people.alice, config).get(f"{RUNG_PATH}/solutions").status_code == 404
