"""Page, API, spreadsheet, badge and standings show one ranking; a public one shows nothing else of its course."""

from __future__ import annotations

import csv
import io
import random
import re
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select, update

from client import boards, show
from server.accounts import accounts
from server.courses import courses, sync
from server.grading.confirm import confirm_top
from server.grading.results import write_result
from server.leaderboard import milestones, steps
from server.models import (
    Assignment,
    Attempt,
    AttemptState,
    Course,
    Enrolment,
    Extension,
    Lane,
    Milestone,
    Review,
    Role,
    State,
    Submission,
    User,
)
from tests.doubles.machines import make_node
from tests.doubles.world import passed
from tests.server.conftest import COURSE, RUNG

ROOT = Path(__file__).resolve().parents[2]

BASE = f"/courses/{COURSE}/assignments/{RUNG}/leaderboard"
STANDINGS = f"/courses/{COURSE}/standings"


@pytest.fixture
def graded(database, submit):
    """Give somebody a result with this ratio; what was submitted before may get one too."""

    def call(user, ratio, row=None, **options):
        row = row or submit(user, source=f"def add_one(x, out, n): return {ratio!r}\n".encode())
        now = datetime.now(UTC)
        with database.transaction() as session:
            node, _ = make_node(session, name=f"node-{row.id}", now=now)
            submission = session.get_one(Submission, row.id)
            submission.state = State.running
            attempt = Attempt(
                public_id=f"{row.id:026}", submission_id=row.id, node_id=node.id, fence=1,
                lane=submission.lane, line=submission.line, work=submission.work,
                state=AttemptState.running, dispatched_at=now, lease_expires_at=now,
            )  # fmt: skip
            session.add(attempt)
            session.flush()
            write_result(session, submission, attempt, passed(ratio, **options), now=now)
        return row

    return call


@pytest.fixture
def students(database, people):
    """Eight more students; two stand there by name, one of which would like to be a tag."""
    with database.transaction() as session:
        made = []
        for number in range(8):
            user = User(
                email=f"s{number}@secret.example", name=f"<b>Real {number}</b>", handle=f"calm-ibis-{number}",
                created_at=people.alice.created_at,
            )  # fmt: skip
            session.add(user)
            session.flush()
            courses.enrol(session, course=people.course, user=user, role=Role.student, section="AB"[number % 2])
            made.append(user)
        session.execute(update(Enrolment).where(Enrolment.user_id.in_([made[0].id, made[1].id])).values(show_name=True))
        return made


def open_to_all(database, **changes):
    with database.transaction() as session:
        session.execute(update(Course).where(Course.slug == COURSE).values(public_leaderboards=True))
        if changes:
            session.execute(update(Assignment).where(Assignment.slug == RUNG).values(**changes))


def on_page(text):
    """`(rank, name)` of every entry's row."""
    rows = re.findall(r'<tr[^>]*>\s*<td class="number">(\d+)</td>\s*<th scope="row">(.*?)</th>', text, re.DOTALL)
    return [(int(rank), re.sub(r"<.*?>", "", name).replace("you", "").strip()) for rank, name in rows]


def leaders_of(client):
    rungs = client.get(f"/api/v1{STANDINGS}").json()["rungs"]
    return next(rung["leaders"] for rung in rungs if rung["assignment"] == RUNG)


def escaped(name):
    return name.replace("<", "&lt;").replace(">", "&gt;")


