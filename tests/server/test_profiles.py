"""Profiles: who gets one, in which place, what a node is asked, who sees what came of it, and for how long."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from autograder.contract import NodeReport, Work
from autograder.profiles import MAX_REPORT_BYTES, REPORT
from server.errors import InvalidInputError, NotFoundError, TooManyError
from server.grading import artefacts
from server.grading.claim import claim_next
from server.grading.results import write_result
from server.models import Attempt, Lane, Line, Mode, Node, Review, State, Submission
from server.nodes import nodes
from server.submissions import profiles
from tests.doubles.machines import make_node
from tests.doubles.profiles import PROFILE, result
from tests.server.conftest import COURSE, RUNG

H200 = {"lane": Lane.h200}
ASKED = {**H200, "mode": Mode.profile}
SOURCE = "def add_one(x, out, n): ...\n"


@pytest.fixture
def node(database, people):
    """A node of the H200 lane that makes profiles; says otherwise when it is told to."""
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
def claim(database, config, node):
    def call():
        with database.transaction() as session:
            return claim_next(session, node_id=node.id, now=datetime.now(UTC), config=config)

    return call


@pytest.fixture
def made(database, claim, submit, people):
    """A profile of Alice's that a node has made, by its changes."""

    def call(source=SOURCE, **changes):
        row = submit(people.alice, source.encode(), **ASKED)
        task = claim()
        with database.transaction() as session:
            submission = session.scalars(select(Submission).where(Submission.public_id == row.public_id)).one()
            attempt = session.scalars(select(Attempt).where(Attempt.public_id == task.attempt)).one()
            write_result(session, submission, attempt, result(**changes), now=datetime.now(UTC))
        return row.public_id, task

    return call


def test_a_profile_waits_in_a_line_of_its_own_after_gradings(submit, people, node, claim):
    asked = submit(people.alice, **ASKED)
    assert (asked.line, asked.work, asked.number) == (Line.profile, Work.profile, 1)
    submit(people.bob, **H200)
    submit(people.bob, b"# a run\n", mode=Mode.run, **H200)
    assert claim().request.mode is Mode.submission


def test_a_node_is_asked_for_the_chosen_case(submit, people, claim):
    submit(people.alice, case="small", **ASKED)
    request = claim().request
    assert (request.mode, request.work, request.case) == (Mode.profile, Work.profile, "small")


@pytest.mark.parametrize("case", ["hidden", "no such", "ranked "])
def test_only_a_public_case_can_be_profiled(submit, people, node, case):
    with pytest.raises(InvalidInputError, match="Public cases: ranked, small") as caught:
        submit(people.alice, case=case, **ASKED)
    assert caught.value.field == "case"


def test_a_lane_without_a_gpu_has_none(submit, people, node):
    with pytest.raises(InvalidInputError, match="CPU lane has no GPU"):
        submit(people.alice, mode=Mode.profile, lane=Lane.cpu)


def test_a_node_that_cannot_says_why_before_anything_is_taken(submit, people, node, database):
    node([work for work in Work if work is not Work.profile], profiles="Its driver keeps counters for administrators.")
    with pytest.raises(InvalidInputError, match="Its driver keeps counters for administrators"):
        submit(people.alice, **ASKED)
    with database.reading() as session:
        assert session.scalars(select(Submission)).all() == []


def test_a_node_that_cannot_never_gets_one(submit, people, node, claim):
    submit(people.alice, **ASKED)
    node([work for work in Work if work is not Work.profile])
    assert claim() is None


def test_profiles_have_a_quota_of_their_own(submit, people, node, config):
    strict = dataclasses.replace(config, profiles_per_day=2)
    now = datetime.now(UTC)
    for second in range(2):
        submit(people.alice, config=strict, now=now + timedelta(seconds=second), **ASKED)
    with pytest.raises(TooManyError, match="used all 2 profiles of 24 hours"):
        submit(people.alice, config=strict, now=now + timedelta(hours=1), **ASKED)
    submit(people.alice, config=strict, now=now + timedelta(hours=1), **H200)
    submit(people.bob, config=strict, now=now + timedelta(hours=1), **ASKED)
    submit(people.tom, config=strict, now=now + timedelta(hours=1), **ASKED)
    node()
    assert submit(people.alice, config=strict, now=now + timedelta(hours=24, seconds=5), **ASKED).number == 3


def test_nothing_of_a_profile_counts(database, made):
    public_id, _ = made()
    with database.reading() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == public_id)).one()
        assert (row.state, row.points, row.review, row.pool) == (State.done, None, Review.none, None)
        assert row.result_id is not None
        assert profiles.profile_of(session, row) == PROFILE


def test_it_takes_nobodys_place_and_uses_no_submission(database, submit, people, node):
    first = submit(people.alice, **H200)
    submit(people.alice, b"# another\n", **ASKED)
    with database.reading() as session:
        assert session.get_one(Submission, first.id).state is State.queued


def test_its_owner_and_staff_see_it_and_nobody_else(site, people, made, config, database):
    public_id, task = made()
    with database.transaction() as session:
        keeps = session.scalars(select(Node)).one()
        artefacts.store_artefact(
            session, keeps, attempt=task.attempt, fence=task.fence, name=REPORT, data=b"\1report", now=datetime.now(UTC)
        )
    for user, status in ((people.alice, 200), (people.tom, 200), (people.bob, 404), (people.stranger, 404)):
        client = site.bearer(user)
        base = f"/api/v1/submissions/{public_id}"
        for path in ("", "/profile/report", "/profile/trace"):
            assert client.get(base + path).status_code == status, (user.name, path)
        assert site.logged_in(user, config).get(f"/submissions/{public_id}/profile").status_code == status
    assert site.bearer(people.alice).get(f"/api/v1/submissions/{public_id}/profile/report").content == b"\1report"


