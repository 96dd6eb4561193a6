"""`ladder admin …`, the part that keeps an installation running: doctor, backup, nodes, alerts."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.signing import key_id
from server import alerts, audit
from server.console import opened, read_config, work
from server.db import now
from server.errors import ConflictError
from server.grading import receipt_keys
from server.grading.interface import FORMULA_VERSION, requeue
from server.grading.review import decide
from server.models import Assignment, Course, Review, State, Submission
from server.operations import doctor, overview
from server.operations.backup import backup as make_backup
from server.operations.doctor_course import BACKUP_MADE
from server.operations.findings import Finding, Level
from server.operations.metrics import version
from server.operations.overview import NodeAction
from server.operations.rehearsals import record_rehearsal as keep_rehearsal
from server.operations.restore import restore as put_back
from server.reconciliation import runs as reconciliation
from server.regrades import console

_NEW_FILE = click.Path(dir_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SIGNS = {Level.ok: "ok      ", Level.warning: "WARNING ", Level.problem: "PROBLEM "}
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.command("doctor")
@_as_json
def doctor_command(*, as_json: bool) -> None:
    """Check everything that this installation needs and say what to do. Exit status: 1 if there is a problem."""
    findings = []
    for finding in doctor.examine(os.environ):
        findings.append(finding)
        if not as_json:
            _say_finding(finding)
    found = doctor.summarise(findings)
    if as_json:
        _say_json({"findings": [dataclasses.asdict(item) for item in findings], **dataclasses.asdict(found)})
    else:
        click.echo(f"{found.ok} ok, {found.warnings} warnings, {found.problems} problems.")
    sys.exit(1 if found.problems else 0)


@click.command("reconcile")
@click.option("--deep", is_flag=True, help="Read every source and compare it with its hash.")
@_as_json
def accounts_command(*, deep: bool, as_json: bool) -> None:
    """Check that every submission is accounted for. Exit status: 1 if not."""
    with opened(read_config()) as database, database.reading() as session:
        found = reconciliation.examine(session, deep=deep)
    if as_json:
        _say_json({**dataclasses.asdict(found), "at": found.at.isoformat(), "balanced": found.balanced})
    else:
        click.echo(f"{found.received} received = {found.final} final + {found.in_flight} in flight.")
        click.echo(f"All accounted for ({found.took_s:.1f} s)." if found.balanced else reconciliation.summary(found))
    sys.exit(0 if found.balanced else 1)


@click.command("backup")
@click.argument("file", type=_NEW_FILE)
@click.option("--keep", type=click.IntRange(min=1), help="Keep only this many of the newest backups beside FILE.")
def backup_command(file: Path, keep: int | None) -> None:
    """Write a consistent snapshot of the database to FILE while the installation runs."""
    config = read_config()
    with opened(config) as database:
        manifest = make_backup(database, config.database_url, file, version=version(), keep=keep)
        with database.transaction() as session:
            detail = {"submissions": len(manifest.sources), "bytes": file.stat().st_size}
            audit.record(session, action=BACKUP_MADE, subject=f"backup:{file.name}"[:120], detail=detail)
    click.echo(f"{file}: {len(manifest.sources)} submissions, {file.stat().st_size:,} bytes.")
    click.echo("It does not hold node keys, passwords, TLS keys or the configuration; see SECRETS.txt inside it.")


@click.command("restore")
@click.argument("file", type=_FILE)
def restore_command(file: Path) -> None:
    """Put FILE into the empty database that LADDER_DATABASE_URL names, and check every submission's bytes."""
    config = read_config()
    with opened(config):
        found = put_back(file, config.database_url)
    rows = sum(found.manifest.counts.values())
    click.echo(
        f"Restored {rows} rows of {found.manifest.made_at}; the bytes of {found.submissions} submissions are right."
    )
    if found.accounts.balanced:
        click.echo("All submissions are accounted for.")
    else:
        # It was so when the backup was made; all of that is back.
        click.echo(f"As in the backup, not all is accounted for: {reconciliation.summary(found.accounts)}", err=True)
    click.echo("The dispatcher requeues what ran when the backup was made.")


@click.command("requeue-failed")
@click.option("--submission", help="Only the submission with this receipt number, even if it is done.")
def requeue_failed(submission: str | None) -> None:
    """Grade again what failed on our side: everything, or one submission. It costs students nothing."""
    with work() as (session, _config):
        query = select(Submission).where(Submission.state == State.failed)
        if submission is not None:
            query = select(Submission).where(Submission.public_id == submission)
        rows = session.scalars(query.order_by(Submission.id)).all()
        if submission is not None and not rows:
            raise click.ClickException(f"There is no submission {submission}.")
        done = sum(_requeue_one(session, row, one=submission is not None) for row in rows)
        click.echo(f"{done} put back in the queue." if done else "Nothing has failed.")


def _requeue_one(session: Session, row: Submission, *, one: bool) -> bool:
    try:
        requeue(session, row, now=now(session))
    except ConflictError:
        if one:
            raise
        return False  # Somebody else was faster.
    audit.record(session, action="submission.requeued", subject=f"submission:{row.public_id}")
    return True


@click.command("review")
@click.argument("submission")
@click.argument("decision", type=click.Choice(["clear", "reject", "hold"]))
@click.option("--reason", default="", help="For the audit log; the student sees only the decision.")
def review(submission: str, decision: str, reason: str) -> None:
    """Decide whether the speed of SUBMISSION, a receipt number, counts. Its verdict and correctness points stay."""
    with work() as (session, _config):
        row = session.scalar(select(Submission).where(Submission.public_id == submission))
        if row is None:
            raise click.ClickException(f"There is no submission {submission}.")
        done = decide(session, row, _DECISIONS[decision], actor=None, reason=reason, now=now(session))
        click.echo(f"{submission} is {done.review}; it has {done.points:g} points.")


