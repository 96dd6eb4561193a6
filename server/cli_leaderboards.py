"""`ladder admin …`, the part for leaderboards: baselines on them, and their first places graded once more."""

from __future__ import annotations

import click

from autograder.contract import Lane
from server import audit
from server.console import work
from server.courses import courses
from server.courses.courses import AssignmentDetail
from server.db import now
from server.grading.confirm import TOP, confirm_top
from server.leaderboard import milestones


@click.command("milestones")
@click.argument("course")
@click.option("--rung", help="Only this assignment, by its slug.")
@click.option("--lane", type=click.Choice(list(Lane)), help="Only this lane; default: all that rank.")
def milestones_command(course: str, rung: str | None, lane: str | None) -> None:
    """Submit the milestones, reference kernels and library calls that the leaderboards of COURSE lack.

    A library call is held for review like any other submission; clear it to give it a row.
    """
    with work() as (session, config):
        row = courses.course_by_slug(session, course)
        at = now(session)
        ours = milestones.membership(session, row, at)
        for detail in courses.assignments_of(session, ours, at):
            for each in _lanes(detail, lane) if rung in {None, detail.slug} else ():
                handed = milestones.hand_in(session, detail, ours, each, config=config, now=at)
                click.echo(f"{detail.slug} on {each}: {len(handed)} handed in.")


@click.command("confirm")
@click.argument("course")
@click.option(
    "--top", type=click.IntRange(1, 100), default=TOP, show_default=True, help="Ranks to confirm on each leaderboard."
)
@click.option("--reason", default="", help="For the audit log.")
def confirm_command(course: str, top: int, reason: str) -> None:
    """Confirm the first ranks of COURSE's leaderboards: grade them again on new inputs when the queue is empty."""
    with work() as (session, _config):
        row = courses.course_by_slug(session, course)
        count = confirm_top(session, row.id, now=now(session), top=top)
        said = {"top": top, "queued": count}
        audit.record(session, action="leaderboard.confirmed", subject=f"course:{course}", detail=said, reason=reason)
        click.echo(f"{course}: {count} queued.")


def _lanes(detail: AssignmentDetail, lane: str | None) -> tuple[Lane, ...]:
    return tuple(each for each in detail.board_lanes if lane in {None, each.value})


COMMANDS = (milestones_command, confirm_command)
