"""`ladder admin …`: what ends a course, begins the next one from it, and forgets people."""

from __future__ import annotations

import click
from sqlalchemy import select

from server.accounts import accounts
from server.console import work
from server.courses import courses
from server.courses.courses import Membership
from server.db import now
from server.models import Course, Role, User
from server.terms import erasure, terms


@click.command("archive-course")
@click.argument("course")
@click.option(
    "--confirm", prompt="Type the course's short name to archive it", help="The course's short name, to confirm."
)
def archive_course(course: str, confirm: str) -> None:
    """Archive COURSE: it can be read but not changed."""
    with work() as (session, _config):
        found = courses.course_by_slug(session, course)
        terms.archive(session, _console(found), typed=confirm, now=now(session))
        click.echo(f"{course} is archived.")


@click.command("unarchive-course")
@click.argument("course")
def open_course(course: str) -> None:
    """Let an archived COURSE be changed again."""
    with work() as (session, _config):
        terms.open_again(session, _console(courses.course_by_slug(session, course)))
        click.echo(f"{course} can be changed again.")


@click.command("clone-course")
@click.argument("course")
@click.argument("slug")
@click.argument("title")
@click.option("--weeks", type=int, required=True, help="Weeks by which its dates move, at the same hour.")
def clone_course(course: str, slug: str, title: str, weeks: int) -> None:
    """Start a new course SLUG from COURSE: its settings, assignments and dates, without people."""
    with work() as (session, _config):
        member = _console(courses.course_by_slug(session, course))
        made = terms.clone(session, member, slug=slug, title=title, weeks=weeks, now=now(session))
        click.echo(f"Made the course {made.slug}; `ladder admin enrol` puts its instructor in it.")


@click.command("erase-account")
@click.argument("email")
@click.option("--confirm", prompt="Type the e-mail address again to erase the account", help="The address, to confirm.")
@click.option("--reason", default="", help="For the audit log.")
def erase_account(email: str, confirm: str, reason: str) -> None:
    """Erase the account with this address for good; its submissions stay under a pseudonym."""
    with work() as (session, _config):
        user = accounts.user_by_email(session, email)
        erasure.check_typed(user, confirm)
        erasure.erase_account(session, user, now=now(session), reason=reason)
        click.echo(f"The account is erased. What is left of it has the pseudonym {user.handle}.")


@click.command("purge-archived")
@click.option("--dry-run", is_flag=True, help="Only list the courses.")
def apply_retention(*, dry_run: bool) -> None:
    """Erase the students of archived courses whose retention is over. Run it daily."""
    with work() as (session, _config):
        found = erasure.due(session, now(session))
        for course in found:
            if dry_run:
                click.echo(f"{course.slug}: its students would be erased.")
                continue
            done = erasure.purge(session, course, now=now(session))
            click.echo(f"{course.slug}: {done.erased} accounts erased, {done.kept} kept (staff, or in other courses).")
        if not found:
            waiting = session.scalars(select(Course.slug).where(Course.archived_at.is_not(None))).all()
            click.echo(f"There is nothing to do; archived: {', '.join(waiting) or 'none'}.")


def _console(course: Course) -> Membership:
    """The server's own console decides as an instructor; its entries in the audit log name nobody."""
    return Membership(course, User(), None, Role.instructor)


COMMANDS = (archive_course, open_course, clone_course, erase_account, apply_retention)
