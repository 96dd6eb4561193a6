"""A course is set up, ended, begun anew; and people are forgotten, so that nobody can be told from what stays."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from sqlalchemy import delete, func, select

from server import audit, cli
from server.accounts import accounts
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError
from server.gradebook import extensions
from server.messages import messages
from server.models import (
    ApiToken,
    Assignment,
    AssignmentVersion,
    AuditEntry,
    Base,
    Course,
    Enrolment,
    LoginSession,
    Role,
    SourceSharing,
    Submission,
    User,
)
from server.roster import imports
from server.submissions import submissions
from server.terms import course_settings, erasure, terms
from server.terms.course_settings import LateRules, Settings
from tests.doubles.database import everything_in

COURSE, RUNG = "gpu", "add_one"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PATH = f"/courses/{COURSE}/settings"
WANTED = Settings(
    title="GPU programming",
    timezone="Europe/Berlin",
    locks_rungs=False,
    accepts_unserved_lanes=True,
    public_leaderboards=True,
    public_handouts=True,
    source_sharing=SourceSharing.everyone,
    keeps_erased_work=True,
    retained_days=None,
    late=LateRules(late_days=4, late_days_per_assignment=2, late_penalty=0.25, slack_s=60),
)


@pytest.fixture
def do(database, people):
    """Do something as a member of the course, in a transaction of its own."""

    def call(act, user=people.ines, *, even_archived=False):
        with database.transaction() as session:
            return act(session, courses.membership(session, user, COURSE, even_archived=even_archived))

    return call


def _change(wanted=WANTED, revision=0):
    return lambda session, member: course_settings.change(session, member, wanted, revision=revision)


def _course(database, slug=COURSE):
    with database.reading() as session:
        found = courses.course_by_slug(session, slug)
        session.expunge(found)
        return found


def test_settings_are_an_instructors_and_leave_a_trail(do, database, people):
    for user in (people.tom, people.alice):
        with pytest.raises(ForbiddenError):
            do(_change(), user)
    do(_change())
    course = _course(database)
    assert (course.timezone, course.public_leaderboards, course.locks_rungs) == ("Europe/Berlin", True, False)
    assert (course.late_days, course.late_days_per_assignment, course.late_penalty, course.slack_s) == (4, 2, 0.25, 60)
    with database.reading() as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "course.changed")).one()
        assert entry.detail["changed"]["timezone"] == ["UTC", "Europe/Berlin"]


def test_the_second_who_changes_settings_is_told(do, people):
    do(_change())
    with pytest.raises(ConflictError, match="Somebody else"):
        do(_change(replace(WANTED, title="Mine")), people.admin)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"title": " "}, "title"),
        ({"title": "a\u202eb"}, "title"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": "../../etc/passwd"}, "timezone"),
        ({"retained_days": 0}, "retained_days"),
        ({"late": LateRules(-1, None, 0.0, 0)}, "late_days"),
        ({"late": LateRules(1, None, 1.5, 0)}, "late_penalty"),
        ({"late": LateRules(1, None, 0.5, 86_400)}, "slack_s"),
    ],
)
def test_settings_that_cannot_be_are_refused_whole(do, database, wrong, field):
    with pytest.raises(InvalidInputError) as caught:
        do(_change(replace(WANTED, **wrong)))
    assert caught.value.field == field
    assert _course(database).revision == 0


def _archive(session, member):
    terms.archive(session, member, typed=COURSE, now=NOW)


def test_an_archived_course_takes_no_writes_and_can_be_read(*, do, database, people, submit, site, config):
    made = submit(people.alice)
    with pytest.raises(InvalidInputError, match="short name"):
        do(lambda session, member: terms.archive(session, member, typed="other", now=NOW))
    with pytest.raises(ForbiddenError):
        do(_archive, people.tom)
    do(_archive)
    with pytest.raises(ConflictError, match="is archived"):
        submit(people.alice)
    with database.transaction() as session, pytest.raises(ConflictError, match="is archived"):
        submissions.cancel(session, people.alice, made.public_id, now=NOW)
    browser = site.logged_in(people.alice, config)
    rung = f"/courses/{COURSE}/assignments/{RUNG}"
    assert browser.get(rung).status_code == 200
    assert browser.get(f"/submissions/{made.public_id}").status_code == 200
    sent = browser.post(f"{rung}/submissions", data={"mode": "run", "language": "triton", "lane": "cpu", "source": "x"})
    assert sent.status_code == 409
    assert "is archived" in sent.text
    program = site.bearer(people.alice)
    api = f"/api/v1/courses/{COURSE}/assignments/{RUNG}"
    assert program.post(f"{api}/quiz/waves/answers", json={"value": 1}).status_code == 409
    assert program.get(api).status_code == 200
    # Who may not know of it learns nothing new.
    assert site.bearer(people.stranger).post(f"{api}/quiz/waves/answers", json={"value": 1}).status_code == 404
    do(terms.open_again, even_archived=True)
    submit(people.alice, b"def add_one(x, out, n): pass\n")


def test_only_an_archived_course_is_opened_again_and_only_once(do):
    with pytest.raises(ConflictError, match="not archived"):
        do(terms.open_again)
    do(_archive)
    with pytest.raises(ConflictError, match="archived already"):
        do(_archive, even_archived=True)


def _clone(**changed):
    asked = {"slug": "gpu-2027", "title": "GPU 2027", "weeks": 22, "now": NOW, **changed}
    return lambda session, member: terms.clone(session, member, **asked).id


def test_the_next_term_has_the_same_rungs_on_the_same_weekdays_and_no_people(do, database, people, submit):
    submit(people.alice)
    do(_change())

    def date(session, member):
        row = session.scalars(select(Assignment).where(Assignment.course_id == member.course.id)).one()
        courses.set_dates(
            session, row, open_at=None, due_at=datetime(2026, 10, 20, 21, 59, tzinfo=UTC), late_until=None
        )
        row.weight, row.lanes = 0.5, ["cpu"]

    do(date)
    course_id = do(_clone())
    with database.reading() as session:
        new = session.get_one(Course, course_id)
        assert (new.timezone, new.late_days, new.public_leaderboards) == ("Europe/Berlin", 4, True)
        row = session.scalars(select(Assignment).where(Assignment.course_id == course_id)).one()
        # Tuesday at 23:59 in Berlin, in summer and in winter.
        assert row.due_at == datetime(2027, 3, 23, 22, 59, tzinfo=UTC)
        assert (row.weight, row.lanes, row.slug) == (0.5, ["cpu"], RUNG)
        version = session.get_one(AssignmentVersion, row.version_id)
        assert (version.assignment_id, version.number) == (row.id, 1)
        assert row.quiz_id is not None
        people_there = session.execute(
            select(Enrolment.user_id, Enrolment.role).where(Enrolment.course_id == course_id)
        )
        assert people_there.all() == [(people.ines.id, Role.instructor)]
        assert session.scalars(select(func.count()).where(Submission.course_id == course_id)).one() == 0
        member = courses.membership(session, people.ines, "gpu-2027")
        assert courses.assignments_of(session, member, NOW)[0].questions


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"slug": "other"}, ConflictError),
        ({"slug": "Not A Slug"}, InvalidInputError),
        ({"title": ""}, InvalidInputError),
        ({"weeks": -1}, InvalidInputError),
        ({"weeks": 521}, InvalidInputError),
    ],
)
def test_what_cannot_be_cloned_leaves_nothing(do, database, wrong, kind):
    with pytest.raises(kind):
        do(_clone(**wrong))
    with database.reading() as session:
        assert session.scalars(select(func.count()).select_from(Course)).one() == 2


MARKS = ("dora@example.org", "Dora Deer", "31415926", "section-of-dora", "her broken leg")


@pytest.fixture
def dora(do, database, people, submit):
    """A student whose every trace can be told; and what she handed in."""

    def arrive(session, member):
        line = f"{MARKS[0]},{MARKS[1]},{MARKS[3]},{MARKS[2]}\n"
        # The second line is refused, with her address.
        table = f"email,name,section,student id\n{line}{line}".encode()
        row = imports.store(session, member, table, filename="dora.csv", now=NOW)
        digest = imports.look(session, member, row.public_id).plan.digest
        imports.apply(session, member, row.public_id, digest=digest, now=NOW)
        # One more that nobody agreed to.
        imports.store(session, member, table, filename="again.csv", now=NOW)
        user = accounts.user_by_email(session, MARKS[0])
        accounts.create_token(session, user, name="laptop")
        rung = session.scalars(select(Assignment).where(Assignment.course_id == member.course.id)).one()
        rung.due_at = NOW + timedelta(days=1)
        extensions.give(session, member, assignment_ids=[rung.id], user_ids=[user.id], days=3, reason=MARKS[4], now=NOW)
        extensions.grant_late_days(session, member, user_ids=[user.id], days=1, reason=MARKS[4], now=NOW)
        messages.want(
            session, people.bob.id, dict.fromkeys(erasure._NAMING, messages.Wanted(in_app=True, by_mail=True))
        )
        for kind in erasure._NAMING:
            title, url = f"{MARKS[1]}'s submission: passed", "/submissions/x"
            messages.notify(session, [people.bob.id], kind, course_id=member.course.id, title=title, url=url, key=kind)
        return user

    user = do(arrive)
    submit(user, b"# Dora Deer wrote this\n", filename="dora@example.org.py")
    return user


def _erase(session, user):
    erasure.erase_account(session, session.get_one(User, user.id), now=NOW, reason="she asked")


def test_who_is_erased_cannot_be_told_from_what_stays(database, dora, site, config):
    assert all(mark in everything_in(database) for mark in MARKS)
    handle = dora.handle
    program = site.bearer(dora)
    with database.transaction() as session:
        _erase(session, dora)
    left = everything_in(database).replace("# Dora Deer wrote this", "")
    assert [mark for mark in (*MARKS, handle) if mark in left] == []
    assert program.get("/api/v1/me").status_code == 401
    with database.reading() as session:
        user = session.get_one(User, dora.id)
        assert (user.disabled_at, user.password_hash) == (NOW, None)
        assert session.scalars(select(func.count()).where(ApiToken.user_id == dora.id)).one() == 0
        # What she handed in counts on, under a pseudonym.
        made = session.scalars(select(Submission).where(Submission.user_id == dora.id)).one()
        assert made.filename == "erased"
        assert submissions.source_of(session, made) == b"# Dora Deer wrote this\n"


def test_where_a_course_keeps_no_work_the_sources_go_too(do, database, dora):
    do(_change(replace(WANTED, keeps_erased_work=False)))
    with database.transaction() as session:
        _erase(session, dora)
    assert "Dora" not in everything_in(database)
    with database.reading() as session:
        made = session.scalars(select(Submission).where(Submission.user_id == dora.id)).one()
        assert submissions.source_of(session, made) == b""


def test_admins_and_the_only_instructor_are_not_erased(database, people):
    for user in (people.admin, people.ines):
        with database.transaction() as session, pytest.raises(ConflictError):
            _erase(session, user)
    with pytest.raises(InvalidInputError):
        erasure.check_typed(people.alice, "bob@example.org")


def test_a_table_that_is_about_an_account_is_in_the_list_of_what_is_erased():
    """A new table with a person in it must be decided about: it is erased, or it stays for a reason."""
    stay = {
        "enrolments", "submissions", "quiz_answers", "extensions", "late_day_grants", "grade_overrides", "grades",
        "active_choices", "write_ups", "group_members", "group_invites", "comments", "rubric_sheets", "previews",
        "regrade_items", "regrade_requests", "leaderboard_bests",
    }  # fmt: skip
    erased = {table.__tablename__ for table in erasure.THEIRS}
    about = {table.name for table in Base.metadata.sorted_tables if "user_id" in table.c}
    assert about - stay - erased == set()


def test_a_retention_rule_forgets_students_who_are_nowhere_else(do, database, people, dora):
    do(_change(replace(WANTED, retained_days=30)))
    do(_archive)
    with database.transaction() as session:
        assert erasure.due(session, NOW + timedelta(days=29)) == []
        (course,) = erasure.due(session, NOW + timedelta(days=30))
        other = courses.course_by_slug(session, "other")
        courses.enrol(session, course=other, user=session.get_one(User, people.bob.id), role=Role.student)
        done = erasure.purge(session, course, now=NOW + timedelta(days=30))
        assert (done.erased, done.kept) == (3, 1)
    with database.reading() as session:
        names = dict(session.execute(select(User.id, User.email)).all())
        assert names[people.bob.id] == "bob@example.org"
        assert names[people.tom.id] == "tom@example.org"
        assert {names[one.id].split("@")[1] for one in (people.alice, people.carol, dora)} == {"erased.invalid"}
        assert erasure.due(session, NOW + timedelta(days=90)) == []
    with pytest.raises(ConflictError, match="erased"):
        do(terms.open_again, even_archived=True)


def test_a_course_that_goes_on_forgets_nobody(database, people):
    with database.transaction() as session, pytest.raises(ConflictError, match="Only an archived course"):
        erasure.purge(session, courses.course_by_slug(session, COURSE), now=NOW)


def _fields(page: str) -> dict[str, str]:
    import re  # noqa: PLC0415  # for this reader alone

    form = page.split(f'action="{PATH}"', 1)[1].split("</form>", 1)[0]
    fields = {
        name: re.search(r'value="([^"]*)" selected', options)[1]
        for name, options in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL)
    }
    for tag in re.findall(r"<input[^>]*>", form):
        given = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
        if "name" in given and (given.get("type") != "checkbox" or " checked" in tag):
            fields[given["name"]] = given.get("value", "")
    return fields


def test_the_page_shows_saves_and_refuses(site, people, config, database):
    browser = site.logged_in(people.ines, config)
    fields = _fields(browser.get(PATH).text)
    refused = browser.post(PATH, data={**fields, "timezone": "Mars/<b>", "late_penalty": "ten"})
    assert refused.status_code == 422
    assert 'value="Mars/&lt;b&gt;"' in refused.text
    assert "Choose one of these." in browser.post(PATH, data={**fields, "source_sharing": "<all>"}).text
    saved = browser.post(PATH, data={**fields, "timezone": "Europe/Berlin", "late_penalty": "12.5", "slack": "2"})
    assert "Saved." in browser.get(saved.headers["location"]).text
    course = _course(database)
    assert (course.timezone, course.late_penalty, course.slack_s) == ("Europe/Berlin", 0.125, 120)
    assert browser.post(PATH, data=fields).status_code == 409
    wrong = browser.post(f"{PATH}/archive", data={"typed": "<i>gpu"})
    assert (wrong.status_code, "&lt;i&gt;gpu" in wrong.text) == (422, True)
    assert browser.post(f"{PATH}/archive", data={"typed": COURSE}).status_code == 303
    cloned = browser.post(f"{PATH}/clone", data={"slug": "next", "title": "Next", "weeks": "26"})
    assert cloned.headers["location"] == "/courses/next/schedule"
    taken = browser.post(f"{PATH}/clone", data={"slug": "next", "title": "Next", "weeks": "26"})
    assert (taken.status_code, "exists already" in taken.text) == (409, True)
    assert browser.post(f"{PATH}/purge", data={"typed": COURSE}).status_code == 403
    assert browser.post(f"{PATH}/open").status_code == 303


def test_the_list_of_marks_can_fail(database, people):
    """What is looked for is found where it is."""
    with database.transaction() as session:
        audit.record(session, action="test.left", subject="user:1", detail={"note": "31415926"})
    assert "31415926" in everything_in(database)
    with database.transaction() as session:
        session.execute(delete(AuditEntry))
        assert session.scalars(select(func.count()).select_from(LoginSession)).one() == 0


@pytest.fixture
def admin(config, database_url, monkeypatch):
    """Run one command of the server's console; its exit status and what it said."""
    monkeypatch.setenv("LADDER_HOME", str(config.home))
    monkeypatch.setenv("LADDER_DATABASE_URL", database_url)

    def call(*arguments):
        result = CliRunner().invoke(cli.admin, arguments)
        return result.exit_code, result.output

    return call


