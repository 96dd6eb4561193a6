"""The schema goes up, down and up again, and is then what `server.models` says."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from server import migrations
from server.db import make_engine


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'with %s and spaces' / 'ladder.sqlite'}"
    return request.getfixturevalue("fresh_postgres")


def test_up_down_and_up_again_ends_at_the_models(empty_url: str):
    migrations.upgrade(empty_url)
    assert migrations.differences(empty_url) == []
    migrations.downgrade(empty_url, migrations.BASE)
    assert migrations.current(empty_url) is None
    assert _tables(empty_url) == {"alembic_version"}
    migrations.upgrade(empty_url)
    assert migrations.current(empty_url) is not None
    assert migrations.differences(empty_url) == []


def test_the_comparison_sees_what_a_migration_forgot(empty_url: str):
    migrations.upgrade(empty_url)
    _execute(empty_url, "DROP TABLE login_attempts", "ALTER TABLE courses ADD COLUMN forgotten INTEGER")
    kinds = {difference[0] for difference in migrations.differences(empty_url) if isinstance(difference, tuple)}
    assert {"add_table", "remove_column"} <= kinds


def test_upgrading_twice_changes_nothing(empty_url: str):
    migrations.upgrade(empty_url)
    _execute(empty_url, "INSERT INTO bundles (hash, data, size, created_at) VALUES ('a', 'b', 1, '2026-01-01')")
    migrations.upgrade(empty_url)
    assert _scalar(empty_url, "SELECT count(*) FROM bundles") == 1


def test_a_check_constraint_has_the_name_that_a_later_migration_would_give_it(empty_url: str):
    migrations.upgrade(empty_url)
    engine = make_engine(empty_url)
    if engine.dialect.name == "sqlite":
        query = "SELECT sql FROM sqlite_master WHERE name = 'submissions'"
        assert "CONSTRAINT ck_submissions_number CHECK" in str(_scalar(empty_url, query))
    else:
        query = "SELECT count(*) FROM pg_constraint WHERE conname IN ('ck_submissions_number', 'pk_submissions')"
        assert _scalar(empty_url, query) == 2
    engine.dispose()


def test_a_migration_that_breaks_a_reference_on_sqlite_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    url = f"sqlite:///{tmp_path / 'ladder.sqlite'}"
    migrations.upgrade(url)

    def break_a_reference(config, _revision):
        config.attributes["connection"].exec_driver_sql(
            "INSERT INTO api_tokens (user_id, name, token_hash, start, created_at, expires_at, scopes)"
            " VALUES (99, '', '', '', '2026', '2027', 'read')"
        )

    monkeypatch.setattr(migrations.command, "upgrade", break_a_reference)
    with pytest.raises(RuntimeError, match="api_tokens that refers to nothing"):
        migrations.upgrade(url)
    assert _scalar(url, "SELECT count(*) FROM api_tokens") == 0


def test_tokens_of_before_go_on_and_end(empty_url: str):
    migrations.upgrade(empty_url)
    migrations.downgrade(empty_url, "0013")
    known = "(id, user_id, name, token_hash, start, created_at, expires_at)"
    _execute(
        empty_url,
        "INSERT INTO users (id, email, name, handle, is_admin, created_at)"
        " VALUES (1, 'a@b', 'A', 'a', FALSE, '2026-01-01 00:00:00')",
        f"INSERT INTO api_tokens {known} VALUES (1, 1, 'a', 'a', 'a', '2026-01-01 00:00:00', NULL)",
        f"INSERT INTO api_tokens {known} VALUES (2, 1, 'b', 'b', 'b', '2026-01-01 00:00:00', '2031-01-01 00:00:00')",
    )
    migrations.upgrade(empty_url)
    assert _scalar(empty_url, "SELECT count(*) FROM api_tokens WHERE scopes = 'read submit staff'") == 2
    assert _scalar(empty_url, "SELECT expires_at > '2026-02-01' FROM api_tokens WHERE id = 1")
    assert "2031" in str(_scalar(empty_url, "SELECT expires_at FROM api_tokens WHERE id = 2"))


def test_nodes_of_before_may_grade_what_they_did_and_have_to_join_again(empty_url: str):
    migrations.upgrade(empty_url)
    migrations.downgrade(empty_url, "0015")
    columns = "id, name, key, lanes, slots, works, draining, quarantine, facts, suspect_handled, created_at"
    values = "1, 'gpu-1', 'abc', '[\"h100\"]', 1, '[]', FALSE, FALSE, '{}', TRUE, '2026-01-01 00:00:00'"
    invite = "(name, token_hash, created_at, expires_at) VALUES ('a', 'b', '2026-01-01', '2026-01-02')"
    _execute(
        empty_url,
        f"INSERT INTO nodes ({columns}) VALUES ({values})",
        f"INSERT INTO node_invites {invite}",
    )
    migrations.upgrade(empty_url)
    assert "h100" in str(_scalar(empty_url, "SELECT granted_lanes FROM nodes WHERE id = 1"))
    assert _scalar(empty_url, "SELECT count(*) FROM nodes WHERE public_key IS NULL AND granted_courses IS NULL") == 1
    assert _scalar(empty_url, "SELECT count(*) FROM node_stamps WHERE node_id = 1") == 1
    assert _scalar(empty_url, "SELECT count(*) FROM node_invites") == 0


def _tables(url: str) -> set[str]:
    engine = make_engine(url)
    with engine.connect() as connection:
        names = set(engine.dialect.get_table_names(connection))
    engine.dispose()
    return names


def _execute(url: str, *statements: str) -> None:
    engine = make_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def _scalar(url: str, query: str) -> object:
    engine = make_engine(url)
    with engine.connect() as connection:
        value = connection.execute(text(query)).scalar()
    engine.dispose()
    return value
