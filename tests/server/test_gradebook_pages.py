"""The pages of grades: what students read, how staff work, and that what staff saw is what they set."""

from __future__ import annotations

import csv
import io
import re

import pytest
from fastapi.responses import JSONResponse
from sqlalchemy import delete, event, func, insert, select, update

from server import dirty_grades
from server.api.gradebook import CellRead, GradebookRead
from server.courses import courses
from server.errors import InvalidInputError
from server.gradebook import imports, overrides, publishing
from server.gradebook.grid import Cell, grid
from server.models import AuditEntry, Course, Enrolment, Grade, Mail, Role, User
from tests.doubles.gradebook import DUE, Term

HOME = "/courses/gpu"
LATER = (DUE.replace(year=2090), DUE.replace(year=2091))
PUBLISH = {"slug": "add_one", "action": "publish", "confirmed": "yes"}
NASTY = "=HYPERLINK(1)<script>alert(1)</script>"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Pages do not depend on the database; what they call is tested on both."""
    return sqlite_url


@pytest.fixture
def term(database, people):
    made = Term(database, people.course)
    made.policy()
    made.dates()
    return made


@pytest.fixture
def ta(site, people, config):
    return site.logged_in(people.tom, config)


@pytest.fixture
def alice(site, people, config):
    return site.logged_in(people.alice, config)


@pytest.fixture
def cell(people):
    return f"{HOME}/gradebook/{people.alice.id}/add_one"


def cells_of(html: str) -> list[list[str]]:
    """The grid's rows as text."""
    body = re.search(r"<tbody>(.*?)</tbody>", html, re.DOTALL)
    rows = re.findall(r"<tr data-known.*?</tr>", body[1], re.DOTALL) if body else []
    return [[re.sub(r"<[^>]+>", " ", one).split() for one in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def rename(database, user, name):
    with database.transaction() as session:
        session.get_one(User, user.id).name = name


def test_what_the_filter_looks_in_is_written_as_a_browser_would(term, site, people, config, database):
    """Case folding makes ss of ß, and a browser's lower case does not: nobody found Jana Weiß."""
    rename(database, people.alice, "Jana Weiß")
    html = site.logged_in(people.tom, config).get(f"{HOME}/gradebook").text
    assert 'data-known="jana weiß ' in html


def test_who_has_a_namesake_is_told_from_them_by_the_address(term, site, people, config, database):
    browser = site.logged_in(people.tom, config)
    hidden, shown = ('<span class="visually-hidden"> {}@', '<span class="below gradebook__email"> {}@')
    html = browser.get(f"{HOME}/gradebook").text
    assert all(hidden.format(name) in html for name in ("alice", "bob"))
    assert "gradebook__email" not in html
    rename(database, people.alice, "bOB")
    html = browser.get(f"{HOME}/gradebook").text
    assert all(shown.format(name) in html for name in ("alice", "bob"))


def test_a_student_reads_what_counts_and_why(term, people, alice, database):
    term.hand_in(people.alice, 80, late=1)
    html = alice.get(f"{HOME}/grades").text
    assert "Add one" in html
    assert "<strong>80</strong> of 106" in html
    assert "1 late day used" in html
    assert "4 of 5 late days left" in html
    assert "Not final" in html


def test_what_staff_set_shows_once_it_is_published(term, people, alice, ta, cell):
    term.dates(*LATER)
    revision = term.grade(people.alice).revision
    assert ta.post(f"{cell}/override", data={"points": "99,5", "reason": "ok", "revision": revision}).status_code == 303
    assert "99.5" not in alice.get(f"{HOME}/grades").text
    assert ta.post(f"{HOME}/gradebook/publish", data=PUBLISH).status_code == 303
    html = alice.get(f"{HOME}/grades").text
    assert "<strong>99.5</strong>" in html
    assert "set by staff" in html
    assert "Published; you can still hand in" in html
    assert "Final" not in html
    assert "Published" in ta.get(f"{HOME}/gradebook/publish").text
    ta.post(f"{HOME}/gradebook/publish", data={"slug": "add_one", "action": "withdraw"})
    assert "99.5" not in alice.get(f"{HOME}/grades").text
    answer = ta.post(f"{HOME}/gradebook/publish", data={"slug": "add_one", "action": "withdraw"})
    assert answer.status_code == 409


def test_more_than_full_points_ask_first(term, people, ta, cell):
    sent = {"points": "106.5", "reason": "bonus", "revision": term.grade(people.alice).revision}
    asked = ta.post(f"{cell}/override", data=sent)
    assert asked.status_code == 422
    assert "106.5 is more than the 106 points" in asked.text
    assert 'name="above"' in asked.text
    assert term.grade(people.alice).override_points is None
    assert ta.post(f"{cell}/override", data={**sent, "above": "yes"}).status_code == 303
    assert term.grade(people.alice).points == 106.5
    assert 'name="above"' not in ta.get(cell).text


def test_a_table_with_more_than_full_points_asks_first(term, people, ta):
    table = "email,assignment,points,reason\nalice@example.org,add_one,150,bonus\n"
    looked = ta.post(f"{HOME}/gradebook/import", data={"pasted": table})
    assert "1 grade is above what the assignment gives" in looked.text
    form = dict(re.findall(r'name="(rows|digest)" value="([^"]*)"', looked.text))
    form["rows"] = form["rows"].replace("&#34;", '"')
    assert ta.post(f"{HOME}/gradebook/import/apply", data=form).status_code == 422
    assert term.grade(people.alice).override_points is None
    assert ta.post(f"{HOME}/gradebook/import/apply", data={**form, "above": "yes"}).status_code == 303
    assert term.grade(people.alice).points == 150


def test_publishing_asks_first_and_says_whom_it_concerns(term, people, ta, database):
    term.dates(*LATER)
    asked = ta.post(f"{HOME}/gradebook/publish", data={"slug": "add_one", "action": "publish"})
    assert asked.headers["location"] == f"{HOME}/gradebook/publish/add_one"
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Mail)) == 0
    html = ta.get(f"{HOME}/gradebook/publish/add_one").text
    assert "Publish and send 2 e-mails" in html
    assert "2 students can still submit" in html
    assert ta.post(f"{HOME}/gradebook/publish", data=PUBLISH).status_code == 303
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Mail)) == 2
    assert "published already" in ta.get(f"{HOME}/gradebook/publish/add_one").text


