"""What is taken in, by whom it is found again, and that two at once never collide."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from autograder.assignment import content_hash
from autograder.contract import MAX_SOURCE_BYTES
from server.courses import courses
from server.errors import ConflictError, InvalidInputError, NotFoundError, TooLargeError, TooManyError
from server.models import Assignment, Lane, Language, Mode, State, Submission
from server.submissions import sources, submissions

COURSE, RUNG = "gpu", "add_one"
NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def _dates(database, **values):
    with database.transaction() as session:
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        for name, value in values.items():
            setattr(row, name, value)


def test_accepted_means_stored_and_queued(database, people, submit):
    source = "# naïve ∑\ndef add_one(x, out, n): ...\n".encode()
    made = submit(people.alice, source, now=NOW)
    with database.reading() as session:
        row = session.scalars(select(Submission)).one()
        assert submissions.source_of(session, row) == source
        assert row.source_hash == content_hash(source)
        assert (row.state, row.number, row.uploaded_at, row.place_at) == (State.queued, 1, NOW, NOW)
        assert row.public_id == made.public_id
        assert row.trace == "0" * 32


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "binary file: byte 8 is zero"),
        ("def f(): 'Ä'".encode("latin-1"), r"not UTF-8: byte 11 \(0xc4, line 1\)"),
        (b"a\nb\n\xff\xfe", r"byte 5 \(0xff, line 3\)"),
        ("def f(): ...".encode("utf-16"), "binary file"),
        (b"a\n'\x1b[1m'\n", r"control character: byte 4 \(0x1b, line 2\). In a string, write it as \\x1b"),
    ],
)
def test_what_is_no_source_is_refused_and_says_why(people, submit, source, said):
    with pytest.raises(InvalidInputError, match=said) as caught:
        submit(people.alice, source)
    assert caught.value.field == "source"


def test_the_largest_source_is_taken_and_one_byte_more_is_not(people, submit):
    submit(people.alice, b"#" * MAX_SOURCE_BYTES)
    with pytest.raises(TooLargeError, match="1,048,577 bytes; at most 1,048,576"):
        submit(people.alice, b"#" * (MAX_SOURCE_BYTES + 1))


@pytest.mark.parametrize(
    ("field", "changes", "said"),
    [
        ("language", {"language": Language.cuda}, "does not accept cuda; it accepts triton"),
        ("lane", {"lane": Lane.b200}, "is not graded on b200, only on cpu, h200"),
    ],
)
def test_a_language_or_a_lane_that_is_not_offered_is_refused(people, submit, field, changes, said):
    with pytest.raises(InvalidInputError, match=said) as caught:
        submit(people.alice, **changes)
    assert caught.value.field == field


def test_an_assignment_that_is_not_open_does_not_exist_for_a_student(database, people, submit):
    _dates(database, open_at=NOW)
    with pytest.raises(NotFoundError):
        submit(people.alice, now=NOW - timedelta(seconds=1))
    submit(people.tom, now=NOW - timedelta(seconds=1))
    submit(people.alice, now=NOW)


def test_late_is_taken_and_after_the_close_only_practice(database, people, submit):
    _dates(database, due_at=NOW - timedelta(days=1), late_until=NOW)
    submit(people.alice, now=NOW)
    with pytest.raises(InvalidInputError, match=r"closed on 01 November 2026 at 12:00 UTC\. Practice runs still work"):
        submit(people.alice, now=NOW + timedelta(seconds=1))
    submit(people.alice, now=NOW + timedelta(seconds=1), mode=Mode.run)
    submit(people.ines, now=NOW + timedelta(seconds=1))


def test_a_dropped_student_cannot_submit(people, submit):
    with pytest.raises(NotFoundError):
        submit(people.carol)


def test_numbers_count_per_student_assignment_and_mode(people, submit):
    made = [submit(people.alice), submit(people.bob), submit(people.alice), submit(people.alice, mode=Mode.run)]
    assert [item.number for item in made] == [1, 1, 2, 1]


def test_runs_and_submissions_have_a_quota_each_that_says_when_it_ends(people, submit, config):
    strict = dataclasses.replace(config, submit_quota_per_minute=2, run_quota_per_minute=1)
    submit(people.alice, config=strict, now=NOW)
    submit(people.alice, config=strict, now=NOW + timedelta(seconds=20))
    with pytest.raises(TooManyError, match="2 submissions in the last minute; the next is possible in 30 s") as caught:
        submit(people.alice, config=strict, now=NOW + timedelta(seconds=30))
    assert caught.value.retry_after_s == pytest.approx(30)
    submit(people.bob, config=strict, now=NOW + timedelta(seconds=30))
    submit(people.alice, config=strict, now=NOW + timedelta(seconds=30), mode=Mode.run)
    with pytest.raises(TooManyError):
        submit(people.alice, config=strict, now=NOW + timedelta(seconds=31), mode=Mode.run)
    assert submit(people.alice, config=strict, now=NOW + timedelta(seconds=61)).number == 3


def test_submitting_at_once_gives_everyone_their_own_number(database, people, submit):
    many = 8
    barrier = threading.Barrier(many)

    def one(_):
        barrier.wait()
        return submit(people.alice).number

    with ThreadPoolExecutor(many) as pool:
        assert sorted(pool.map(one, range(many))) == list(range(1, many + 1))
    with database.reading() as session:
        assert sorted(session.scalars(select(Submission.number))) == list(range(1, many + 1))


def test_a_request_sent_again_stores_nothing_new_however_late(database, people, submit, config):
    _dates(database, late_until=NOW)
    strict = dataclasses.replace(config, submit_quota_per_minute=1)
    first = submit(people.alice, request_key="k1", now=NOW, config=strict)
    again = submit(people.alice, request_key="k1", now=NOW + timedelta(seconds=1), config=strict)
    assert (again.public_id, again.number, again.uploaded_at) == (first.public_id, 1, NOW)
    # Somebody else's key is their own business.
    assert submit(people.bob, request_key="k1", now=NOW).public_id != first.public_id


@pytest.mark.parametrize("changes", [{"source": b"x = 1\n"}, {"mode": Mode.run}, {"lane": Lane.h200}])
def test_a_request_key_is_good_for_one_submission(people, submit, changes):
    submit(people.alice, request_key="k1")
    with pytest.raises(ConflictError, match="needs a new key"):
        submit(people.alice, request_key="k1", **changes)


def test_the_same_request_many_times_at_once_is_one_submission(database, people, submit):
    many = 8
    barrier = threading.Barrier(many)

    def one(_):
        barrier.wait()
        return submit(people.alice, request_key="k1").public_id

    with ThreadPoolExecutor(many) as pool:
        assert len(set(pool.map(one, range(many)))) == 1
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 1


def test_submitting_at_once_does_not_get_round_the_quota(database, people, submit, config):
    strict = dataclasses.replace(config, submit_quota_per_minute=3)
    barrier = threading.Barrier(8)

    def one(_):
        barrier.wait()
        try:
            submit(people.alice, config=strict)
        except TooManyError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(8))) == 3
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 3


def test_a_submission_is_found_by_its_student_the_staff_and_admins_only(database, people, submit):
    public_id = submit(people.alice).public_id
    with database.reading() as session:
        for user in (people.alice, people.tom, people.ines, people.admin):
            assert submissions.find(session, user, public_id).assignment.course.slug == COURSE
        messages = set()
        for user, asked in [
            (people.bob, public_id),
            (people.carol, public_id),
            (people.stranger, public_id),
            (people.alice, "0" * 26),
        ]:
            with pytest.raises(NotFoundError) as caught:
                submissions.find(session, user, asked)
            messages.add(caught.value.message)
        assert len(messages) == 1


def test_who_dropped_the_course_loses_sight_of_their_own(database, people, submit):
    public_id = submit(people.bob).public_id
    with database.transaction() as session:
        courses.membership(session, people.bob, COURSE).enrolment.dropped_at = NOW
    with database.reading() as session, pytest.raises(NotFoundError):
        submissions.find(session, people.bob, public_id)


@pytest.mark.full("slow")
def test_history_is_newest_first_and_a_students_own(database, people, submit):
    alices = [submit(people.alice), submit(people.alice, mode=Mode.run), submit(people.alice)]
    bobs = submit(people.bob)
    with database.reading() as session:
        student = courses.membership(session, people.alice, COURSE)
        staff = courses.membership(session, people.tom, COURSE)
        ids = [item.public_id for item in alices]

        def listed(member, **filters):
            return [row.public_id for row in submissions.history(session, member, **filters)]

        assert listed(student) == ids[::-1]
        assert listed(student, user=people.bob) == ids[::-1]
        assert listed(student, before=ids[2]) == [ids[1], ids[0]]
        assert listed(student, before=bobs.public_id) == [], "another's is no place in one's own"
        assert listed(staff, before=bobs.public_id) == ids[::-1]
        assert listed(student, limit=1) == [ids[2]]
        assert listed(student, assignment="another") == []
        assert listed(staff) == [bobs.public_id, *ids[::-1]]
        assert listed(staff, user=people.bob) == [bobs.public_id]
        row = submissions.history(session, staff)[0]
        assert (row.user.name, row.assignment.slug, row.result) == ("Bob", RUNG, None)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("kernel.py", "kernel.py"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\alice\\my kernel.py", "my kernel.py"),
        ("<b>\r\nx.py", "_b___x.py"),
        ("", "submission.py"),
        ("...", "submission.py"),
        ("x" * 300 + ".py", "x" * 117 + ".py"),
    ],
)
def test_a_file_name_is_its_last_part_without_surprises(given, kept):
    assert sources.clean_filename(given, Language.triton) == kept
