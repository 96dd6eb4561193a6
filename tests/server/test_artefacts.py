"""Files that attempts leave: who may give them, who may read them, how many, and for how long."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import select

from autograder.assignment import content_hash
from broker.identity import NodeKey
from server.errors import NotFoundError
from server.grading import artefacts
from server.grading.claim import claim_next
from server.grading.sweep import end_attempt
from server.models import Artefact, Attempt, Course, Node, Submission, User
from server.nodes import nodes
from server.terms import erasure
from tests.doubles.machines import make_node
from tests.server.conftest import NO_TLS
from worker.server import Signature


@pytest.fixture
def attempt(database, people, submit, config):
    """Alice's submission on node anvil; and a second node."""
    submit(people.alice)
    at = datetime.now(UTC) + timedelta(seconds=1)
    with database.transaction() as session:
        signatures = {}
        for name in ("anvil", "forge"):
            node, key = make_node(session, name=name, now=at)
            signatures[name] = Signature(name, key)
            node.lanes, node.slots, node.last_seen_at = ["cpu"], 1, at
        session.flush()
        node_id = session.scalars(select(Node.id).where(Node.name == "anvil")).one()
        task = claim_next(session, node_id=node_id, now=at, config=config)
    return task, signatures


@pytest.fixture
def call(site, attempt):
    task, signatures = attempt

    def request(method, path="", *, node="anvil", fence=task.fence, name=task.attempt, data=None):
        return httpx.request(
            method,
            f"{site.url}/api/v1/attempts/{name}{path}",
            params={"fence": fence},
            auth=signatures[node],
            headers={"content-type": "application/octet-stream"},
            content=data,
            verify=NO_TLS,
        )

    return request


def end(database, config, task):
    with database.transaction() as session:
        assert end_attempt(session, task.attempt, "over", now=datetime.now(UTC), config=config)


def test_a_node_is_told_whether_its_own_attempt_lives(call, attempt, database, config):
    task, _ = attempt
    assert call("GET").json() == {"live": True}
    assert call("GET", node="forge").json() == {"live": False}
    assert call("GET", fence=task.fence + 1).json() == {"live": False}
    assert call("GET", name="0" * 26).json() == {"live": False}
    end(database, config, task)
    assert call("GET").json() == {"live": False}


@pytest.mark.parametrize(("fence", "name"), [(2**63, None), (-1, None), (1, "x" * 26), (1, "%00" * 26)])
def test_what_cannot_be_an_attempt_is_refused(call, attempt, fence, name):
    assert call("GET", fence=fence, name=name or attempt[0].attempt).status_code == 422


def test_a_file_is_kept_once_and_read_by_staff_as_a_download(call, attempt, site, people):
    data = b"<script>alert(1)</script>\0"
    for _ in range(2):
        assert call("PUT", "/artefacts/judge.log", data=data).status_code == 204
    assert call("PUT", "/artefacts/judge.log", data=b"other").status_code == 409
    base = f"/api/v1/attempts/{attempt[0].attempt}/artefacts"
    staff = site.bearer(people.tom)
    (listed,) = staff.get(base).json()
    assert (listed["name"], listed["size"]) == ("judge.log", len(data))
    assert listed["sha256"] == hashlib.sha256(data).hexdigest()
    answer = staff.get(f"{base}/judge.log")
    assert answer.content == data
    assert answer.headers["content-disposition"] == 'attachment; filename="judge.log"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert staff.get(f"{base}/other.log").status_code == 404
    for user in (people.alice, people.bob, people.stranger):
        assert site.bearer(user).get(base).status_code == 404
        assert site.bearer(user).get(f"{base}/judge.log").status_code == 404


def test_another_node_or_fence_or_a_person_leaves_nothing(call, attempt, site, people, database):
    path = "/artefacts/x"
    assert call("PUT", path, data=b"x", node="forge").status_code == 404
    assert call("PUT", path, data=b"x", fence=attempt[0].fence + 1).status_code == 404
    url = f"/api/v1/attempts/{attempt[0].attempt}{path}?fence=1"
    assert site.bearer(people.admin).put(url, content=b"x").status_code == 401
    with database.reading() as session:
        assert session.scalars(select(Artefact.id)).all() == []


