"""What is compared with what."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Which(StrEnum):
    """Which submissions of a student."""

    latest = "latest"
    best = "best"
    every = "all"


@dataclass(frozen=True)
class Scope:
    """What a comparison of one assignment's submissions looks at besides them.

    Attributes:
        which: of each student.
        courses: ids of other courses whose submissions to the assignment of the same slug are looked at too.
        public: the files of the folder of public solutions.
        staff: the staff's own solutions.
    """

    which: Which = Which.latest
    courses: tuple[int, ...] = ()
    public: bool = True
    staff: bool = True
