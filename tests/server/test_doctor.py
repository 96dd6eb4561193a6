"""The doctor: a sound installation, and each thing that can be wrong with one, alone."""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner
from sqlalchemy import text, update

from autograder import toolchain
from autograder.contract import CONTRACT_VERSION, Lane
from server import alerts, audit, cli
from server.config import REPOSITORY
from server.db import Database
from server.models import AlertKind, Bundle, Node, Rehearsal, Service, Submission
from server.nodes import nodes
from server.operations import doctor, doctor_course, doctor_host
from server.operations.findings import Level
from tests.doubles.world import World

NOW = datetime.now(UTC)


@pytest.fixture
def sound(database_url, tmp_path, monkeypatch):
    """An installation in which everything is as it should be, on a machine that may be slow or nearly full."""
    monkeypatch.setattr(nodes, "SILENCE_S", 900.0)
    monkeypatch.setattr(doctor_course, "SERVICE_SILENT", timedelta(minutes=15))
    room = type("Usage", (), {"total": 100 * 2**30, "free": 50 * 2**30})
    monkeypatch.setattr(doctor_host.shutil, "disk_usage", lambda _path: room)
    world = World.make(database_url, tmp_path, now=datetime.now(UTC))
    with world.database.transaction() as session:
        if world.database.engine.dialect.name == "sqlite":
            (tmp_path / "ladder.sqlite").chmod(0o600)
        at = datetime.now(UTC)
        for kind in doctor_course.KINDS:
            session.add(Service(kind=kind, instance="host:1", started_at=at, last_seen_at=at, facts={}))
        session.add(Rehearsal(at=at, passed=True, machine="this one", report={}))
        session.execute(update(Node).values(facts={"contract": str(CONTRACT_VERSION), "torch": "1"}, clock_skew_s=0.1))
        audit.record(session, action=doctor_course.BACKUP_MADE, subject="backup:x")
    yield world
    world.database.dispose()


def environ(world, **changes):
    return {
        "LADDER_HOME": str(world.config.home),
        "LADDER_DATABASE_URL": world.config.database_url,
        **{f"LADDER_{name.upper()}": value for name, value in changes.items()},
    }


def findings(world, **changes):
    """What is not well, by check."""
    return [
        (item.check, item.level, item.message)
        for item in doctor.examine(environ(world, **changes))
        if item.level != "ok"
    ]


def test_a_sound_installation_has_nothing_to_do(sound):
    assert findings(sound) == []
    assert {item.check for item in doctor.examine(environ(sound))} == set(doctor.CHECKS)


def test_what_submissions_could_read_on_this_machine_is_told(sound, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "readable", lambda: (str(tmp_path),))
    staff = tmp_path / "reference"
    told = [
        message
        for check, level, message in findings(sound, reference=staff)
        if (check, level) == ("configuration", "problem")
    ]
    assert len(told) == 2
    assert any(str(staff) in message and f"below {tmp_path}" in message for message in told)


def within(world, change):
    with world.database.transaction() as session:
        return change(session)


def silent(session):
    session.execute(update(Node).values(last_seen_at=NOW - timedelta(hours=1)))


def no_web(session):
    session.execute(text("DELETE FROM services WHERE kind = 'web'"))


def old_web(session):
    row = Service(kind="web", instance="host:2", started_at=NOW, last_seen_at=NOW - timedelta(hours=1), facts={})
    session.add(row)


def another_torch(session):
    facts = {"contract": str(CONTRACT_VERSION), "torch": "2", "runner image": "sha256:2"}
    session.add(
        Node(
            name="forge",
            granted_lanes=["cpu"],
            lanes=["cpu"],
            slots=1,
            facts=facts,
            last_seen_at=datetime.now(UTC),
            created_at=NOW,
        )
    )


def two_images(session):
    another_torch(session)
    session.execute(update(Node).values(facts={"runner image": "sha256:1"}).where(Node.name == "anvil"))


def alert(session):
    alerts.raise_alert(session, AlertKind.disk_full, "node:anvil", "full", NOW)


