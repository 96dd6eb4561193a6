"""A course of release 0.1.0 goes on under this one: its data, its nodes and its receipts.

`tests/fixtures/release_0_1_0` was made by 0.1.0 itself: `ladder demo` with its other assignments taken out, a node of
an H200 and three submissions graded there, two of them with points for speed, one held. `receipts` are those of every
grade, the student's copy and the staff's, signed by the key in `receipt_keys`.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from sqlalchemy import JSON, Boolean, DateTime, LargeBinary, MetaData, create_engine, select, text
from sqlalchemy.types import TypeEngine

from autograder.contract import Lane
from autograder.receipts import read, recompute
from broker.identity import NodeKey
from client.main import main
from server import migrations
from server.app import create_app
from server.config import load_config
from server.db import Database
from server.grading.receipts import receipt_of
from server.models import Best, Grade, Node, ReceiptKey, Result, State, Submission, User
from server.nodes import invites, nodes
from server.nodes.nodes import Grant
from tests.server.conftest import served

HERE = Path(__file__).parents[1] / "fixtures" / "release_0_1_0"
LAST_REVISION = "0013"
PASSWORD = "m0Vt26gVv6k4"
"""Of every person of that demo."""
COURSE = "/courses/gpu-demo"
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Upgraded:
    """The database of 0.1.0 after the step, and what stood in it before."""

    database: Database
    url: str
    before: dict[str, list[dict[str, Any]]]
    home: Path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def upgraded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Upgraded]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'ladder.sqlite'}"
    else:
        url = request.getfixturevalue("fresh_postgres")
    rows = _read("rows.json.xz")
    migrations.upgrade(url, LAST_REVISION)
    _fill(url, rows)
    migrations.upgrade(url)
    database = Database(url)
    yield Upgraded(database, url, rows, tmp_path)
    database.dispose()


def _read(name: str) -> Any:
    return json.loads(lzma.decompress((HERE / name).read_bytes()))


def _fill(url: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Insert the rows as they are; references are checked by the migration that follows."""
    engine = create_engine(url)
    off = "PRAGMA foreign_keys = OFF" if engine.dialect.name == "sqlite" else "SET session_replication_role = replica"
    with engine.connect() as connection:
        connection.execute(text(off))
        tables = MetaData()
        tables.reflect(connection)
        for name, of_table in rows.items():
            if name == "alembic_version":
                continue
            table = tables.tables[name]
            kinds = {column.name: _reader(column.type) for column in table.columns}
            made = [
                {key: value if value is None else kinds[key](value) for key, value in row.items()} for row in of_table
            ]
            connection.execute(table.insert(), made)
            if engine.dialect.name == "postgresql" and "id" in table.columns:
                counter = f"pg_get_serial_sequence('{name}', 'id')"
                connection.execute(text(f"SELECT setval({counter}, (SELECT max(id) FROM {name}))"))
        connection.commit()
    engine.dispose()


def _reader(kind: TypeEngine[Any]) -> Callable[[Any], Any]:
    """From what SQLite holds to what a column takes."""
    if isinstance(kind, DateTime):
        return lambda value: datetime.fromisoformat(value).replace(tzinfo=UTC if kind.timezone else None)
    if isinstance(kind, JSON):
        return json.loads
    if isinstance(kind, LargeBinary):
        return base64.b64decode
    return bool if isinstance(kind, Boolean) else lambda value: value


