"""Sanitizer runs: who gets one, what a node is asked, who sees what it found."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from autograder.contract import NodeReport, Work
from server.errors import InvalidInputError, TooManyError
from server.grading.claim import claim_next
from server.grading.results import write_result
from server.models import Attempt, Lane, Line, Mode, Node, Submission
from server.nodes import nodes
from tests.doubles.machines import make_node
from tests.doubles.sanitized import sanitized_result
from tests.server.conftest import COURSE, RUNG

ASKED = {"lane": Lane.h200, "mode": Mode.sanitize}
SOURCE = b"def add_one(x, out, n): ...\n\n"


@pytest.fixture
def node(database, people):
    """A node of the H200 lane with the sanitizer; says otherwise when it is told to."""
    assert people
    with database.transaction() as session:
        made, _ = make_node(session, name="kiln", now=datetime.now(UTC))
        session.flush()
        node_id = made.id

    def says(works=tuple(Work), **facts):
        with database.transaction() as session:
            report = NodeReport((Lane.h200,), 1, draining=False, facts=facts, at=0.0, works=works)
            nodes.apply_report(session.get_one(Node, node_id), report, now=datetime.now(UTC))

    says()
    says.id = node_id
    return says


@pytest.fixture
def made(database, config, node, submit, people):
    """A run of Alice's that a node has made, by its changes."""

    def call(line=Line.profile, **changes):
        row = submit(people.alice, SOURCE, **ASKED)
        with database.transaction() as session:
            task = claim_next(session, node_id=node.id, now=datetime.now(UTC), config=config)
        with database.transaction() as session:
            submission = session.scalars(select(Submission).where(Submission.public_id == row.public_id)).one()
            attempt = session.scalars(select(Attempt).where(Attempt.public_id == task.attempt)).one()
            submission.line = line
            write_result(session, submission, attempt, sanitized_result(**changes), now=datetime.now(UTC))
        return row.public_id

    return call


def test_it_waits_with_profiles_and_a_node_is_asked_for_the_case(database, config, submit, people, node):
    asked = submit(people.alice, case="small", **ASKED)
    assert (asked.line, asked.work, asked.number) == (Line.profile, Work.sanitize, 1)
    with database.transaction() as session:
        request = claim_next(session, node_id=node.id, now=datetime.now(UTC), config=config).request
    assert (request.mode, request.work, request.case) == (Mode.sanitize, Work.sanitize, "small")


def test_a_hidden_case_and_a_lane_without_a_gpu_are_refused(submit, people, node):
    with pytest.raises(InvalidInputError, match="Public cases: ranked, small"):
        submit(people.alice, case="hidden", **ASKED)
    with pytest.raises(InvalidInputError, match="nothing to sanitize"):
        submit(people.alice, mode=Mode.sanitize, lane=Lane.cpu)


def test_a_node_without_the_tool_says_so_before_anything_is_taken(database, submit, people, node):
    node([work for work in Work if work is not Work.sanitize], sanitizer="Compute Sanitizer is not installed.")
    with pytest.raises(InvalidInputError, match=r"lane h200 runs the sanitizer\. Compute Sanitizer is not"):
        submit(people.alice, **ASKED)
    with database.reading() as session:
        assert session.scalars(select(Submission)).all() == []


def test_it_shares_the_quota_of_profiles(submit, people, node, config):
    strict = dataclasses.replace(config, profiles_per_day=2)
    now = datetime.now(UTC)
    submit(people.alice, config=strict, now=now, **ASKED)
    submit(people.alice, config=strict, now=now + timedelta(seconds=1), **{**ASKED, "mode": Mode.profile})
    with pytest.raises(TooManyError, match="used all 2 profiles and sanitizer runs"):
        submit(people.alice, config=strict, now=now + timedelta(seconds=2), **ASKED)


def test_its_owner_and_staff_see_what_it_found_and_nobody_else(site, people, made, config):
    public_id = made()
    for user, status in ((people.alice, 200), (people.tom, 200), (people.bob, 404), (people.stranger, 404)):
        assert site.bearer(user).get(f"/api/v1/submissions/{public_id}").status_code == status, user.name
        assert site.logged_in(user, config).get(f"/submissions/{public_id}").status_code == status, user.name
        assert site.logged_in(user, config).get(f"/submissions/{public_id}/sanitizer").status_code == status, user.name


def test_the_page_names_lines_threads_and_what_was_not_found(site, people, made, config):
    text = site.logged_in(people.alice, config).get(f"/submissions/{made()}").text
    for said in (
        "What the sanitizer found", "Invalid __global__ write of size 4 bytes", 'href="#L1"', 'href="#L2"',
        "thread (3,0,0) in block (1,0,0)", "&lt;b&gt;1 bytes&lt;/b&gt;", "found nothing", "what it says is a claim",
        "line--marked",
    ):  # fmt: skip
        assert said in text, said


def test_a_clean_run_and_one_that_broke_off_do_not_look_alike(site, people, made, config):
    page = site.logged_in(people.alice, config)
    clean = page.get(f"/submissions/{made(findings=())}").text
    broken = page.get(f"/submissions/{made(findings=(), missing={'memcheck': 'It did not come to its end.'})}").text
    assert "no access outside of a tensor" in clean
    assert "no access outside of a tensor" not in broken
    assert "It did not come to its end." in broken


def test_it_is_asked_for_on_a_page_of_its_own(site, people, submit, node, config):
    handed_in = submit(people.alice, SOURCE, mode=Mode.run, lane=Lane.h200)
    page = site.logged_in(people.alice, config)
    assert f"/submissions/{handed_in.public_id}/sanitizer" in page.get(f"/submissions/{handed_in.public_id}").text
    assert "Run the sanitizer" in page.get(f"/submissions/{handed_in.public_id}/sanitizer").text
    node([work for work in Work if work is not Work.sanitize], sanitizer="Compute Sanitizer is not installed.")
    refused = page.get(f"/submissions/{handed_in.public_id}/sanitizer").text
    assert "Compute Sanitizer is not installed." in refused
    assert "Run the sanitizer" not in refused


def test_one_made_for_the_leaderboard_is_told_on_the_submissions_page(site, people, submit, made, config):
    handed_in = submit(people.alice, SOURCE, lane=Lane.h200).public_id
    made()
    pages = [site.logged_in(user, config) for user in (people.alice, people.tom)]
    told = "The sanitizer found 2 places in this source."
    assert not any(told in page.get(f"/submissions/{handed_in}").text for page in pages)
    run = made(Line.confirm)
    # What the student handed in last is still what the editor begins with.
    assert f'/submissions/{run}"' not in pages[0].get(f"/courses/{COURSE}/assignments/{RUNG}").text
    for text in (
        *(page.get(f"/submissions/{handed_in}").text for page in pages),
        pages[1].get(f"/submissions/{handed_in}/evidence").text,
    ):
        assert told in text
        assert f'href="/submissions/{run}"' in text