def test_a_report_may_be_larger_than_other_files_and_ends_like_them(database, made, config):
    _, task = made()
    with database.transaction() as session:
        keeps = session.scalars(select(Node)).one()

        def keep(name, size):
            artefacts.store_artefact(
                session,
                keeps,
                attempt=task.attempt,
                fence=task.fence,
                name=name,
                data=b"x" * size,
                now=datetime.now(UTC),
            )

        keep(REPORT, MAX_REPORT_BYTES)
        with pytest.raises(Exception, match="at most 1,048,576"):
            keep("other", MAX_REPORT_BYTES)
        row = session.scalars(select(Submission)).one()
        assert len(profiles.report_of(session, row)) == MAX_REPORT_BYTES
        later = datetime.now(UTC) + timedelta(days=config.artefact_days + 1)
        assert artefacts.forget_artefacts(session, now=later, config=config) == 1
        with pytest.raises(NotFoundError, match="removed after a while"):
            profiles.report_of(session, row)


def test_the_page_shows_what_holds_the_kernel_back(site, people, made, config):
    public_id, _ = made()
    text = site.logged_in(people.alice, config).get(f"/submissions/{public_id}/profile").text
    for said in (
        "It is bound by memory: 98 % of what the memory system can do, most of it in: l2 cache.",
        "540.0 MB read, 520.0 MB written", "32.0 sectors of 32 bytes each", "limited by warps",
        "Global loads, 32 bits or less", "at most 78 % faster, by its estimate",
        "This kernel has &lt;b&gt;uncoalesced&lt;/b&gt; global accesses.",
        "does not have the counter", "97% of samples: global memory", "Download the report",
    ):  # fmt: skip
        assert said in text, said
    assert "smsp__" not in text


def test_a_page_without_counters_says_why(site, people, made, config):
    why = "The driver of this node refused the counters to an ordinary user."
    public_id, _ = made(kernels=(), missing={"counters": why}, report_bytes=0)
    text = site.logged_in(people.alice, config).get(f"/submissions/{public_id}/profile").text
    assert why in text
    assert "Download the report" not in text


def test_a_second_profile_is_held_against_the_first(site, people, made, config):
    made()
    before = PROFILE.kernels[0]
    figures = {**before.figures, "duration_us": 467.15, "registers": 48.0}
    kernel = dataclasses.replace(before, figures=figures)
    timeline = dataclasses.replace(PROFILE.timeline, busy_ns=467_150)
    public_id, _ = made(SOURCE + "# faster\n", kernels=(kernel,), timeline=timeline)
    text = site.logged_in(people.alice, config).get(f"/submissions/{public_id}/profile").text
    assert "Registers: 24 then, 48 now" in text
    assert re.search(r"Time of the longest kernel: 934[\d.]* µs then, 467[\d.]* µs now", text)


@pytest.fixture
def browser(site, people, config):
    return site.logged_in(people.alice, config)


def test_a_profile_is_asked_for_from_the_page_of_a_submission(browser, people, submit, node, database):
    row = submit(people.alice, **H200)
    assert f"/submissions/{row.public_id}/profile" in browser.get(f"/submissions/{row.public_id}").text
    assert "ranked one with the most work" in browser.get(f"/submissions/{row.public_id}/profile").text
    answer = browser.post(f"/submissions/{row.public_id}/profile", data={"case": "ranked"}, follow_redirects=False)
    assert answer.status_code == 303
    with database.reading() as session:
        found = session.scalars(select(Submission).where(Submission.mode == Mode.profile)).one()
        assert (found.case, found.source_hash, found.user_id) == ("ranked", row.source_hash, people.alice.id)
        made_id = found.public_id
    assert answer.headers["location"] == f"/submissions/{made_id}"
    assert f"/submissions/{made_id}" in browser.get(f"/submissions/{row.public_id}/profile").text
    node([Work.check], profiles="Nsight Compute (ncu) is not installed on this node.")
    assert "is not installed on this node" in browser.get(f"/submissions/{row.public_id}/profile").text


def test_the_interface_takes_one_and_gives_its_timeline(site, people, node, made):
    client = site.bearer(people.alice)
    body = {"lane": "h200", "language": "triton", "mode": "profile", "source": SOURCE, "case": "ranked"}
    stored = client.post(f"/api/v1/courses/{COURSE}/assignments/{RUNG}/submissions", json=body)
    assert (stored.status_code, stored.json()["mode"], stored.json()["line"]) == (201, "profile", "profile")
    client.post(f"/api/v1/submissions/{stored.json()['public_id']}/cancel")
    public_id, _ = made()
    trace = client.get(f"/api/v1/submissions/{public_id}/profile/trace").json()
    assert [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"] == [
        "cuLaunchKernelEx", "add_one_kernel<float>"
    ]  # fmt: skip
    assert client.get(f"/api/v1/submissions/{public_id}").json()["profile"]["case"] == "tiny"
    file = site.bearer(people.alice).get(f"/api/v1/submissions/{public_id}/profile/trace").text
    assert json.loads(file)["displayTimeUnit"] == "ns"


def test_a_submission_that_is_no_profile_has_no_report(database, submit, people):
    row = submit(people.alice)
    with database.reading() as session:
        found = session.get_one(Submission, row.id)
        for asked in (profiles.profile_of, profiles.report_of):
            with pytest.raises(NotFoundError):
                asked(session, found)
