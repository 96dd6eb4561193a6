"""Answers are kept and marked, points follow, and the key reaches nobody before they may read it."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from autograder.quiz import Response
from server import quizzes
from server.courses import courses, sync
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.models import Assignment, AuditEntry, Bundle, Quiz, QuizAnswer
from server.pages.progress import climb
from server.quizzes import Standing
from tests.doubles.meanwhile import meanwhile

COURSE, RUNG, SECRET = "gpu", "add_one", "SECRET-OF-THE-STAFF"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PATH = f"/courses/{COURSE}/assignments/{RUNG}"


@pytest.fixture
def answer(database, people):
    """Answer a question, in a transaction of its own."""

    def call(user, question, response, now=NOW):
        value = Response(options=response) if isinstance(response, tuple) else Response(response)
        with database.transaction() as session:
            member = courses.membership(session, user, COURSE)
            detail = courses.assignment_of(session, member, RUNG, now)
            row, is_new = quizzes.answer(
                session, member=member, detail=detail, question=question, response=value, now=now, trace="0" * 32
            )
            return row.number, row.right, is_new

    return call


@pytest.fixture
def view(database, people):
    """The quiz as somebody sees it, by question."""

    def call(user, now=NOW):
        with database.reading() as session:
            member = courses.membership(session, user, COURSE)
            shown = quizzes.view(session, member, courses.assignment_of(session, member, RUNG, now), now)
            return {one.question.name: one for one in shown.questions}

    return call


@pytest.fixture
def dates(database, people):
    """Set due date and end."""

    def call(due_at, late_until=None):
        with database.transaction() as session:
            row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
            courses.set_dates(session, row, open_at=None, due_at=due_at, late_until=late_until)

    return call


def test_every_answer_is_kept_and_marked(answer, view, people, database):
    assert answer(people.alice, "waves", 6.92) == (1, False, True)
    assert answer(people.alice, "waves", 7.0) == (2, True, True)
    assert answer(people.alice, "true_ones", ("third", "first")) == (1, True, True)
    with database.reading() as session:
        rows = session.scalars(select(QuizAnswer).order_by(QuizAnswer.id)).all()
        assert [(row.question, row.number, row.right) for row in rows] == [
            ("waves", 1, False), ("waves", 2, True), ("true_ones", 1, True),
        ]  # fmt: skip
        assert rows[0].response == {"value": 6.92, "options": []}
        assert rows[2].response == {"value": None, "options": ["first", "third"]}
    mine = view(people.alice)
    assert [one.standing for one in mine.values()] == [Standing.right, Standing.open, Standing.right]
    assert [one.points for one in mine.values()] == [2.0, 0.0, 2.0]
    assert all(one.standing is Standing.open and not one.answers for one in view(people.bob).values())


def test_the_same_answer_again_uses_no_try(answer, people, dates):
    assert answer(people.alice, "waves", 6.0) == (1, False, True)
    assert answer(people.alice, "waves", 6.0) == (1, False, False)
    dates(NOW, NOW + timedelta(hours=1))
    # Even after the end: a request that is sent again because its answer was lost.
    assert answer(people.alice, "waves", 6.0, NOW + timedelta(days=1)) == (1, False, False)


def test_tries_are_limited_and_a_right_answer_ends_a_question(answer, people):
    for value in (1.0, 2.0, 3.0):
        answer(people.alice, "waves", value)
    with pytest.raises(ConflictError, match="All 3 tries"):
        answer(people.alice, "waves", 7.0)
    answer(people.bob, "waves", 7.0)
    with pytest.raises(ConflictError, match="answered this question correctly"):
        answer(people.bob, "waves", 8.0)


def test_what_is_no_answer_is_refused_and_costs_nothing(answer, view, people):
    with pytest.raises(InvalidInputError, match="Choose one option"):
        answer(people.alice, "reads", ("one_line", "two_lines"))
    with pytest.raises(InvalidInputError, match="one number"):
        answer(people.alice, "waves", ("one_line",))
    with pytest.raises(NotFoundError):
        answer(people.alice, "no_such", 1.0)
    assert view(people.alice)["reads"].tries_left == 2


def test_answers_are_taken_as_long_as_submissions_are(answer, people, dates):
    dates(NOW - timedelta(days=2), NOW - timedelta(days=1))
    with pytest.raises(InvalidInputError, match="closed on"):
        answer(people.alice, "waves", 7.0)
    assert answer(people.tom, "waves", 7.0)[1]
    dates(NOW - timedelta(days=2), NOW + timedelta(days=1))
    assert answer(people.alice, "waves", 7.0)[1]


def _explained(view, user, now=NOW):
    return {name for name, one in view(user, now).items() if one.key is not None}


def test_an_explanation_is_shown_to_who_is_right_and_to_others_when_nothing_can_be_won(answer, view, people, dates):
    dates(NOW + timedelta(days=1), NOW + timedelta(days=3))
    answer(people.alice, "waves", 7.0)
    for name in ("one_line", "two_lines"):
        answer(people.alice, "reads", (name,))
    assert _explained(view, people.alice) == {"waves"}
    assert _explained(view, people.bob) == set()
    assert _explained(view, people.tom) == {"waves", "reads", "true_ones"}
    late = NOW + timedelta(days=2)
    assert _explained(view, people.alice, late) == {"waves", "reads"}
    assert _explained(view, people.bob, late) == set()
    over = NOW + timedelta(days=4)
    assert _explained(view, people.bob, over) == {"waves", "reads", "true_ones"}


def test_where_nothing_is_due_it_is_shown_once_no_try_is_left(answer, view, people):
    answer(people.alice, "reads", ("one_line",))
    assert _explained(view, people.alice) == set()
    answer(people.alice, "reads", ("two_lines",))
    assert _explained(view, people.alice) == {"reads"}


def test_points_are_those_of_right_answers_with_the_time_of_the_first(answer, people, database):
    answer(people.alice, "waves", 6.0)
    answer(people.alice, "waves", 7.0, NOW + timedelta(hours=1))
    answer(people.bob, "reads", ("many_lines",))
    with database.reading() as session:
        member = courses.membership(session, people.alice, COURSE)
        details = courses.assignments_of(session, member, NOW)
        mine = quizzes.earned(session, details, people.alice.id)
        assert [(one.question, one.points, one.uploaded_at) for one in mine] == [
            ("waves", 2.0, NOW + timedelta(hours=1))
        ]
        assert {one.user_id for one in quizzes.earned(session, details)} == {people.alice.id, people.bob.id}
        rung = climb(session, member, details, NOW)[0]
        assert (rung.points, rung.maximum, rung.quiz_right) == (2.0, 106.0, 1)


def test_staff_see_how_many_students_were_right(answer, view, people):
    answer(people.alice, "waves", 6.0)
    answer(people.alice, "waves", 7.0)
    answer(people.bob, "waves", 5.0)
    answer(people.tom, "waves", 7.0)
    shown = view(people.ines)["waves"]
    assert (shown.tried, shown.solved) == (2, 1)
    assert view(people.alice)["waves"].tried is None


def _edit(config, part, name, old, new):
    path = getattr(config, part) / RUNG / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_corrected_key_marks_old_answers_again_and_takes_nothing_away(answer, view, people, database, config):
    answer(people.alice, "waves", 6.0)
    answer(people.bob, "waves", 7.0)
    _edit(config, "reference", "answer_key.toml", "value = 7", "value = 6")
    with database.transaction() as session:
        (change,) = sync.sync_assignments(session, config, people.course)
        assert (change.number, change.quiz, dict(change.marked_right)) == (None, 2, {"waves": 1})
    with database.reading() as session:
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "quiz.versioned")).all()[-1]
        assert entry.detail["marked_right"] == {"waves": 1}
        assert len(session.scalars(select(Quiz)).all()) == 2
        marked = select(QuizAnswer.user_id).where(QuizAnswer.remarked_at.is_not(None))
        assert session.scalars(marked).all() == [people.alice.id]
    assert view(people.alice)["waves"].standing is Standing.right
    assert view(people.bob)["waves"].standing is Standing.right


@pytest.fixture
def corrected(people, config):
    """Sync a key by which 6 waves are right."""
    _edit(config, "reference", "answer_key.toml", "value = 7", "value = 6")
    return lambda session: sync.sync_assignments(session, config, people.course)


def test_an_answer_while_a_corrected_key_is_synced_is_marked_by_the_new_key(answer, people, database, corrected):
    with ExitStack() as later, database.transaction() as session:
        assert corrected(session)
        session.flush()
        # Left when the transaction is over.
        later.enter_context(meanwhile(lambda: answer(people.alice, "waves", 6.0)))
    assert answer(people.alice, "waves", 6.0) == (1, True, False)
    with database.reading() as session:
        assert session.scalars(select(QuizAnswer)).one().quiz_id == session.scalar(select(Assignment.quiz_id))


def test_a_corrected_key_waits_for_answers_that_are_being_stored(answer, people, database, corrected):
    def work():
        with database.transaction() as session:
            corrected(session)

    with ExitStack() as later, database.transaction() as session:
        member = courses.membership(session, people.alice, COURSE)
        detail = courses.assignment_of(session, member, RUNG, NOW)
        row, is_new = quizzes.answer(
            session, member=member, detail=detail, question="waves", response=Response(6.0), now=NOW, trace="0" * 32
        )
        assert (row.right, is_new) == (False, True)
        later.enter_context(meanwhile(work))
    assert answer(people.alice, "waves", 6.0) == (1, True, False)


def test_an_answer_to_a_question_that_a_sync_takes_away_is_refused(answer, people, database, config):
    _edit(config, "assignments", "quiz.toml", 'name = "waves"', 'name = "waves_again"')
    _edit(config, "reference", "answer_key.toml", 'question = "waves"', 'question = "waves_again"')
    said = []

    def work():
        with pytest.raises(NotFoundError) as caught:
            answer(people.alice, "waves", 7.0)
        said.append(caught.value)

    with ExitStack() as later, database.transaction() as session:
        sync.sync_assignments(session, config, people.course)
        session.flush()
        later.enter_context(meanwhile(work))
    assert said
    assert answer(people.alice, "waves_again", 7.0) == (1, True, True)


def test_a_question_that_is_no_longer_asked_counts_for_nothing(answer, people, database, config):
    answer(people.alice, "waves", 7.0)
    _edit(config, "assignments", "quiz.toml", 'name = "waves"', 'name = "waves_again"')
    _edit(config, "reference", "answer_key.toml", 'question = "waves"', 'question = "waves_again"')
    with database.transaction() as session:
        sync.sync_assignments(session, config, people.course)
    with database.reading() as session:
        member = courses.membership(session, people.alice, COURSE)
        assert quizzes.earned(session, courses.assignments_of(session, member, NOW), people.alice.id) == []
        assert session.scalars(select(QuizAnswer)).one().question == "waves"


def test_no_key_is_in_a_bundle(people, database):
    with database.reading() as session:
        for data in session.scalars(select(Bundle.data)):
            assert b"quiz.toml" in data
            assert b"answer_key" not in data
            assert b"tiles runs on" in data
            assert b"waves: $1024" not in data


def test_the_key_reaches_no_student_before_they_may_read_it(*, site, people, config, answer, dates, caplog):
    """Every page, the API and the log, with a planted marker in each explanation; another's answer neither."""
    dates(datetime.now(UTC) + timedelta(days=1))
    answer(people.bob, "waves", 31337.0)
    answer(people.bob, "waves", 7.0)
    caplog.set_level(logging.DEBUG)
    browser, program = site.logged_in(people.alice, config), site.bearer(people.alice)
    texts = [
        browser.get(path).text
        for path in (f"/courses/{COURSE}", PATH, f"{PATH}/quiz", f"{PATH}/submissions", f"{PATH}/leaderboard")
    ]
    api = f"/api/v1{PATH}"
    texts += [program.get(path).text for path in (api, f"{api}/quiz", f"/api/v1/courses/{COURSE}/assignments")]
    texts.append(program.get(f"{api}/archive").content.decode("latin-1"))
    wrong = program.post(f"{api}/quiz/waves/answers", json={"value": 6.5})
    assert wrong.status_code == 201
    assert wrong.json()["key"] is None
    refused = browser.post(f"{PATH}/quiz/waves", data={"value": "seven"})
    assert refused.status_code == 422
    texts += [wrong.text, refused.text, browser.post(f"{PATH}/quiz/reads", data={"option": "one_line"}).text]
    texts += [browser.get(f"{PATH}/quiz").text, caplog.text]
    for text in texts:
        assert SECRET not in text
        assert "31337" not in text
    right = program.post(f"{api}/quiz/waves/answers", json={"value": 7})
    assert SECRET in right.json()["key"]["explanation"]
    page = browser.get(f"{PATH}/quiz").text
    assert page.count(SECRET) == 1


