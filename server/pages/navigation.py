"""The places of a course: what its navigation leads to, for whom.

A page that a member can go to from anywhere has its line here; a test follows every one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from server.courses.courses import Membership


@dataclass(frozen=True)
class Place:
    """A page of a course.

    Attributes:
        path: what follows `/courses/<slug>`; `""` is the ladder.
        below: what else belongs to it, as beginnings of paths: while one is looked at, the place is the current one.
    """

    label: str
    path: str
    staff: bool = False
    instructor: bool = False
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Places under one heading."""

    label: str
    places: tuple[Place, ...]


class Link(NamedTuple):
    """A place as a link."""

    label: str
    url: str
    current: bool


class Menu(NamedTuple):
    """A group as a menu."""

    label: str
    links: tuple[Link, ...]
    current: bool


EVERYBODY = (
    Place("Overview", "/staff", staff=True),
    Place("Ladder", "", below=("/assignments",)),
    Place("Grades", "/grades"),
    Place("Standings", "/standings"),
    Place("Announcements", "/announcements"),
    Place("Queue", "/queue"),
)
STAFF = (
    Group(
        "Grading",
        (
            Place("Gradebook", "/gradebook", staff=True),
            Place("Submissions", "/submissions", staff=True),
            Place("Held for review", "/review", staff=True),
            Place("Regrade requests", "/regrade-requests", staff=True),
            Place("Regrades", "/regrades", staff=True),
            Place("Similarity", "/similarity", staff=True),
            Place("Statistics", "/statistics", staff=True),
        ),
    ),
    Group(
        "Course",
        (
            Place("Schedule", "/schedule", staff=True),
            Place("Roster", "/roster", staff=True),
            Place("Extensions", "/extensions", staff=True),
            Place("View as a student", "/preview", staff=True),
            Place("Audit log", "/audit", staff=True),
            Place("Settings", "/settings", instructor=True),
        ),
    ),
)


def first_page(member: Membership) -> str:
    """Where a member of one course begins: staff with their overview, students with the ladder."""
    return f"/courses/{quote(member.course.slug)}{'/staff' if member.is_staff else ''}"


def links(member: Membership, path: str) -> tuple[Link, ...]:
    """What every member can go to, for staff their overview too; `path` is the address of the page that is shown."""
    return tuple(_link(member, place, path) for place in EVERYBODY if _may(member, place))


def menus(member: Membership, path: str) -> tuple[Menu, ...]:
    """What staff can go to besides; none for a student."""
    found = []
    for group in STAFF:
        places = tuple(_link(member, place, path) for place in group.places if _may(member, place))
        if places:
            found.append(Menu(group.label, places, any(link.current for link in places)))
    return tuple(found)


def _may(member: Membership, place: Place) -> bool:
    return member.is_instructor if place.instructor else member.is_staff or not place.staff


def _link(member: Membership, place: Place, path: str) -> Link:
    home = f"/courses/{quote(member.course.slug)}"
    url = home + place.path
    begins = [home + below for below in place.below] + ([url] if place.path else [])
    return Link(place.label, url, path == url or any(path.startswith(f"{begin}/") for begin in begins))