def test_every_reader_shows_the_same_ranks(*, site, database, config, people, students, graded, capsys):
    dice = random.Random(20261121)
    everybody = [people.alice, people.bob, *students]
    for user in everybody:
        for _ in range(dice.randint(1, 2)):
            graded(user, dice.choice([0.5, 0.9, 1.0, 1.02, 1.05, 1.5, 3.0]), spread=dice.choice([0.001, 0.02, 0.2]))
    open_to_all(database)
    program = site.bearer(people.alice)
    entries = program.get(f"/api/v1{BASE}").json()["entries"]
    api = [(entry["rank"], entry["name"]) for entry in entries]
    assert len(api) == 10
    assert len({rank for rank, _ in api}) > 1
    table = csv.DictReader(io.StringIO(program.get(f"/api/v1{BASE}.csv").text))
    assert [(int(row["rank"]), row["name"]) for row in table] == api
    page = site.logged_in(people.alice, config).get(BASE).text
    assert on_page(page) == [(rank, escaped(name)) for rank, name in api]
    assert on_page(site.browser().get(BASE).text) == on_page(page)
    leaders = leaders_of(program)
    assert [leader["name"] for leader in leaders] == [name for rank, name in api if rank == 1]
    people_api = program.get(f"/api/v1{STANDINGS}").json()["people"]
    assert {person["name"]: person["points"] for person in people_api} == {
        name: round(100 / rank, 1) for rank, name in api
    }
    standings = csv.DictReader(io.StringIO(program.get(f"/api/v1{STANDINGS}.csv").text))
    assert [(int(row["rank"]), row["name"]) for row in standings] == [(p["rank"], p["name"]) for p in people_api]
    assert on_page(site.logged_in(people.alice, config).get(STANDINGS).text)[-10:] == [
        (person["rank"], escaped(person["name"])) for person in people_api
    ]
    for user in everybody:
        rank = next(entry["rank"] for entry in entries if entry["name"] in {user.handle, user.name})
        badge = site.browser().get(f"/badge/{COURSE}/{RUNG}/{user.handle}.svg")
        assert f"rank {rank} of 10" in badge.text
    board = program.get(f"/api/v1{BASE}").json()
    boards.show_board(show.console(), board)
    printed = capsys.readouterr().out
    assert all(name.split(">")[-1] in printed for _, name in api)
    assert f"{board['title']} on cpu, triton, practice: no points" in printed
    boards.show_standings(show.console(), program.get(f"/api/v1{STANDINGS}").json())
    assert "Standings on cpu, triton\n" in capsys.readouterr().out
    # A server that is older than the command says of no language.
    del board["language"]
    boards.show_board(show.console(), board)
    assert f"{board['title']} on cpu, practice: no points" in capsys.readouterr().out


def test_nobody_sees_the_boards_of_a_course_that_are_not_public(site, people, graded):
    graded(people.alice, 0.5)
    stranger = site.bearer(people.stranger)
    for path in (BASE, STANDINGS):
        assert site.browser().get(f"/api/v1{path}").status_code == 401
        assert site.browser().get(path).status_code == 303
        assert stranger.get(f"/api/v1{path}").status_code == 404
        assert site.browser().get(path.replace(COURSE, "no-such")).status_code == 303
    assert site.browser().get(f"/badge/{COURSE}/{RUNG}.svg").status_code == 404


def test_a_public_course_shows_its_boards_and_nothing_else(*, site, database, people, students, graded):
    named, hidden = graded(students[0], 0.5), graded(students[2], 0.8)
    held = graded(students[3], 0.1, held=True)
    rejected = graded(students[4], 0.2)
    with database.transaction() as session:
        session.get_one(Submission, rejected.id).review = Review.rejected
    open_to_all(database)
    anybody = site.browser()
    texts = [
        anybody.get(path).text
        for path in (
            BASE, STANDINGS, f"{BASE}?section=", f"/api/v1{BASE}", f"/api/v1{BASE}.csv", f"/api/v1{STANDINGS}",
            f"/api/v1{STANDINGS}.csv", f"/badge/{COURSE}/{RUNG}.svg", f"/badge/{COURSE}/{RUNG}/calm-ibis-2.svg",
        )
    ]  # fmt: skip
    for text in texts:
        assert "@" not in text.replace("@import", "")
        assert "Real 2" not in text
        assert not any(row.public_id in text for row in (named, hidden, held, rejected))
        assert not any(handle in text for handle in ("calm-ibis-3", "calm-ibis-4"))
        assert f'href="/courses/{COURSE}/assignments/{RUNG}"' not in text
    assert "Real 0" in texts[0]
    assert "calm-ibis-2" in texts[0]
    assert "<b>Real" not in texts[0]
    # A person's own name is no pseudonym to look for; the badge says neither.
    assert "Real" not in texts[-1]
    assert "calm" not in texts[-1]
    # Nothing else of the course.
    for path in (
        f"/courses/{COURSE}/assignments/{RUNG}", f"/courses/{COURSE}/assignments/{RUNG}/quiz",
        f"/courses/{COURSE}/queue", f"/submissions/{named.public_id}",
    ):  # fmt: skip
        assert anybody.get(path).status_code == 303
    assert anybody.get(f"/api/v1/courses/{COURSE}/assignments").status_code == 401
    refused = anybody.get(f"/api/v1{BASE}", params={"section": "A"})
    assert (refused.status_code, refused.json()["field"]) == (422, "section")
    assert site.bearer(people.stranger).get(f"/api/v1{BASE}").json()["entries"][0]["submission"] is None