def test_a_published_grade_is_final_once_nothing_can_be_handed_in(term, people, alice, ta):
    term.dates(*LATER)
    ta.post(f"{HOME}/gradebook/publish", data=PUBLISH)
    assert not any(one["final"] for one in alice.get("/api/v1/courses/gpu/grades").json()["grades"])
    term.dates(DUE.replace(year=2020), DUE.replace(year=2021))
    assert ">Final<" in alice.get(f"{HOME}/grades").text
    assert alice.get("/api/v1/courses/gpu/grades").json()["grades"][0]["final"]
    assert "can still submit" not in ta.get(f"{HOME}/gradebook/publish/add_one").text


def test_what_if_stores_nothing_and_says_what_it_would_use(term, people, alice, database):
    html = alice.get(f"{HOME}/grades", params={"at-add_one": "2026-11-23T10:00", "points-add_one": "90,5"}).text
    assert "closed: another submission cannot change" in html or "90.5" in html
    term.dates(DUE.replace(year=2090), DUE.replace(year=2091))
    html = alice.get(f"{HOME}/grades", params={"at-add_one": "2090-11-23T10:00", "points-add_one": "90,5"}).text
    assert "90.5 of 106 points" in html
    assert "2 late days used" in html
    assert "3 of 5 late days left" in html
    assert term.grade(people.alice).points == 0


SUPPOSED = [
    ({"at-add_one": "2090-13-45T10:00"}, 'role="alert"'),
    ({"at-add_one": "tomorrow"}, 'role="alert"'),
    ({"at-add_one": "2090-11-21T10:00", "points-add_one": "many"}, "Points are a number"),
    ({"at-add_one": "2090-11-21T10:00", "points-add_one": "1e9"}, "has 0 to 100 points"),
    ({"at-add_one": "2090-11-21T10:00", "points-add_one": "nan"}, "has 0 to 100 points"),
    ({"at-other": "x"}, "What if"),
]


def test_what_cannot_be_supposed_is_said_beside_it(term, alice):
    term.dates(DUE.replace(year=2090), None)
    for typed, told in SUPPOSED:
        answer = alice.get(f"{HOME}/grades", params=typed)
        assert answer.status_code == 200
        assert told in answer.text


def test_staff_have_no_grades_of_their_own(term, ta):
    assert "everyone's grades are in" in ta.get(f"{HOME}/grades").text.lower()


