"""What `ladder admin doctor` looks at on this host, and whether what it needs can be reached."""

from __future__ import annotations

import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError
from kombu.messaging import Producer
from sqlalchemy import make_url, text

from autograder import toolchain
from autograder.assignment import MOST_TOTAL_S
from broker.app import make_app
from broker.logs import FORMATS, strike_out
from server import migrations
from server.config import Config
from server.db import make_engine
from server.operations.findings import Finding, ok, problem, warning

GIB = 2**30
LITTLE, VERY_LITTLE = 0.15, 0.05
"""Of a disk that is free."""
LITTLE_BYTES, VERY_LITTLE_BYTES = 5 * GIB, GIB
BESIDE_S = 240.0
"""Of an attempt, for what is not the submission's own time: containers, references, compilers, oracles."""
ANSWER_S = 5.0
PAUSE_S = 0.02
MOUNTED = Path("/run/secrets")
"""Where a container's engine puts secrets: open to all of its users, and guarded by their folder on the host."""
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


def configuration(config: Config) -> Iterator[Finding]:
    """What can be read and still makes no sense."""
    if config.lease_s >= config.attempt_deadline_s:
        yield warning(
            "configuration",
            f"A lease lasts {config.lease_s:g} s, but an attempt's deadline is no longer: "
            f"{config.attempt_deadline_s:g} s.",
            "Make LADDER_LEASE_S a small part of LADDER_ATTEMPT_DEADLINE_S: a lost node is noticed when a lease ends.",
        )
    if config.attempt_deadline_s < MOST_TOTAL_S + BESIDE_S:
        yield warning(
            "configuration",
            f"An attempt's deadline is {config.attempt_deadline_s:g} s, but a submission may use {MOST_TOTAL_S:g} s.",
            f"Make LADDER_ATTEMPT_DEADLINE_S {MOST_TOTAL_S + BESIDE_S:g} or more: the judge needs time too, and what "
            "does not end in time is graded again.",
        )
    if config.log_format not in FORMATS:
        said = f"LADDER_LOG_FORMAT is {config.log_format!r}."
        yield problem("configuration", said, f"Set it to one of {', '.join(FORMATS)}.")
    for name in ("assignments", "web"):
        folder: Path = getattr(config, name)
        if not folder.is_dir():
            said = f"The folder {folder} does not exist."
            yield problem("configuration", said, f"Set LADDER_{name.upper()} to its path.")
    for what, folder in (("The staff's folder", config.reference), ("The home folder", config.home)):
        if shown := toolchain.shown_by(folder):
            said = f"{what} {folder} lies below {shown}, which submissions graded on this machine may read."
            yield problem("configuration", said, "Move it elsewhere; until then no judge starts on this machine.")
    yield ok("configuration", f"It is valid; the home folder is {config.home}.")


