"""Backup and restore: into an empty database, with every byte, and nothing else is ever taken for success."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import tarfile
import threading
import time
from io import BytesIO
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import func, select, update

from autograder.assignment import content_hash
from server import migrations
from server.db import Database
from server.grading import receipt_keys
from server.models import Mode, Submission
from server.operations import backup as backups
from server.operations.backup import BackupError, backup, read_manifest
from server.operations.restore import restore, verify
from tests.doubles.world import World, passed, wrong


@pytest.fixture
def world(database_url, tmp_path):
    made = World.make(database_url, tmp_path)
    made.grade(passed())
    source = "# ünïcödé \N{SNOWMAN}\n".encode()
    made.grade(wrong(), "Bob", source=source, source_hash=content_hash(source))
    made.submit()
    made.submit("Bob", mode=Mode.run, number=1)
    yield made
    made.database.dispose()


@pytest.fixture
def empty_url(database_url, owner_url, tmp_path):
    """An empty database beside the one that is backed up."""
    if database_url.startswith("sqlite"):
        yield f"sqlite:///{tmp_path / 'restored.sqlite'}"
        return
    name = f"{database_url.rpartition('/')[2]}_restored"
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield f"{owner_url.rpartition('/')[0]}/{name}"
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def saved(world, path, **options):
    return backup(world.database, world.config.database_url, path, version="test", **options)


def rows(url):
    database = Database(url)
    with database.reading() as session:
        found = session.execute(
            select(Submission.public_id, Submission.source, Submission.state, Submission.points).order_by(Submission.id)
        ).all()
    database.dispose()
    return found


def test_a_backup_restores_into_an_empty_database_with_every_byte(world, empty_url, tmp_path):
    path = tmp_path / "saved" / "one.ladder"
    manifest = saved(world, path)
    assert manifest.counts["submissions"] == len(manifest.sources) == 4
    found = restore(path, empty_url)
    assert found.submissions == 4
    assert found.accounts.balanced
    assert rows(empty_url) == rows(world.config.database_url)
    assert migrations.current(empty_url) == migrations.newest()
    assert migrations.differences(empty_url) == []


def test_the_restored_database_goes_on(world, empty_url, tmp_path):
    saved(world, tmp_path / "one.ladder")
    restore(tmp_path / "one.ladder", empty_url)
    going = World(Database(empty_url), world.config, now=world.now, keys=world.keys)
    receipt = going.submit()
    assert going.submission(receipt).number == 3
    going.database.dispose()


def test_the_file_is_its_owners_alone_and_appears_whole(world, tmp_path):
    path = tmp_path / "deep" / "er" / "one.ladder"
    saved(world, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    with pytest.raises(BackupError, match="exists already"):
        saved(world, path)


def test_nothing_in_it_signs_as_a_node_and_it_says_what_is_missing(world, tmp_path):
    path = tmp_path / "one.ladder"
    secret = world.keys["anvil"].broker_password
    pem = Path(world.key_file("anvil")).read_bytes()
    saved(world, path)
    with tarfile.open(path) as archive:
        inside = b"".join(archive.extractfile(name).read() for name in archive.getnames())
    assert secret.encode() not in inside
    assert pem.splitlines()[1] not in inside
    with tarfile.open(path) as archive:
        assert sorted(archive.getnames()) == ["SECRETS.txt", "database", "manifest.json"]
        said = archive.extractfile("SECRETS.txt").read().decode()
    assert "private keys" in said


def test_receipts_from_before_can_be_checked_after_a_restore_and_their_private_key_is_not_in_it(
    world, empty_url, tmp_path
):
    with world.database.transaction() as session:
        key = receipt_keys.key_of(world.config)
        receipt_keys.keep(session, key, now=world.now)
    path = tmp_path / "one.ladder"
    saved(world, path)
    assert b"PRIVATE KEY" in world.config.receipt_key.read_bytes()
    assert b"PRIVATE KEY" not in path.read_bytes()
    restore(path, empty_url)
    database = Database(empty_url)
    with database.reading() as session:
        assert [row.public for row in receipt_keys.all_keys(session)] == [key.public]
    database.dispose()


def test_what_is_written_meanwhile_is_wholly_in_it_or_not_at_all(world, empty_url, tmp_path):
    stop = threading.Event()

    def write():
        while not stop.is_set():
            world.submit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(3):
            saved(world, tmp_path / f"{number}.ladder")
    finally:
        stop.set()
        writer.join()
    found = restore(tmp_path / "2.ladder", empty_url)
    assert found.accounts.balanced
    assert 4 <= found.submissions <= len(rows(world.config.database_url))


def test_a_full_disk_is_said_and_leaves_nothing(world, tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backups, "_pack", full)
    with pytest.raises(BackupError, match="No space left"):
        saved(world, tmp_path / "saved" / "one.ladder")
    assert list((tmp_path / "saved").iterdir()) == []


def test_what_a_killed_backup_left_goes_with_the_next_one(world, tmp_path):
    """A dump of everything in a hidden folder: each night another one would fill the disk."""
    left, new = tmp_path / "saved" / ".backup-old", tmp_path / "saved" / ".backup-new"
    for folder in (left, new):
        folder.mkdir(parents=True)
        (folder / "database").write_bytes(b"x" * 1000)
    a_day_ago = time.time() - 90_000
    os.utime(left, (a_day_ago, a_day_ago))
    saved(world, tmp_path / "saved" / "one.ladder")
    # One that is younger may be another one's, which is being made.
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == [".backup-new", "one.ladder"]


def test_a_disk_that_is_full_while_it_restores_is_not_the_backups_fault(world, empty_url, tmp_path, monkeypatch):
    saved(world, tmp_path / "one.ladder")

    def full(_source, _target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(BackupError, match=r"no room.*TMPDIR"):
        restore(tmp_path / "one.ladder", empty_url)


def test_a_database_with_anything_in_it_is_refused(world, tmp_path):
    saved(world, tmp_path / "one.ladder")
    before = rows(world.config.database_url)
    with pytest.raises(BackupError, match=r"not empty.*CREATE DATABASE"):
        restore(tmp_path / "one.ladder", world.config.database_url)
    assert rows(world.config.database_url) == before


def test_a_changed_byte_a_missing_row_and_an_added_one_are_found(world, empty_url, tmp_path):
    manifest = saved(world, tmp_path / "one.ladder")
    restore(tmp_path / "one.ladder", empty_url)
    database = Database(empty_url)
    with database.transaction() as session:
        newest = session.scalars(select(func.max(Submission.id))).one()
        session.execute(update(Submission).where(Submission.id == newest).values(source=b"def changed(): pass\n"))
    with pytest.raises(BackupError, match="has other bytes"):
        verify(manifest, empty_url)
    with database.transaction() as session:
        session.delete(session.get_one(Submission, newest))
    with pytest.raises(BackupError, match="submissions has 3 rows instead of 4"):
        verify(manifest, empty_url)
    database.dispose()


def repacked(path, target, **changes):
    """The same backup with other members."""
    with tarfile.open(path) as archive, tarfile.open(target, "w") as other:
        for item in archive.getmembers():
            data = archive.extractfile(item).read()
            data = changes.get(item.name.partition(".")[0], lambda same: same)(data)
            if data is not None:
                info = tarfile.TarInfo(item.name)
                info.size = len(data)
                other.addfile(info, BytesIO(data))
    return target


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"manifest": lambda data: json.dumps({**json.loads(data), "format": 9}).encode()}, "has the format 9"),
        ({"manifest": lambda data: json.dumps({**json.loads(data), "revision": "0009"}).encode()}, "0009"),
        ({"manifest": lambda data: json.dumps({**json.loads(data), "backend": "oracle"}).encode()}, "oracle"),
        ({"manifest": lambda _data: b"[1, 2"}, "not a readable backup"),
        ({"manifest": lambda _data: b"[]"}, "not a readable backup"),
        ({"manifest": lambda _data: None}, "it has no manifest"),
        ({"database": lambda data: data[: len(data) // 2]}, "is broken|pg_restore failed"),
        ({"database": lambda _data: None}, "it has no database"),
    ],
)
def test_what_is_no_whole_backup_is_refused_and_named(world, empty_url, tmp_path, what, said):
    saved(world, tmp_path / "one.ladder")
    broken = repacked(tmp_path / "one.ladder", tmp_path / "broken.ladder", **what)
    with pytest.raises(BackupError, match=said):
        restore(broken, empty_url)


def test_files_that_are_no_backups_are_named(tmp_path, sqlite_url):
    (tmp_path / "text").write_text("hello")
    for name in ("text", "missing"):
        with pytest.raises(BackupError, match="not a readable backup"):
            restore(tmp_path / name, sqlite_url)


def test_only_the_newest_are_kept_and_other_files_are_left_alone(world, tmp_path):
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / "letter.ladder").write_text("not a backup")
    for number in range(4):
        saved(world, folder / f"{number}.ladder", keep=2)
    assert sorted(path.name for path in folder.iterdir()) == ["2.ladder", "3.ladder", "letter.ladder"]
    saved(world, folder / "last.ladder", keep=0)
    assert sorted(path.name for path in folder.iterdir()) == ["last.ladder", "letter.ladder"]


def test_an_empty_database_and_one_of_another_revision_are_not_backed_up(world, empty_url, tmp_path, monkeypatch):
    empty = Database(empty_url)
    with pytest.raises(BackupError, match="no tables"):
        backup(empty, empty_url, tmp_path / "x", version="test")
    empty.dispose()
    monkeypatch.setattr(migrations, "newest", lambda: "0099")
    with pytest.raises(BackupError, match="works with 0099"):
        saved(world, tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (None, "pg_dump is not installed here"),
        ("echo 'pg_dump: error: aborting because of server version mismatch' >&2; exit 1", "own major version"),
        ("echo 'no space left' >&2; exit 1", "pg_dump failed: no space left"),
    ],
)
@pytest.mark.postgres
def test_what_ails_the_tools_is_said(*, postgres_url, tmp_path, monkeypatch, program, said):
    folder = tmp_path / "bin"
    folder.mkdir()
    if program is not None:
        (folder / "pg_dump").write_text(f"#!/bin/sh\n{program}\n")
        (folder / "pg_dump").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    database = Database(postgres_url)
    with pytest.raises(BackupError, match=said):
        backup(database, postgres_url, tmp_path / "one.ladder", version="test")
    database.dispose()
    assert [item.name for item in tmp_path.iterdir() if item.name != "bin"] == []


def test_the_password_travels_in_the_environment_only():
    arguments, environ = backups.postgresql_arguments("postgresql+psycopg://me:se%40cret@db:5433/ladder")
    assert "cret" not in " ".join(arguments)
    assert "postgresql://me@db:5433/ladder" in arguments
    assert environ["PGPASSWORD"] == "se@cret"


def test_a_manifest_reads_back_as_it_was_written(world, tmp_path):
    assert saved(world, tmp_path / "one.ladder") == read_manifest(tmp_path / "one.ladder")
