"""Putting a backup into an empty database, and proving that it is what was backed up.

Counts of every table, every submission's checksum and the accounts are compared before anybody is told that it worked.
"""

from __future__ import annotations

import errno
import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import inspect, make_url

from server import migrations
from server.db import Database, make_engine
from server.operations.backup import (
    DATABASE,
    BackupError,
    Manifest,
    describe,
    member,
    postgresql_arguments,
    read_manifest,
    run_tool,
)
from server.reconciliation import runs as reconciliation

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Restored:
    """What was restored and checked."""

    manifest: Manifest
    submissions: int
    accounts: reconciliation.Accounts


def restore(path: Path, url: str) -> Restored:
    """Restore a backup and check it.

    Raises:
        BackupError: the database is not empty, is another kind of database, or what came back is not what was saved.
    """
    manifest = read_manifest(path)
    _check_target(manifest, url)
    with tempfile.TemporaryDirectory(prefix="ladder-restore-") as folder:
        dump = Path(folder) / DATABASE
        with tarfile.open(path) as archive, dump.open("xb") as file:
            try:
                shutil.copyfileobj(member(archive, DATABASE), file)
            except (OSError, tarfile.TarError) as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    said = f"There is no room in {folder} for the dump inside {path}; name another folder in TMPDIR."
                    raise BackupError(said) from None
                raise BackupError(f"{path} is not a complete backup: {error}") from None
        put = _put_postgresql if manifest.backend == "postgresql" else _put_sqlite
        put(dump, url)
    return verify(manifest, url)


def verify(manifest: Manifest, url: str) -> Restored:
    """Hold a database against a manifest.

    Raises:
        BackupError: they differ; the message says in what.
    """
    database = Database(url)
    try:
        with database.reading() as session:
            found = describe(session, version=manifest.version, backend=manifest.backend, revision=manifest.revision)
            accounts = reconciliation.examine(session, deep=True)
    finally:
        database.dispose()
    differences = [
        *(f"{name} has {found.counts.get(name, 0)} rows instead of {count}" for name, count in manifest.counts.items()
          if found.counts.get(name, 0) != count),
        *(f"submission {receipt} has other bytes" for receipt, digest in manifest.sources.items()
          if found.sources.get(receipt) != digest),
    ]  # fmt: skip
    if differences:
        more = f", and {len(differences) - 5} more" if len(differences) > 5 else ""  # noqa: PLR2004  # enough to see
        raise BackupError(f"The restored data differs from the backup: {'; '.join(differences[:5])}{more}.")
    return Restored(manifest, len(manifest.sources), accounts)


def _check_target(manifest: Manifest, url: str) -> None:
    backend = make_url(url).get_backend_name()
    if backend != manifest.backend:
        raise BackupError(f"This is a backup of {manifest.backend}; LADDER_DATABASE_URL names a database of {backend}.")
    if manifest.revision != migrations.newest():
        raise BackupError(
            f"The backup is at schema revision {manifest.revision}, this version works with {migrations.newest()}. "
            f"Restore with the version that made it ({manifest.version}), then upgrade with `ladder admin migrate`."
        )
    engine = make_engine(url)
    try:
        tables = inspect(engine).get_table_names()
    finally:
        engine.dispose()
    if tables:
        raise BackupError(
            f"The database is not empty (it has the tables {', '.join(sorted(tables)[:3])}, …). Restore into a new "
            "one: CREATE DATABASE ladder_restored, or another SQLite file, name it in LADDER_DATABASE_URL, and restore."
        )


def _put_postgresql(dump: Path, url: str) -> None:
    where, environ = postgresql_arguments(url)
    run_tool(
        ["pg_restore", "--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", *where, str(dump)],
        environ,
    )


def _put_sqlite(dump: Path, url: str) -> None:
    _check_pages(dump)
    target = Path(str(make_url(url).database))
    target.unlink(missing_ok=True)  # Looking for tables made it, empty.
    for beside in (target.with_name(f"{target.name}-wal"), target.with_name(f"{target.name}-shm")):
        beside.unlink(missing_ok=True)
    unfinished = target.with_name(f".{target.name}.restoring")
    shutil.copy(dump, unfinished)
    unfinished.chmod(0o600)
    unfinished.rename(target)


def _check_pages(dump: Path) -> None:
    with closing(sqlite3.connect(dump)) as connection:
        try:
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            found = str(error)
    if found != "ok":
        raise BackupError(f"The database in this backup is broken: {found}")
