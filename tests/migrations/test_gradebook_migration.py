"""What 0005 makes of a database in the middle of a term."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from server import migrations
from server.db import make_engine

AT = "2026-11-21 12:00:00"
_RUNG = "assignments (id, course_id, slug, rung, title, published, created_at)"
BEFORE = (
    "INSERT INTO users (id, email, name, handle, is_admin, created_at) VALUES (7, 'a', 'A', 'a', 0, :at)",
    "INSERT INTO courses (id, slug, title, timezone, created_at) VALUES (3, 'gpu', 'GPU', 'UTC', :at)",
    f"INSERT INTO {_RUNG} VALUES (5, 3, 'a', 1, 'A', 1, :at)",
)


def test_entries_learn_what_they_belong_to_and_nothing_that_is_late_costs_points(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'ladder.sqlite'}"
    migrations.upgrade(url, "0004")
    engine = make_engine(url)
    entry = "INSERT INTO audit_entries (at, action, subject, detail, reason) VALUES (:at, 'x', :subject, '{}', '')"
    with engine.begin() as connection:
        for statement in BEFORE:
            connection.execute(text(statement), {"at": AT})
        for subject in ("course:gpu", "assignment:5", "user:7", "backup:x", "assignment:99"):
            connection.execute(text(entry), {"at": AT, "subject": subject})
    engine.dispose()
    migrations.upgrade(url)
    with make_engine(url).connect() as connection:
        rows = connection.execute(text("SELECT course_id, assignment_id, about_id FROM audit_entries ORDER BY id"))
        assert [tuple(row) for row in rows] == [
            (3, None, None), (3, 5, None), (None, None, 7), (None, None, None), (None, None, None),
        ]  # fmt: skip
        policy = connection.execute(text("SELECT late_days, late_penalty, slack_s FROM courses")).one()
        assert tuple(policy) == (0, 0, 0)
