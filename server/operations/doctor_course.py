"""What `ladder admin doctor` looks at in the database: processes, nodes, rungs, accounts, and what was kept in mind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sized
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from autograder import languages
from autograder.assignment import content_hash
from autograder.contract import CONTRACT_VERSION
from server import alerts
from server.courses.courses import spec_of
from server.db import now
from server.gradebook import recompute
from server.grading import leaderboard_entries
from server.grading.states import WAITING
from server.models import Assignment, AuditEntry, Bundle, Course, Line, Submission
from server.nodes import nodes
from server.operations import overview
from server.operations.findings import Finding, Level, ok, problem, warning
from server.reconciliation import runs as reconciliation

MAX_SKEW_S = 2.0
SERVICE_SILENT = timedelta(seconds=35)
"""They say every ten seconds that they are alive."""
KINDS = ("web", "dispatcher", "recorder")
NOISY = 0.02
"""A spread of the golden kernel's ratio beyond the A/A block's own tolerance."""
LONG_WAIT = timedelta(minutes=30)
BACKUP_AGE = timedelta(days=2)
REHEARSAL_AGE = timedelta(days=180)
IMAGE = "runner image"
"""The fact in which a node that grades in containers names its image."""
BACKUP_MADE = "backup.made"
"""The audit entry that `ladder admin backup` leaves."""


def clock(session: Session) -> Iterator[Finding]:
    """This host's clock against the database's, by which everything is decided."""
    before = datetime.now(UTC)
    theirs = now(session)
    middle = before + (datetime.now(UTC) - before) / 2
    skew_s = (middle - theirs).total_seconds()
    if abs(skew_s) > MAX_SKEW_S:
        said = f"This host's clock is {skew_s:+.1f} s off the database's."
        yield problem("clock", said, "Let both follow NTP (chrony or systemd-timesyncd).")
    else:
        yield ok("clock", f"This host's clock is {skew_s:+.2f} s off the database's.")


def services(session: Session) -> Iterator[Finding]:
    """Whether each kind of process says that it is alive."""
    at = now(session)
    found = overview.services(session)
    for kind in KINDS:
        alive = [item for item in found if item.kind == kind and abs(at - item.last_seen_at) <= SERVICE_SILENT]
        silent = sum(item.kind == kind for item in found) - len(alive)
        if not alive:
            yield problem(
                "services", f"No {kind} sends a heartbeat.", f"Start one with `ladder {kind}`, then look at its log."
            )
        elif silent:
            said = f"{len(alive)} × {kind} alive, {silent} silent without a clean shutdown."
            yield warning(
                "services", said, "If they should run, look at their logs; their rows are removed after a day."
            )
        else:
            yield ok("services", f"{len(alive)} × {kind} alive.")


def nodes_(session: Session) -> Iterator[Finding]:
    """Whether the nodes work."""
    found = overview.nodes_now(session, now(session))
    if not found:
        yield problem("nodes", "No node is registered.", "Invite one: `ladder admin invite-node NAME --lanes …`.")
    for node in found:
        yield _of_node(node)
        skew_s = node.row.clock_skew_s
        if skew_s is not None and abs(skew_s) > MAX_SKEW_S and node.condition != "silent":
            said = f"{node.row.name}: its clock is {skew_s:+.1f} s from ours."
            yield warning("nodes", said, "Let it follow NTP; until then the phases of its attempts show wrong times.")


def _of_node(node: overview.NodeNow) -> Finding:
    name = node.row.name
    if node.trouble and node.condition not in {"silent", "disabled"}:
        return problem(
            "nodes",
            f"{name} takes no work: {node.trouble}",
            "Fix what the message names; see node_unfit in the runbook.",
        )
    if node.condition in _OUT:
        level, says, advice = _OUT[node.condition]
        return Finding("nodes", level, f"{name} {says}{f': {node.why}' if node.why else '.'}", advice.format(name=name))
    floor = node.calibration
    if floor is not None and floor.ratio_spread > NOISY:
        said = f"{name}: its golden kernel differs from itself by up to {floor.ratio_spread:.1%}."
        return warning("nodes", said, "Find what else runs on it; small differences in time cannot be measured there.")
    return ok("nodes", f"{name} works: {', '.join(node.row.lanes)}, {node.running} of {node.row.slots} busy.")


_OUT: Mapping[str, tuple[Level, str, str]] = {
    "silent": (Level.problem, "is silent", "Look at its worker's log; see node_silent in the runbook."),
    "rests": (Level.problem, "rests", "Fix what the reason names; see node_rests in the runbook."),
    "disabled": (Level.warning, "is out of service", "Run `ladder admin enable {name}` when it should work."),
    "drains": (Level.warning, "drains", "Run `ladder admin undrain {name}` when it should work again."),
    "quarantine": (
        Level.warning,
        "is in quarantine and takes only suspects",
        "Run `ladder admin release {name}` when it should take all work.",
    ),
}


def versions(session: Session) -> Iterator[Finding]:
    """Whether all of us speak the same, and lanes grade with the same."""
    found = [node for node in nodes.all_nodes(session) if node.disabled_at is None and node.facts]
    for node in found:
        contract = node.facts.get("contract")
        if contract is not None and contract != str(CONTRACT_VERSION):
            said = f"{node.name} speaks version {contract} of the contract, this server {CONTRACT_VERSION}."
            yield problem("versions", said, "Bring both to the same version; until then its messages are refused.")
    for lane in sorted({lane for node in found for lane in node.lanes}):
        for fact in ("torch", *languages.distributions(), "python"):
            seen = Counter(str(node.facts[fact]) for node in found if lane in node.lanes and fact in node.facts)
            if len(seen) > 1:
                said = f"Nodes of lane {lane} have different {fact}: {', '.join(sorted(seen))}."
                yield warning(
                    "versions", said, "Install the same one: results of a lane should come from one toolchain."
                )
    yield ok("versions", f"{len(found)} nodes compared.")


def images(session: Session) -> Iterator[Finding]:
    """Whether the nodes of a lane that grade in containers use one image."""
    found = [node for node in nodes.all_nodes(session) if node.disabled_at is None and node.facts.get(IMAGE)]
    for lane in sorted({lane for node in found for lane in node.lanes}):
        seen = {str(node.facts[IMAGE]) for node in found if lane in node.lanes}
        if len(seen) > 1:
            said = f"Nodes of lane {lane} use different images: {', '.join(sorted(seen))}."
            yield warning("images", said, "Pull the same digest on all of them.")
    yield ok("images", f"{len(found)} nodes name an image; the others grade without containers.")


def assignments(session: Session) -> Iterator[Finding]:
    """Whether every published rung has its files, and something to grade it."""
    served = nodes.lanes_in_service(session, now=now(session))
    rows = session.scalars(
        select(Assignment)
        .options(joinedload(Assignment.version), joinedload(Assignment.course))
        .order_by(Assignment.id)
    ).all()
    sound = _sound_bundles(session)
    for row in rows:
        name = f"{row.course.slug}/{row.slug}"
        if row.version is None:
            yield problem(
                "assignments", f"{name} has no version.", f"Run `ladder admin sync-assignments {row.course.slug}`."
            )
            continue
        if row.version.bundle_hash not in sound:
            said = f"The files of {name} are missing or do not match their hash: no node can grade it."
            yield problem(
                "assignments",
                said,
                "Restore a backup, or change the assignment and sync it: a new version has new files.",
            )
        lanes = set(spec_of(row.version).lanes)
        if row.published and not lanes & {lane.value for lane in served}:
            said = f"Nothing grades {name}: no working node has {' or '.join(sorted(lanes))}."
            yield warning("assignments", said, "Start a node of one of these lanes, or hide the assignment.")
    yield ok("assignments", f"{len(rows)} assignments checked.")


def _sound_bundles(session: Session) -> set[str]:
    return {hash_ for hash_, data in session.execute(select(Bundle.hash, Bundle.data)) if content_hash(data) == hash_}


def queue(session: Session) -> Iterator[Finding]:
    """Whether anything waits for very long."""
    at = now(session)
    rows = session.execute(
        select(Submission.lane, Submission.line, func.count(), func.min(Submission.place_at))
        .where(Submission.state.in_(WAITING))
        .group_by(Submission.lane, Submission.line)
    ).all()
    for lane, line, count, oldest_at in rows:
        said = f"{count} wait on {lane} ({line}), the oldest for {_age(at - oldest_at)}."
        if at - oldest_at > LONG_WAIT and line not in {Line.confirm, Line.profile}:
            yield warning("queue", said, "Check that nodes of this lane work; see queue_stuck in the runbook.")
        else:
            yield ok("queue", said)
    if not rows:
        yield ok("queue", "Nothing waits.")


def accounts(session: Session) -> Iterator[Finding]:
    """Whether every submission is accounted for, now."""
    found = reconciliation.examine(session)
    said = f"{found.received} received = {found.final} final + {found.in_flight} in flight"
    if found.balanced:
        yield ok("accounts", f"{said}; every rule holds ({found.took_s:.1f} s).")
    else:
        yield problem(
            "accounts", reconciliation.summary(found), "Change nothing; read reconciliation_failed in the runbook."
        )


def _wrong_by_course(session: Session, differences: Callable[[Session, int], Sized]) -> str:
    """How many there are in which course; empty where there are none."""
    courses = session.execute(select(Course.id, Course.slug).order_by(Course.slug))
    counts = ((slug, len(differences(session, course_id))) for course_id, slug in courses)
    return ", ".join(f"{slug}: {count:,}" for slug, count in counts if count)


def grades(session: Session) -> Iterator[Finding]:
    """Whether every stored grade is what it comes to."""
    wrong = _wrong_by_course(session, recompute.differences)
    if wrong:
        said = f"Stored grades are wrong or missing: {wrong}."
        yield problem(
            "grades",
            said,
            "Run `ladder admin recompute-grades`; after an upgrade during a term nothing else is needed.",
        )
    else:
        yield ok("grades", "Every stored grade is correct.")


def boards(session: Session) -> Iterator[Finding]:
    """Whether everybody's best on every board is what the results come to."""
    wrong = _wrong_by_course(session, leaderboard_entries.differences)
    if wrong:
        said = f"Stored leaderboard places are wrong or missing: {wrong}."
        yield problem("boards", said, "Run `ladder admin recompute-grades`, and report how it happened.")
    else:
        yield ok("boards", "Every leaderboard matches its results.")