def test_the_grid_shows_searches_and_sorts_without_a_script(term, people, ta, database):
    term.hand_in(people.alice, 50)
    term.hand_in(people.bob, 70, late=9)
    term.hand_in(people.bob, 60, late=2)
    with database.transaction() as session:
        courses.membership(session, session.get_one(User, people.bob.id), "gpu").enrolment.section = "Tue"
    rows = cells_of(ta.get(f"{HOME}/gradebook").text)
    assert [row[0][0] for row in rows] == ["Alice", "Bob"]
    assert [row[1] for row in rows] == [["50"], ["60"]]
    assert [row[2] for row in rows] == [["50"], ["60", "2d"]]
    by_points = cells_of(ta.get(f"{HOME}/gradebook", params={"sort": "-add_one"}).text)
    assert [row[0][0] for row in by_points] == ["Bob", "Alice"]
    assert [row[0][0] for row in cells_of(ta.get(f"{HOME}/gradebook", params={"q": "ALI"}).text)] == ["Alice"]
    assert [row[0][0] for row in cells_of(ta.get(f"{HOME}/gradebook", params={"section": "Tue"}).text)] == ["Bob"]
    assert "Nobody matches" in ta.get(f"{HOME}/gradebook", params={"q": "nobody at all"}).text
    for odd in ("-", "nonsense", "-nonsense", "section", "total", "-late_days"):
        assert ta.get(f"{HOME}/gradebook", params={"sort": odd}).status_code == 200


def test_a_name_is_a_name_and_nothing_else(term, people, ta, database):
    rename(database, people.alice, NASTY)
    for path in ("/gradebook", f"/gradebook/{people.alice.id}/add_one", "/audit"):
        html = ta.get(HOME + path).text
        assert "<script>alert" not in html
    rows = list(csv.reader(io.StringIO(ta.get(f"{HOME}/gradebook/export").text)))
    assert [row[0] for row in rows if "HYPERLINK" in row[0]] == [f"'{NASTY}"]


def test_a_grade_in_full_says_how_it_comes_about(term, people, ta, cell):
    term.hand_in(people.alice, 80, late=2)
    term.hand_in(people.alice, 90, late=6)
    html = ta.get(cell).text
    assert "counts with 80 points: it gives the most points after lateness" in html
    assert "It came 2 days late and uses 2 late days." in html
    assert "Too late" in html
    assert "3 late days of 5 are left" in html


def test_an_override_goes_there_and_back_by_forms(term, people, ta, cell):
    term.hand_in(people.alice, 80)
    revision = term.grade(people.alice).revision
    form = {"points": "33.5", "reason": "read by hand", "revision": revision}
    assert ta.post(f"{cell}/override", data=form).status_code == 303
    second = ta.post(f"{cell}/override", data=form)
    assert second.status_code == 409
    assert "has changed since you opened it" in second.text
    assert 'value="33.5"' in second.text
    assert "read by hand" in second.text
    html = ta.get(cell).text
    assert "Staff set 33.5 points" in html
    assert "Without it the grade would be 80" in html
    assert "Points were overridden: 80 → 33.5" in html
    revision = term.grade(people.alice).revision
    assert ta.post(f"{cell}/undo", data={"reason": "no", "revision": revision}).status_code == 303
    assert term.grade(people.alice).points == 80


NOT_SET = [
    ({"points": "many", "reason": "x"}, "Points are a number"),
    ({"points": "-1", "reason": "x"}, "Points are a number from 0"),
    ({"points": "nan", "reason": "x"}, "Points are a number from 0"),
    ({"points": "5", "reason": " "}, "Give a reason"),
    ({"points": "5", "reason": "x" * 1001}, "Give a reason"),
    ({"points": "", "reason": ""}, "Give a reason"),
]


def test_what_cannot_be_set_comes_back_with_the_reason(term, people, ta, cell):
    for form, message in NOT_SET:
        answer = ta.post(f"{cell}/override", data={**form, "revision": term.grade(people.alice).revision})
        assert answer.status_code == 422
        assert message in answer.text
        assert 'aria-invalid="true"' in answer.text
    assert term.grade(people.alice).override_points is None


def test_there_is_no_grade_where_there_is_none(ta, term, people):
    for place in ("999999/add_one", f"{people.alice.id}/no_such", f"{people.tom.id}/add_one", "x/add_one", "0/add_one"):
        assert ta.get(f"{HOME}/gradebook/{place}").status_code in {404, 422}