WRONG = {
    "a silent node": (silent, {"nodes": Level.problem, "assignments": Level.warning}),
    "no node": (lambda session: session.execute(text("DELETE FROM nodes")), {
        "nodes": Level.problem, "assignments": Level.warning}),
    "a drained node": (lambda session: session.execute(update(Node).values(drained_at=NOW)), {
        "nodes": Level.warning, "assignments": Level.warning}),
    "a disabled node": (lambda session: session.execute(update(Node).values(disabled_at=NOW)), {
        "nodes": Level.warning, "assignments": Level.warning}),
    "a node whose disk is full": (
        lambda session: session.execute(update(Node).values(facts={"trouble": "its disk is full"})),
        {"nodes": Level.problem}),
    "a node with another clock": (
        lambda session: session.execute(update(Node).values(clock_skew_s=-7.5)), {"nodes": Level.warning}),
    "a node of another version": (
        lambda session: session.execute(update(Node).values(facts={"contract": "0"})), {"versions": Level.problem}),
    "nodes that differ": (another_torch, {"versions": Level.warning}),
    "images that differ": (two_images, {"images": Level.warning}),
    "no web tier": (no_web, {"services": Level.problem}),
    "a web process that was killed": (old_web, {"services": Level.warning}),
    "files that are not theirs": (
        lambda session: session.execute(update(Bundle).values(data=b"x")), {"assignments": Level.problem}),
    "an alert": (alert, {"alerts": Level.warning}),
    "no backup": (lambda session: session.execute(text("DELETE FROM audit_entries")), {"backups": Level.warning}),
    "an old backup": (
        lambda session: session.execute(text("UPDATE audit_entries SET at = '2020-01-01 00:00:00+00:00'")),
        {"backups": Level.warning}),
    "no rehearsal": (lambda session: session.execute(text("DELETE FROM rehearsals")), {"rehearsal": Level.warning}),
    "a rehearsal that broke": (
        lambda session: session.execute(update(Rehearsal).values(passed=False)), {"rehearsal": Level.problem}),
    "a rehearsal of last year": (
        lambda session: session.execute(update(Rehearsal).values(at=NOW - timedelta(days=400))),
        {"rehearsal": Level.warning}),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_each_thing_that_is_wrong_is_found_with_what_to_do(sound, what):
    change, expected = WRONG[what]
    within(sound, change)
    found = [item for item in doctor.examine(environ(sound)) if item.level != "ok"]
    assert {item.check: item.level for item in found} == expected
    assert all(item.advice for item in found)


def test_what_waits_for_long_and_what_does_not_add_up(sound):
    receipt = sound.submit(place_at=NOW - timedelta(hours=3), source_hash="x")
    assert {(check, level) for check, level, _ in findings(sound)} == {
        ("queue", Level.warning), ("accounts", Level.problem),
    }  # fmt: skip
    assert any(receipt in message for _, _, message in findings(sound))


@pytest.mark.parametrize(
    ("changes", "check", "said"),
    [
        ({"public_url": "http://ladder.example.org"}, "public_url", "not https"),
        ({"public_url": "ladder"}, "public_url", "not the address"),
        ({"lease_s": "600"}, "configuration", "no longer"),
        ({"attempt_deadline_s": "300"}, "configuration", "a submission may use 300 s"),
        ({"log_format": "xml"}, "configuration", "'xml'"),
        ({"web": "/nowhere"}, "configuration", "does not exist"),
        ({"lease_s": "soon"}, "configuration", "must be float"),
        ({"broker_url": "redis://:hunter2-secret@127.0.0.1:1/0"}, "broker", "No message"),
        ({"metrics_token_file": "/nowhere/token"}, "configuration", "cannot be read"),
    ],
)
def test_what_is_configured_wrongly_is_found(sound, changes, check, said):
    found = findings(sound, **changes)
    assert [item[0] for item in found] == [check]
    assert said in found[0][2]
    assert "hunter2" not in str(found)


def test_a_secret_that_others_can_read_is_found(sound, tmp_path):
    path = tmp_path / "node-anvil.key"
    path.write_text("kn_x")
    path.chmod(0o640)
    ((check, level, message),) = findings(sound)
    assert (check, level) == ("secrets", Level.problem)
    assert str(path) in message
    path.chmod(0o600)
    assert findings(sound) == []


def test_the_key_of_receipts_is_a_secret_too(sound):
    path = sound.config.receipt_key
    path.write_text("key")
    path.chmod(0o644)
    assert [(check, str(path) in said) for check, _, said in findings(sound)] == [("secrets", True)]


def test_a_secret_that_the_engine_mounts_is_guarded_by_its_folder_on_the_host(sound, tmp_path, monkeypatch):
    """It is read in containers by users of other numbers; `chmod 600` on it would keep them all from starting."""
    path = tmp_path / "run" / "secrets" / "metrics_token"
    path.parent.mkdir(parents=True)
    path.write_text("x")
    path.chmod(0o444)
    config, given = sound.config, {"LADDER_METRICS_TOKEN_FILE": str(path)}
    assert Level.problem in {one.level for one in doctor_host.secret_files(config, given)}
    monkeypatch.setattr(doctor_host, "MOUNTED", path.parent)
    assert {one.level for one in doctor_host.secret_files(config, given)} == {Level.ok}


def test_little_room_is_found(sound, monkeypatch):
    usage = type("Usage", (), {"total": 100 * 2**30, "free": 2**29})
    monkeypatch.setattr(doctor_host.shutil, "disk_usage", lambda _path: usage)
    assert {(check, level) for check, level, _ in findings(sound)} == {("disk", Level.problem)}
    usage.free = 12 * 2**30
    assert {(check, level) for check, level, _ in findings(sound)} == {("disk", Level.warning)}


@pytest.mark.redis
def test_a_message_goes_through_redis_and_leaves_nothing(sound):
    client = redis.Redis(host="localhost", db=11)
    try:
        client.ping()
    except redis.ConnectionError as error:
        pytest.skip(f"Redis does not answer on localhost: {error}")
    client.flushdb()
    assert findings(sound, broker_url="redis://localhost:6379/11") == []
    assert client.keys() == []
    client.close()


def test_a_database_that_does_not_answer_leaves_the_other_checks_standing(sound):
    found = findings(sound, database_url="postgresql://nobody:hunter2@127.0.0.1:1/none")
    assert {check for check, _, _ in found} >= {"database", "schema", *doctor.COURSE_CHECKS}
    assert {check for check, _, _ in found}.isdisjoint({"broker", "disk", "secrets"})
    assert "hunter2" not in str(found)


def test_a_check_that_breaks_says_so_and_the_others_are_made(sound, monkeypatch):
    def breaks(_session):
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(doctor, "COURSE_CHECKS", {**doctor.COURSE_CHECKS, "nodes": breaks})
    ((check, level, message),) = findings(sound)
    assert (check, level) == ("nodes", Level.warning)
    assert "ZeroDivisionError: of all things" in message


def test_tables_of_another_revision_are_found(sound, owner_url):
    at = within(sound, lambda session: session.execute(text("SELECT version_num FROM alembic_version")).scalar_one())
    owner = Database(owner_url)

    def stamp(revision):
        with owner.transaction() as session:
            session.execute(text("UPDATE alembic_version SET version_num = :at"), {"at": revision})

    stamp("0001")
    try:
        assert [(check, level) for check, level, _ in findings(sound)] == [("schema", Level.problem)]
    finally:  # PostgreSQL's tables are shared by the tests.
        stamp(at)
        owner.dispose()


def test_an_empty_database_is_told_what_to_run(tmp_path):
    found = list(doctor.examine({"LADDER_HOME": str(tmp_path)}))
    (schema,) = (item for item in found if item.check == "schema")
    assert "ladder admin migrate" in schema.advice


def run(world, *arguments, status=0):
    result = CliRunner().invoke(cli.admin, arguments, env=environ(world))
    assert result.exit_code == status, result.output
    return result.output


def test_the_command_says_it_in_lines_and_as_json(sound):
    assert "0 problems." in run(sound, "doctor")
    within(sound, silent)
    said = run(sound, "doctor", status=1)
    assert "PROBLEM  nodes" in said
    assert "→ Look at its worker's log" in said
    data = json.loads(run(sound, "doctor", "--json", status=1))
    assert data["problems"] == 1
    assert {item["check"] for item in data["findings"]} == set(doctor.CHECKS)


def test_every_check_has_its_paragraph_in_the_book():
    book = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
    assert [name for name in doctor.CHECKS if f"**`{name}`**" not in book] == []


def test_the_looked_at_lanes_are_those_of_working_nodes(sound):
    with sound.database.transaction() as session:
        session.execute(update(Node).values(lanes=[Lane.h200.value]))
    assert findings(sound) == []  # vector_add is graded there too.
    with sound.database.transaction() as session:
        session.execute(update(Node).values(lanes=[Lane.b200.value]))
    assert [check for check, _, _ in findings(sound)] == ["assignments"]


def test_findings_name_no_secret_of_the_environment(sound, monkeypatch):
    monkeypatch.setitem(os.environ, "UNRELATED", "x")
    found = list(doctor.examine({**environ(sound), "LADDER_METRICS_TOKEN": "metrics-token-of-ours"}))
    assert "metrics-token-of-ours" not in str([dataclasses.asdict(item) for item in found])
    assert sound.keys["anvil"].broker_password not in str(found)


def test_the_database_of_a_new_installation_is_its_owners_alone(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'new' / 'ladder.sqlite'}")
    with database.reading() as session:
        session.execute(text("SELECT 1"))
    database.dispose()
    assert Path(tmp_path / "new" / "ladder.sqlite").stat().st_mode & 0o077 == 0


def test_a_submission_is_no_finding(sound):
    sound.submit()
    assert findings(sound) == []
    with sound.database.reading() as session:
        assert session.query(Submission).count() == 1
