"""The pages of regrades and of requests for them, over the wire."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from server.grading.results import write_result
from server.models import (
    Attempt,
    AttemptState,
    Lane,
    Line,
    Regrade,
    RegradeItem,
    RegradeItemState,
    RegradeRequest,
    RegradeState,
    State,
    Submission,
    Work,
)
from server.regrades import boards, runner
from tests.doubles.machines import make_node
from tests.doubles.world import case, wrong

BASE = "/courses/gpu/regrades"
REQUESTS = "/courses/gpu/regrade-requests"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """What a page says does not depend on the database."""
    return sqlite_url


@pytest.fixture
def graded(database, people, submit):
    """A wrong submission of Alice's; its receipt number."""
    made = submit(people.alice)
    at = datetime.now(UTC)
    with database.transaction() as session:
        node, _key = make_node(session, name="anvil", now=at)
        row = session.get_one(Submission, made.id)
        row.state, row.attempts_made = State.running, 1
        attempt = Attempt(
            public_id="01ARZ3NDEKTSV4RRFFQ69G5FAV", submission_id=row.id, node_id=node.id, fence=1, lane=Lane.cpu,
            line=Line.submission, work=Work.all, state=AttemptState.running, dispatched_at=at, lease_expires_at=at,
        )  # fmt: skip
        session.add(attempt)
        session.flush()
        write_result(session, row, attempt, wrong(), now=at)
    assert case("small").verdict
    return made.public_id


@pytest.fixture
def tom(site, people, config):
    return site.logged_in(people.tom, config)


def form(page, **fields):
    """The fields of a page's first form of this revision, and some more."""
    revision = re.search(r'name="revision" value="(\d+)"', page)
    return {**({"revision": revision[1]} if revision else {}), **fields}


def test_a_proposal_is_drafted_started_and_discarded_in_pages(site, people, config, graded, database):
    tom = site.logged_in(people.tom, config)
    assert "There are no regrades" in tom.get(BASE).text
    refused = tom.post(BASE, data={"assignment": "add_one", "which": "latest", "reason": " ", "version": "7x"})
    assert refused.status_code == 422
    assert 'id="version-problem"' in refused.text
    refused = tom.post(BASE, data={"assignment": "add_one", "which": "picked", "picked": "none", "reason": "<b>x</b>"})
    assert 'id="picked-problem"' in refused.text
    assert "&lt;b&gt;x&lt;/b&gt;" in refused.text
    picked = tom.get(f"{BASE}/new", params={"picked": graded}).text
    assert graded in picked
    made = tom.post(BASE, data={"assignment": "add_one", "which": "latest", "reason": "<i>why</i>", "tell": "true"})
    assert made.status_code == 303
    page = tom.get(made.headers["location"]).text
    assert "Draft" in page
    assert "<i>why" not in page
    assert tom.post(f"{made.headers['location']}/start", data=form(page)).status_code == 303
    running = tom.get(made.headers["location"]).text
    assert "1 submission in the queue" in running
    # It is fetched again while it goes on by itself, and only then.
    assert 'data-again="3"' in running
    assert "data-again" not in page
    # Alice goes on seeing what she has.
    alice = site.logged_in(people.alice, config)
    assert "Wrong answer" in alice.get(f"/submissions/{graded}").text
    again = tom.post(f"{made.headers['location']}/discard", data=form(page))
    assert again.status_code == 409
    assert "Somebody else changed this regrade" in again.text
    assert tom.post(f"{made.headers['location']}/discard", data=form(running)).status_code == 303
    table = tom.get(f"{made.headers['location']}/table.csv")
    assert graded in table.text
    with database.reading() as session:
        assert session.scalars(select(Submission.state)).one() is State.done
        assert runner.active_ids(session) == []


def test_a_proposal_that_is_applied_in_part_is_left_as_applied_in_pages(site, people, config, graded, database):
    tom = site.logged_in(people.tom, config)
    made = tom.post(BASE, data={"assignment": "add_one", "which": "picked", "picked": graded, "reason": "x"})
    here = made.headers["location"]
    page = tom.get(here).text
    assert ("Discard</button>" in page, "Stop here" in page) == (True, False)
    for state in (RegradeState.running, RegradeState.paused, RegradeState.ready):
        with database.transaction() as session:
            item = session.scalars(select(RegradeItem)).one()
            item.state, item.applied_at = RegradeItemState.applied, datetime.now(UTC)
            session.scalars(select(Regrade)).one().state = state
        page = tom.get(here).text
        assert ("Discard</button>" in page, "Stop here</button>" in page) == (False, True)
        assert "What is applied keeps counting" in page
    assert tom.post(f"{here}/discard", data=form(page)).status_code == 303
    page = tom.get(here).text
    assert ("Discarded" in page, "Stop here" in page, "Roll back…" in page) == (False, False, True)


def test_who_leaves_a_leaderboard_is_told_before_it_is_applied(tom, graded, database, monkeypatch):
    here = tom.post(BASE, data={"assignment": "add_one", "which": "picked", "picked": graded, "reason": "x"}).headers[
        "location"
    ]
    assert "Leaderboards</h2>" not in tom.get(here).text
    with database.transaction() as session:
        session.scalars(select(Regrade)).one().state = RegradeState.ready
    assert "No place on a leaderboard would change" in tom.get(here).text
    moved = (boards.Moved("<b>Alice</b>", 1, None, 2), boards.Moved("Bob", 2, 1, 0))
    monkeypatch.setattr(boards, "outlook", lambda *_: (boards.Outlook(Lane.h200, True, moved),))
    page = tom.get(here).text
    for said in (
        "1 student would leave the board",
        "1 student would lose a record",
        "&lt;b&gt;Alice",
        "of the current version",
    ):
        assert said in page


