"""The ladder and an assignment's page as a student has them: what is open, what counts, what submitting would cost."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, select

from autograder.contract import Lane, NodeReport
from server import db
from server.courses import courses, sync
from server.errors import InvalidInputError
from server.gradebook import queries as gradebook
from server.models import (
    Assignment,
    AssignmentVersion,
    Attempt,
    AttemptState,
    Course,
    Line,
    Mode,
    Result,
    Review,
    State,
    Submission,
    Verdict,
    Work,
)
from server.nodes import nodes
from server.pages import points_note
from server.pages.progress import Hold, climb
from server.submissions import prerequisites, submissions
from tests.doubles.machines import make_node

SECOND = "add_two"


@pytest.fixture
def two_rungs(config, database, people):
    """A second rung, `add_two`, which builds on the first."""
    folder = config.assignments / "add_one"
    for root in (config.assignments, config.reference):
        for path in (root / "add_one").rglob("*"):
            if path.is_file():
                target = root / SECOND / path.relative_to(root / "add_one")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
    text = (folder / "assignment.toml").read_text()
    text = text.replace('slug = "add_one"', f'slug = "{SECOND}"').replace('title = "Add one"', 'title = "Add two"')
    text = text.replace("rung = 1", "rung = 2").replace("prerequisites = []", 'prerequisites = ["add_one"]')
    (config.assignments / SECOND / "assignment.toml").write_text(text)
    with database.transaction() as session:
        sync.sync_assignments(session, config, session.get_one(Course, people.course.id))
        session.get_one(Course, people.course.id).locks_rungs = True


@pytest.fixture
def grade(database):
    """Say what became of a submission, as the recorder would."""

    def call(submission, verdict=Verdict.passed, points=60.0):
        with database.transaction() as session:
            row = session.get_one(Submission, submission.id)
            row.state, row.verdict, row.points = State.done, verdict, points
            gradebook.refresh(session, row.course_id, row.user_id)

    return call


@pytest.fixture
def ladder(database):
    def call(user, later=timedelta()):
        with database.reading() as session:
            member = courses.membership(session, user, "gpu")
            now = db.now(session) + later
            rungs = climb(session, member, courses.assignments_of(session, member, now), now)
            session.expunge_all()
            return {rung.detail.slug: rung for rung in rungs}

    return call


def dates(database, slug="add_one", **values):
    with database.transaction() as session:
        row = session.query(Assignment).filter_by(slug=slug).one()
        for name, value in values.items():
            setattr(row, name, value)


# --- where to begin --------------------------------------------------------------------------------------------------


def test_whoever_is_new_is_sent_to_the_first_rung_by_one_button_even_where_its_number_is_0(
    *, two_rungs, site, people, config, database, submit, grade
):
    manifest = config.assignments / SECOND / "assignment.toml"
    text = manifest.read_text().replace("rung = 2", "rung = 0").replace('["add_one"]', "[]")
    manifest.write_text(text)
    with database.transaction() as session:
        course = session.get_one(Course, people.course.id)
        sync.sync_assignments(session, config, course)
        offered = sync.offers(session, config, course, people.ines)
        assert [(one.rung, one.slug, one.problem) for one in offered] == [(0, SECOND, ""), (1, "add_one", "")]
    client = site.logged_in(people.alice, config)

    def action() -> list[str]:
        return re.findall(r'button--primary" href="([^"]*)">([^<]*)', client.get("/courses/gpu").text)

    rung = f"/courses/gpu/assignments/{SECOND}"
    assert action() == [(rung, "Start here: Add two")]
    assert "Rung 0" in client.get(rung).text
    first = submit(people.alice, assignment=SECOND)
    assert action() == [(rung, "Go on with Add two")]
    grade(first)
    assert action() == [("/courses/gpu/assignments/add_one", "Begin Add one")]
    staff = site.logged_in(people.ines, config)
    assert '<td class="number">0</td>' in staff.get("/courses/gpu/assignment-files").text


# --- prerequisites ---------------------------------------------------------------------------------------------------


def test_a_rung_is_locked_until_its_prerequisite_is_passed(two_rungs, people, submit, grade, ladder):
    assert ladder(people.alice)[SECOND].hold is Hold.locked
    first = submit(people.alice)
    grade(first, Verdict.wrong_answer, 10.0)
    found = ladder(people.alice)[SECOND]
    assert [row.slug for row in found.missing] == ["add_one"]
    with pytest.raises(InvalidInputError, match="once you have passed Add one"):
        submit(people.alice, assignment=SECOND)
    submit(people.alice, assignment=SECOND, mode=Mode.run)
    grade(first)
    assert ladder(people.alice)[SECOND].hold is Hold.open
    submit(people.alice, assignment=SECOND)


def test_what_is_not_graded_yet_stands_in_nobodys_way(two_rungs, people, submit, ladder):
    submit(people.alice)
    assert ladder(people.alice)[SECOND].hold is Hold.open
    submit(people.alice, assignment=SECOND)


def test_a_practice_run_opens_nothing(two_rungs, people, submit, grade, ladder):
    grade(submit(people.alice, mode=Mode.run))
    assert ladder(people.alice)[SECOND].hold is Hold.locked


def test_what_failed_or_was_cancelled_opens_nothing(two_rungs, people, submit, database, ladder):
    row = submit(people.alice)
    with database.transaction() as session:
        submissions.cancel(session, people.alice, row.public_id, now=db.now(session))
    assert ladder(people.alice)[SECOND].hold is Hold.locked


def test_a_prerequisite_that_is_over_or_not_shown_stands_in_nobodys_way(two_rungs, people, submit, database, ladder):
    with database.reading() as session:
        now = db.now(session)
    dates(database, due_at=now - timedelta(days=2), late_until=now - timedelta(days=1))
    assert ladder(people.alice)[SECOND].hold is Hold.open
    submit(people.alice, assignment=SECOND)
    dates(database, due_at=None, late_until=None, published=False)
    assert ladder(people.bob)[SECOND].hold is Hold.open


def test_where_the_course_says_so_it_is_advice(two_rungs, people, submit, database, ladder):
    with database.transaction() as session:
        session.get_one(Course, people.course.id).locks_rungs = False
    found = ladder(people.alice)[SECOND]
    assert (found.hold, [row.slug for row in found.missing]) == (Hold.open, ["add_one"])
    submit(people.alice, assignment=SECOND)


def test_a_rung_that_was_begun_stays_open_and_nothing_is_locked_for_staff(
    *, two_rungs, people, submit, grade, database, ladder
):
    first = submit(people.alice)
    submit(people.alice, assignment=SECOND)
    grade(first, Verdict.wrong_answer, 0.0)
    assert ladder(people.alice)[SECOND].hold is Hold.open
    submit(people.alice, assignment=SECOND)
    submit(people.tom, assignment=SECOND)
    with database.reading() as session:
        member = courses.membership(session, people.tom, "gpu")
        details = courses.assignments_of(session, member, db.now(session))
        assert prerequisites.missing(session, member, details, db.now(session)) == {}


# --- what counts -----------------------------------------------------------------------------------------------------


def test_the_ladder_says_what_counts_and_what_it_uses(people, submit, grade, database, ladder):
    with database.transaction() as session:
        session.get_one(Course, people.course.id).late_days = 3
        now = db.now(session)
    dates(database, due_at=now - timedelta(hours=30), late_until=now + timedelta(days=5))
    early = submit(people.alice, now=now - timedelta(days=3))
    late = submit(people.alice, b"# late\n")
    grade(early, points=20.0)
    grade(late, points=60.0)
    rung = ladder(people.alice)["add_one"]
    assert (rung.points, rung.late_days, rung.counts.id, rung.latest.id) == (60.0, 2, late.id, late.id)
    assert not rung.chosen


def test_a_student_chooses_what_counts_and_goes_back_to_the_best(*, site, people, config, submit, grade, ladder):
    best, other = submit(people.alice), submit(people.alice, b"# the one to keep\n")
    grade(best, points=60.0)
    grade(other, points=40.0)
    client = site.logged_in(people.alice, config)
    path = "/courses/gpu/assignments/add_one"
    answer = client.post(f"{path}/active", data={"submission": other.public_id})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}/submissions")
    assert ladder(people.alice)["add_one"].points == 40.0
    page = client.get(f"{path}/submissions").text
    assert "Count the best one" in page
    assert "your choice" in page
    assert "You chose submission 2 to count" in client.get(path).text
    client.post(f"{path}/active", data={"submission": "", "next": f"/submissions/{best.public_id}"})
    assert ladder(people.alice)["add_one"].points == 60.0
    assert "resubmitting never hurts" in client.get(path).text


def test_nobody_lets_a_run_or_anothers_submission_count(site, people, config, submit):
    run, other = submit(people.alice, mode=Mode.run), submit(people.bob)
    client = site.logged_in(people.alice, config)
    path = "/courses/gpu/assignments/add_one/active"
    refused = client.post(path, data={"submission": run.public_id})
    assert (refused.status_code, "A practice run cannot count towards the grade." in refused.text) == (422, True)
    assert client.post(path, data={"submission": other.public_id}).status_code == 404


def test_going_on_after_a_choice_never_leads_to_another_site(site, people, config, submit):
    row = submit(people.alice)
    client = site.logged_in(people.alice, config)
    data = {"submission": row.public_id, "next": "//evil.example"}
    assert client.post("/courses/gpu/assignments/add_one/active", data=data).headers["location"] == "/"


# --- the assignment's page -------------------------------------------------------------------------------------------


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_before_submitting_late_the_page_says_what_it_would_use(site, people, config, database):
    with database.transaction() as session:
        session.get_one(Course, people.course.id).late_days = 3
        now = db.now(session)
    client = site.logged_in(people.alice, config)
    path = "/courses/gpu/assignments/add_one"
    assert "3 of 3 late days left" in text_of(client.get(path).text)
    dates(database, due_at=now - timedelta(hours=2), late_until=now + timedelta(days=9))
    assert "Submitting now would use 1 of your 3 late days" in text_of(client.get(path).text)
    dates(database, due_at=now - timedelta(days=4, hours=2))
    said = text_of(client.get(path).text)
    assert "would use 2 of your 3 late days, with 3 more days not covered by any" in said
    assert "It would earn 40 % of its points." in said
    dates(database, due_at=now - timedelta(days=10), late_until=now - timedelta(days=1))
    page = client.get(path).text
    assert "Submissions are closed" in page
    assert re.search(r'value="submission"[^>]* disabled', page)


def test_the_page_says_what_is_left_of_the_quotas(site, people, config, submit, database):
    dates(database, submissions_per_day=4, runs_per_hour=6)
    submit(people.alice)
    submit(people.alice, mode=Mode.run)
    said = text_of(site.logged_in(people.alice, config).get("/courses/gpu/assignments/add_one").text)
    assert "3 of 4 submissions left today" in said
    assert "5 of 6 runs left this hour" in said


def test_the_distance_to_the_next_point_is_said_where_speed_earns_points(
    *, site, people, config, submit, grade, database
):
    row = submit(people.alice)
    grade(row, points=60.0)
    path = "/courses/gpu/assignments/add_one"
    client = site.logged_in(people.alice, config)
    assert 'class="distance"' not in client.get(path).text
    with database.transaction() as session:
        stored = session.get_one(Submission, row.id)
        stored.lane, stored.points = "h200", 90.0
        result = _measured(session, stored, ratio=2.0, speed=30.36)
        stored.result_id = result.id
    said = text_of(client.get(path).text)
    # s(2.0) = ln(10/2) / ln(10/1.2) = 0.759 of 40 points; 31 points need 10 · (1.2/10)^(31/40) = 1.93.
    assert "2.00× the reference : 30.36 of 40 speed points; at 1.93× you get 31" in said
    with database.transaction() as session:
        session.get_one(Submission, row.id).review = Review.held
    assert 'class="distance"' not in client.get(path).text


def test_every_page_with_points_says_which_are_for_speed_and_whether_a_node_gives_them(site, people, config, database):
    client = site.logged_in(people.alice, config)
    course, path = "/courses/gpu", "/courses/gpu/assignments/add_one"
    nobody = "Speed points are given on H200; no node serves it now."
    for page in (course, path, f"{course}/grades"):
        assert nobody in text_of(client.get(page).text), page
    for page in (course, f"{course}/grades"):
        assert "40 of the 106 points are for speed." in text_of(client.get(page).text), page
    with database.transaction() as session:
        detail = courses.assignment_of(session, courses.membership(session, people.alice, "gpu"), "add_one")
        split = "The assignment gives 106 points: 60 for correctness, 40 for speed and 6 for the quiz."
        assert points_note.beyond_note(detail, 60.0, ()) == f"{split} {nobody}"
        assert points_note.beyond_note(detail, 100.0, ()) == split
        assert points_note.beyond_note(detail, 106.0, ()) == ""
        node, _key = make_node(session, name="node-8", now=datetime.now(UTC))
        report = NodeReport((Lane.h200,), 1, draining=False, facts={}, at=0.0)
        nodes.apply_report(node, report, now=datetime.now(UTC))
    for page in (course, path, f"{course}/grades"):
        said = text_of(client.get(page).text)
        assert ("Speed points are given on H200." in said, "no node" in said) == (True, False), page


def test_a_handout_begins_with_links_to_its_sections(site, people, config, database):
    with database.transaction() as session:
        for version in session.scalars(select(AssignmentVersion)):
            version.handout = "# Add one\n\n## The *idea*\n\n### Not this\n\n## Hints & more\n"
    html = site.logged_in(people.alice, config).get("/courses/gpu/assignments/add_one").text
    contents = re.search(r'<nav class="contents.*?</nav>', html, re.DOTALL)
    links = re.findall(r'<a href="#([^"]+)">(.*?)</a>', contents[0])
    assert links == [("the-idea", "The idea"), ("hints-more", "Hints &amp; more")]
    for anchor, _title in links:
        assert html.count(f'id="{anchor}"') == 1


def _measured(session, submission, *, ratio, speed):
    at = datetime.now(UTC)
    node, _key = make_node(session, name="node-9", now=at)
    attempt = Attempt(
        public_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", submission_id=submission.id, node_id=node.id, fence=1, lane="h200",
        line=Line.submission, work=Work.all, state=AttemptState.finished, dispatched_at=at, lease_expires_at=at,
    )  # fmt: skip
    session.add(attempt)
    session.flush()
    result = Result(
        attempt_id=attempt.id, submission_id=submission.id, verdict=Verdict.passed, explanation="", payload={},
        ratio=ratio, ratio_low=ratio * 0.99, ratio_high=ratio * 1.01, time_us=10.0, correctness_points=60.0,
        speed_points=speed, created_at=at,
    )  # fmt: skip
    session.add(result)
    session.flush()
    return result


def test_a_late_upload_is_shown_late_by_ones_own_date(site, people, config, submit, database):
    with database.reading() as session:
        now = db.now(session)
    dates(database, due_at=now - timedelta(hours=3), late_until=now + timedelta(days=1))
    submit(people.alice)
    page = site.logged_in(people.alice, config).get("/courses/gpu/assignments/add_one/submissions").text
    assert "1 day late" in page


def test_any_two_versions_are_compared_the_older_on_the_left(site, people, config, submit):
    old, new = submit(people.alice), submit(people.alice, b"# new\n", mode=Mode.run)
    client = site.logged_in(people.alice, config)
    path = "/courses/gpu/assignments/add_one/compare"
    for first, second in ((old, new), (new, old)):
        answer = client.get(path, params={"old": first.public_id, "new": second.public_id})
        assert answer.headers["location"] == f"/submissions/{new.public_id}/diff?from={old.public_id}"
    assert client.get(path).headers["location"].endswith("/add_one/submissions")
    assert client.get(path, params={"old": submit(people.bob).public_id, "new": new.public_id}).status_code == 404


def test_the_ladder_holds_for_one_rung_and_asks_the_database_little(
    *, site, people, config, database, submit, two_rungs
):
    submit(people.alice)
    client = site.logged_in(people.alice, config)
    assert client.get("/courses/gpu").status_code == 200
    with database.reading() as session:
        member = courses.membership(session, people.alice, "gpu")
        now = db.now(session)
        details = courses.assignments_of(session, member, now)
        counted = []
        event.listen(database.engine, "before_cursor_execute", lambda *_: counted.append(1))
        assert len(climb(session, member, details[:1], now)) == 1
        assert len(climb(session, member, details, now)) == 2
    assert len(counted) <= 40
