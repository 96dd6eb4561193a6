"""Fingerprints of reduced sources and what two of them share: winnowing, by copydetect.

What was handed out to everybody is taken away by every fragment of it, not only by those that winnowing would choose:
the copy in a student's file is chosen anew by what stands around it. copydetect's own exclusion is not used, because
it pairs fragments that repeat within one file with each other and so loses the student's own. What most of a course
has alike is taken away as well: it is how the exercise is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from server.similarity.reduced import Reduced

FRAGMENT = 35
"""So many characters of reduced source are one fragment: shorter matches are chance."""
WINDOW = 12
"""Of every so many fragments one is kept: a match of `FRAGMENT + WINDOW - 1` characters is never missed."""
LEAST_COMMON = 70
"""Characters that two sources have to share to be shown."""
LEAST_SHARE = 0.2
COMMON_FROM = 8
COMMON_PART = 0.35
"""A fragment that so many people, and so large a part of them, have is how the exercise is done."""
MAX_REDUCED = 120_000
"""Characters; longer sources are left out."""


@dataclass(frozen=True)
class Print:
    """A source's fingerprint.

    Attributes:
        places: hash of a fragment → where it begins in the reduced source.
        own: characters that the kept fragments cover, handed-out ones left out.
    """

    reduced: Reduced
    places: dict[int, list[int]]
    own: int


@dataclass(frozen=True)
class Matches:
    """Where two sources are alike, by lines from 1.

    Attributes:
        left, right: fragments, `(number, first line, last line)`; the same number on both sides is the same fragment.
        left_handed_out, right_handed_out: lines that were handed out to everybody.
    """

    left: tuple[tuple[int, int, int], ...]
    right: tuple[tuple[int, int, int], ...]
    left_handed_out: tuple[int, ...] = ()
    right_handed_out: tuple[int, ...] = ()


@dataclass(frozen=True)
class Shared:
    """What two sources share.

    Attributes:
        common: characters of reduced source.
        left_share, right_share: of each one's own part, 0 to 1.
    """

    common: int
    left_share: float
    right_share: float

    @property
    def share(self) -> float:
        """The larger one: all of a short source may be a part of a long one."""
        return max(self.left_share, self.right_share)


def fragments(reduced: Reduced) -> frozenset[int]:
    """The hashes of all fragments; what was handed out is known by them."""
    if len(reduced.text) < FRAGMENT:
        return frozenset()
    return frozenset(int(value) for value in _library().hashed_kgrams(reduced.text, FRAGMENT))


def print_of(reduced: Reduced, handed_out: frozenset[int]) -> Print | None:
    """The fingerprint without what was handed out; `None` where nothing of one's own is long enough to compare."""
    if len(reduced.text) < FRAGMENT + WINDOW:
        return None
    _, found = _library().get_document_fingerprints(reduced.text, FRAGMENT, WINDOW)
    places = {int(key): [int(at) for at in where] for key, where in found.items() if int(key) not in handed_out}
    return _print(reduced, places)


def common_of(prints: Iterable[tuple[int, Print]]) -> frozenset[int]:
    """Fragments that most people have: `prints` are of (person, fingerprint)."""
    having: dict[int, set[int]] = {}
    people: set[int] = set()
    for person, one in prints:
        people.add(person)
        for key in one.places:
            having.setdefault(key, set()).add(person)
    least = max(COMMON_FROM, COMMON_PART * len(people))
    return frozenset(key for key, owners in having.items() if len(owners) >= least)


def without(one: Print, taken: frozenset[int]) -> Print | None:
    """The fingerprint without these fragments too; `None` where nothing is left."""
    if not taken.intersection(one.places):
        return one
    return _print(one.reduced, {key: where for key, where in one.places.items() if key not in taken})


def compare(left: Print, right: Print) -> Shared | None:
    """What two sources share; `None` where it is too little to be shown."""
    both = left.places.keys() & right.places.keys()
    if len(both) * WINDOW < LEAST_COMMON / 4:
        return None
    ours, theirs = _covered(_slices(left, both)), _covered(_slices(right, both))
    found = Shared(min(ours, theirs), min(1.0, ours / left.own), min(1.0, theirs / right.own))
    return found if found.common >= LEAST_COMMON and found.share >= LEAST_SHARE else None


def matches(left: Print, right: Print, handed_out: frozenset[int]) -> Matches:
    """Where two sources are alike; fragments are numbered in the order of the left one."""
    both = left.places.keys() & right.places.keys()
    ours, theirs = _slices(left, both), _slices(right, both)
    numbers = _numbers(left, right, both, ours, theirs)
    return Matches(
        tuple((numbers[0][at], *_lines(left.reduced, piece)) for at, piece in enumerate(ours)),
        tuple((numbers[1][at], *_lines(right.reduced, piece)) for at, piece in enumerate(theirs)),
        handed_out_lines(left.reduced, handed_out),
        handed_out_lines(right.reduced, handed_out),
    )


def handed_out_lines(reduced: Reduced, handed_out: frozenset[int]) -> tuple[int, ...]:
    """The lines all of whose code stands in something that was handed out."""
    covered = [False] * len(reduced.text)
    if len(covered) >= FRAGMENT:
        for at, value in enumerate(_library().hashed_kgrams(reduced.text, FRAGMENT)):
            if int(value) in handed_out:
                covered[at : at + FRAGMENT] = [True] * FRAGMENT
    every = Counter(reduced.lines)
    inside = Counter(line for line, is_in in zip(reduced.lines, covered, strict=True) if is_in)
    return tuple(sorted(line for line, count in every.items() if inside[line] == count))


def _print(reduced: Reduced, places: dict[int, list[int]]) -> Print | None:
    own = _covered(_merged(sorted(at for where in places.values() for at in where)))
    return Print(reduced, places, own) if own >= FRAGMENT else None


def _slices(one: Print, keys: Iterable[int]) -> list[tuple[int, int]]:
    """Where fragments are, those that touch joined, as (begin, end) of the reduced source."""
    return _merged(sorted(at for key in keys for at in one.places[key]))


def _merged(begins: Sequence[int]) -> list[tuple[int, int]]:
    """Fragments that begin here, in order, those that touch joined."""
    found: list[tuple[int, int]] = []
    for begin in begins:
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], begin + FRAGMENT)
        else:
            found.append((begin, begin + FRAGMENT))
    return found


def _covered(slices: Sequence[tuple[int, int]]) -> int:
    return sum(end - start for start, end in slices)


def _lines(reduced: Reduced, piece: tuple[int, int]) -> tuple[int, int]:
    return reduced.lines[piece[0]], reduced.lines[min(piece[1], len(reduced.lines)) - 1]


def _numbers(
    left: Print, right: Print, both: Iterable[int], ours: Sequence[tuple[int, int]], theirs: Sequence[tuple[int, int]]
) -> tuple[list[int], list[int]]:
    """The same number for pieces of both sides that share a fragment."""
    of_right: list[int] = [0] * len(theirs)
    for key in both:
        place = _piece(ours, left.places[key][0]) + 1
        for at in right.places[key]:
            piece = _piece(theirs, at)
            of_right[piece] = min(of_right[piece] or place, place)
    return list(range(1, len(ours) + 1)), of_right


def _piece(slices: Sequence[tuple[int, int]], at: int) -> int:
    return next(index for index, (start, end) in enumerate(slices) if start <= at < end)


@cache
def _library() -> Any:
    """copydetect, which brings a plotting library along: only the process that compares loads it."""
    from copydetect import utils  # noqa: PLC0415

    return utils
