from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest

from server.courses import sync
from server.grading.results import write_result
from server.models import Attempt, AttemptState, State, Submission
from tests.doubles.machines import make_node
from tests.doubles.world import passed
from tests.server.conftest import COURSE, RUNG

URL = f"/api/v1/courses/{COURSE}/assignments/{RUNG}/leaderboard"


@pytest.fixture
def graded(database, submit):
    """Give somebody a result with this ratio."""

    def call(user, ratio):
        row = submit(user)
        now = datetime.now(UTC)
        with database.transaction() as session:
            name = f"node-{row.id}"
            node, _ = make_node(session, name=name, now=now)
            submission = session.get_one(Submission, row.id)
            submission.state = State.running
            attempt = Attempt(
                public_id=f"{row.id:026}", submission_id=row.id, node_id=node.id, fence=1,
                lane=submission.lane, line=submission.line, work=submission.work,
                state=AttemptState.running, dispatched_at=now, lease_expires_at=now,
            )  # fmt: skip
            session.add(attempt)
            session.flush()
            write_result(session, submission, attempt, passed(ratio), now=now)
        return row.public_id

    return call


def test_the_board_names_no_submission_of_others_but_to_staff(site, people, graded):
    own, other = graded(people.alice, 0.5), graded(people.bob, 2.0)
    seen = site.bearer(people.alice).get(URL).json()
    assert [(item["rank"], item["own"], item["submission"]) for item in seen["entries"]] == [
        (1, True, own),
        (2, False, None),
    ]
    assert "Bob" not in str(seen)
    staff = site.bearer(people.tom).get(URL).json()
    assert [item["submission"] for item in staff["entries"]] == [own, other]
    assert (staff["ranks"], staff["practice"], staff["lane"]) == (True, True, "cpu")


@pytest.mark.parametrize(
    ("file", "kept"),
    [
        ("assignments/add_one/README.md", True),
        ("reference/add_one/hidden.toml", False),
        ("reference/add_one/solutions/triton.py", False),
    ],
)
def test_a_new_version_keeps_the_board_unless_grading_changed(*, site, database, config, people, graded, file, kept):
    own = graded(people.alice, 0.5)
    path = config.assignments.parent / file
    path.write_text(path.read_text() + "\n# A note.\n")
    with database.transaction() as session:
        sync.sync_assignments(session, config, people.course)
    seen = site.bearer(people.alice).get(URL).json()
    assert seen["version"] == 2
    assert [item["submission"] for item in seen["entries"]] == ([own] if kept else [])


def test_the_export_is_the_same_table(site, people, graded):
    graded(people.alice, 0.5)
    answer = site.bearer(people.bob).get(f"{URL}.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["rank"], row["ratio"]) for row in rows] == [("1", "0.5")]


def test_strangers_and_lanes_that_do_not_exist_are_told_so(site, people):
    assert site.browser().get(URL).status_code == 401
    assert site.bearer(people.stranger).get(URL).status_code == 404
    assert site.bearer(people.carol).get(URL).status_code == 404
    assert site.bearer(people.alice).get(URL, params={"lane": "b200"}).status_code == 404
    assert site.bearer(people.alice).get(URL, params={"lane": "abacus"}).status_code == 422
