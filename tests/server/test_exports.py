"""The copy of one's own data: all of it, nothing of anybody else's, one at a time."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from datetime import timedelta

import pytest

from autograder.contract import Language
from server import db, drafts
from server.courses import courses
from server.errors import ConflictError
from server.exports import exports, tables
from server.models import Assignment, Base, Comment, DataExport, Mode, User
from server.models.staff import Showing
from server.pages import exports as pages
from tests.server.conftest import PASSWORD, SECRET


@pytest.fixture
def work(database, people, submit):
    """Alice and Bob have handed things in, and Alice has a draft."""
    submit(people.alice, "# Alices Kernel ü\n".encode(), filename="result.json")
    submit(people.alice, b"# try\n", mode=Mode.run)
    submit(people.bob, b"# BOBS KERNEL\n")
    with database.transaction() as session:
        member = courses.membership(session, people.alice, "gpu")
        detail = courses.assignment_of(session, member, "add_one")
        drafts.save(session, member, detail, language=Language.triton, text="=HALF()", revision=0, now=db.now(session))


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert len(set(archive.namelist())) == len(archive.namelist())
        return {name: archive.read(name) for name in archive.namelist()}


def test_it_has_all_that_is_ones_own_and_nothing_else(work, site, people, config, database):
    answer = site.logged_in(people.alice, config).post("/account/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    assert answer.headers["content-disposition"].startswith('attachment; filename="kernel-ladder-')
    files = unpacked(answer.content)
    place = "submissions/gpu/add_one/submission-1"
    assert files[f"{place}/source/result.json"].decode() == "# Alices Kernel ü\n"
    assert json.loads(files[f"{place}/result.json"])["number"] == 1
    assert "submissions/gpu/add_one/run-1/source/kernel.py" in files
    assert files["drafts/gpu/add_one.triton.txt"] == b"=HALF()"
    assert json.loads(files["account.json"])["email"] == "alice@example.org"
    assert [one["course"] for one in json.loads(files["courses.json"])] == ["gpu"]
    assert [one["assignment"] for one in json.loads(files["grades.json"])] == ["add_one"]
    whole = b"".join(files.values())
    with database.reading() as session:
        alice = session.get_one(User, people.alice.id)
        hidden = (alice.password_hash, "BOBS KERNEL", "bob@example.org", SECRET, PASSWORD, "token_hash", "csrf_token")
    for secret in hidden:
        assert secret.encode() not in whole
    with database.reading() as session:
        assert session.get_one(DataExport, people.alice.id).ended_at is not None


def test_comments_are_in_it_as_far_as_they_are_read(people, submit, database):
    row = submit(people.alice, b"# one\n# two\n")
    texts = {Showing.at_once: "Well done.", Showing.with_grades: "With the grades."}
    with database.transaction() as session:
        for showing, text in texts.items():
            session.add(
                Comment(
                    course_id=row.course_id, assignment_id=row.assignment_id, user_id=people.alice.id,
                    submission_id=row.id, first_line=1, last_line=2, author_id=people.tom.id, text=text,
                    showing=showing, created_at=db.now(session), revision=1,
                )
            )  # fmt: skip

    def read():
        files = {file.name: file.content for file in exports.files(database.reading, people.alice.id, dict)}
        return json.loads(files["comments.json"])

    (comment,) = read()
    assert (comment["text"], comment["author"], comment["submission"]) == ("Well done.", "Tom", row.public_id)
    with database.transaction() as session:
        session.get_one(Assignment, row.assignment_id).grades_published_at = db.now(session)
    assert [one["text"] for one in read()] == list(texts.values())


def test_one_is_made_at_a_time_and_one_that_was_given_up_blocks_nobody(people, database):
    with database.transaction() as session:
        exports.begin(session, people.alice, now := db.now(session))
        exports.begin(session, people.bob, now)
    with pytest.raises(ConflictError, match="being made already"), database.transaction() as session:
        exports.begin(session, people.alice, now + timedelta(minutes=1))
    with database.transaction() as session:
        exports.begin(session, people.alice, now + exports.GIVEN_UP)
        exports.end(session, people.alice.id, now + exports.GIVEN_UP)
        exports.begin(session, people.alice, now + exports.GIVEN_UP)


def test_the_page_says_that_one_is_being_made(people, database, site, config):
    with database.transaction() as session:
        exports.begin(session, people.alice, db.now(session))
    answer = site.logged_in(people.alice, config).post("/account/export")
    assert (answer.status_code, "being made already" in answer.text) == (409, True)


def test_who_does_not_read_it_to_its_end_may_ask_again(work, people, database):
    async def leave() -> bytes:
        sent = pages._sent(database, people.alice.id, dict)
        first = await anext(sent)
        await sent.aclose()
        return first

    with database.transaction() as session:
        exports.begin(session, people.alice, db.now(session))
    assert asyncio.run(leave()).startswith(b"PK")
    with database.reading() as session:
        assert session.get_one(DataExport, people.alice.id).ended_at is not None


def test_who_reads_slowly_holds_no_transaction(work, people, database):
    with database.reading() as session:
        assert session.get_one(User, people.alice.id)
    for _ in exports.files(database.reading, people.alice.id, dict):
        assert database.engine.pool.checkedout() == 0


def test_more_than_one_look_reads_every_submission_once(people, submit, database, monkeypatch):
    monkeypatch.setattr(exports, "AT_ONCE", 2)
    for number in range(5):
        submit(people.alice, f"# {number}\n".encode())
    names = [file.name for file in exports.files(database.reading, people.alice.id, dict) if "/source/" in file.name]
    assert names == [f"submissions/gpu/add_one/submission-{number}/source/kernel.py" for number in range(1, 6)]


def test_a_table_is_one_that_no_spreadsheet_runs():
    lines = exports._csv([{"name": "=1+1", "list": ["x"], "none": None}]).decode().split("\r\n")
    assert (lines[0], lines[1].startswith("'=1+1,")) == ("name,list,none", True)


LEFT_OUT = {
    # What they did themselves stands in files of its own.
    "submissions", "drafts", "write_ups", "enrolments", "login_sessions", "api_tokens", "grades",
}  # fmt: skip


def test_every_table_that_has_lines_about_people_is_thought_of():
    """A table with `user_id` is in the copy, has a file of its own, or is named here with the reason why not."""
    about = {table.name for table in tables.ABOUT_PEOPLE}
    with_people = {name for name, table in Base.metadata.tables.items() if "user_id" in table.c}
    assert with_people - about - LEFT_OUT - set(tables.NOT_THEIRS) == set()
    assert about <= set(Base.metadata.tables)
