"""Everything that cannot be made again, as one file: made while the installation works, from one snapshot.

    manifest.json    what is in it: schema revision, version, counts, each submission's SHA-256 by receipt number
    database         pg_dump's custom format, or an SQLite file
    SECRETS.txt      what is not in it, and has to be kept elsewhere

Passwords and tokens stand in the database as hashes only, nodes' signing keys as they are: the file is its owner's
alone from its first byte. It appears under its name when it is whole.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, func, make_url, select, text
from sqlalchemy.orm import Session

from server import migrations
from server.db import Database
from server.errors import LadderError
from server.models import Base
from server.reconciliation.runs import source_hashes

FORMAT = 1
UNFINISHED = ".backup-"
LEFT_S = 86_400.0
"""A folder of a backup that is so old was left by one that was killed."""
MANIFEST, DATABASE, SECRETS = "manifest.json", "database", "SECRETS.txt"
KEPT_OUT = """Not in this backup, because a stolen one should open nothing:

- the nodes' private keys, which lie on the nodes: they go on as they are
- the private key that signs receipts (`receipt-key.pem`): the server makes another one. Its public half is in the
  database, so that receipts which the old one signed can still be checked
- the key that encrypts second factors (`second-factor.key`): keep a copy elsewhere. Without it no app code is accepted
  any more; recovery codes are, and `ladder admin reset-second-factor` takes the factor away
- passwords of PostgreSQL and Redis, the token for metrics, TLS keys: wherever your secrets are kept
- the configuration (LADDER_ variables, docker-compose.yml with its overrides)
- assignments/ and reference/: your repository of them; what nodes grade with is in the database as bundles

