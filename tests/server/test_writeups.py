"""Write-ups: taken where a rung asks for one, kept in every version, read safely."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select

from autograder.assignment import load_assignment
from autograder.errors import ManifestError
from server import db, writeups
from server.courses import courses, sync
from server.errors import ConflictError, InvalidInputError, NotFoundError, TooLargeError
from server.models import Assignment, Course, Extension, WriteUp
from server.statistics.waiting import waiting

PAGE = "/courses/gpu/assignments/add_one/writeup"
ASKED = '\n[writeup]\ntitle = "Why it is fast"\npoints = 10\nabout = "One page."\nmax_mib = 1\n'
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"


@pytest.fixture
def asked(config, database, people):
    path = config.assignments / "add_one" / "assignment.toml"
    path.write_text(path.read_text() + ASKED)
    with database.transaction() as session:
        sync.sync_assignments(session, config, session.get_one(Course, people.course.id))


@pytest.fixture
def upload(database):
    def call(user, data=b"# Why\n", filename="why.md", ago=timedelta()):
        with database.transaction() as session:
            member = courses.membership(session, user, "gpu")
            detail = courses.assignment_of(session, member, "add_one")
            row = writeups.upload(
                session, member, detail, filename=filename, data=data, now=db.now(session) - ago, trace="0" * 32
            )
            return row.public_id, row.number

    return call


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_mib = 99", "from 1 to 5"),
        ('formats = ["docx"]', "none of pdf, md, txt"),
        ("formats = []", "names no format"),
        ("colour = 1", "not a key"),
    ],
)
def test_a_manifest_says_what_it_asks_for(config, line, message):
    path = config.assignments / "add_one" / "assignment.toml"
    assert load_assignment(path.parent).writeup is None
    path.write_text(path.read_text() + ASKED.replace("max_mib = 1", line))
    with pytest.raises(ManifestError, match=message):
        load_assignment(path.parent)


def test_a_write_up_changes_nothing_about_the_grading(config, database, people, asked):
    with database.reading() as session:
        row = session.scalars(select(Assignment)).one()
        versions = row.id
        hashes = {
            version.grading_hash
            for version in session.query(courses.AssignmentVersion).filter_by(assignment_id=versions)
        }
        member = courses.membership(session, people.alice, "gpu")
        detail = courses.assignment_of(session, member, "add_one")
        assert (len(hashes), detail.maximum_points) == (1, 116.0)


def test_every_version_is_kept_and_the_same_bytes_are_none(asked, upload, people, database):
    first, second, same = upload(people.alice), upload(people.alice, b"better"), upload(people.alice, b"better")
    assert (first[1], second[1], same) == (1, 2, second)
    with database.reading() as session:
        rows = writeups.versions(session, session.scalars(select(WriteUp.assignment_id)).first(), [people.alice.id])
        assert [(row.number, writeups.content_of(session, row)) for row in rows] == [(2, b"better"), (1, b"# Why\n")]


@pytest.mark.parametrize(
    ("data", "filename", "error", "message"),
    [
        (b"", "why.md", InvalidInputError, "empty"),
        (b"", "", InvalidInputError, "Choose a file"),
        (b"x" * (2**20 + 1), "why.txt", TooLargeError, "1 MiB"),
        (b"PK\3\4", "why.docx", InvalidInputError, "the extension .pdf, .md, .txt"),
        (b"<html>", "why.pdf", InvalidInputError, "not a PDF"),
        (b"a\nb\xff\n", "why.txt", InvalidInputError, "Line 2 is not UTF-8"),
        (b"a\0b", "why.md", InvalidInputError, "binary"),
        (b"x", "../../pdf", InvalidInputError, "with the extension"),
    ],
)
def test_what_is_no_write_up_is_refused(*, asked, upload, people, data, filename, error, message):
    with pytest.raises(error, match=message):
        upload(people.alice, data, filename)


def test_it_closes_with_the_assignment_and_says_so(asked, upload, people, database):
    with database.transaction() as session:
        row = session.scalars(select(Assignment)).one()
        row.due_at = row.late_until = db.now(session) - timedelta(hours=1)
    with pytest.raises(InvalidInputError, match="closed on"):
        upload(people.alice)
    # What was here in time is in time, however long it waited.
    assert upload(people.alice, ago=timedelta(hours=2))[1] == 1


def test_a_rung_that_asks_for_none_takes_none(upload, people):
    with pytest.raises(NotFoundError, match="no write-up"):
        upload(people.alice)


def test_there_is_an_end_to_versions(asked, upload, people, monkeypatch):
    monkeypatch.setattr(writeups, "MOST_VERSIONS", 2)
    upload(people.alice, b"1")
    upload(people.alice, b"2")
    with pytest.raises(ConflictError, match="which is the limit"):
        upload(people.alice, b"3")


def test_only_its_writer_and_staff_read_it(asked, upload, people, site, config):
    path = f"/writeups/{upload(people.alice)[0]}"
    seen = {
        name: site.logged_in(getattr(people, name), config).get(path).status_code
        for name in ("alice", "bob", "carol", "tom", "stranger", "admin")
    }
    assert seen == {"alice": 200, "bob": 404, "carol": 404, "tom": 200, "stranger": 404, "admin": 200}


def test_markdown_is_shown_without_anything_that_runs(asked, upload, people, site, config):
    text = (
        b"# Why\n<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1)) **bold** $x^2$\n"
    )
    public_id = upload(people.alice, text)[0]
    page = site.logged_in(people.tom, config).get(f"/writeups/{public_id}").text
    shown = page.split('<article class="handout"')[1].split("</article>")[0]
    assert "<strong>bold</strong>" in shown
    assert "<math" in shown
    for mark in ("<script", "<img", 'href="javascript'):
        assert mark not in shown


def test_a_file_is_a_download_that_no_browser_runs(asked, upload, people, site, config):
    public_id = upload(people.alice, PDF + b"/JS (app.alert(1))", 'w"h\u00fc.pdf')[0]
    client = site.logged_in(people.tom, config)
    answer = client.get(f"/writeups/{public_id}/file")
    assert answer.headers["content-type"] == "application/pdf"
    assert answer.headers["content-disposition"] == 'attachment; filename="w_h_.pdf"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "Download it to read it" in client.get(f"/writeups/{public_id}").text


@pytest.mark.parametrize(
    ("own", "extended", "counted"),
    [
        ((None, None), None, 1),
        ((1, None), None, 0),
        ((-1, None), None, 1),
        ((-2, 1), None, 0),
        ((-2, -1), None, 1),
        ((-2, -1), (1, 2), 0),
        ((-2, -1), (-1, 1), 0),
        ((-2, -1), (-1.5, -0.5), 1),
        ((-2, -1), (1, None), 0),
        ((-2, -1), (-1, None), 1),
    ],
)
def test_a_write_up_waits_for_staff_once_it_can_no_longer_change(
    *, asked, upload, people, database, own, extended, counted
):
    """Dates in days from now: due, and late until."""
    upload(people.alice)
    with database.transaction() as session:
        dates = lambda given: [None if one is None else db.now(session) + timedelta(days=one) for one in given]  # noqa: E731
        row = session.scalars(select(Assignment)).one()
        row.due_at, row.late_until = dates(own)
        if extended:
            due_at, late_until = dates(extended)
            member = courses.membership(session, people.tom, "gpu")
            session.add(
                Extension(
                    course_id=row.course_id, assignment_id=row.id, user_id=people.alice.id, due_at=due_at,
                    late_until=late_until, reason="ill", actor_id=member.user.id, at=db.now(session),
                )
            )  # fmt: skip
    with database.reading() as session:
        found = waiting(session, courses.membership(session, people.tom, "gpu")).writeups
        assert sum(one.count for one in found) == counted


def test_the_page_takes_a_file_and_says_why_not(asked, people, site, config):
    client = site.logged_in(people.alice, config)
    assert "Why it is fast" in client.get(PAGE).text
    refused = client.post(PAGE, files={"file": ("why.exe", b"MZ")})
    assert (refused.status_code, "A write-up has to be a file with the extension" in refused.text) == (422, True)
    assert client.post(PAGE, files={"file": ("why.pdf", PDF)}).status_code == 303
    assert "why.pdf" in client.get(PAGE).text
    staff = site.logged_in(people.tom, config).get(PAGE).text
    assert ("Alice" in staff, "why.pdf" in staff) == (True, True)