def test_canvas_finds_its_columns(term, people, ta, database):
    term.hand_in(people.alice, 50)
    with database.transaction() as session:
        courses.membership(session, session.get_one(User, people.alice.id), "gpu").enrolment.student_number = "007"
    rows = list(csv.reader(io.StringIO(ta.get(f"{HOME}/gradebook/export", params={"format": "canvas"}).text)))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Add one"]
    assert rows[1] == ["    Points Possible", "", "", "", "", "106.0"]
    assert rows[2] == ["Alice", "", "007", "alice@example.org", "", "50.0"]
    assert rows[3] == ["Bob", "", "", "bob@example.org", "", ""]


def test_a_table_is_looked_at_and_then_set_as_it_was_looked_at(term, people, ta, database):
    term.hand_in(people.bob, 40)
    table = 'email,assignment,points,reason\nalice@example.org,add_one,50,\nBOB@example.org,Add one,"60,5",oral\n'
    looked = ta.post(f"{HOME}/gradebook/import", data={"pasted": table, "reason": "exam"})
    assert "2 grades would be set" in looked.text
    assert term.grade(people.alice).override_points is None
    form = dict(re.findall(r'name="(rows|digest)" value="([^"]*)"', looked.text))
    form["rows"] = form["rows"].replace("&#34;", '"')
    done = ta.post(f"{HOME}/gradebook/import/apply", data=form)
    assert done.status_code == 303, done.text
    assert [term.grade(user).points for user in (people.alice, people.bob)] == [50, 60.5]
    again = ta.post(f"{HOME}/gradebook/import/apply", data=form)
    assert again.status_code == 409
    with database.reading() as session:
        reasons = session.scalars(select(AuditEntry.reason).where(AuditEntry.action == "grade.overridden")).all()
        assert sorted(reasons) == ["exam", "oral"]


@pytest.fixture
def plan(database, people, term):
    def call(table, reason="exam"):
        data = table if isinstance(table, bytes) else table.encode()
        with database.reading() as session:
            return imports.read(session, courses.membership(session, people.tom, "gpu"), data, reason=reason)

    return call