def test_the_schema_is_todays_and_nothing_that_counts_has_changed(upgraded: Upgraded):
    assert migrations.differences(upgraded.url) == []
    before = upgraded.before
    with upgraded.database.reading() as session:
        users = {(row.email, row.handle, row.password_hash) for row in session.scalars(select(User))}
        assert users == {(row["email"], row["handle"], row["password_hash"]) for row in before["users"]}
        handed_in = {
            row.public_id: (row.number, row.verdict, row.points, row.source, row.state, row.review)
            for row in session.scalars(select(Submission))
        }
        assert handed_in == {
            row["public_id"]: (
                row["number"], row["verdict"], row["points"], base64.b64decode(row["source"]), State(row["state"]),
                row["review"],
            )
            for row in before["submissions"]
        }  # fmt: skip
        results = {
            row.id: (row.correctness_points, row.speed_points, row.held) for row in session.scalars(select(Result))
        }
        assert results == {
            row["id"]: (row["correctness_points"], row["speed_points"], bool(row["held"])) for row in before["results"]
        }
        assert len(session.scalars(select(Best)).all()) == len(before["leaderboard_bests"]) == 3
        assert len(session.scalars(select(Grade)).all()) == len(before["grades"]) == 3


def test_a_node_keeps_its_results_and_joins_again(upgraded: Upgraded):
    with upgraded.database.transaction() as session:
        forge = session.scalars(select(Node).where(Node.name == "forge")).one()
        number, graded = forge.id, _graded_by(upgraded.before, "forge")
        assert graded
        # Its token signed; a database that signs for its nodes is no proof. So it cannot say anything until it joins.
        assert forge.public_key is None
        assert nodes.grant_of(forge) == Grant(frozenset({Lane.h200}))
        code = invites.invite(session, name="forge", grant=Grant(frozenset({Lane.h200})), now=NOW)
    with upgraded.database.transaction() as session:
        key = NodeKey.generate()
        again = invites.join(session, name="forge", code=code, identity=key.identity, now=NOW)
        assert (again.id, again.public_key) == (number, key.identity.public_key)


def _graded_by(before: dict[str, list[dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    number = next(row["id"] for row in before["nodes"] if row["name"] == name)
    return [row for row in before["attempts"] if row["node_id"] == number]


def test_old_receipts_hold_and_say_what_a_receipt_of_today_says(upgraded: Upgraded, tmp_path: Path):
    receipts = _read("receipts.json.xz")
    assert len(receipts) == 4
    with upgraded.database.reading() as session:
        key = session.scalars(select(ReceiptKey)).one().public
        for number, copies in receipts.items():
            row = session.scalars(select(Submission).where(Submission.public_id == number)).one()
            now = receipt_of(session, row, now=NOW)
            for document, today in zip(copies, (now.for_student(), now), strict=True):
                then, signed_by = read(document, key)
                assert (signed_by, recompute(then), recompute(today)) == (key, [], [])
                assert then == dataclasses.replace(today, made_at=then.made_at)
    path = tmp_path / "receipt.json"
    for student, _ in receipts.values():
        path.write_text(json.dumps(student))
        verified = CliRunner().invoke(main, ["receipt", "verify", str(path), "--key", key])
        assert (verified.exit_code, "OK" in verified.output) == (0, True), verified.output


@pytest.mark.parametrize(("person", "pages"), [
    ("alice", ("", "/grades", "/assignments/vector_add/leaderboard")),
    ("ines", ("", "/gradebook", "/submissions", "/review")),
])  # fmt: skip
def test_people_log_in_and_find_their_work(upgraded: Upgraded, person: str, pages: tuple[str, ...]):
    config = load_config({"LADDER_HOME": str(upgraded.home), "LADDER_DATABASE_URL": upgraded.url})
    rows = upgraded.before["submissions"]
    seen = [row["public_id"] for row in rows if row["user_id"] == 1 or person == "ines"]
    with served(create_app(config)) as url, httpx.Client(base_url=url, follow_redirects=True, timeout=60) as browser:
        csrf = re.search(r'name="csrf_token" value="([^"]+)"', browser.get("/login").text)
        assert csrf is not None
        form = {"email": f"{person}@example.org", "password": PASSWORD, "csrf_token": csrf[1]}
        assert browser.post("/login", data=form).url.path != "/login"
        for page in ("/", *(COURSE + page for page in pages), *(f"/submissions/{number}" for number in seen)):
            shown = browser.get(page)
            assert shown.status_code == 200, (page, shown.status_code, shown.text[:500])
