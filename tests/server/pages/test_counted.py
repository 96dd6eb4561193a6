"""Speed points by counters: only where no lane that is offered gives them for times, and not while in doubt."""

from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import select

from autograder.assignment import Requirement
from autograder.contract import Counted, Lane, RequirementResult, Review
from autograder.receipts import recompute
from server.grading.receipts import receipt_of
from server.models import Assignment, Submission
from tests.doubles.world import SOURCE, manifest, passed

ASKED = Requirement("coalesced", "Whole sectors", "interpreter", "large", points=40.0, traffic="<= 110")
DOUBT = "The source could reach what counts: it uses `gc`."


@pytest.fixture
def database_url(sqlite_url):
    return sqlite_url


def counted(traffic: int, doubt: str = ""):
    found = Counted("large", "interpreter", {"launches": 1}, {"launches": 1, "traffic": traffic}, doubt=doubt)
    met = RequirementResult(
        "coalesced",
        "Whole sectors",
        "interpreter",
        "traffic <= 110",
        traffic <= 110,
        f"traffic {traffic}.",
        points=40.0,
    )
    return dataclasses.replace(passed(3.0), counted=(found,), requirements=(met,))


def offer(world, lanes):
    with world.database.transaction() as session:
        world.publish(session, manifest(requirements=(ASKED,)))
        session.scalars(select(Assignment)).one().lanes = lanes


def told(world, visit, name, person="Alice"):
    """Points, what the page says, and what of the receipt does not follow."""
    with world.database.reading() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        points, wrong = row.points, recompute(receipt_of(session, row, now=row.uploaded_at))
    return points, visit(person, f"/submissions/{name}")[1], wrong


def test_counters_give_the_speed_points_only_where_no_lane_gives_them_for_times(world, visit):
    offer(world, None)
    points, text, wrong = told(world, visit, world.grade(counted(100)))
    assert (points, wrong) == (60, [])
    assert "For information: it gives no points here." in text
    offer(world, [Lane.cpu.value])
    few = world.grade(counted(300), source=SOURCE)
    points, text, wrong = told(world, visit, few)
    assert (points, wrong) == (60, [])
    for said in ("Not met", "traffic 300.", "0 of 40 for speed, by counters", "Each launch costs microseconds"):
        assert said in text
    # Other samples of the same source change no points that are none of their times'.
    full = world.grade(counted(100), source=SOURCE)
    points, text, wrong = told(world, visit, full)
    assert (points, wrong) == (100, [])
    assert "40 of 40 for speed, by counters: no lane of this course gives them for a time" in text
    assert told(world, visit, few)[0] == 60


def test_points_by_counters_wait_for_staff_where_they_are_in_doubt(world, visit):
    offer(world, [Lane.cpu.value])
    name = world.grade(counted(100, DOUBT))
    points, text, wrong = told(world, visit, name)
    assert (points, wrong, world.submission(name).review) == (60, [], Review.held)
    assert "a person looks at its counters" in text
    assert "it uses" not in text
    assert "it uses" in told(world, visit, name, "Tom")[1]
    # There is nothing to wait for where it earned none.
    assert world.submission(world.grade(counted(300, DOUBT), "Bob")).review is Review.none
