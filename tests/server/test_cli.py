"""`ladder admin …` on a real database, as its process would run it."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from autograder.contract import Lane, NodeReport
from broker.identity import NodeKey
from server import cli, migrations
from server.accounts import accounts, second_factor
from server.accounts.passwords import is_right
from server.accounts.places import Place
from server.db import Database
from server.models import Assignment, AuditEntry, Enrolment, Node, NodeInvite, Role, User
from server.nodes import nodes
from tests.doubles.machines import make_node

PASSWORD = "a long enough password"


@pytest.fixture
def admin(config, database_url, tmp_path, monkeypatch):
    """Run one command; fails the test unless it ends with the expected status."""
    for name, value in {
        "HOME": config.home, "DATABASE_URL": database_url,
        "ASSIGNMENTS": config.assignments, "REFERENCE": config.reference,
    }.items():  # fmt: skip
        monkeypatch.setenv(f"LADDER_{name}", str(value))

    def call(*arguments, text="", status=0):
        result = CliRunner().invoke(cli.admin, arguments, input=text)
        assert result.exit_code == status, result.output
        return result.output

    return call


def test_a_course_is_set_up_from_the_console(admin, database):
    admin("create-user", "alice@example.org", "Alice", "--password-stdin", text=f"{PASSWORD}\n")
    admin("create-course", "gpu", "GPU programming", "--timezone", "Europe/Berlin")
    admin("enrol", "gpu", "alice@example.org", "--role", "ta")
    assert "add_one is at version 1" in admin("sync-assignments", "gpu")
    assert "nothing changed" in admin("sync-assignments")
    admin("set-dates", "gpu", "add_one", "--due", "2030-05-01T22:00", "--late-until", "2030-05-03")
    with database.reading() as session:
        user = session.scalars(select(User)).one()
        assert is_right(PASSWORD, user.password_hash)
        assert session.scalars(select(Enrolment)).one().role is Role.ta
        assert session.scalars(select(Assignment)).one().due_at.isoformat() == "2030-05-01T20:00:00+00:00"
        actions = set(session.scalars(select(AuditEntry.action)))
    assert {
        "user.created",
        "course.created",
        "enrolment.set",
        "assignment.versioned",
        "assignment.dates_set",
    } <= actions


def test_dates_are_on_the_courses_clock_and_what_is_not_named_stays(admin, database):
    admin("create-course", "gpu", "GPU programming", "--timezone", "Europe/Berlin")
    admin("sync-assignments", "gpu")
    admin("set-dates", "gpu", "add_one", "--open", "2030-04-01", "--due", "2030-05-01T22:00")
    said = admin("set-dates", "gpu", "add_one", "--late-until", "2030-05-03")
    assert "opens: 2030-04-01 00:00 CEST; due: 2030-05-01 22:00 CEST; closes: 2030-05-03 00:00 CEST." in said
    said = admin("set-dates", "gpu", "add_one", "--open", "never")
    assert "opens: immediately; due: 2030-05-01 22:00 CEST; closes: 2030-05-03 00:00 CEST." in said
    assert "closes: never." in admin("set-dates", "gpu", "add_one", "--late-until", "never")
    admin("set-dates", "gpu", "add_one", "--due", "soon", status=2)


def test_setting_a_due_date_says_what_it_will_be_like(admin, database):
    admin("create-user", "alice@example.org", "Alice", "--password-stdin", text=f"{PASSWORD}\n")
    admin("create-course", "gpu", "GPU programming")
    admin("enrol", "gpu", "alice@example.org")
    admin("sync-assignments", "gpu")
    said = admin("set-dates", "gpu", "add_one", "--due", "2030-05-01T22:00")
    assert "1 students" not in said
    assert "on 0 slots of the cpu lane: no node is in service, so nothing would be graded." in said
    with database.transaction() as session:
        node, _key = make_node(session, name="anvil", now=datetime.now(UTC))
        report = NodeReport((Lane.cpu,), 2, draining=False, facts={}, at=0.0)
        nodes.apply_report(node, report, now=datetime.now(UTC))
    said = admin("set-dates", "gpu", "add_one", "--due", "2030-05-01T22:00")
    assert "1 student × 4 × 20 s (a guess: nothing was graded yet) on 2 slots of the cpu lane: expect" in said


def test_a_password_is_asked_for_twice_and_never_shown(admin, database):
    said = admin("create-user", "alice@example.org", "Alice", text=f"{PASSWORD}\n{PASSWORD}\n")
    assert PASSWORD not in said
    admin("create-user", "bob@example.org", "Bob", text=f"{PASSWORD}\nanother one altogether\n", status=1)
    with database.reading() as session:
        assert session.scalars(select(User.email)).all() == ["alice@example.org"]


def test_a_new_password_ends_the_logins(admin, database, config):
    admin("create-user", "alice@example.org", "Alice", "--password-stdin", text=f"{PASSWORD}\n")
    with database.transaction() as session:
        _login, token = second_factor.log_in(
            session, email="alice@example.org", password=PASSWORD, place=Place(""), agent="", config=config
        )
    admin("set-password", "alice@example.org", "--password-stdin", text="quite another password\n")
    with database.reading() as session:
        assert accounts.session_of(session, token) is None
        assert is_right("quite another password", session.scalars(select(User.password_hash)).one())


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        (("create-user", "alice", "Alice", "--password-stdin"), f"{PASSWORD}\n", "not an e-mail address"),
        (("create-user", "a@b.c", "Alice", "--password-stdin"), "short\n", "at least 10 characters"),
        (("enrol", "gpu", "nobody@example.org"), "", "no account with the e-mail address"),
        (("sync-assignments", "gpu"), "", "no course 'gpu'"),
        (("set-dates", "gpu", "add_one"), "", "no assignment add_one in gpu"),
    ],
)
def test_a_refusal_is_one_line_and_changes_nothing(admin, database, arguments, text, said):
    output = admin(*arguments, text=text, status=1)
    assert said in output
    assert "Traceback" not in output
    with database.reading() as session:
        assert session.scalars(select(AuditEntry)).all() == []


def test_a_database_without_tables_says_what_to_run(admin, monkeypatch, tmp_path):
    monkeypatch.setenv("LADDER_DATABASE_URL", f"sqlite:///{tmp_path / 'empty.sqlite'}")
    assert "ladder admin migrate" in admin("create-course", "gpu", "GPU", status=1)
    assert f"at revision {migrations.newest()}" in admin("migrate")
    admin("create-course", "gpu", "GPU")
    assert "at revision none" in admin("downgrade", migrations.BASE, "--yes")


def test_a_variable_that_cannot_be_read_is_named(admin, monkeypatch):
    monkeypatch.setenv("LADDER_LEASE_S", "soon")
    assert "LADDER_LEASE_S must be float, but is 'soon'" in admin("migrate", status=1)


@pytest.fixture
def identity(tmp_path):
    """A file as `ladder node key` prints it."""

    def write(key):
        path = tmp_path / "identity.json"
        path.write_text(json.dumps(dataclasses.asdict(key.identity)))
        return str(path)

    return write


def test_a_node_whose_key_is_known_is_let_in_and_changed(admin, database, identity):
    first, second = NodeKey.generate(), NodeKey.generate()
    for key, lanes in ((first, "cpu"), (first, "cpu"), (second, "cpu,h100")):
        assert "local is registered" in admin("create-node", "local", "--identity", identity(key), "--lanes", lanes)
    with database.reading() as session:
        node = session.scalars(select(Node)).one()
        assert (node.public_key, node.granted_lanes) == (second.identity.public_key, ["cpu", "h100"])
        actions = session.scalars(select(AuditEntry.action).where(AuditEntry.subject == "node:local")).all()
        assert actions == ["node.created", "node.rekeyed", "node.granted"]


def test_what_a_node_may_grade_is_said_and_taken_back(admin, database, identity):
    admin("create-course", "gpu", "GPU")
    admin("create-node", "a", "--identity", identity(NodeKey.generate()), "--lanes", "all")
    assert "cpu of gpu" in admin("grant-node", "a", "--lanes", "cpu", "--course", "gpu")
    assert "There is no course none" in admin("grant-node", "a", "--lanes", "cpu", "--course", "none", status=1)
    assert "some of" in admin("grant-node", "a", "--lanes", "abacus", status=2)
    assert "revoked" in admin("revoke-node", "a", "--since", "2026-11-01T00:00:00")
    with database.reading() as session:
        node = session.scalars(select(Node)).one()
        assert (node.granted_lanes, len(node.granted_courses), node.public_key) == (["cpu"], 1, None)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"public_key": 1, "broker_hash": 2}', "x"])
def test_what_is_no_identity_registers_nothing(admin, database, tmp_path, text):
    (tmp_path / "identity.json").write_text(text)
    admin("create-node", "a", "--identity", str(tmp_path / "identity.json"), "--lanes", "cpu", status=1)
    with database.reading() as session:
        assert session.scalars(select(Node)).all() == []


def test_a_code_says_what_the_node_may_grade(admin, database):
    said = admin("invite-node", "gpu-1", "--lanes", "h100,h200")
    assert "ladder node join" in said
    admin("invite-node", "gpu-1", status=2)
    with database.reading() as session:
        invite = session.scalars(select(NodeInvite)).one()
        assert (invite.lanes, invite.courses) == (["h100", "h200"], None)


def test_the_demo_prints_the_password_it_made_up_once(admin, database, monkeypatch):
    first = admin("seed-demo")
    password = first.split("The password of these accounts is ")[1].strip()
    again = admin("seed-demo")
    assert password not in again
    assert "passwords are unchanged" in again
    monkeypatch.setenv("LADDER_DEMO_PASSWORD", "chosen by the operator")
    assert "chosen by the operator" not in admin("seed-demo")
    with database.reading() as session:
        hashes = session.scalars(select(User.password_hash)).all()
        assert len(hashes) == 5
        assert is_right("chosen by the operator", hashes[0])
        assert not is_right(password, hashes[0])


def test_the_api_description_is_written_to_a_file(admin, tmp_path):
    path = tmp_path / "openapi.json"
    admin("openapi", "--output", str(path))
    assert "/api/v1/me" in json.loads(path.read_text())["paths"]


def test_a_failed_command_leaves_no_half_of_a_course(admin, database_url, config):
    (config.assignments / "add_one" / "assignment.toml").write_text("slug = 1")
    assert "assignment.toml" in admin("seed-demo", "--password", PASSWORD, status=1)
    database = Database(database_url)
    with database.reading() as session:
        assert session.scalars(select(User)).all() == []
    database.dispose()