def test_the_console_archives_clones_forgets_and_erases(admin, database, people):
    assert admin("archive-course", COURSE, "--confirm", "other")[0] == 1
    assert admin("archive-course", COURSE, "--confirm", COURSE)[0] == 0
    assert admin("unarchive-course", COURSE)[0] == 0
    assert admin("clone-course", COURSE, "next", "Next term", "--weeks", "26")[0] == 0
    assert admin("clone-course", COURSE, "next", "Next term", "--weeks", "26")[0] == 1
    assert "archived: none" in admin("purge-archived")[1]
    with database.transaction() as session:
        course = courses.course_by_slug(session, COURSE)
        course.archived_at, course.retained_days = NOW - timedelta(days=9999), 1
    assert "would be erased" in admin("purge-archived", "--dry-run")[1]
    assert admin("erase-account", "bob@example.org", "--confirm", "alice@example.org")[0] == 1
    assert admin("erase-account", "bob@example.org", "--confirm", "bob@example.org", "--reason", "asked")[0] == 0
    assert "gpu: 3 accounts erased, 0 kept" in admin("purge-archived")[1]
    with database.reading() as session:
        actors = session.scalars(select(AuditEntry.actor_id).where(AuditEntry.action == "course.archived")).all()
        assert actors == [None]
        assert _course(database, "next").title == "Next term"