def test_what_students_do_not_see_yet_the_public_does_not_see(site, database, people, graded):
    graded(people.alice, 0.5)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    for hidden in ({"published": False}, {"open_at": tomorrow}):
        open_to_all(database, **{"published": True, "open_at": None, **hidden})
        assert site.browser().get(BASE).status_code == 404
        assert site.browser().get(f"/badge/{COURSE}/{RUNG}.svg").status_code == 404
        assert RUNG not in site.browser().get(STANDINGS).text


def test_a_freeze_holds_for_students_and_the_public_and_not_for_staff(*, site, database, config, people, graded):
    graded(people.alice, 2.0)
    freeze = datetime.now(UTC)
    graded(people.bob, 0.5)
    due = freeze + timedelta(hours=1)
    open_to_all(database, leaderboard_freeze_at=freeze, due_at=due)
    with database.transaction() as session:
        session.execute(update(Enrolment).where(Enrolment.user_id == people.alice.id).values(section="A"))
    student, staff = site.bearer(people.bob), site.bearer(people.tom)

    def ranks(client, path=f"/api/v1{BASE}", **parameters):
        return [entry["name"] for entry in client.get(path, params=parameters).json()["entries"]]

    for client in (student, site.browser()):
        assert ranks(client) == [people.alice.handle]
        assert ranks(client, frozen="false") == [people.alice.handle]
        leaders = leaders_of(client)
        assert [leader["name"] for leader in leaders] == [people.alice.handle]
        assert "0.50" not in client.get(f"/badge/{COURSE}/{RUNG}.svg").text
    records = student.get(f"/api/v1{BASE}").json()["records"]
    assert [record["name"] for record in records] == [people.alice.handle]
    assert "Frozen." in site.logged_in(people.bob, config).get(BASE).text
    assert ranks(staff) == [people.bob.handle, people.alice.handle]
    assert ranks(staff, frozen="true") == [people.alice.handle]
    page = site.logged_in(people.tom, config).get(BASE).text
    assert "Frozen for students" in page
    chosen = f"{BASE}?lane=cpu&language=triton&section=A"
    page = site.logged_in(people.tom, config).get(chosen).text
    assert f'href="{escape(chosen)}&amp;frozen=true">Show what students see' in page
    page = site.logged_in(people.tom, config).get(f"{chosen}&frozen=true").text
    assert f'href="{escape(chosen)}">Show the live leaderboard' in page
    with database.transaction() as session:
        past = {"due_at": freeze + timedelta(microseconds=1)}
        session.execute(update(Assignment).where(Assignment.slug == RUNG).values(**past))
    assert ranks(student) == [people.bob.handle, people.alice.handle]


