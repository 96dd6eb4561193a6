"""What the points are for, and where those for speed can be had now: the same sentences wherever points are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from autograder.contract import Lane
from server.courses.courses import AssignmentDetail
from server.pages.formats import points
from server.pages.labels import LANES


def speed_note(details: Iterable[AssignmentDetail], in_service: Collection[Lane]) -> str:
    """`Speed points are given on H200 and B200; no node serves any of them now.`; empty where there are none."""
    details = list(details)
    offered = {lane for detail in details if detail.speed_points for lane in detail.speed_lanes}
    lanes = [lane for lane in Lane if lane in offered]
    if not lanes:
        counted = any(detail.speed_points and detail.counted_lanes for detail in details)
        return "Speed points are given on the CPU lane, for what is counted there, not for a time." if counted else ""
    said = f"Speed points are given on {_listed(LANES[lane] for lane in lanes)}"
    served = [lane for lane in lanes if lane in in_service]
    if len(served) == len(lanes):
        return f"{said}."
    if not served:
        return f"{said}; no node serves {'it' if len(lanes) == 1 else 'any of them'} now."
    return f"{said}; nodes serve only {_listed(LANES[lane] for lane in served)} now."


def course_note(details: Sequence[AssignmentDetail], in_service: Collection[Lane]) -> str:
    """The same for a course, with how many of its points are for speed, as the assignments weigh."""
    note = speed_note(details, in_service)
    if not note:
        return ""
    most, speed = (
        sum(worth * detail.row.weight for detail, worth in zip(details, found, strict=True))
        for found in ([one.maximum_points for one in details], [one.speed_points for one in details])
    )
    return f"{points(speed)} of the {points(most)} points are for speed. {note}"


def parts(detail: AssignmentDetail) -> list[tuple[float, str]]:
    """What the points of an assignment are for, with how many: only what there is."""
    found = [
        (detail.spec.points.correctness, "for correctness"),
        (detail.speed_points, "for speed"),
        (detail.quiz_points, "for the quiz"),
        (detail.writeup_points, "for the write-up"),
    ]
    return [(worth, text) for worth, text in found if worth]


def beyond_note(detail: AssignmentDetail, most: float, in_service: Collection[Lane]) -> str:
    """Why a submission that can have `most` points is not worth all that its assignment gives; empty where it is."""
    if most >= detail.maximum_points:
        return ""
    split = _listed(f"{points(worth)} {text}" for worth, text in parts(detail))
    note = speed_note([detail], in_service) if most < detail.submission_points else ""
    return f"The assignment gives {points(detail.maximum_points)} points: {split}. {note}".rstrip()


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
