"""A small course in the middle of its term: what three students handed in, and what the staff have to do with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.contract import Lane, Phase, Work
from server import announcements
from server.comments import comments
from server.courses import courses, demo
from server.courses.courses import Membership
from server.gradebook import extensions
from server.leaderboard import milestones
from server.models import Showing, Submission, User
from server.regrades import requests
from tests.browser import results
from tests.browser.stage import Stage

BOB, CAROL = "bob@example.org", "carol@example.org"
RATIOS = {"1_runs_of_elements": 1.71, "2_small_blocks": 1.07}
"""What the published milestones of the first rung get here; anything else is as fast as the reference."""


def populate(scene: Stage) -> dict[str, str]:
    """Hand in, grade, ask and answer; public ids of what pictures show, by name."""
    ids = {"wrong": scene.grade(results.wrong(), results.WRONG_SOURCE, ago=timedelta(hours=30))}
    ids["passed"] = scene.grade(results.passed(), results.SOURCE, ago=timedelta(hours=26))
    scene.grade(results.passed(1.31, 0.04), results.SOURCE, email=BOB, ago=timedelta(hours=20))
    scene.grade(results.passed(0.93, 0.02), results.SOURCE, email=CAROL, ago=timedelta(hours=10))
    ids["matrix"] = scene.grade(results.columns(), results.SOURCE, slug="softmax", ago=timedelta(hours=5))
    ids |= _on_the_gpu(scene)
    _talk(scene, ids)
    ids["running"] = _running(scene)
    return ids


def _on_the_gpu(scene: Stage) -> dict[str, str]:
    """Times on an H200: the milestones', each student's, and one that is too good."""
    scene.serve(Lane.cpu, Lane.h200)
    check = results.gpu_check()
    with scene.database.transaction() as session:
        course = courses.course_by_slug(session, demo.SLUG)
        ours = milestones.membership(session, course, datetime.now(UTC))
        detail = courses.assignment_of(session, ours, "vector_add")
        milestones.hand_in(session, detail, ours, Lane.h200, config=scene.config, now=datetime.now(UTC))
    while (task := scene.next_task()) is not None:
        ratio = next((ratio for name, ratio in RATIOS.items() if task.request.filename.startswith(name)), 1.0)
        scene.finish(task, results.gpu_measured(ratio) if task.request.work is Work.measure else check)
    first = results.SOURCE.replace("block = 1024", "block = 128")
    found = {"slow": scene.measure(check, results.gpu_measured(1.9), source=first)}
    found["fast"] = scene.measure(check, results.gpu_measured(1.08), source=results.SOURCE)
    other, small = (results.SOURCE.replace("block = 1024", f"block = {size}") for size in (2048, 512))
    scene.measure(check, results.gpu_measured(1.22), source=results.SOURCE, email=BOB)
    scene.measure(check, results.gpu_measured(0.97), source=other, email=CAROL)
    held = results.gpu_measured(0.4, held=True, held_reason="Shorter than the device can do.")
    found["held"] = scene.measure(check, held, source=small, email=BOB)
    for name in ("slow", "fast"):
        scene.leave(found[name], results.machine_code())
    return found


def _talk(scene: Stage, ids: dict[str, str]) -> None:
    """An announcement, a comment at a line, a request for a regrade, an extension."""
    now = datetime.now(UTC)

    def announce(session: Session) -> None:
        text = "Softmax is open. **Read the row once**: the second milestone shows what a second pass costs."
        announcements.write(session, _member(session, "tom"), announcements.Draft("The second rung is open", text))

    def comment(session: Session) -> None:
        work, place = _submission(session, ids["wrong"]), comments.Place(first_line=21, last_line=21)
        text = "Which index does the last program own when n is no multiple of the block?"
        comments.post(session, _member(session, "tom"), work, place, text=text, showing=Showing.at_once, now=now)

    def ask(session: Session) -> None:
        text = "The second case was measured while the node reported a power limit. Could it be taken again?"
        requests.ask(session, _member(session, "alice"), _submission(session, ids["slow"]), text, now=now)

    def extend(session: Session) -> None:
        tom = _member(session, "tom")
        rung = courses.assignment_of(session, tom, "softmax").row
        student = session.scalars(select(User.id).where(User.email == CAROL)).one()
        extensions.give(
            session, tom, assignment_ids=[rung.id], user_ids=[student], reason="Ill for a week.", days=7, now=now
        )

    steps: tuple[Callable[[Session], None], ...] = (announce, comment, ask, extend)
    for step in steps:
        with scene.database.transaction() as session:
            step(session)


def _running(scene: Stage) -> str:
    """Bob's, on its way."""
    scene.serve(Lane.cpu)
    public_id = scene.submit(f"{results.SOURCE}# new\n", email=BOB, ago=timedelta(seconds=5))
    task = scene.claim(ago=timedelta(seconds=4.8))
    for phase, seconds in ((Phase.preparing, 4.6), (Phase.compiling, 4.1), (Phase.checking, 2.2)):
        scene.phase(task, phase, ago=timedelta(seconds=seconds))
    for case in results.CASES[:5]:
        scene.case(task, case)
    return public_id


def _member(session: Session, name: str) -> Membership:
    user = session.scalars(select(User).where(User.email == f"{name}@example.org")).one()
    return courses.membership(session, user, demo.SLUG)


def _submission(session: Session, public_id: str) -> Submission:
    return session.scalars(select(Submission).where(Submission.public_id == public_id)).one()