def test_files_are_few_and_small_and_plainly_named(call):
    assert call("PUT", "/artefacts/large", data=b"x" * (artefacts.MAX_BYTES + 1)).status_code == 413
    assert call("PUT", "/artefacts/full", data=b"x" * artefacts.MAX_BYTES).status_code == 204
    for name in (".hidden", "a b", "a%22b", "%2e%2e", "x" * 101, "a%00"):
        assert call("PUT", f"/artefacts/{name}", data=b"x").status_code in {404, 405, 422}
    for number in range(artefacts.MAX_FILES - 1):
        assert call("PUT", f"/artefacts/f{number}", data=b"x").status_code == 204
    assert call("PUT", "/artefacts/one-too-many", data=b"x").status_code == 429


def test_files_come_after_the_result_but_not_for_ever(call, attempt, database, config):
    end(database, config, attempt[0])
    assert call("PUT", "/artefacts/soon", data=b"x").status_code == 204
    with database.transaction() as session:
        session.scalars(select(Attempt)).one().finished_at -= artefacts.LATE_BY
    assert call("PUT", "/artefacts/late", data=b"x").status_code == 404


@pytest.mark.parametrize("kept", [True, False])
def test_what_was_erased_gets_no_files_any_more(call, attempt, database, kept):
    assert call("PUT", "/artefacts/before", data=b"x").status_code == 204
    with database.transaction() as session:
        work = session.scalars(select(Submission)).one()
        session.get_one(Course, work.course_id).keeps_erased_work = kept
        erasure.erase_account(session, session.get_one(User, work.user_id), now=datetime.now(UTC))
    assert call("PUT", "/artefacts/after", data=b"x").status_code == (204 if kept else 404)
    with database.reading() as session:
        names = session.scalars(select(Artefact.name).order_by(Artefact.id)).all()
    assert names == (["before", "after"] if kept else [])


def test_a_node_out_of_service_may_still_leave_files_of_what_it_has(call, attempt, database, config):
    with database.transaction() as session:
        nodes.set_disabled(session, name="anvil", disabled=True, now=datetime.now(UTC))
    assert call("PUT", "/artefacts/x", data=b"x").status_code == 204
    assert call("GET").json() == {"live": True}
    end(database, config, attempt[0])
    assert call("GET").status_code == 401


def test_files_are_kept_for_a_while_and_removed_a_few_at_a_time(call, database, config, monkeypatch):
    monkeypatch.setattr(artefacts, "FORGET_LIMIT", 2)
    for number in range(3):
        assert call("PUT", f"/artefacts/f{number}", data=b"x").status_code == 204
    now = datetime.now(UTC)
    for days, removed in ((config.artefact_days - 1, 0), (config.artefact_days + 1, 2), (config.artefact_days + 1, 1)):
        with database.transaction() as session:
            found = artefacts.forget_artefacts(session, now=now + timedelta(days=days), config=config)
        assert found == removed


def test_an_attempt_that_does_not_exist_has_no_files(database):
    with database.reading() as session, pytest.raises(NotFoundError):
        artefacts.artefacts_of(session, "0" * 26)


# --- bundles ---------------------------------------------------------------------------------------------------------


def test_a_node_gets_the_files_of_an_attempt_that_it_holds(call, attempt):
    task, _ = attempt
    answer = call("GET", "/bundle")
    assert (answer.status_code, content_hash(answer.content)) == (200, task.request.bundle)
    assert answer.headers["cache-control"] == "no-store"


def test_a_node_gets_no_files_of_what_another_holds_or_nobody(call):
    assert call("GET", "/bundle", node="forge").status_code == 404
    assert call("GET", "/bundle", fence=2).status_code == 404
    assert call("GET", "/bundle", name="0" * 26).status_code == 404


def test_a_node_gets_no_files_once_its_lease_has_ended(call, attempt, database, config):
    end(database, config, attempt[0])
    assert call("GET", "/bundle").status_code == 404


def test_nobody_else_gets_files(site, attempt, people, config):
    task, _ = attempt
    path = f"/api/v1/attempts/{task.attempt}/bundle?fence=1"
    guessed = Signature("anvil", NodeKey.generate())
    assert httpx.get(f"{site.url}{path}", auth=guessed, verify=NO_TLS, timeout=60).status_code == 401
    for client in (
        site.browser(),
        site.bearer(people.ines),
        site.bearer(people.admin),
        site.logged_in(people.admin, config),
    ):
        assert client.get(path).status_code == 401


def test_a_node_out_of_service_finishes_what_it_has_and_no_more(call, attempt, database, config):
    with database.transaction() as session:
        nodes.set_disabled(session, name="anvil", disabled=True, now=datetime.now(UTC))
    assert call("GET", "/bundle").status_code == 200
    end(database, config, attempt[0])
    assert call("GET", "/bundle").status_code == 401
