"""Profiles: who gets one, in which place, what a node is asked, who sees what came of it, and for how long."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from sqlalchemy import select, update

from autograder.contract import NodeReport, RequirementResult, Work
from autograder.profiles import MAX_REPORT_BYTES, REPORT
from server.errors import InvalidInputError, NotFoundError, TooManyError
from server.grading import artefacts
from server.grading.claim import claim_next
from server.grading.results import write_result
from server.models import (
    Assignment,
    Attempt,
    AttemptState,
    Enrolment,
    Lane,
    Line,
    Mode,
    Node,
    Review,
    Role,
    State,
    Submission,
)
from server.nodes import nodes
from server.submissions import profiles
from tests.doubles.machines import make_node
from tests.doubles.profiles import PROFILE, result
from tests.doubles.world import passed
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

    def call(source=SOURCE, user=people.alice, requirements=(), **changes):
        row = submit(user, source.encode(), **ASKED)
        task = claim()
        with database.transaction() as session:
            submission = session.scalars(select(Submission).where(Submission.public_id == row.public_id)).one()
            attempt = session.scalars(select(Attempt).where(Attempt.public_id == task.attempt)).one()
            found = dataclasses.replace(result(**changes), requirements=requirements)
            write_result(session, submission, attempt, found, now=datetime.now(UTC))
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
    with pytest.raises(TooManyError, match="used all 2 profiles and sanitizer runs of 24 hours"):
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
    asked = RequirementResult("one launch", "all in one kernel", "h200", "launches == 1", False, "launches is 2.")
    public_id, _ = made(requirements=(asked,))
    assert "As compiled" not in site.logged_in(people.alice, config).get(f"/submissions/{public_id}").text
    text = site.logged_in(people.alice, config).get(f"/submissions/{public_id}/profile").text
    for said in (
        "Not met", "all in one kernel", "h200: launches == 1; for information", "launches is 2.",
        "It is bound by memory: 98 % of what the memory system can do, mostly in the L2 cache.",
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


def changed(**figures):
    """The kernel of the double with other figures."""
    return (dataclasses.replace(PROFILE.kernels[0], figures={**PROFILE.kernels[0].figures, **figures}),)


@pytest.fixture
def held(site, people, config):
    """A profile held against another, as the API gives it; its page says the same to the same person."""

    def call(public_id, against="", user=people.alice):
        asked = {"against": against} if against else {}
        answer = site.bearer(user).get(f"/api/v1/submissions/{public_id}/profile/changes", params=asked)
        page = site.logged_in(user, config).get(f"/submissions/{public_id}/profile", params=asked)
        assert answer.status_code == page.status_code
        if answer.status_code != 200:
            return answer.status_code
        found = answer.json()
        text = unescape(page.text)
        for said in (found["why_not"], found["headline"], *found["sentences"], *found["notes"]):
            assert said in text, said
        assert (found["why_not"] == "") == ("Side by side" in text)
        return found

    return call


def keys(found):
    return {one["key"]: one["profiled"] for one in found["offered"]}


def test_a_second_profile_is_held_against_the_last(made, held):
    first, _ = made()
    found = held(first)
    assert (found["against"], found["why_not"]) == ("last", "This is your first profile of this assignment.")
    other, _ = made(SOURCE + "# small\n", case="small", size="n=16")
    assert held(other)["why_not"] == (
        "It is a profile of the case tiny, and this one of small: other inputs, other counters."
    )
    timeline = dataclasses.replace(PROFILE.timeline, busy_ns=467_150)
    third, _ = made(SOURCE + "# faster\n", kernels=changed(registers=48.0), timeline=timeline)
    found = held(third, "last")
    assert found["headline"] == "It takes 50 % less time on the device than your last one: 467 µs against 934 µs."
    assert "It uses 2.0 times as many registers per thread as your last one: 48 against 24." in found["sentences"]
    row = next(row for row in found["figures"] if row["name"] == "Registers per thread")
    assert row == {"group": "launch", "name": row["name"], "unit": "number", "now": 48, "before": 24, "change": "2.0×"}


def test_a_profile_of_another_lane_is_not_held_against(made, held, database):
    first, _ = made()
    second, _ = made(SOURCE + "# again\n")
    with database.transaction() as session:
        session.execute(update(Submission).where(Submission.public_id == first).values(lane=Lane.b200))
    assert "made on the lane b200, and this one on h200" in held(second)["why_not"]


def test_a_profile_is_held_against_that_of_the_best(made, held, submit, people, database):
    source = b"def add_one(x, out, n): return 0.5\n"
    row = submit(people.alice, source, **H200)
    now = datetime.now(UTC)
    with database.transaction() as session:
        best = session.get_one(Submission, row.id)
        best.state, best.work = State.running, Work.all
        attempt = Attempt(
            public_id="B" * 26, submission_id=row.id, node_id=session.scalars(select(Node.id)).one(), fence=1,
            lane=best.lane, line=best.line, work=best.work, state=AttemptState.running, dispatched_at=now,
            lease_expires_at=now,
        )  # fmt: skip
        session.add(attempt)
        session.flush()
        write_result(session, best, attempt, passed(0.5), now=now)
    slow, _ = made(kernels=changed(dram_read_bytes=2.4e9))
    assert held(slow, "best")["why_not"] == "Your best, submission 1, has no profile yet."
    fast, _ = made(source.decode())
    assert held(fast, "best")["why_not"] == "This is a profile of your best, submission 1."
    assert (
        "It reads 4.4 times as many bytes from memory as your best: 2.40 GB against 540 MB."
        in (held(slow, "best")["sentences"])
    )
    assert "as their best:" in held(slow, "best", people.tom)["sentences"][0]


def test_a_milestone_is_held_against_once_it_is_open_and_staff_had_it_profiled(
    *, site, config, people, made, held, database, claim
):
    closed, solution = "milestones/1_naive.py", "solutions/triton.py"
    public_id, _ = made()
    milestone = (config.assignments / RUNG / "milestones" / "1_naive.py").read_text()
    # A student's own profile of a milestone's source is not the staff's.
    made(milestone, people.bob)
    page = f"/courses/{COURSE}/assignments/{RUNG}/milestones/profile"
    for user, file, status in (
        (people.alice, closed, 403), (people.tom, "hidden.toml", 404), (people.tom, closed, 303)
    ):  # fmt: skip
        answer = site.logged_in(user, config).post(page, data={"file": file, "lane": "h200"}, follow_redirects=False)
        assert answer.status_code == status, file
    task = claim()
    assert (task.request.source, task.request.mode) == (milestone, Mode.profile)
    with database.transaction() as session:
        attempt = session.scalars(select(Attempt).where(Attempt.public_id == task.attempt)).one()
        row = session.get_one(Submission, attempt.submission_id)
        write_result(session, row, attempt, result(kernels=changed(registers=12.0)), now=datetime.now(UTC))
        theirs = row.public_id
    assert keys(held(public_id, user=people.tom)) == {"last": False, "best": False, closed: True, solution: False}
    assert (keys(held(public_id)), held(public_id)["closed"]) == ({"last": False, "best": False}, 1)
    assert (held(public_id, closed), held(public_id, solution)) == (404, 404)
    with database.transaction() as session:
        session.execute(update(Assignment).values(due_at=datetime.now(UTC) - timedelta(hours=1)))
    found = held(public_id)
    assert (found["against"], found["closed"]) == (closed, 0)
    assert found["sentences"] == [
        "It uses 2.0 times as many registers per thread as the milestone “Naive”: 24 against 12."
    ]
    assert site.bearer(people.alice).get(f"/api/v1/submissions/{theirs}").status_code == 404
    assert theirs not in site.logged_in(people.alice, config).get(f"/submissions/{public_id}/profile").text
    with database.transaction() as session:
        session.execute(update(Enrolment).where(Enrolment.user_id == people.tom.id).values(role=Role.student))
    assert held(public_id, closed)["why_not"] == "Staff had no profile made of it yet."


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