def test_a_student_filters_by_their_own_section_and_staff_by_any(*, site, people, students, graded, config):
    for number, user in enumerate(students[:4]):
        graded(user, 1.0 + number)
    own, staff = site.bearer(students[0]), site.bearer(people.tom)
    url = f"/api/v1{BASE}"
    seen = own.get(url, params={"section": "A"}).json()["entries"]
    assert [(entry["rank"], round(entry["ratio"], 3)) for entry in seen] == [(1, 1.0), (2, 3.0)]
    assert own.get(url, params={"section": "B"}).status_code == 422
    others = staff.get(url, params={"section": "B"}).json()["entries"]
    assert [round(entry["ratio"], 3) for entry in others] == [2.0, 4.0]
    assert staff.get(url, params={"section": "Z"}).status_code == 422
    page = site.logged_in(people.tom, config).get(f"{BASE}?section=B&lane=cpu").text
    assert "Ranks are among those shown: section B" in page
    assert site.logged_in(people.tom, config).get(f"{BASE}?language=cobol").status_code == 422


def test_a_badge_may_be_kept_and_is_a_picture_of_safe_text(site, database, people, graded):
    open_to_all(database, title="A <script>alert(1)</script> & more")
    url = f"/badge/{COURSE}/{RUNG}.svg"
    first = site.browser().get(url)
    assert "no record yet" in first.text
    graded(people.alice, 0.5)
    badge = site.browser().get(url)
    assert badge.headers["content-type"].startswith("image/svg+xml")
    assert badge.headers["cache-control"] == "public, max-age=300"
    assert "set-cookie" not in badge.headers
    assert "<script" not in badge.text
    assert "record 0.50×" in badge.text
    httpx.Response(200, text=badge.text)
    same = site.browser().get(url, headers={"if-none-match": badge.headers["etag"]})
    assert (same.status_code, same.text) == (304, "")
    assert site.browser().get(url, headers={"if-none-match": first.headers["etag"]}).status_code == 200
    assert site.browser().get(f"/badge/{COURSE}/{RUNG}/nobody.svg").status_code == 404
    assert site.browser().get(f"{url}?lane=abacus").status_code == 404


# --- milestones ------------------------------------------------------------------------------------------------------


def hand_in(database, config, people, lane=Lane.cpu):
    with database.transaction() as session:
        now = datetime.now(UTC)
        ours = milestones.membership(session, session.get_one(Course, people.course.id), now)
        detail = courses.assignment_of(session, ours, RUNG, now)
        return milestones.hand_in(session, detail, ours, lane, config=config, now=now)


def test_milestones_are_graded_submissions_of_an_account_that_nobody_can_use(*, site, database, config, people, graded):
    solution = config.reference / RUNG / "solutions" / "triton.py"
    solution.write_text(solution.read_text() + "\nFASTER = True\n")
    with database.transaction() as session:
        sync.sync_assignments(session, config, people.course)
    handed = hand_in(database, config, people)
    assert {source.name for source in handed} >= {"1_naive", "solution"}
    assert hand_in(database, config, people) == []
    own = graded(people.alice, 0.9)
    program = site.bearer(people.alice)
    assert program.get(f"/api/v1{BASE}").json()["milestones"] == []
    with database.reading() as session:
        rows = {row.name: row.submission_id for row in session.scalars(select(Milestone))}
        submissions = {name: session.get_one(Submission, number) for name, number in rows.items()}
        session.expunge_all()
    graded(None, 4.0, row=submissions["1_naive"])
    graded(None, 1.0, row=submissions["solution"])
    seen = program.get(f"/api/v1{BASE}").json()
    assert [(item["name"], item["kind"], round(item["ratio"], 3)) for item in seen["milestones"]] == [
        ("Staff kernel", "staff", 1.0), ("Naive", "published", 4.0),
    ]  # fmt: skip
    # They have a row, and no rank.
    assert [(entry["rank"], entry["own"]) for entry in seen["entries"]] == [(1, True)]
    page = site.logged_in(people.alice, config).get(BASE).text
    assert page.index(own.public_id) < page.index("Staff kernel") < page.index("Naive")
    assert submissions["solution"].public_id not in page
    with database.transaction() as session:
        session.get_one(Submission, submissions["1_naive"].id).review = Review.held
        account = accounts.user_by_email(session, milestones.ACCOUNT)
        assert account.password_hash is None
        assert account.disabled_at is not None
    assert [item["name"] for item in program.get(f"/api/v1{BASE}").json()["milestones"]] == ["Staff kernel"]


