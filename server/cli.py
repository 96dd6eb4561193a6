"""`ladder admin …`: what is done on the server's own console, with the server's own configuration and database."""

from __future__ import annotations

import json
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
from sqlalchemy import select
from sqlalchemy.orm import joinedload

from server import migrations
from server.accounts import accounts, second_factor
from server.app import create_app
from server.cli_grades import settle_grades
from server.cli_leaderboards import COMMANDS as LEADERBOARDS
from server.cli_nodes import COMMANDS as NODES
from server.cli_operations import COMMANDS
from server.cli_similarity import COMMANDS as SIMILARITY
from server.cli_terms import COMMANDS as TERMS
from server.console import opened, read_config, work
from server.courses import courses, demo, sync
from server.db import now
from server.grading import receipt_keys
from server.models import Assignment, Course, Role
from server.surge import surge

NEVER = "never"


class _DateOrNever(click.DateTime):
    """A date and time, or the word that removes one."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """`2026-11-29T23:59`, `2026-11-29` or `never`."""
        return value if value == NEVER else super().convert(value, param, ctx)


_DATE_OR_NEVER = _DateOrNever(["%Y-%m-%dT%H:%M", "%Y-%m-%d"])
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def admin() -> None:
    """Accounts, courses, assignments and nodes of this installation."""


@admin.command()
@click.option("--revision", default=migrations.HEAD, show_default=True)
def migrate(revision: str) -> None:
    """Make the database, or bring its tables up to date."""
    config = read_config()
    owner = config.migrations_url or config.database_url
    migrations.upgrade(owner, revision)
    if config.migrations_url:
        migrations.grant(owner, config.database_url)
    click.echo(f"The database is at revision {migrations.current(config.database_url)}.")
    if revision == migrations.HEAD:
        with opened(config) as database, database.transaction() as session:
            receipt_keys.keep(session, receipt_keys.key_of(config), now=now(session))


@admin.command()
@click.argument("revision")
@click.confirmation_option(prompt="Data that newer revisions stored will be lost. Continue?")
def downgrade(revision: str) -> None:
    """Downgrade the tables to REVISION (`base` removes them all)."""
    config = read_config()
    migrations.downgrade(config.migrations_url or config.database_url, revision)
    click.echo(f"The database is at revision {migrations.current(config.database_url) or 'none'}.")


@admin.command("create-user")
@click.argument("email")
@click.argument("name")
@click.option("--admin", "is_admin", is_flag=True, help="May do everything in every course.")
@click.option("--password-stdin", is_flag=True, help="Read the password from the first line of standard input.")
def create_user(email: str, name: str, *, is_admin: bool, password_stdin: bool) -> None:
    """Make an account for a person."""
    password = _asked_password(from_stdin=password_stdin)
    with work() as (session, _config):
        user = accounts.create_user(session, email=email, name=name, password=password, is_admin=is_admin)
        click.echo(f"Made an account for {user.email}, on leaderboards {user.handle}.")


@admin.command("set-password")
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password from the first line of standard input.")
def set_password(email: str, *, password_stdin: bool) -> None:
    """Set a new password for an account and end its logins."""
    password = _asked_password(from_stdin=password_stdin)
    with work() as (session, _config):
        accounts.set_password(session, accounts.user_by_email(session, email), password)
        click.echo(f"{email} has a new password.")


@admin.command("reset-second-factor")
@click.argument("email")
@click.option("--reason", default="", help="For the audit log: how you checked who is asking.")
def reset_second_factor(email: str, reason: str) -> None:
    """Remove the second factor of an account whose owner lost it, and end its logins and tokens."""
    with work() as (session, _config):
        user = accounts.user_by_email(session, email)
        second_factor.reset(session, user, reason=reason)
        click.echo(f"{user.email} can now log in with the password alone, until a new second factor is set up.")


@admin.command("create-course")
@click.argument("slug")
@click.argument("title")
@click.option("--timezone", default="UTC", show_default=True, help="IANA name, such as Europe/Berlin.")
def create_course(slug: str, title: str, timezone: str) -> None:
    """Make a course."""
    with work() as (session, _config):
        course = courses.create_course(session, slug=slug, title=title, timezone=timezone)
        click.echo(f"Made the course {course.slug}.")


@admin.command()
@click.argument("course")
@click.argument("email")
@click.option("--role", type=click.Choice(list(Role)), default=Role.student, show_default=True)
@click.option("--section", default="")
def enrol(course: str, email: str, role: str, section: str) -> None:
    """Put a person in a course, or change their role in it."""
    with work() as (session, _config):
        user = accounts.user_by_email(session, email)
        found = courses.course_by_slug(session, course)
        courses.enrol(session, course=found, user=user, role=Role(role), section=section)
        click.echo(f"{user.email} is {role} in {found.slug}.")


@admin.command("sync-assignments")
@click.argument("course", required=False)
def sync_assignments(course: str | None) -> None:
    """Read the assignment folders into COURSE, or into every course."""
    with work() as (session, config):
        found = [courses.course_by_slug(session, course)] if course else list(session.scalars(select(Course)))
        for item in found:
            _say_changes(item.slug, sync.sync_assignments(session, config, item))


@admin.command("set-dates")
@click.argument("course")
@click.argument("slug")
@click.option("--open", "open_at", type=_DATE_OR_NEVER, help="`never`: it is open from the start.")
@click.option("--due", "due_at", type=_DATE_OR_NEVER, help="`never`: nothing is late.")
@click.option("--late-until", type=_DATE_OR_NEVER, help="`never`: the assignment never closes.")
def set_dates(course: str, slug: str, **given: datetime | str | None) -> None:
    """Set when an assignment opens, is due and closes, in the course's time zone; dates that are not named stay.

    Then print the expected wait at the due date, with the nodes that are in service now.
    """
    with work() as (session, _config):
        row = session.scalar(
            select(Assignment)
            .join(Assignment.course)
            .where(Course.slug == course, Assignment.slug == slug)
            .options(joinedload(Assignment.course))
        )
        if row is None:
            raise click.ClickException(f"There is no assignment {slug} in {course}.")
        zone = ZoneInfo(row.course.timezone)
        chosen = {name: _chosen(at, getattr(row, name), zone) for name, at in given.items()}
        courses.set_dates(
            session, row, open_at=chosen["open_at"], due_at=chosen["due_at"], late_until=chosen["late_until"]
        )
        named = (
            f"opens: {_on_clock(row.open_at, zone, 'immediately')}",
            f"due: {_on_clock(row.due_at, zone)}",
            f"closes: {_on_clock(row.late_until, zone)}",
        )
        click.echo(f"{slug}: {'; '.join(named)}.")
        for lane, expected in surge.expectations(session, row, now=now(session)) if row.due_at else ():
            click.echo(expected.sentence(lane.value))


@admin.command("seed-demo")
@click.option(
    "--password",
    envvar="LADDER_DEMO_PASSWORD",
    help="Password of all demo accounts; default: a random one, which is printed.",
)
@click.option("--if-empty", is_flag=True, help="Do nothing if a course exists already.")
def seed_demo(password: str | None, *, if_empty: bool) -> None:
    """Make the demo course with its people and all assignments, or bring it up to date."""
    chosen = password or secrets.token_urlsafe(12)
    with work() as (session, config):
        if if_empty and session.scalar(select(Course.id).limit(1)) is not None:
            click.echo("A course exists already; nothing was changed.")
            return
        seeded = demo.seed(session, config, password=chosen, renew=password is not None)
        _say_changes(demo.SLUG, list(seeded.changes))
    for email in seeded.created:
        click.echo(f"Made an account for {email}.")
    if password is None and seeded.created:
        click.echo(f"The password of these accounts is {chosen}")
    elif not seeded.created and not seeded.renewed:
        click.echo("The demo accounts exist already; their passwords are unchanged.")


@admin.command()
@click.option("--output", type=_FILE, help="Write it to this file instead of printing it.")
def openapi(output: Path | None) -> None:
    """Print the API's OpenAPI description."""
    text = json.dumps(create_app(read_config()).openapi(), indent=2, ensure_ascii=False)
    if output is None:
        click.echo(text)
    else:
        output.write_text(text + "\n", encoding="utf-8")


def _asked_password(*, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    password: str = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    return password


def _say_changes(course: str, changes: list[sync.Change]) -> None:
    for change in changes:
        if change.number is not None:
            click.echo(f"{course}: {change.slug} is at version {change.number} ({change.bundle[:19]}).")
        if change.quiz is not None:
            again = "".join(
                f" {count} answers to {name!r} are right now." for name, count in change.marked_right.items()
            )
            click.echo(f"{course}: {change.slug} has quiz {change.quiz}.{again}")
    if not changes:
        click.echo(f"{course}: nothing changed.")


def _chosen(given: datetime | str | None, before: datetime | None, zone: ZoneInfo) -> datetime | None:
    """What was named, on the course's clock; what was not stays."""
    if given is None:
        return before
    return given.replace(tzinfo=zone).astimezone(UTC) if isinstance(given, datetime) else None


def _on_clock(at: datetime | None, zone: ZoneInfo, without: str = NEVER) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M %Z}" if at is not None else without


for _command in (*COMMANDS, *NODES, *LEADERBOARDS, *SIMILARITY, *TERMS, settle_grades):
    admin.add_command(_command)