def test_every_line_that_does_not_fit_is_named(plan):
    found = plan(
        "email;student number;assignment;points;colour\n"
        "alice@example.org;;add_one;50;red\n"
        "alice@example.org;;add_one;51;\n"
        "nobody@example.org;;add_one;1;\n"
        "carol@example.org;;add_one;1;\n"
        ";;add_one;1;\n"
        "bob@example.org;;no_such;1;\n"
        "bob@example.org;;add_one;;\n"
        "bob@example.org;;add_one;-3;\n"
        "bob@example.org;;add_one;inf;\n"
        "bob@example.org;;add_one;1;;;extra\n"
    )
    assert [trouble.line for trouble in found.troubles] == [3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert [change.wanted.points for change in found.changes] == [50]
    assert found.passed_over == ("colour",)
    assert (
        plan("email,assignment,points\nbob@example.org,add_one,1\n", reason="")
        .troubles[0]
        .message.startswith("Give a reason")
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tables_come_in_the_encodings_of_spreadsheets(plan, encoding):
    table = "email\tassignment\tpoints\treason\nalice@example.org\tadd_one\t5\tprüfung\n"
    assert plan(table.encode(encoding)).changes[0].wanted.reason == "prüfung"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (b"", "empty"),
        (b"email,points\na,1\n", "no column"),
        (b"assignment,points\nadd_one,1\n", "needs a column"),
        (b"email,assignment,points\n\xff\xfe\xfd,add_one,1\n", "not UTF-8"),
        (b"email,assignment,points\n" + b"a@b.c,add_one,1\n" * 1001, "At most 1,000"),
        (b"email,assignment,points\n" + b"x" * (3 * 2**20), "MiB"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_whole(plan, table, message):
    with pytest.raises(InvalidInputError, match=message):
        plan(table)


def test_the_form_says_why_a_file_cannot_be_read(ta, term):
    answer = ta.post(f"{HOME}/gradebook/import", files={"file": ("grades.csv", b"email,points", "text/csv")})
    assert answer.status_code == 422
    assert "no column" in answer.text
    huge = ta.post(f"{HOME}/gradebook/import", files={"file": ("grades.csv", b"x" * (50 * 2**20), "text/csv")})
    assert huge.status_code == 413


FORGED = ["", "{}", "[1]", "[[1,2,3]]", '[["a","b","c","d"]]', "[" * 100_000, '[[1,1,NaN,"x"]]']


def test_rows_that_nobody_was_shown_set_nothing(ta, term, people):
    for rows in FORGED:
        answer = ta.post(f"{HOME}/gradebook/import/apply", data={"rows": rows, "digest": "0" * 64})
        assert answer.status_code in {409, 422}
    assert term.grade(people.alice).override_points is None


def test_a_grade_that_changes_between_look_and_set_stops_it(plan, term, people, ta):
    found = plan("email,assignment,points\nalice@example.org,add_one,5\n")
    term.hand_in(people.alice, 90)
    answer = ta.post(f"{HOME}/gradebook/import/apply", data={"rows": found.rows, "digest": found.digest})
    assert answer.status_code == 409
    assert "Nothing was saved" in answer.text
    assert term.grade(people.alice).points == 90


def test_the_audit_log_is_in_words_filtered_and_paged(term, people, ta, database):
    with database.transaction() as session:
        member = courses.membership(session, people.tom, "gpu")
        row = term.rung(session)
        publishing.publish(session, member, row, now=DUE)
        for points in range(120):
            dirty_grades.settle(session)
            revision = session.scalars(
                select(Grade.revision).where(Grade.user_id == people.alice.id, Grade.assignment_id == row.id)
            ).one()
            overrides.set_override(
                session, member, row, people.alice.id, points=float(points), above=True, reason=f"because {points}",
                revision=revision, now=DUE,
            )  # fmt: skip
    html = ta.get(f"{HOME}/audit").text
    assert "Points were overridden: 118 → 119" in html
    assert "because 119" in html
    assert "{" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert "because 0<" not in html
    older = re.search(r'href="([^"]*before=\d+[^"]*)"', html)
    assert "Grades were published" in ta.get(older[1].replace("&amp;", "&")).text
    assert "because" not in ta.get(f"{HOME}/audit", params={"user": people.bob.id}).text
    assert "because" in ta.get(f"{HOME}/audit", params={"user": people.alice.id, "assignment": "add_one"}).text
    assert "because" in ta.get(f"{HOME}/audit", params={"student": "alice"}).text
    nobody = ta.get(f"{HOME}/audit", params={"student": "zoe"}).text
    assert "No student of this course matches" in nobody
    assert "because" not in nobody
    for odd in ({"user": "x"}, {"user": "9" * 19}, {"assignment": "none"}):
        assert ta.get(f"{HOME}/audit", params=odd).status_code == 200


def test_times_in_the_audit_log_are_the_courses(term, people, ta, database):
    with database.transaction() as session:
        session.get_one(Course, people.course.id).timezone = "Europe/Berlin"
        courses.set_dates(session, term.rung(session), open_at=None, due_at=DUE, late_until=None, actor=people.ines)
    assert "Dates were changed: due Sat 21 Nov, 13:00 CET, never closes" in ta.get(f"{HOME}/audit").text


def test_another_courses_entries_are_not_shown(term, people, ta, database):
    with database.transaction() as session:
        other = session.scalars(select(Enrolment.course_id).where(Enrolment.user_id == people.stranger.id)).one()
        session.add(AuditEntry(at=DUE, action="x.secret_thing", subject="course:other", course_id=other, detail={}))
    assert "secret thing" not in ta.get(f"{HOME}/audit").text


def test_the_api_gives_own_grades_to_students_and_all_to_staff(term, people, site):
    term.hand_in(people.alice, 80, late=1)
    own = site.bearer(people.alice).get("/api/v1/courses/gpu/grades").json()
    assert (own["points"], own["late_days"]["left"], own["grades"][0]["late_days"]) == (80, 4, 1)
    ta = site.bearer(people.tom)
    book = ta.get("/api/v1/courses/gpu/gradebook").json()
    assert [(one["name"], one["grades"]["add_one"]["points"]) for one in book["students"]] == [
        ("Alice", 80),
        ("Bob", 0),
    ]
    assert ta.get("/api/v1/courses/gpu/gradebook.csv").text.splitlines()[1].startswith("Alice,alice@example.org,,,80.0")


def test_the_gradebooks_json_is_what_its_model_would_write(term, people, site, database):
    """Its text is put together by hand: names that JSON or HTML would trip over, cells of every kind, and no cell."""
    term.hand_in(people.alice, 200 / 3, late=2.5)
    with database.transaction() as session:
        for user, name in ((people.alice, NASTY + '"\\\n\t\x7f\u2028}],"x":['), (people.bob, "Bôb 李 🚀 \u202e'")):
            session.get_one(User, user.id).name = name
        of_bob = (Enrolment.course_id == people.course.id, Enrolment.user_id == people.bob.id)
        session.execute(update(Enrolment).where(*of_bob).values(section='Tue "2"', student_number="007"))
    with database.transaction() as session:
        tom = courses.membership(session, session.get_one(User, people.tom.id), "gpu")
        overrides.set_override(
            session, tom, term.rung(session), people.bob.id, points=1e-7, reason="x", revision=1, now=DUE
        )
    term.add_rung("ungraded")
    with database.transaction() as session:
        rung = term.rung(session, "ungraded").id
        session.execute(delete(Grade).where(Grade.assignment_id == rung, Grade.user_id == people.alice.id))
    answer = site.bearer(people.tom).get("/api/v1/courses/gpu/gradebook")
    read = GradebookRead.model_validate_json(answer.content)
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == JSONResponse(read.model_dump(mode="json")).body
    with database.reading() as session:
        found = grid(session, people.course.id)
        slugs = [detail.slug for detail in found.details]
    assert [(one.user, one.name, one.email, one.section, one.student_number) for one in read.students] == [
        row.student for row in found.rows
    ]
    assert [(one.total, one.late_days) for one in read.students] == [(row.total, row.late_days) for row in found.rows]
    for one, row in zip(read.students, found.rows, strict=True):
        assert {slug: Cell(**_as_cell(shown)) for slug, shown in one.grades.items()} == {
            slug: cell for slug, cell in zip(slugs, row.cells, strict=True) if cell is not None
        }
    assert len({len(one.grades) for one in read.students}) == 2, "somebody lacks a grade"


def _as_cell(shown: CellRead) -> dict[str, object]:
    return {"penalty" if name == "late_penalty" else name: value for name, value in shown}


def test_an_empty_gradebook_is_json_too(people, site, database):
    with database.transaction() as session:
        session.execute(delete(Enrolment).where(Enrolment.role == Role.student))
    book = site.bearer(people.tom).get("/api/v1/courses/gpu/gradebook").json()
    assert (book["students"], [one["assignment"] for one in book["assignments"]]) == ([], ["add_one"])


def test_a_name_in_the_gradebook_leads_to_the_students_grades(term, people, ta):
    term.hand_in(people.alice, 50)
    html = ta.get(f"{HOME}/gradebook").text
    assert html.count("No grades are published yet.") == 1
    assert "not published" not in html
    person = f"{HOME}/roster/people/{people.alice.id}"
    assert f'href="{person}"' in html
    overview = ta.get(person).text
    assert "50 points in all; 0 late days used." in overview
    assert f'href="{HOME}/gradebook/{people.alice.id}/add_one"' in overview
    assert 'id="grades"' not in ta.get(f"{HOME}/roster/people/{people.tom.id}").text
    ta.post(f"{HOME}/gradebook/publish", data=PUBLISH)
    assert "All grades are published." in ta.get(f"{HOME}/gradebook").text


def test_the_grid_asks_as_often_for_three_hundred_as_for_two(term, people, database):
    def queries():
        count = []
        with database.reading() as session:
            engine = session.get_bind().engine
            listener = lambda *_args: count.append(1)  # noqa: E731
            event.listen(engine, "before_cursor_execute", listener)
            found = grid(session, people.course.id)
            event.remove(engine, "before_cursor_execute", listener)
        return len(count), len(found.rows)

    few = queries()
    with database.transaction() as session:
        ids = range(1000, 1300)
        session.execute(
            insert(User),
            [{"id": i, "email": f"{i}@x.org", "name": str(i), "handle": str(i), "created_at": DUE} for i in ids],
        )
        session.execute(
            insert(Enrolment),
            [{"course_id": people.course.id, "user_id": i, "role": Role.student, "created_at": DUE} for i in ids],
        )
        dirty_grades.grades(session, people.course.id)
    many = queries()
    # One of them is BEGIN.
    assert (few, many) == ((5, 2), (5, 302))
