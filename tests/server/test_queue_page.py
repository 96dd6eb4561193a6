"""The queue page: counts for everybody, names for staff of the course only, and cancelling what waits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import select

from autograder.contract import Lane, NodeReport
from server.config import Config
from server.courses import courses
from server.db import Database
from server.grading.forecast import Wait
from server.grading.history import HOURS, waits_by_hour
from server.models import Attempt, AttemptState, Line, Result, State, Submission, User, Verdict, Work
from server.nodes import nodes
from server.pages.bars import of_waits
from server.pages.queue import estimates_text
from server.pages.queue_text import place_note, place_text
from tests.doubles.machines import make_node
from tests.server.conftest import People, Site, Submit

QUEUE = "/courses/gpu/queue"
Visit = Callable[[User], httpx.Client]


@pytest.fixture
def visit(site: Site, config: Config) -> Visit:
    """A browser in which somebody is logged in; the same one for the same person."""
    browsers: dict[int, httpx.Client] = {}

    def call(user: User) -> httpx.Client:
        if user.id not in browsers:
            browsers[user.id] = site.logged_in(user, config)
        return browsers[user.id]

    return call


@pytest.fixture
def node(database: Database) -> int:
    """A node with two slots that has just reported."""
    now = datetime.now(UTC)
    with database.transaction() as session:
        made, _key = make_node(session, name="anvil", now=now)
        nodes.apply_report(made, NodeReport((Lane.cpu,), 2, draining=False, facts={}, at=now.timestamp()), now=now)
        return made.id


@pytest.fixture
def start(database: Database, node: int) -> Callable[[Submission], None]:
    """Let a submission run on the node."""

    def call(submission: Submission) -> None:
        now = datetime.now(UTC)
        with database.transaction() as session:
            session.get_one(Submission, submission.id).state = State.running
            session.add(
                Attempt(
                    public_id=f"{submission.id:026}",
                    submission_id=submission.id,
                    node_id=node,
                    fence=1,
                    lane=Lane.cpu,
                    line=submission.line,
                    work=Work.all,
                    state=AttemptState.running,
                    dispatched_at=now,
                    lease_expires_at=now + timedelta(minutes=1),
                )
            )

    return call


def test_a_student_sees_counts_and_nobody_else(
    visit: Visit, people: People, submit: Submit, start: Callable[[Submission], None]
) -> None:
    theirs, mine = submit(people.bob), submit(people.alice)
    start(submit(people.bob))
    page = visit(people.alice).get(QUEUE).text
    assert mine.public_id in page
    assert theirs.public_id not in page
    assert "Bob" not in page
    assert "Operations" not in page
    assert "You are next" in page
    assert "of 2 slots" in page


def test_staff_see_who_waits_and_who_runs(
    visit: Visit, people: People, submit: Submit, start: Callable[[Submission], None]
) -> None:
    waits, runs = submit(people.bob), submit(people.alice)
    start(runs)
    page = visit(people.tom).get(QUEUE).text
    assert waits.public_id in page
    assert runs.public_id in page
    assert "Alice" in page
    assert "Bob" in page
    assert "It is next" in page


def test_staff_of_one_course_see_of_another_only_how_many(
    visit: Visit, people: People, database: Database, submit: Submit, node: int
) -> None:
    mine = submit(people.alice)
    with database.transaction() as session:
        admin = session.get_one(User, people.admin.id)
        other = courses.membership(session, admin, "other").course
        session.get_one(Submission, mine.id).course_id = other.id
    page = visit(people.tom).get(QUEUE).text
    assert mine.public_id not in page
    assert "Alice" not in page
    assert "1</td>" in page or ">1<" in page


def test_strangers_and_those_who_left_see_no_queue(visit: Visit, people: People) -> None:
    assert visit(people.stranger).get(QUEUE).status_code == 404
    assert visit(people.carol).get(QUEUE).status_code == 404


def test_without_a_node_it_says_so(visit: Visit, people: People, submit: Submit) -> None:
    submit(people.alice)
    page = visit(people.alice).get(QUEUE).text
    assert "No node grades this lane right now. Waiting submissions are stored and keep their place." in page
    assert "the wait is unknown" in page


def test_a_waiting_submission_can_be_cancelled_by_its_student_only(
    visit: Visit, people: People, database: Database, submit: Submit
) -> None:
    made = submit(people.alice)
    browser = visit(people.alice)
    page = browser.get(f"/submissions/{made.public_id}").text
    assert f'action="/submissions/{made.public_id}/cancel"' in page
    assert "/cancel" not in visit(people.tom).get(f"/submissions/{made.public_id}").text
    token = page.split('name="csrf_token" value="')[1].split('"')[0]
    done = browser.post(f"/submissions/{made.public_id}/cancel", data={"csrf_token": token})
    assert done.status_code == 303
    after = browser.get(f"/submissions/{made.public_id}").text
    assert "It was cancelled before it ran." in after
    assert "/cancel" not in after


def test_cancelling_too_late_says_why(
    visit: Visit, people: People, submit: Submit, start: Callable[[Submission], None]
) -> None:
    made = submit(people.alice)
    browser = visit(people.alice)
    token = browser.get(f"/submissions/{made.public_id}").text.split('name="csrf_token" value="')[1].split('"')[0]
    start(made)
    late = browser.post(f"/submissions/{made.public_id}/cancel", data={"csrf_token": token})
    assert late.status_code == 409
    assert "There is nothing to cancel: this submission is being graded." in late.text


# --- what is said ---------------------------------------------------------------------------------------------------


def wait(**changes: object) -> Wait:
    return Wait(**{  # type: ignore[arg-type]
        "line": Line.submission, "ahead": 12, "has_node": True, "measured": True,
        "low_s": 130.0, "likely_s": 175.0, "high_s": 290.0, **changes,
    })  # fmt: skip


def test_a_wait_says_the_place_and_an_interval() -> None:
    assert place_text(wait(), Lane.cpu) == "12 before you · result in about 3 min (2 to 5)"
    assert place_text(wait(ahead=0), Lane.cpu, own=False) == "It is next · result in about 3 min (2 to 5)"
    assert place_text(wait(line=Line.measuring), Lane.h200) == "12 before you · times in about 3 min (2 to 5)"


def test_without_a_node_there_is_an_honest_sentence_and_no_time() -> None:
    text = place_text(wait(has_node=False, low_s=None, likely_s=None, high_s=None), Lane.h200)
    assert text == "12 before you. No node grades the H200 lane right now, so the wait is unknown."


def test_what_is_less_sure_is_said() -> None:
    assert place_note(wait()) == ""
    assert "a guess" in place_note(wait(measured=False))
    assert "very long" in place_note(wait(approximate=True))


@pytest.mark.parametrize(
    ("right", "total", "text"),
    [
        (0, 0, ""),
        (342, 412, "Of the last 412 estimates 83 % were right; 80 % were promised."),
        (1, 1, "The one estimate so far was right; 80% are promised to be right."),
    ],
)
def test_estimates_are_held_against_their_promise(right: int, total: int, text: str) -> None:
    assert estimates_text(right, total) == text


def test_waits_are_counted_by_the_hour_of_the_upload(
    people: People, database: Database, submit: Submit, node: int
) -> None:
    now = datetime(2026, 11, 20, 22, 30, tzinfo=UTC)
    for minutes, seconds in ((40, 10), (45, 30), (50, 50)):
        _graded(database, submit(people.alice, now=now - timedelta(minutes=minutes)), node, seconds)
    _graded(database, submit(people.bob, now=now - timedelta(days=2)), node, 99)
    submit(people.bob, now=now)
    with database.reading() as session:
        hours = waits_by_hour(session, Lane.cpu, now)
    assert len(hours) == HOURS
    assert [(item.begins_at.hour, item.count, item.median_s, item.high_s) for item in hours if item.count] == [
        (21, 3, 30.0, 50.0)
    ]
    chart = of_waits("Waits", hours, "Europe/Berlin")
    assert [(bar.at, bar.value, bar.middle, bar.label[:5]) for bar in chart.bars] == [(22, 50.0, 30.0, "22:00")]
    assert (chart.of, chart.most, chart.top) == (HOURS, 50.0, "50 s")
    assert [place.label for place in chart.places] == ["00:00", "06:00", "12:00", "18:00"]


def _graded(database: Database, submission: Submission, node: int, seconds: float) -> None:
    ended = submission.uploaded_at + timedelta(seconds=seconds)
    with database.transaction() as session:
        attempt = Attempt(
            public_id=f"{submission.id:026}", submission_id=submission.id, node_id=node, fence=1, lane=Lane.cpu,
            line=Line.submission, work=Work.all, state=AttemptState.finished, dispatched_at=submission.uploaded_at,
            finished_at=ended, lease_expires_at=ended,
        )  # fmt: skip
        session.add(attempt)
        session.flush()
        session.add(
            Result(
                attempt_id=attempt.id,
                submission_id=submission.id,
                verdict=Verdict.passed,
                explanation="",
                payload={},
                correctness_points=0.0,
                speed_points=0.0,
                created_at=ended,
            )
        )
        session.scalars(select(Submission).where(Submission.id == submission.id)).one().state = State.done
