"""`ladder admin …`, the part that keeps an installation running, on a real database."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from sqlalchemy import select, update

from autograder.assignment import Points
from autograder.contract import AttemptFailure, Kind
from server import alerts, cli
from server.models import (
    Alert,
    AlertKind,
    AuditEntry,
    Node,
    Regrade,
    RegradeKind,
    RegradeState,
    Rehearsal,
    State,
    Submission,
)
from server.nodes import access
from tests.doubles.world import World, manifest, passed, wrong


@pytest.fixture
def world(database_url, tmp_path):
    made = World.make(database_url, tmp_path)
    yield made
    made.database.dispose()


@pytest.fixture
def admin(world):
    environ = {"LADDER_HOME": str(world.config.home), "LADDER_DATABASE_URL": world.config.database_url}

    def call(*arguments, status=0, **changes):
        result = CliRunner().invoke(cli.admin, [str(item) for item in arguments], env={**environ, **changes})
        assert result.exit_code == status, result.output
        assert "Traceback" not in result.output
        return result.output

    return call


def actions(world):
    with world.database.reading() as session:
        return session.execute(select(AuditEntry.action, AuditEntry.subject).order_by(AuditEntry.id)).all()


def fail(world):
    """A submission that failed on our side."""
    receipt = world.submit()
    for _ in range(world.config.max_attempts):
        task = world.take()
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the judge broke"))
        world.wait(100)
    assert world.state_of(receipt) is State.failed
    return receipt


def test_accounts_are_told_and_their_status_is_the_answer(admin, world):
    world.submit()
    assert "1 received = 0 final + 1 in flight" in admin("reconcile", "--deep")
    with world.database.transaction() as session:
        session.execute(update(Submission).values(source=b"def other(): pass"))
    assert "All accounted for" in admin("reconcile")
    assert "Every source matches its hash" in admin("reconcile", "--deep", status=1)
    assert json.loads(admin("reconcile", "--json"))["balanced"] is True


def test_a_backup_is_made_noted_and_restored_elsewhere(admin, world, tmp_path):
    world.grade(passed())
    assert "1 submissions" in admin("backup", tmp_path / "one.ladder")
    assert actions(world)[-1] == ("backup.made", "backup:one.ladder")
    assert "exists already" in admin("backup", tmp_path / "one.ladder", status=1)
    assert "not empty" in admin("restore", tmp_path / "one.ladder", status=1)
    if world.database.engine.dialect.name == "sqlite":
        said = admin("restore", tmp_path / "one.ladder", LADDER_DATABASE_URL=f"sqlite:///{tmp_path / 'other.sqlite'}")
        assert "the bytes of 1 submissions are right" in said
        assert "All submissions are accounted for" in said


def test_what_was_out_of_balance_is_restored_as_it_was_and_told(admin, world, tmp_path):
    """Runbooks say: make a backup first. That one has to be of use."""
    world.submit()
    with world.database.transaction() as session:
        session.execute(update(Submission).values(source=b"def other(): pass"))
    admin("backup", tmp_path / "one.ladder")
    if world.database.engine.dialect.name == "sqlite":
        said = admin("restore", tmp_path / "one.ladder", LADDER_DATABASE_URL=f"sqlite:///{tmp_path / 'other.sqlite'}")
        assert "As in the backup, not all is accounted for" in said


def test_what_failed_is_graded_again_and_costs_nothing(admin, world):
    assert "Nothing has failed" in admin("requeue-failed")
    first, second = fail(world), fail(world)
    assert "1 put back in the queue" in admin("requeue-failed", "--submission", first)
    assert (world.state_of(first), world.state_of(second)) == (State.queued, State.failed)
    assert "1 put back in the queue" in admin("requeue-failed")
    assert world.state_of(second) is State.queued
    assert {("submission.requeued", f"submission:{receipt}") for receipt in (first, second)} <= set(actions(world))
    assert "only finished submissions" in admin("requeue-failed", "--submission", first, status=1)
    assert "no submission" in admin("requeue-failed", "--submission", "0" * 26, status=1)


def test_a_done_one_is_graded_again_only_when_it_is_named(admin, world):
    receipt = world.grade(wrong())
    assert "Nothing has failed" in admin("requeue-failed")
    admin("requeue-failed", "--submission", receipt)
    assert world.state_of(receipt) is State.queued


@pytest.mark.parametrize(
    ("action", "undo", "column"),
    [
        ("drain", "undrain", "drained_at"),
        ("quarantine", "release", "quarantine"),
        ("disable", "enable", "disabled_at"),
    ],
)
def test_nodes_are_taken_out_and_put_back(*, admin, world, action, undo, column):
    def value():
        with world.database.reading() as session:
            return getattr(session.scalars(select(Node)).one(), column)

    admin(action, "anvil")
    assert value()
    admin(undo, "anvil")
    assert not value()
    assert actions(world)[-2:] == [(f"node.{action}", "node:anvil"), (f"node.{undo}", "node:anvil")]
    assert "no node none" in admin(action, "none", status=1)


class Broker:
    """Redis as far as its users go."""

    def __init__(self):
        self.users = {"default": ()}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def acl_users(self):
        return list(self.users)

    def acl_deluser(self, name):
        self.users.pop(name, None)

    def acl_save(self):
        pass

    def execute_command(self, *words):
        assert words[:2] == ("ACL", "SETUSER")
        self.users[words[2]] = words[3:]


def test_a_node_that_is_put_back_is_let_in_at_the_broker_again(admin, monkeypatch):
    broker, url = Broker(), {"LADDER_BROKER_URL": "redis://broker.example:6379/0"}
    monkeypatch.setattr(access, "connect", lambda _url: broker)
    admin("sync-broker-acl", **url)
    before = dict(broker.users)
    assert "node-anvil" in before
    admin("disable", "anvil", **url)
    assert "no node" in admin("sync-broker-acl", **url)
    assert list(broker.users) == ["default"]
    admin("enable", "anvil", **url)
    assert broker.users == before


def test_alerts_are_listed_and_ended(admin, world):
    assert "No alert is open." in admin("alerts")
    with world.database.transaction() as session:
        alerts.raise_alert(session, AlertKind.queue_stuck, "lane:cpu", "nothing moves", world.now)
    assert "nothing moves" in admin("alerts")
    (found,) = json.loads(admin("alerts", "--json"))
    assert (found["kind"], found["count"]) == ("queue_stuck", 1)
    admin("alerts", "--resolve", found["id"])
    assert "no such open alert" in admin("alerts", "--resolve", found["id"], status=1)
    assert actions(world)[-1] == ("alert.resolved", "lane:cpu")
    with world.database.reading() as session:
        assert session.scalars(select(Alert)).one().resolved_at is not None


def test_a_rehearsal_is_kept_with_its_own_date(admin, world, tmp_path):
    path = tmp_path / "chaos.json"
    path.write_text(json.dumps({"passed": True, "at": "2026-11-20T10:00:00+01:00", "machine": "two cores", "lost": 0}))
    assert "of 2026-11-20 09:00 UTC on two cores, held" in admin("record-rehearsal", path)
    with world.database.reading() as session:
        assert session.scalars(select(Rehearsal)).one().report["lost"] == 0


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "`passed`"),
        ('{"passed": "yes"}', "`passed`"),
        ('{"passed": true, "at": "yesterday"}', "no time"),
        ('{"passed": true, "at": "2026-11-20T10:00:00"}', "zone"),
        ('{"passed": true, "x": "' + "x" * 1_000_001 + '"}', "longer than"),
    ],
)
def test_what_is_no_report_is_refused(*, admin, world, tmp_path, report, said):
    path = tmp_path / "chaos.json"
    path.write_text(report)
    assert said in admin("record-rehearsal", path, status=1)
    with world.database.reading() as session:
        assert session.scalars(select(Rehearsal)).all() == []


# --- grades ----------------------------------------------------------------------------------------------------------


def test_a_rescore_is_rehearsed_first_and_then_a_proposal_that_was_applied(admin, world):
    receipt = world.grade(passed())
    with world.database.transaction() as session:
        world.publish(session, manifest(points=Points(correctness=80, speed=20)))
    said = admin("rescore", "gpu")
    assert f"vector_add {receipt}: 60.00 → 80.00" in said
    assert "Nothing was changed" in said
    assert (world.submission(receipt).points, actions(world)) == (60, [])
    assert "Nothing was changed" not in admin("rescore", "gpu", "vector_add", "--apply")
    assert world.submission(receipt).points == 80
    assert [action for action, _ in actions(world)] == ["regrade.proposed", "regrade.started", "regrade.applied"]
    with world.database.reading() as session:
        regrade = session.scalars(select(Regrade)).one()
        assert (regrade.state, regrade.kind, regrade.actor_id) == (RegradeState.applied, RegradeKind.rescore, None)
    assert "0 grades change" in admin("rescore", "gpu", "--apply")
    assert "There is no assignment none" in admin("rescore", "gpu", "none", status=1)


def test_a_rescore_lowers_only_where_a_mistake_is_corrected(admin, world):
    receipt = world.grade(passed())
    with world.database.transaction() as session:
        world.publish(session, manifest(points=Points(correctness=40, speed=20)))
    admin("rescore", "gpu", "--apply")
    assert world.submission(receipt).points == 60
    assert "Give a reason" in admin("rescore", "gpu", "--apply", "--may-lower", "--reason", " ", status=1)
    assert f"{receipt}: 60.00 → 40.00" in admin("rescore", "gpu", "--apply", "--may-lower", "--reason", "Twice.")
    assert world.submission(receipt).points == 40


def test_staff_decide_about_what_is_held(admin, world):
    receipt = world.grade(passed(held=True))
    assert f"{receipt} is cleared; it has 60 points" in admin("review", receipt, "clear", "--reason", "read it")
    assert "is cleared already" in admin("review", receipt, "clear", status=1)
    assert "There is no submission none" in admin("review", "none", "clear", status=1)
    assert [action for action, _ in actions(world)] == ["submission.reviewed"]


def test_the_key_of_receipts_is_made_shown_and_rotated(admin, world):
    first = admin("receipt-key").split()[0]
    assert admin("receipt-key").split()[0] == first
    rotated = admin("receipt-key", "--rotate").splitlines()
    assert len(rotated) == 2
    assert (rotated[0].endswith("signs"), rotated[1].split()[0]) == (True, first)
    assert "until" in rotated[1]
