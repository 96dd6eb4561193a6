"""`ladder admin …`: what is done on the server's own console, with the server's own configuration and database."""

from __future__ import annotations

import json
import os
import secrets
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
from redis import RedisError
from sqlalchemy import select
from sqlalchemy.orm import joinedload

from server import migrations
from server.accounts import service as accounts
from server.app import create_app
from server.cli_grades import settle_grades
from server.cli_leaderboards import COMMANDS as LEADERBOARDS
from server.cli_operations import COMMANDS
from server.cli_similarity import COMMANDS as SIMILARITY
from server.cli_terms import COMMANDS as TERMS
from server.console import opened, read_config, work
from server.courses import demo, sync
from server.courses import service as courses
from server.db import after_commit, now
from server.grading import receipt_keys
from server.grading import service as grading
from server.models import Assignment, Course, Node, Role
from server.nodes import access, invites
from server.nodes import service as nodes
from server.surge import service as surge

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
    migrations.upgrade(config.database_url, revision)
    click.echo(f"The database is at revision {migrations.current(config.database_url)}.")
    if revision == migrations.HEAD:
        with opened(config) as database, database.transaction() as session:
            receipt_keys.keep(session, receipt_keys.key_of(config), now=now(session))


@admin.command()
@click.argument("revision")
@click.confirmation_option(prompt="What newer revisions stored will be lost. Go on?")
def downgrade(revision: str) -> None:
    """Take the tables down to REVISION (`base` removes them all)."""
    config = read_config()
    migrations.downgrade(config.database_url, revision)
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
    """Give an account another password and end its logins."""
    password = _asked_password(from_stdin=password_stdin)
    with work() as (session, _config):
        accounts.set_password(session, accounts.user_by_email(session, email), password)
        click.echo(f"{email} has a new password.")


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
@click.option("--open", "open_at", type=_DATE_OR_NEVER, help="`never`: the assignment is open already.")
@click.option("--due", "due_at", type=_DATE_OR_NEVER, help="`never`: nothing is late.")
@click.option("--late-until", type=_DATE_OR_NEVER, help="`never`: the assignment never closes.")
def set_dates(course: str, slug: str, **given: datetime | str | None) -> None:
    """Say when an assignment begins, is due, and closes, on the course's clock; what is not named stays.

    Then it says how long the wait before the due date will be, with the nodes that are in service now.
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
        named = (("opens", row.open_at), ("due", row.due_at), ("closes", row.late_until))
        click.echo(f"{slug}: {', '.join(f'{word} {_on_clock(at, zone)}' for word, at in named)}.")
        for lane, expected in surge.expectations(session, row, now=now(session)) if row.due_at else ():
            click.echo(expected.sentence(lane.value))


@admin.command("create-node")
@click.argument("name")
@click.option("--token-file", type=_FILE, help="Write the token there, for its owner only, instead of showing it.")
@click.option("--token-from", type=_FILE, help="The node has the token in this file already.")
@click.option("--rotate", is_flag=True, help="If there is a node of this name, give it a new token.")
def create_node(name: str, token_file: Path | None, token_from: Path | None, *, rotate: bool) -> None:
    """Register a machine that grades, and show its token once."""
    with work() as (session, config):
        if token_from is not None:
            given = token_from.read_text(encoding="utf-8").strip()
            node, token = nodes.adopt_token(session, name=name, token=given, now=datetime.now(UTC)), ""
        elif rotate and session.scalar(select(Node.id).where(Node.name == name)) is not None:
            node, token = nodes.rotate_token(session, name=name)
            grading.fence_off(session, node.id, "the node's token was replaced", now=now(session), config=config)
        else:
            node, token = nodes.create_node(session, name=name, now=datetime.now(UTC))
        after_commit(session, partial(access.grant, config.broker_url, [(node.name, node.key)]))
        if token_from is not None:
            click.echo(f"{name} is registered.")
        elif token_file is None:
            click.echo(token)
        else:
            _write_secret(token_file, token)
            click.echo(f"The token of {name} is in {token_file}.")


@admin.command("invite-node")
@click.argument("name")
def invite_node(name: str) -> None:
    """Make a code with which one machine can join as node NAME within a day."""
    with work() as (session, config):
        code = invites.invite(session, name=name, now=datetime.now(UTC))
        click.echo("On that machine, as root, within a day:", err=True)
        click.echo(f"    ladder node join {config.public_url} --name {name} --code {code}")


@admin.command("sync-broker")
def sync_broker() -> None:
    """Tell the broker again who its nodes are; one that lost its own list lets nobody in."""
    with work() as (session, config):
        try:
            names = access.sync(session, config.broker_url)
        except RedisError as error:
            raise click.ClickException(f"The broker did not take it: {error}") from None
    click.echo(f"The broker lets in: {', '.join(names) or 'no node'}.")


@admin.command("seed-demo")
@click.option(
    "--password", envvar="LADDER_DEMO_PASSWORD", help="Of every demo account; made up and printed where none is given."
)
@click.option("--if-empty", is_flag=True, help="Do nothing where there is a course already.")
def seed_demo(password: str | None, *, if_empty: bool) -> None:
    """Make the demo course with its people and all assignments, or bring it up to date."""
    chosen = password or secrets.token_urlsafe(12)
    with work() as (session, config):
        if if_empty and session.scalar(select(Course.id).limit(1)) is not None:
            click.echo("There is a course already; nothing was changed.")
            return
        seeded = demo.seed(session, config, password=chosen, renew=password is not None)
        _say_changes(demo.SLUG, list(seeded.changes))
    for email in seeded.created:
        click.echo(f"Made an account for {email}.")
    if password is None and seeded.created:
        click.echo(f"The password of these accounts is {chosen}")
    elif not seeded.created and not seeded.renewed:
        click.echo("The demo accounts were there already; their passwords are unchanged.")


@admin.command()
@click.option("--output", type=_FILE, help="Write it there instead of showing it.")
def openapi(output: Path | None) -> None:
    """Show the API's OpenAPI description."""
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


def _on_clock(at: datetime | None, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M %Z}" if at is not None else "never"


def _write_secret(path: Path, text: str) -> None:
    """Nobody else may read it, from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    new.replace(path)


for _command in (*COMMANDS, *LEADERBOARDS, *SIMILARITY, *TERMS, settle_grades):
    admin.add_command(_command)