_DECISIONS = {"clear": Review.cleared, "reject": Review.rejected, "hold": Review.held}


@click.command("rescore")
@click.argument("course")
@click.argument("slug", required=False)
@click.option("--apply", is_flag=True, help="Change the grades; default: only print what would change.")
@click.option("--reason", default="The points or the formula changed.", show_default=True, help="Students read it.")
@click.option("--may-lower", is_flag=True, help="A mistake is corrected: points may go down too.")
def rescore(course: str, slug: str | None, *, apply: bool, reason: str, may_lower: bool) -> None:
    """Compute the points of COURSE, or of one assignment, again from stored samples, without grading.

    It uses this version's formula and the assignment's current points and tiers. The result is a regrade proposal
    on the course's pages, where it can be rolled back.
    """
    with work() as (session, _config):
        query = select(Assignment).join(Assignment.course).where(Course.slug == course)
        rows = session.scalars(query.where(Assignment.slug == slug) if slug else query).all()
        if not rows:
            raise click.ClickException(f"There is no assignment {slug or ''} in {course}.")
        for row in rows:
            _rescore_one(session, row, reason=reason, apply=apply, may_lower=may_lower)
        if not apply:
            session.rollback()
            click.echo("Nothing was changed: this was a dry run. Pass --apply to change the grades.")


def _rescore_one(session: Session, assignment: Assignment, *, reason: str, apply: bool, may_lower: bool) -> None:
    found = console.rescore(session, assignment, reason=reason, apply=apply, may_lower=may_lower, now=now(session))
    for item in found:
        click.echo(f"{assignment.slug} {item.submission}: {_points(item.before)} → {_points(item.after)}")
    click.echo(f"{assignment.slug}: {len(found)} grades change (formula {FORMULA_VERSION}).")


def _points(points: float | None) -> str:
    return "none" if points is None else f"{points:.2f}"


@click.command("receipt-key")
@click.option("--rotate", is_flag=True, help="Sign with a new key from now on; old receipts can still be verified.")
def receipt_key(*, rotate: bool) -> None:
    """Print the public keys of receipts; make the first one if there is none."""
    with work() as (session, config):
        if rotate:
            receipt_keys.rotate(session, config, now=now(session))
            audit.record(session, action="receipt-key.rotated", subject="receipt-key")
        else:
            receipt_keys.keep(session, receipt_keys.key_of(config), now=now(session))
        for key in receipt_keys.all_keys(session):
            until = f"until {key.retired_at:%Y-%m-%d %H:%M}" if key.retired_at else "signs"
            click.echo(f"{key_id(key.public)}  {key.public}  since {key.created_at:%Y-%m-%d %H:%M}  {until}")


def _node_command(action: NodeAction, text: str) -> click.Command:
    @click.command(action.value, help=text)
    @click.argument("node")
    def command(node: str) -> None:
        with work() as (session, config):
            row = overview.act_on_node(session, node, action, actor=None, now=now(session), config=config)
            click.echo(f"{row.name}: {action.value}, done. What it is grading may finish.")

    return command


@click.command("alerts")
@click.option("--resolve", type=int, metavar="ID", help="Resolve this alert.")
@_as_json
def alerts_command(*, resolve: int | None, as_json: bool) -> None:
    """List open alerts, or resolve one."""
    with work() as (session, _config):
        if resolve is not None:
            ended = overview.resolve_alert(session, resolve, None, actor=None, now=now(session))
            click.echo(f"{ended.kind.value} about {ended.subject} is resolved.")
            return
        found = [
            {
                "id": alert.id, "kind": alert.kind.value, "subject": alert.subject, "count": alert.count,
                "first_at": alert.first_at.isoformat(), "last_at": alert.last_at.isoformat(), "message": alert.message,
            }
            for alert in alerts.open_alerts(session)
        ]  # fmt: skip
    if as_json:
        _say_json(found)
        return
    for item in found:
        click.echo(
            f"{item['id']:>5}  {item['kind']:18}  {item['subject']}  × {item['count']}  since {item['first_at']}"
        )
        click.echo(f"       {item['message']}")
    click.echo(f"{len(found)} open." if found else "No alert is open.")


@click.command("record-rehearsal")
@click.argument("file", type=_FILE)
def record_rehearsal(file: Path) -> None:
    """Keep the JSON report of a chaos run; /operations shows the newest."""
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise click.ClickException(f"{file} is not valid JSON: {error}") from None
    with work() as (session, _config):
        row = keep_rehearsal(session, report, now=datetime.now(UTC))
        click.echo(
            f"Recorded: of {row.at:%Y-%m-%d %H:%M} UTC on {row.machine}, {'held' if row.passed else 'BROKE A PROMISE'}."
        )


def _say_finding(finding: Finding) -> None:
    click.echo(f"{_SIGNS[finding.level]} {finding.check:14} {finding.message}")
    if finding.advice:
        click.echo(f"{'':24}→ {finding.advice}")


def _say_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


COMMANDS = (
    doctor_command, accounts_command, backup_command, restore_command, requeue_failed, alerts_command, record_rehearsal,
    review, rescore, receipt_key,
    _node_command(NodeAction.drain, "Drain NODE: give it nothing new."),
    _node_command(NodeAction.undrain, "Let a drained NODE work again."),
    _node_command(NodeAction.quarantine, "Quarantine NODE: give it only suspects."),
    _node_command(NodeAction.release, "Take NODE out of quarantine."),
    _node_command(NodeAction.disable, "Take NODE out of service; it may come back with `enable`."),
    _node_command(NodeAction.enable, "Put NODE back into service."),
)  # fmt: skip