def test_the_api_says_what_became_of_an_answer(site, people):
    program, url = site.bearer(people.alice), f"/api/v1{PATH}/quiz"
    first = program.post(f"{url}/reads/answers", json={"options": ["two_lines"]})
    again = program.post(f"{url}/reads/answers", json={"options": ["two_lines"]})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["tries_left"] == 1
    quiz = program.get(url).json()
    assert (quiz["points"], quiz["maximum"], len(quiz["questions"])) == (0.0, 6.0, 3)
    assert quiz["questions"][1]["answers"][0]["options"] == ["two_lines"]
    assert program.post(f"{url}/reads/answers", json={"options": ["three"]}).status_code == 422
    assert program.post(f"{url}/reads/answers", json={"option": ["two_lines"]}).status_code == 422
    assert program.post(f"{url}/nothing/answers", json={"value": 1}).status_code == 404
    right = program.post(f"{url}/reads/answers", json={"options": ["many_lines"]}).json()
    assert (right["standing"], right["points"]) == ("right", 2.0)
    assert program.post(f"{url}/reads/answers", json={"options": ["one_line"]}).status_code == 409


def test_the_page_works_by_forms_alone(site, people, config):
    browser = site.logged_in(people.alice, config)
    page = browser.get(f"{PATH}/quiz").text
    assert "<script" not in page.split("<main", 1)[1].split("</main>")[0]
    assert "<b>32</b>" not in page  # an option is Markdown, not HTML
    sent = browser.post(f"{PATH}/quiz/waves", data={"value": "1 7"})
    assert (sent.status_code, sent.headers["location"]) == (303, f"{PATH}/quiz#waves")
    refused = browser.post(f"{PATH}/quiz/waves", data={"value": "<i>7"})
    assert refused.status_code == 422
    assert "Write a number" in refused.text
    assert 'value="&lt;i&gt;7"' in refused.text
    nothing = browser.post(f"{PATH}/quiz/true_ones", data={})
    assert "Choose an option first" in nothing.text
    browser.post(f"{PATH}/quiz/true_ones", data={"option": ["first", "third"]})
    page = browser.get(f"{PATH}/quiz").text
    assert "2 tries left" in page
    assert f"{SECRET} true_ones" in page
    assert "2 of 6" in page
    assert "1 of 3 right" in browser.get(PATH).text