def alerts_(session: Session) -> Iterator[Finding]:
    """What is open."""
    open_now = Counter(alert.kind.value for alert in alerts.open_alerts(session))
    if open_now:
        said = ", ".join(f"{count} × {kind}" for kind, count in sorted(open_now.items()))
        yield warning(
            "alerts", f"Open: {said}.", "`ladder admin alerts` lists them; the runbook has a section for each kind."
        )
    else:
        yield ok("alerts", "None is open.")


def backups(session: Session) -> Iterator[Finding]:
    """How old the newest one is."""
    newest = session.scalar(select(func.max(AuditEntry.at)).where(AuditEntry.action == BACKUP_MADE))
    if newest is None:
        yield warning("backups", "No backup was ever made.", "Run `ladder admin backup FILE --keep 14` every night.")
        return
    age = now(session) - newest
    if age > BACKUP_AGE:
        yield warning(
            "backups", f"The newest one is {_age(age)} old.", "See why the nightly `ladder admin backup` stopped."
        )
    else:
        yield ok("backups", f"The newest one is {_age(age)} old.")


def rehearsal(session: Session) -> Iterator[Finding]:
    """Whether breaking everything was tried lately."""
    newest = overview.last_rehearsal(session)
    if newest is None:
        yield warning(
            "rehearsal", "None was recorded.", "Run `make chaos` once a term, then `ladder admin record-rehearsal`."
        )
    elif not newest.passed:
        yield problem(
            "rehearsal",
            f"The newest one, of {newest.at:%d %B %Y}, failed.",
            "Read its report and fix the cause.",
        )
    elif now(session) - newest.at > REHEARSAL_AGE:
        yield warning("rehearsal", f"The newest one is of {newest.at:%d %B %Y}.", "Run `make chaos` again.")
    else:
        yield ok("rehearsal", f"The newest one, of {newest.at:%d %B %Y}, held.")


def _age(age: timedelta) -> str:
    minutes = max(0, int(age.total_seconds() // 60))
    if minutes < 120:  # noqa: PLR2004  # two hours
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"  # noqa: PLR2004  # two days