@pytest.fixture
def naive(database, config, people, graded):
    """The published milestone, graded at four times the reference's time."""
    hand_in(database, config, people)
    with database.reading() as session:
        number = session.scalars(select(Milestone.submission_id).where(Milestone.name == "1_naive")).one()
        row = session.get_one(Submission, number)
        session.expunge_all()
    graded(None, 4.0, row=row)


def opened(site, config, user):
    """How the milestone looks to somebody, and whether its source is there: in the API, the archive and the page."""
    assignment = BASE.removesuffix("/leaderboard")
    program = site.bearer(user)
    (found,) = program.get(f"/api/v1{assignment}/milestones").json()
    archive = program.get(f"/api/v1{assignment}/archive").content
    page = site.logged_in(user, config).get(f"{assignment}/milestones").text
    here = [bool(found["source"]), b"1_naive.py" in archive, "<pre" in page]
    assert here == [found["opened"] is not None] * 3
    assert (found["name"], found["ratios"]) == ("Naive", {"cpu": pytest.approx(4.0)})
    assert found["about"] in page
    return found["opened"]


def test_a_milestone_opens_to_who_has_beaten_it(*, site, config, people, naive, graded):
    assert (opened(site, config, people.alice), opened(site, config, people.tom)) == (None, "staff")
    graded(people.alice, 4.1)
    assert opened(site, config, people.alice) is None
    graded(people.alice, 3.9)
    assert (opened(site, config, people.alice), opened(site, config, people.bob)) == ("beaten", None)


def test_a_result_that_staff_hold_opens_nothing(*, site, config, people, naive, graded):
    graded(people.alice, 0.5, held=True)
    assert opened(site, config, people.alice) is None


def test_milestones_open_after_the_due_date_of_the_reader(*, site, database, config, people, naive):
    with database.transaction() as session:
        session.execute(update(Assignment).values(due_at=datetime.now(UTC) + timedelta(hours=1)))
    assert opened(site, config, people.alice) is None
    with database.transaction() as session:
        session.execute(update(Assignment).values(due_at=datetime.now(UTC) - timedelta(hours=1)))
        later = datetime.now(UTC) + timedelta(days=1)
        rung = session.scalars(select(Assignment.id).where(Assignment.slug == RUNG)).one()
        session.add(
            Extension(
                course_id=people.course.id,
                assignment_id=rung,
                user_id=people.bob.id,
                due_at=later,
                reason="ill",
                at=later,
            )
        )
    assert (opened(site, config, people.alice), opened(site, config, people.bob)) == ("due", None)


@pytest.mark.parametrize(
    "source",
    [
        '"""Sums, third milestone: a row\nin `registers`.\n\nMore of it.\n"""\nimport torch\n',
        "// Sums, third milestone: a row\n// in `registers`.\n//\n// More of it.\n#include <a>\n",
        "// Sums, third milestone: a row in `registers`.\n#include <a>\n",
    ],
)
def test_a_milestones_sentence_is_the_first_of_its_file(source):
    assert steps.first_sentence(source) == "A row in `registers`."


def test_every_milestone_says_what_it_is():
    files = sorted(ROOT.glob("assignments/*/milestones/*"))
    assert len(files) > 50
    for path in files:
        about = steps.first_sentence(path.read_text(encoding="utf-8"))
        assert 15 < len(about) < 200, path
        assert "milestone" not in about, path


def test_the_command_confirms_no_practice_lane(database, people, graded):
    graded(people.alice, 0.9)
    with database.transaction() as session:
        assert confirm_top(session, people.course.id, now=datetime.now(UTC)) == 0