def test_what_a_roll_back_passed_over_is_rolled_back_again_in_pages(site, people, config, graded, database):
    tom = site.logged_in(people.tom, config)
    made = tom.post(BASE, data={"assignment": "add_one", "which": "picked", "picked": graded, "reason": "x"})
    here, button = made.headers["location"], "Roll back the skipped ones"
    for applied_at, shown in ((None, False), (datetime.now(UTC), True)):
        with database.transaction() as session:
            item = session.scalars(select(RegradeItem)).one()
            submission = session.get_one(Submission, item.submission_id)
            item.state, item.applied_at = RegradeItemState.conflict, applied_at
            item.after = {"version_id": submission.version_id + 1}
            session.scalars(select(Regrade)).one().state = RegradeState.rolled_back
        page = tom.get(here).text
        assert (button in page, "1 submission was skipped" in page) == (shown, shown)
    assert tom.post(f"{here}/roll-back-again", data={**form(page), "revision": "99"}).status_code == 409
    assert tom.post(f"{here}/roll-back-again", data=form(page)).status_code == 303
    page = tom.get(here).text
    assert ("It has been regraded with another version since." in page, button in page) == (True, True)


def test_a_request_is_asked_answered_and_reopened_in_pages(site, people, config, graded, database):
    alice, tom, bob = (site.logged_in(one, config) for one in (people.alice, people.tom, people.bob))
    about = f"/submissions/{graded}/regrade-request"
    assert "Ask for a regrade" in alice.get(about).text
    refused = alice.post(about, data={"text": " "})
    assert (refused.status_code, 'id="text-problem"' in refused.text) == (422, True)
    asked = alice.post(about, data={"text": "Case <large> is right."})
    assert asked.status_code == 303
    thread = asked.headers["location"]
    assert alice.get(about).headers["location"] == thread
    assert alice.post(about, data={"text": "Again."}).status_code == 409
    assert bob.get(thread).status_code == 404
    seen = tom.get(thread).text
    assert "Case &lt;large&gt; is right." in seen
    assert 'name="outcome" value="accepted"' in seen
    assert 'name="outcome"' not in alice.get(thread).text
    assert "Alice" in tom.get(REQUESTS).text
    answer = form(seen, outcome="declined", text="The last element is 0.")
    assert tom.post(f"{thread}/answer", data=answer).status_code == 303
    told = tom.post(f"{thread}/answer", data=answer)
    assert (told.status_code, "in the meantime" in told.text) == (409, True)
    assert "The last element is 0." in alice.get(thread).text
    assert alice.post(f"{thread}/reopen", data={"text": "It is not."}).status_code == 303
    with database.reading() as session:
        assert session.scalars(select(RegradeRequest)).one().reopened_at is not None


def test_an_instructor_sets_the_rules_and_a_ta_reads_them(site, people, config, graded):
    ines, tom = site.logged_in(people.ines, config), site.logged_in(people.tom, config)
    page = ines.get(REQUESTS).text
    rules = {"enabled": "true", "per_assignment": "3", "per_course": "9", "window_days": "5", "cooling_off_h": "24"}
    refused = ines.post(f"{REQUESTS}/rules", data=form(page, **{**rules, "window_days": "soon"}))
    assert (refused.status_code, 'id="window_days-problem"' in refused.text) == (422, True)
    assert 'value="soon"' in refused.text
    assert ines.post(f"{REQUESTS}/rules", data=form(page, **rules)).status_code == 303
    assert ines.post(f"{REQUESTS}/rules", data=form(page, **rules)).status_code == 409
    assert "3 requests per assignment" in tom.get(REQUESTS).text
    assert 'name="per_course"' not in tom.get(REQUESTS).text


def test_the_api_does_the_same(site, people, graded):
    tom, alice = site.bearer(people.tom), site.bearer(people.alice)
    api = "/api/v1/courses/gpu"
    made = tom.post(f"{api}/assignments/add_one/regrades", json={"reason": "x", "which": "all"})
    assert (made.status_code, made.json()["state"], made.json()["submissions"]) == (201, "drafted", 1)
    one = f"{api}/regrades/{made.json()['id']}"
    assert tom.post(f"{one}/start", json={"revision": 99}).status_code == 409
    started = tom.post(f"{one}/start", json={"revision": made.json()["revision"]})
    assert (started.json()["state"], started.json()["by_state"]) == ("running", {"queued": 1})
    assert tom.get(f"{one}/items").json()[0]["submission"] == graded
    assert tom.post(f"{one}/discard", json={"revision": started.json()["revision"]}).json()["state"] == "discarded"
    asked = alice.post(f"/api/v1/submissions/{graded}/regrade-request", json={"text": "Why?"})
    assert asked.status_code == 201
    request = f"{api}/regrade-requests/{asked.json()['request']['id']}"
    revision = asked.json()["request"]["revision"]
    said = tom.post(f"{request}/answer", json={"outcome": "accepted", "text": "Yes.", "revision": revision})
    assert (said.json()["request"]["state"], said.json()["request"]["regrade"] is not None) == ("accepted", True)
    assert [one["text"] for one in alice.get(request).json()["messages"]] == ["Why?", "Yes."]
    assert [one["state"] for one in alice.get(f"{api}/regrade-requests", params={"box": "all"}).json()] == ["accepted"]