def public_url(config: Config, _environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether log-in cookies are kept from listeners."""
    parts = urlsplit(config.public_url)
    if parts.scheme == "https":
        yield ok("public_url", f"{config.public_url}: cookies are Secure.")
    elif parts.scheme == "http" and parts.hostname in LOCAL:
        yield ok("public_url", f"{config.public_url}: this machine only.")
    elif parts.scheme == "http":
        yield problem(
            "public_url",
            f"{config.public_url} is not https: anyone on the network in between can read passwords.",
            "Put a proxy with TLS in front of the web tier and name its https address in LADDER_PUBLIC_URL.",
        )
    else:
        said = f"{config.public_url!r} is not the address of a web server."
        yield problem(
            "public_url", said, "Set LADDER_PUBLIC_URL to what people type, such as https://ladder.example.org."
        )


def disk(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """How much room is left where things are written."""
    folders = {"home": config.home, "work": Path(environ.get("LADDER_WORK", config.home / "work"))}
    url = make_url(config.database_url)
    if url.get_backend_name() == "sqlite" and url.database:
        folders["database"] = Path(url.database).parent
    for name, folder in folders.items():
        there = next((path for path in (folder, *folder.parents) if path.is_dir()), Path("/"))
        usage = shutil.disk_usage(there)
        share = usage.free / usage.total if usage.total else 0.0
        said = f"{usage.free / GIB:.1f} GiB of {usage.total / GIB:.0f} GiB are free for {name} ({folder})."
        if (share < VERY_LITTLE and usage.free < LITTLE_BYTES) or usage.free < VERY_LITTLE_BYTES:
            yield problem("disk", said, "Make room now: a full disk takes no submissions. See the runbook, disk_full.")
        elif share < LITTLE and usage.free < 10 * LITTLE_BYTES:
            yield warning("disk", said, "Make room, or shorten LADDER_ARTEFACT_DAYS, before it is full.")
        else:
            yield ok("disk", said)


def secret_files(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether anybody else may read what opens something."""
    found = 0
    for path in _secret_files(config, environ):
        if not path.is_file():
            continue
        found += 1
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            yield problem("secrets", f"{path} can be read by others (mode {mode:04o}).", f"Run `chmod 600 {path}`.")
    yield ok("secrets", f"{found} files with secrets were checked.")


def _secret_files(config: Config, environ: Mapping[str, str]) -> set[Path]:
    named = (Path(value) for name, value in environ.items() if name.startswith("LADDER_") and name.endswith("_FILE"))
    found = {path for path in named if MOUNTED not in path.parents} | {config.receipt_key, config.second_factor_key}
    for pattern in ("*.token", "*password*", "*secret*", "*.key"):
        found.update(config.home.glob(pattern))
    url = make_url(config.database_url)
    if url.get_backend_name() == "sqlite" and url.database:
        found.add(Path(url.database))
    return found


def broker(config: Config, _environ: Mapping[str, str]) -> Iterator[Finding]:
    """Send a message of our own through it and take it out again."""
    name, said = f"doctor.{secrets.token_hex(6)}", secrets.token_hex(8)
    began = time.monotonic()
    try:
        heard = _round_trip(config.broker_url, name, said)
    except (OperationalError, OSError) as error:
        yield problem(
            "broker",
            f"No message made the round trip: {type(error).__name__}: {strike_out(str(error))}.",
            "Start Redis, or correct LADDER_BROKER_URL; nothing is lost meanwhile: submissions wait in the database.",
        )
        return
    if heard == said:
        yield ok("broker", f"A message made the round trip in {1000 * (time.monotonic() - began):.0f} ms.")
    else:
        came = "nothing" if heard is None else "another message"
        advice = "Look at its log, and check whether its disk or memory is full."
        yield problem("broker", f"It took a message, and {came} came back within {ANSWER_S:g} s.", advice)


def _round_trip(broker_url: str, name: str, said: str) -> str | None:
    """What comes out of a queue of our own after `said` was put into it."""
    with make_app("doctor", broker_url).connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, timeout=ANSWER_S)
        channel = connection.channel()
        queue = Queue(name, Exchange(""), routing_key=name)(channel)
        Producer(channel).publish(said, routing_key=name, serializer="json")
        give_up_at = time.monotonic() + ANSWER_S
        try:
            while (message := queue.get(no_ack=True)) is None and time.monotonic() < give_up_at:
                time.sleep(PAUSE_S)
        finally:
            queue.purge()
        return str(message.payload) if message is not None else None


def database(config: Config, _environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether it answers."""
    engine = make_engine(config.database_url)
    began = time.monotonic()
    try:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
            kind = engine.dialect.name
            version = ".".join(str(part) for part in (engine.dialect.server_version_info or ()))
            took_ms = 1000 * (time.monotonic() - began)
    finally:
        engine.dispose()
    yield ok("database", f"{kind} {version} answered in {took_ms:.0f} ms.")


def schema(config: Config, _environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the tables are those that this version works with."""
    found, newest = migrations.current(config.database_url), migrations.newest()
    if found == newest:
        yield ok("schema", f"It is at revision {found}, as this version expects.")
    elif found is None:
        yield problem("schema", "The database has no tables.", "Run `ladder admin migrate`, or restore a backup.")
    else:
        yield problem(
            "schema",
            f"The database is at revision {found}, this version works with {newest}.",
            "Make a backup, then run `ladder admin migrate` with the newer of the two versions.",
        )
