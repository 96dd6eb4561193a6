"""The application's role at PostgreSQL reads and writes rows, and nothing else. Every test on PostgreSQL runs by it."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from server import migrations
from server.cli import admin
from server.config import load_config
from server.db import Database

pytestmark = pytest.mark.postgres
FORBIDDEN = (
    "CREATE TABLE more (id int)",
    "CREATE TEMPORARY TABLE more (id int)",
    "CREATE SCHEMA more",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE ROLE more",
    "CREATE DATABASE more",
    "CREATE EXTENSION pg_stat_statements",
    "DROP TABLE users",
    "DROP INDEX ix_api_tokens_user_id",
    "ALTER TABLE users ADD COLUMN more int",
    "ALTER TABLE users DISABLE TRIGGER ALL",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "TRUNCATE users CASCADE",
    "SELECT rolpassword FROM pg_authid",
    "SELECT pg_read_file('/etc/passwd')",
    "COPY users TO PROGRAM 'cat'",
    "COPY users FROM '/etc/passwd'",
    "SET session_replication_role = replica",
    "UPDATE alembic_version SET version_num = '0001'",
)


@pytest.fixture
def app_role(postgres_url):
    """A database by the application's role."""
    database = Database(postgres_url)
    yield database
    database.dispose()


def test_the_role_of_the_tests_is_no_superuser_and_owns_nothing(app_role):
    with app_role.reading() as session:
        mine = "SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls FROM pg_roles WHERE rolname = CURRENT_USER"
        assert not any(session.execute(text(mine)).one())
        owned = "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = CURRENT_USER"
        assert session.scalar(text(owned)) == 0


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_it_cannot(app_role, statement):
    # Outside of a transaction, in which some of them are refused for another reason.
    engine = app_role.engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, pytest.raises(DBAPIError) as caught:
        connection.execute(text(statement))
    assert re.search(r"permission denied|must be owner|must be superuser", str(caught.value.orig)), caught.value


def test_a_statement_that_takes_too_long_is_given_up(postgres_url):
    slow = Database(postgres_url, statement_timeout_s=0.2)
    with pytest.raises(OperationalError, match="statement timeout"), slow.reading() as session:
        session.execute(text("SELECT pg_sleep(30)"))
    slow.dispose()
    assert load_config({}).statement_timeout_s == 60


def test_migrations_have_a_role_of_their_own_and_let_the_application_in(fresh_postgres, shared_postgres, monkeypatch):
    """`ladder admin migrate` by the owner; the application's role then does what the application does."""
    role = make_url(shared_postgres.application).username
    application = make_url(fresh_postgres).set(username=role).render_as_string()
    monkeypatch.setenv("LADDER_DATABASE_URL", application)
    monkeypatch.setenv("LADDER_MIGRATIONS_URL", fresh_postgres)
    for _ in range(2):
        done = CliRunner().invoke(admin, ["migrate"])
        assert done.exit_code == 0, done.output
    assert migrations.current(application) == migrations.newest()
    made = CliRunner().invoke(
        admin, ["create-user", "a@example.org", "A", "--password-stdin"], input="a long enough password\n"
    )
    assert made.exit_code == 0, made.output
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"):
        migrations.downgrade(application, "0015")
    down = CliRunner().invoke(admin, ["downgrade", "0015", "--yes"])
    assert down.exit_code == 0, down.output
    # What a later version makes is opened by the next migration.
    assert CliRunner().invoke(admin, ["migrate"]).exit_code == 0
    database = Database(application)
    with database.transaction() as session:
        assert session.scalar(text("SELECT count(*) FROM second_factors")) == 0
    database.dispose()


def test_the_owner_is_not_taken_for_the_application(fresh_postgres):
    with pytest.raises(ValueError, match="owns the tables"):
        migrations.grant(fresh_postgres, fresh_postgres)