Inside the database: passwords, tokens and recovery codes of people as hashes, second factors encrypted, and the public
keys of nodes. Keep the file secret.
"""


class BackupError(LadderError):
    """It was not made, or not restored; the message says what to do."""


@dataclass(frozen=True)
class Manifest:
    """What a backup says of itself.

    Attributes:
        backend: `postgresql` or `sqlite`.
        counts: rows by table.
        sources: receipt number → SHA-256 of the bytes that are stored, in hex.
    """

    format: int
    made_at: str
    version: str
    revision: str
    backend: str
    counts: Mapping[str, int]
    sources: Mapping[str, str]


def backup(database: Database, url: str, path: Path, *, version: str, keep: int | None = None) -> Manifest:
    """Write a backup to `path`, and where `keep` is given remove all but the newest so many beside it.

    Raises:
        BackupError: there is such a file already, the database is empty, its tools are not there, or the disk is full.
    """
    if path.exists():
        raise BackupError(f"{path} exists already; nothing was overwritten.")
    _check_source(url)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_left(path.parent)
        manifest = _write(database, url, path, version)
        if keep is not None:
            _rotate(path, keep)
    except (OSError, sqlite3.Error) as error:
        raise BackupError(f"No backup could be written to {path}: {error}") from error
    return manifest


def _write(database: Database, url: str, path: Path, version: str) -> Manifest:
    with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=path.parent) as folder:
        dump = Path(folder) / DATABASE
        take = _snapshot_postgresql if _is_postgresql(url) else _snapshot_sqlite
        manifest = take(database, url, dump, version)
        unfinished = Path(folder) / path.name
        _pack(unfinished, dump, manifest)
        unfinished.rename(path)
    return manifest


def _remove_left(folder: Path) -> None:
    """Remove what backups that were killed left: a whole dump each, in a folder that nobody sees."""
    for left in folder.glob(f"{UNFINISHED}*"):
        if left.is_dir() and time.time() - left.stat().st_mtime > LEFT_S:
            shutil.rmtree(left, ignore_errors=True)


def describe(session: Session, *, version: str, backend: str, revision: str) -> Manifest:
    """The manifest of what this session sees."""
    counts = {
        table.name: session.scalars(select(func.count()).select_from(table)).one()
        for table in Base.metadata.sorted_tables
    }
    sources = {receipt: real.removeprefix("sha256:") for receipt, _stored, real in source_hashes(session)}
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(FORMAT, made_at, version, revision, backend, counts, sources)


def read_manifest(path: Path) -> Manifest:
    """What a backup says of itself.

    Raises:
        BackupError: it is no backup of ours.
    """
    try:
        with tarfile.open(path) as archive:
            data = json.loads(member(archive, MANIFEST).read())
        manifest = Manifest(**data)
    except (OSError, tarfile.TarError, ValueError, TypeError, KeyError) as error:
        raise BackupError(f"{path} is not a readable backup: {error}") from None
    if manifest.format != FORMAT:
        raise BackupError(f"{path} has the format {manifest.format}; this version reads {FORMAT}.")
    return manifest


def member(archive: tarfile.TarFile, name: str) -> Any:
    """A file of the archive, to read; names are ours, so that no path of an archive is ever followed."""
    file = archive.extractfile(archive.getmember(name)) if name in archive.getnames() else None
    if file is None:
        raise BackupError(f"This backup is not complete: it has no {name}.")
    return file


def postgresql_arguments(url: str) -> tuple[list[str], dict[str, str]]:
    """What pg_dump and pg_restore are given: the database without its password, which travels in the environment."""
    parsed = make_url(url)
    environ = dict(os.environ)
    if parsed.password is not None:
        environ["PGPASSWORD"] = str(parsed.password)
    plain = URL.create("postgresql", parsed.username, None, parsed.host, parsed.port, parsed.database, parsed.query)
    return ["--dbname", plain.render_as_string(hide_password=False)], environ


def run_tool(arguments: list[str], environ: Mapping[str, str]) -> None:
    """Run one of PostgreSQL's tools.

    Raises:
        BackupError: it is not there, or failed.
    """
    try:
        done = subprocess.run(arguments, env=dict(environ), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BackupError(
            f"{arguments[0]} is not installed here; it comes with PostgreSQL's client programs."
        ) from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        hint = ""
        if "version mismatch" in done.stderr or "unsupported version" in done.stderr:
            hint = " Use the client programs of the server's own major version, or a newer one."
        raise BackupError(f"{arguments[0]} failed: {' '.join(said[:4])}{hint}")


def _is_postgresql(url: str) -> bool:
    return make_url(url).get_backend_name() == "postgresql"


def _check_source(url: str) -> None:
    revision, newest = migrations.current(url), migrations.newest()
    if revision is None:
        raise BackupError("The database has no tables; there is nothing to back up.")
    if revision != newest:
        raise BackupError(
            f"The database is at schema revision {revision}, this version works with {newest}. "
            "Back up with the version that runs on it, before you upgrade."
        )


def _revision(connection: Connection) -> str:
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


def _snapshot_postgresql(database: Database, url: str, dump: Path, version: str) -> Manifest:
    """Dump and count in one snapshot, which a transaction of ours holds open and exports."""
    engine = database.engine.execution_options(isolation_level="REPEATABLE READ")
    with engine.connect() as connection, connection.begin():
        connection.execute(text("SET TRANSACTION READ ONLY"))
        snapshot = connection.execute(text("SELECT pg_export_snapshot()")).scalar_one()
        where, environ = postgresql_arguments(url)
        options = ["--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={dump}"]
        run_tool(["pg_dump", *options, *where], environ)
        with Session(connection) as session:
            return describe(session, version=version, backend="postgresql", revision=_revision(connection))


def _snapshot_sqlite(_database: Database, url: str, dump: Path, version: str) -> Manifest:
    """Copy by SQLite's own interface while others write, then count in the copy."""
    with closing(sqlite3.connect(str(make_url(url).database))) as source, closing(sqlite3.connect(dump)) as copy:
        source.backup(copy)
        # Without its write-ahead log beside it, the copy is one file.
        copy.execute("PRAGMA journal_mode=DELETE")
    with _opened(f"sqlite:///{dump}") as (session, connection):
        return describe(session, version=version, backend="sqlite", revision=_revision(connection))


@contextmanager
def _opened(url: str) -> Iterator[tuple[Session, Connection]]:
    database = Database(url)
    try:
        with database.reading() as session:
            yield session, session.connection()
    finally:
        database.dispose()


def _pack(path: Path, dump: Path, manifest: Manifest) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            _add(archive, MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
            _add(archive, SECRETS, KEPT_OUT.encode())
            archive.add(dump, DATABASE, filter=_nobodys)
        file.flush()
        os.fsync(file.fileno())


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    archive.addfile(info, BytesIO(data))


def _nobodys(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o600
    return info


def _rotate(path: Path, keep: int) -> None:
    """Remove the oldest backups of this folder that end like this one; other files are left alone."""
    mine = [found for found in path.parent.glob(f"*{path.suffix}") if _is_backup(found)]
    for old in sorted(mine, key=lambda found: found.stat().st_mtime, reverse=True)[max(1, keep) :]:
        old.unlink()


def _is_backup(path: Path) -> bool:
    try:
        read_manifest(path)
    except BackupError:
        return False
    return True
