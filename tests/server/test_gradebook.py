"""Grades follow what they are worked out from, at once, and handing in again never hurts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from autograder.quiz import Response
from server import cli, dirty_grades, quizzes
from server.courses import courses
from server.courses.deadlines import deadlines_in, deadlines_of
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.gradebook import extensions, overrides, policy, publishing, queries, recompute
from server.gradebook.whatif import Upload, what_if
from server.models import (
    AuditEntry,
    Course,
    Enrolment,
    Extension,
    Grade,
    GradeOverride,
    Group,
    GroupMember,
    Mode,
    Notification,
    Role,
    Submission,
)
from server.operations import doctor_course
from tests.doubles.gradebook import CLOSES, DUE, Term, days

COURSE = "gpu"


@pytest.fixture
def term(database, people):
    made = Term(database, people.course)
    made.policy()
    made.dates()
    yield made
    with database.reading() as session:
        assert recompute.differences(session, people.course.id) == []


@pytest.fixture
def staff(database, people):
    """Do something as the TA, in a transaction of its own."""

    def call(act, *args, **kwargs):
        with database.transaction() as session:
            return act(session, courses.membership(session, people.tom, COURSE), *args, **kwargs)

    return call


@pytest.fixture
def extend(database, staff, term):
    """An extension by so many days."""

    def call(user, count=2, slug="", late_until=None):
        with database.reading() as session:
            row_id = term.rung(session, slug).id
        return staff(
            extensions.give, assignment_ids=[row_id], user_ids=[user.id], days=count, late_until=late_until,
            reason="ill", now=DUE,
        )[0]  # fmt: skip

    return call


@pytest.fixture
def override(staff, term):
    """Set points, by the revision that the grade has now."""

    def call(user, points, revision=None, slug=""):
        def act(session, member):
            return overrides.set_override(
                session, member, term.rung(session, slug), user.id, points=points, reason="read it again",
                revision=term.grade(user, slug).revision if revision is None else revision, now=DUE,
            )  # fmt: skip

        return staff(act)

    return call


def test_everybody_who_is_a_student_has_a_grade_and_nobody_else(term, people, database):
    with database.reading() as session:
        whose = set(session.scalars(select(Grade.user_id)))
    assert whose == {people.alice.id, people.bob.id, people.carol.id}
    grade = term.grade(people.alice)
    assert (grade.points, grade.possible, grade.submission_id) == (0.0, 106.0, None)


def test_the_best_submission_counts_after_what_lateness_costs(term, people):
    term.policy(late_days=0)
    first = term.hand_in(people.alice, 80)
    term.hand_in(people.alice, 90, late=0.5)
    assert (term.grade(people.alice).submission_id, term.grade(people.alice).points) == (first, 80)
    best = term.hand_in(people.alice, 105, late=0.5)
    grade = term.grade(people.alice)
    assert (grade.submission_id, grade.submission_points, grade.days_late, grade.late_days) == (best, 105, 1, 0)
    assert (grade.late_penalty, grade.points) == (pytest.approx(21), pytest.approx(84))


def test_late_days_are_charged_for_what_counts_alone(term, people):
    term.hand_in(people.alice, 60, late=3)
    assert term.grade(people.alice).late_days == 3
    term.hand_in(people.alice, 70, late=1)
    grade = term.grade(people.alice)
    assert (grade.points, grade.late_days) == (70, 1)


def test_late_days_go_where_they_bring_most_over_the_whole_term(term, people):
    term.policy(late_days=1)
    term.add_rung("second")
    term.hand_in(people.alice, 50, late=1)
    assert term.grade(people.alice).late_days == 1
    term.hand_in(people.alice, 90, late=1, slug="second")
    assert (term.grade(people.alice).late_days, term.grade(people.alice, "second").late_days) == (0, 1)
    assert term.total(people.alice) == pytest.approx(40 + 90)


def test_what_weighs_more_gets_the_late_day(term, people):
    term.policy(late_days=1)
    term.add_rung("heavy", weight=3)
    term.hand_in(people.alice, 90, late=1)
    term.hand_in(people.alice, 50, late=1, slug="heavy")
    assert (term.grade(people.alice).late_days, term.grade(people.alice, "heavy").late_days) == (0, 1)


def test_where_points_weigh_nothing_the_best_still_counts(term, people):
    term.add_rung("practice", weight=0)
    term.hand_in(people.alice, 20, slug="practice")
    best = term.hand_in(people.alice, 30, slug="practice")
    assert term.grade(people.alice, "practice").submission_id == best


def test_what_comes_after_the_end_counts_for_nothing(term, people):
    term.hand_in(people.alice, 90, late=5.1)
    assert (term.grade(people.alice).submission_id, term.grade(people.alice).points) == (None, 0)


def test_practice_counts_for_nothing(term, people):
    term.hand_in(people.alice, 90, mode=Mode.run)
    assert term.grade(people.alice).points == 0


def test_within_the_slack_nothing_is_late(term, people):
    term.policy(late_days=0, slack_s=300)
    term.hand_in(people.alice, 90, late=299 / 86_400)
    assert (term.grade(people.alice).days_late, term.grade(people.alice).points) == (0, 90)
    term.hand_in(people.bob, 90, late=301 / 86_400)
    assert term.grade(people.bob).days_late == 1
    term.hand_in(people.bob, 100, late=5 + 299 / 86_400)
    assert term.grade(people.bob).submission_id is not None


def test_answers_to_the_quiz_count_and_share_the_late_days(term, people, database):
    def answer(user, question, value, at):
        with database.transaction() as session:
            member = courses.membership(session, user, COURSE)
            detail = courses.assignment_of(session, member, term.first)
            quizzes.answer(
                session, member=member, detail=detail, question=question, response=Response(value), now=at,
                trace="0" * 32,
            )  # fmt: skip

    answer(people.alice, "waves", 7.0, DUE)
    assert (term.grade(people.alice).quiz_points, term.grade(people.alice).points) == (2, 2)
    answer(people.bob, "waves", 7.0, DUE + days(0.5))
    grade = term.grade(people.bob)
    assert (grade.quiz_points, grade.points, grade.late_days) == (2, 2, 1)
    term.policy(late_days=0)
    grade = term.grade(people.bob)
    assert (grade.points, grade.late_penalty, grade.late_days) == (pytest.approx(1.6), pytest.approx(0.4), 0)


def test_an_extension_moves_the_dates_of_one_student_in_one_rung(term, people, extend, database):
    term.policy(late_days=0)
    for user in (people.alice, people.bob):
        term.hand_in(user, 90, late=2)
        term.hand_in(user, 100, late=6)
    assert term.grade(people.alice).points == pytest.approx(54)
    extension = extend(people.alice, 2)
    assert (extension.due_at, extension.late_until) == (DUE + days(2), CLOSES + days(2))
    grade = term.grade(people.alice)
    assert (grade.points, grade.days_late) == (90, 0)
    assert term.grade(people.bob).points == pytest.approx(54)
    with database.reading() as session:
        row = term.rung(session)
        assert deadlines_of(session, row, people.alice.id).due_at == DUE + days(2)
        assert list(deadlines_in(session, people.course.id)) == [(people.alice.id, row.id)]


def test_an_extension_never_brings_a_date_forward(term, people, extend):
    extend(people.alice, 1)
    term.dates(DUE + days(3), None)
    term.hand_in(people.alice, 90, late=2.5)
    assert term.grade(people.alice).days_late == 0


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"days": 0}, "days"),
        ({"days": -3}, "days"),
        ({"days": 10**12}, "days"),
        ({"days": 400}, "days"),
        ({"due_at": DUE - timedelta(hours=1)}, "due_at"),
        ({"days": 2, "late_until": DUE + days(1)}, "late_until"),
        ({"days": 2, "due_at": DUE + days(2)}, "due_at"),
        ({}, "due_at"),
        ({"days": 2, "reason": "  "}, "reason"),
        ({"days": 2, "user_ids": []}, "user_ids"),
    ],
)
def test_an_extension_that_cannot_be_meant_is_refused(*, wrong, field, staff, term, people, database):
    with database.reading() as session:
        row_id = term.rung(session).id
    given = {"assignment_ids": [row_id], "user_ids": [people.alice.id], "reason": "ill", "now": DUE, **wrong}
    with pytest.raises(InvalidInputError) as refused:
        staff(extensions.give, **given)
    assert refused.value.field == field
    with database.reading() as session:
        assert session.scalar(select(Extension.id)) is None


def test_only_students_of_the_course_get_extensions(staff, term, people, database):
    with database.reading() as session:
        row_id = term.rung(session).id
    for user in (people.tom, people.carol, people.stranger):
        with pytest.raises(NotFoundError):
            staff(extensions.give, assignment_ids=[row_id], user_ids=[user.id], days=1, reason="x", now=DUE)
    with pytest.raises(NotFoundError):
        staff(extensions.give, assignment_ids=[row_id + 999], user_ids=[people.alice.id], days=1, reason="x", now=DUE)


def test_a_new_extension_replaces_the_old_one_and_both_stay_to_be_read(term, people, extend, staff, database):
    first, second = extend(people.alice, 1), extend(people.alice, 4)
    with database.reading() as session:
        rows = extensions.of_course(session, people.course.id, user_id=people.alice.id)
        assert [(row.id, row.withdrawn_at is None) for row in rows] == [(second.id, True), (first.id, False)]
    staff(extensions.withdraw, second.id, reason="by mistake", now=DUE)
    with pytest.raises(ConflictError):
        staff(extensions.withdraw, second.id, reason="again", now=DUE)
    with database.reading() as session:
        assert not deadlines_of(session, term.rung(session), people.alice.id).extended


def test_staff_give_and_take_late_days(term, people, staff, database):
    term.policy(late_days=1)
    term.hand_in(people.alice, 90, late=2)
    assert term.grade(people.alice).points == pytest.approx(72)
    staff(extensions.grant_late_days, user_ids=[people.alice.id], days=1, reason="helped others", now=DUE)
    assert (term.grade(people.alice).points, term.grade(people.alice).late_days) == (90, 2)
    staff(extensions.grant_late_days, user_ids=[people.alice.id], days=-5, reason="no", now=DUE)
    assert term.grade(people.alice).points == pytest.approx(54)
    with database.reading() as session:
        standing = queries.standing(session, people.course, people.alice.id)
        assert (standing.granted, standing.left, standing.used) == (-4, 0, 0)


@pytest.mark.parametrize("wrong", [0, 101, -101])
def test_late_days_that_cannot_be_meant_are_refused(staff, term, people, wrong):
    with pytest.raises(InvalidInputError):
        staff(extensions.grant_late_days, user_ids=[people.alice.id], days=wrong, reason="x", now=DUE)


def test_what_staff_set_is_the_grade_and_uses_no_late_day(term, people, override, staff):
    term.policy(late_days=1)
    term.add_rung("second")
    term.hand_in(people.alice, 90, late=1)
    term.hand_in(people.alice, 50, late=1, slug="second")
    override(people.alice, 12.5)
    assert (term.grade(people.alice).points, term.grade(people.alice).late_days) == (12.5, 0)
    assert term.grade(people.alice, "second").points == 50
    term.hand_in(people.alice, 100, late=1)
    assert term.total(people.alice) == 62.5

    def undo(session, member):
        revision = term.grade(people.alice).revision
        row = term.rung(session)
        overrides.undo_override(session, member, row, people.alice.id, reason="x", revision=revision, now=DUE)

    staff(undo)
    assert (term.grade(people.alice).points, term.grade(people.alice).override_points) == (100, None)
    with pytest.raises(ConflictError, match="nothing to undo"):
        staff(undo)


def test_what_a_student_reads_as_final_is_the_grade_that_staff_have(term, people, override, database):
    """Late days are spent over the whole term: on what they may not read, or not any more, too."""
    term.policy(late_days=2)
    term.add_rung("second")
    term.hand_in(people.alice, 90, late=2)
    term.hand_in(people.alice, 50, late=2, slug="second")
    assert term.grade(people.alice, "second").points == pytest.approx(30)

    def read(work=queries.standing, *more):
        with database.reading() as session:
            found = work(session, people.course, people.alice.id, *more)
            return {line.detail.slug: (line.outcome.points, line.published) for line in found.lines}, found.left

    def change(slug, **fields):
        with database.transaction() as session:
            row = term.rung(session, slug)
            for name, value in fields.items():
                setattr(row, name, value)

    override(people.alice, 12)  # It uses no late day then.
    change("second", grades_published_at=DUE)
    assert term.grade(people.alice, "second").points == 50
    assert read() == ({"add_one": (90, False), "second": (50, True)}, 0)
    change("", published=False)
    assert read() == ({"second": (50, True)}, 0)
    assert read(what_if, {"add_one": Upload(DUE, 100)}) == read()


def test_late_days_that_were_used_where_nothing_is_open_any_more_are_used(term, people, database):
    term.policy(late_days=2)
    term.add_rung("second")
    term.hand_in(people.alice, 90, late=2)
    term.hand_in(people.alice, 50, late=2, slug="second")
    with database.transaction() as session:
        term.rung(session).published = False
    with database.reading() as session:
        found = queries.standing(session, people.course, people.alice.id)
        (line,) = found.lines
        facts = queries.facts_for(session, people.course, people.alice.id)
        charge = queries.would_charge(facts, term.rung(session, "second"), people.alice.id, DUE)
    assert line.outcome.points == pytest.approx(term.grade(people.alice, "second").points)
    assert (found.left, charge.left) == (0, 0)


def test_the_second_one_to_decide_is_told(term, people, override):
    seen = term.grade(people.alice).revision
    override(people.alice, 10, revision=seen)
    with pytest.raises(ConflictError, match=r"It is 10\.00 of 106 now"):
        override(people.alice, 20, revision=seen)
    assert term.grade(people.alice).points == 10


@pytest.mark.parametrize("wrong", [-0.5, 10_001.0, float("nan"), float("inf")])
def test_points_that_nobody_can_have_are_refused(override, term, people, wrong):
    with pytest.raises(InvalidInputError):
        override(people.alice, wrong)
    assert term.grade(people.alice).override_points is None


def test_every_decision_leaves_who_did_it_and_why(term, people, override, extend, database):
    override(people.alice, 10)
    override(people.alice, 20)
    extend(people.alice)
    with database.reading() as session:
        rows = session.scalars(select(GradeOverride).order_by(GradeOverride.id)).all()
        assert [(row.points, row.undone_at is None, row.reason) for row in rows] == [
            (10, False, "read it again"), (20, True, "read it again"),
        ]  # fmt: skip
        trail = session.scalars(select(AuditEntry).where(AuditEntry.about_id == people.alice.id)).all()
        said = [(row.action, row.course_id, row.assignment_id is not None, row.actor_id) for row in trail[-3:]]
        assert said == [
            ("grade.overridden", people.course.id, True, people.tom.id),
            ("grade.overridden", people.course.id, True, people.tom.id),
            ("extension.given", people.course.id, True, people.tom.id),
        ]
        told = set(session.scalars(select(Notification.kind).where(Notification.user_id == people.alice.id)))
        assert told == {"extension_granted"}


def test_a_student_chooses_what_counts_and_the_best_again(term, people, database):
    worse, best = term.hand_in(people.alice, 40), term.hand_in(people.alice, 90)

    def choose(user, submission_id):
        with database.transaction() as session:
            member = courses.membership(session, user, COURSE)
            row = session.get(Submission, submission_id) if submission_id else None
            return queries.choose_active(session, member, term.rung(session), row)

    choose(people.alice, worse)
    choose(people.alice, worse)
    grade = term.grade(people.alice)
    assert (grade.submission_id, grade.points, grade.chosen) == (worse, 40, True)
    waiting = term.hand_in(people.alice, None)
    choose(people.alice, waiting)
    assert (term.grade(people.alice).submission_id, term.grade(people.alice).chosen) == (best, False)
    choose(people.alice, worse)
    choose(people.alice, None)
    assert (term.grade(people.alice).submission_id, term.grade(people.alice).chosen) == (best, False)
    with pytest.raises(NotFoundError):
        choose(people.bob, best)
    with pytest.raises(InvalidInputError):
        choose(people.alice, term.hand_in(people.alice, 1, mode=Mode.run))
    with pytest.raises(InvalidInputError):
        choose(people.alice, term.hand_in(people.alice, 1, late=6))


def test_a_submission_counts_for_everybody_of_the_group(term, people, database, extend):
    term.policy(late_days=0)
    extend(people.bob, 1)
    with database.transaction() as session:
        row = term.rung(session)
        group = Group(course_id=people.course.id, assignment_id=row.id, code="x", created_at=DUE)
        session.add(group)
        session.flush()
        for user in (people.alice, people.bob):
            session.add(GroupMember(group_id=group.id, assignment_id=row.id, user_id=user.id, joined_at=DUE))
        session.flush()
        dirty_grades.grades(session, people.course.id, people.alice.id)
    made = term.hand_in(people.alice, 50, late=1)
    assert [term.grade(user).submission_id for user in (people.alice, people.bob)] == [made, made]
    # Each by their own due date.
    assert [term.grade(user).points for user in (people.alice, people.bob)] == [pytest.approx(40), 50]


def test_grades_follow_the_roster(term, people, database):
    def set_role(user, role):
        with database.transaction() as session:
            courses.enrol(session, course=session.get_one(Course, people.course.id), user=user, role=role)

    term.hand_in(people.tom, 50)
    with database.reading() as session:
        assert session.scalar(select(Grade).where(Grade.user_id == people.tom.id)) is None
    set_role(people.tom, Role.student)
    assert term.grade(people.tom).points == 50
    set_role(people.tom, Role.ta)
    with database.reading() as session:
        assert session.scalar(select(Grade).where(Grade.user_id == people.tom.id)) is None
    term.hand_in(people.carol, 70)
    set_role(people.carol, Role.student)
    assert term.grade(people.carol).points == 70


def test_grades_follow_dates_and_policy(term, people, database):
    term.hand_in(people.alice, 100, late=2)
    assert term.grade(people.alice).points == 100
    with database.transaction() as session:
        course = session.get_one(Course, people.course.id)
        policy.set_policy(
            session, course, late_days=1, late_days_per_assignment=None, late_penalty=0.5, slack_s=0, actor=people.ines
        )
    assert term.grade(people.alice).points == 50
    with database.transaction() as session:
        row = term.rung(session)
        courses.set_dates(session, row, open_at=None, due_at=DUE + days(1), late_until=None)
    assert term.grade(people.alice).points == 100


@pytest.mark.parametrize(
    "wrong",
    [
        {"late_days": -1}, {"late_days": 101}, {"late_days_per_assignment": -1}, {"late_penalty": 1.1},
        {"late_penalty": float("nan")}, {"slack_s": -1}, {"slack_s": 10**9},
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_meant_is_refused(database, people, wrong):
    given = {"late_days": 1, "late_days_per_assignment": None, "late_penalty": 0.5, "slack_s": 0, **wrong}
    with database.transaction() as session, pytest.raises(InvalidInputError) as refused:
        policy.set_policy(session, session.get_one(Course, people.course.id), **given)
    assert refused.value.field in wrong


def test_grades_are_published_once_and_withdrawn(term, people, staff, override, database):
    override(people.alice, 99)

    def seen():
        with database.reading() as session:
            line = queries.standing(session, people.course, people.alice.id).lines[0]
            return line.published, line.outcome.points

    def told():
        with database.reading() as session:
            query = select(Notification).where(Notification.kind == "grades_published")
            return [row.user_id for row in session.scalars(query.order_by(Notification.user_id))]

    assert seen() == (False, 0)
    assert term.grade(people.alice).points == 99
    with database.reading() as session:
        row = term.rung(session)
        session.expunge(row)
    assert staff(publishing.publish, row, now=DUE) == 2
    assert (seen(), told()) == ((True, 99), [people.alice.id, people.bob.id])
    with pytest.raises(ConflictError):
        staff(publishing.publish, row, now=DUE)
    staff(publishing.withdraw, row)
    assert seen() == (False, 0)
    with pytest.raises(ConflictError):
        staff(publishing.withdraw, row)
    assert staff(publishing.publish, row, now=DUE + days(1)) == 2


def test_counts_say_what_is_still_open(term, people, override, database):
    term.hand_in(people.alice, 50)
    term.hand_in(people.alice, None)
    override(people.bob, 5)
    with database.reading() as session:
        (counts,) = publishing.counts(session, people.course.id).values()
    assert (counts.students, counts.empty, counts.overridden, counts.waiting, counts.held) == (2, 0, 1, 1, 0)


def test_the_page_says_what_an_upload_would_use(term, people, extend, database):
    term.policy(late_days=2)

    def charge(at):
        with database.reading() as session:
            facts = queries.facts_for(session, people.course, people.alice.id)
            return queries.would_charge(facts, term.rung(session), people.alice.id, at)

    assert (charge(DUE).charged, charge(DUE).left) == (0, 2)
    late = charge(DUE + days(2.5))
    assert (late.days_late, late.charged, late.left, late.uncovered, late.refused) == (3, 2, 0, 1, "")
    assert charge(DUE + days(5.5)).refused
    extend(people.alice, 2)
    assert (charge(DUE + days(2.5)).charged, charge(DUE + days(5.5)).refused) == (1, "")


def test_an_extended_student_hands_in_until_their_own_end(term, people, submit, extend):
    with pytest.raises(InvalidInputError, match="closed on"):
        submit(people.alice, now=DUE + days(6))
    extend(people.alice, 2)
    assert submit(people.alice, now=DUE + days(6)).id
    with pytest.raises(InvalidInputError, match="closed on 28 November"):
        submit(people.alice, now=DUE + days(7.1))
    with pytest.raises(InvalidInputError):
        submit(people.bob, now=DUE + days(6))


def test_a_mark_without_anybody_to_work_it_out_is_loud(database, people, monkeypatch):
    monkeypatch.setattr(dirty_grades, "_settlers", [])
    with pytest.raises(RuntimeError, match=r"import server\.gradebook"), database.transaction() as session:
        dirty_grades.grades(session, people.course.id)


def test_a_transaction_that_is_undone_leaves_grades_as_they_were(term, people, database):
    term.hand_in(people.alice, 50)

    def change_and_fail(session):
        session.scalars(select(Submission)).one().points = 70
        dirty_grades.grades(session, people.course.id, people.alice.id)
        dirty_grades.settle(session)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), database.transaction() as session:
        change_and_fail(session)
    assert term.grade(people.alice).points == 50


def test_a_grade_that_is_wrong_is_found(term, people, database):
    term.hand_in(people.alice, 50)
    with database.transaction() as session:
        session.scalars(select(Grade).where(Grade.user_id == people.alice.id)).one().points = 51
        session.delete(session.scalars(select(Grade).where(Grade.user_id == people.bob.id)).one())
    with database.transaction() as session:
        found = recompute.differences(session, people.course.id)
        assert [(one.user_id, one.stored is None) for one in found] == [
            (people.alice.id, False), (people.bob.id, True),
        ]  # fmt: skip
        dirty_grades.grades(session, people.course.id)


def test_two_at_once_lose_nothing(term, people, database):
    """Each transaction changes another submission of one person; the grade knows both in the end."""
    term.add_rung("second")
    places = [(term.hand_in(people.alice, 1), ""), (term.hand_in(people.alice, 1, slug="second"), "second")]

    def raise_points(submission_id):
        for points in range(2, 12):
            with database.transaction() as session:
                session.get_one(Submission, submission_id).points = points
                session.flush()
                dirty_grades.grades(session, people.course.id, people.alice.id)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(raise_points, [submission_id for submission_id, _ in places]))
    assert [term.grade(people.alice, slug).points for _, slug in places] == [11, 11]


def test_of_two_who_decide_at_once_one_is_told(term, people, staff, database):
    seen, found = term.grade(people.alice).revision, []

    def decide(points):
        def act(session, member):
            row = term.rung(session)
            overrides.set_override(
                session, member, row, people.alice.id, points=points, reason="x", revision=seen, now=DUE
            )

        try:
            staff(act)
            found.append(points)
        except ConflictError:
            found.append("told")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(decide, (10.0, 20.0)))
    assert found.count("told") == 1
    assert term.grade(people.alice).points == next(one for one in found if one != "told")


UPLOAD = st.tuples(st.integers(0, 2), st.integers(0, 100), st.integers(-2, 6), st.sampled_from(["", "second"]))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    uploads=st.lists(UPLOAD, max_size=6), late_days=st.integers(0, 3), penalty=st.sampled_from([0.0, 0.2, 1.0]),
    step=st.sampled_from(["upload", "extension", "grant"]), last=UPLOAD, overridden=st.booleans(),
)  # fmt: skip
def test_nothing_that_is_added_ever_lowers_a_total(
    *, uploads, late_days, penalty, step, last, overridden, property_term, people
):
    property_term.begin(late_days, penalty)
    term = property_term.term
    for _, points, late, slug in uploads:
        term.hand_in(people.alice, points, late=late, slug=slug)
    if overridden:
        property_term.override(people.alice, 30.0)
    before = term.total(people.alice)
    if step == "upload":
        term.hand_in(people.alice, last[1], late=last[2], slug=last[3])
    elif step == "extension":
        property_term.extend(people.alice, last[0] + 1, last[3])
    else:
        property_term.grant(people.alice, last[0] + 1)
    assert term.total(people.alice) >= before - 1e-6


@pytest.fixture
def property_term(*, term, staff, extend, override, database):
    class Property:
        def __init__(self):
            self.term = term
            term.add_rung("second", weight=2)
            self.extend = extend
            self.override = override

        def begin(self, late_days, penalty):
            with database.transaction() as session:
                for table in (Submission, Extension, GradeOverride, queries.Grade):
                    session.query(table).delete()
                session.query(extensions.LateDayGrant).delete()
            term.policy(late_days=late_days, penalty=penalty)

        def grant(self, user, count):
            staff(extensions.grant_late_days, user_ids=[user.id], days=count, reason="x", now=DUE)

    return Property()


def test_enrolments_of_other_courses_are_left_alone(term, people, database):
    with database.reading() as session:
        other = session.scalars(select(Enrolment.course_id).where(Enrolment.course_id != people.course.id)).first()
        assert session.scalar(select(Grade).where(Grade.course_id == other)) is None


def test_the_doctor_finds_grades_that_are_wrong_and_a_command_puts_them_right(term, people, database, config):
    def said():
        with database.reading() as session:
            return [finding.level.value for finding in doctor_course.grades(session)]

    assert said() == ["ok"]
    with database.transaction() as session:
        session.scalars(select(Grade).where(Grade.user_id == people.alice.id)).one().points = 51
    assert said() == ["problem"]
    environ = {"LADDER_HOME": str(config.home), "LADDER_DATABASE_URL": config.database_url}
    done = CliRunner().invoke(cli.admin, ["recompute-grades", COURSE], env=environ)
    assert (done.exit_code, done.output.strip()) == (0, "gpu: 1 grade corrected.")
    assert "no course" in CliRunner().invoke(cli.admin, ["recompute-grades", "none"], env=environ).output
    assert said() == ["ok"]
