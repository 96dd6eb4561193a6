"""The order of the queue: who gets the next free slot of a lane. Pure: rows in, an order out; docs/queue.md says why.

1. **Line.** A submission without a verdict goes before one that waits for its times, then practice runs, profiles,
   regrades, and what was superseded. These later lines but profiles have a reserve, one of every so many claims of
   their lane (`EVERY`). What has its grade and is to be confirmed comes last; it and profiles run when nobody else
   waits who goes before them.
2. **Course.** In a line the course goes first that had the fewest of its claims lately (`WINDOW`), where a course with
   somebody in a hurry is due `HURRY` times as many as one without.
3. **Hurry, own pending, place.** In a course those go first whose due date is near or who waited long; among them those
   with the fewest of their own before them, waiting or running; then by place, then by id.

Profiles, regrades, superseded and confirmed ones together never hold all slots of a lane that has several. Submissions
under which a node went silent run in quarantine: on a node set aside for them, or, where there is none, one at a time
in their lane. What another node than before is to do passes over that one, for as long as there is another.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from server.models import Line, Work

LINES = (Line.submission, Line.measuring, Line.run, Line.profile, Line.regrade, Line.superseded, Line.confirm)
"""Who goes before whom, while nobody's reserve is due."""
EVERY: Mapping[Line, int] = {Line.measuring: 3, Line.run: 6, Line.regrade: 12, Line.superseded: 12}
"""A line that waits gets at least about one of so many claims. Together 2/3: a submission is never kept out."""
LOW = frozenset({Line.profile, Line.regrade, Line.superseded, Line.confirm})
"""Lines in which nobody waits for a first verdict."""
WINDOW = 24
"""So many of the lane's last claims say what each course had; also the longest memory of the reserves."""
HURRY = 3
DUE_SOON = timedelta(hours=12)
LATE_FOR = timedelta(days=7)
"""An assignment that takes late submissions for ever is not in a hurry for ever."""
LONG = timedelta(minutes=10)
"""Who waited so long is in a hurry, whatever the due date: so nobody is overtaken for ever."""

Key = tuple[bool, int, datetime, int]
_Group = tuple[Line, Work, bool, int | None, str]
"""Those of whom a slot can take either all or none."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A submission that waits in a lane.

    Attributes:
        due_at, closes_at: of its assignment; after `closes_at` nothing is taken any more.
        suspect: a node went silent while it ran this.
        avoid: id of the node that graded it last, where another one is to do it now.
    """

    id: int
    user_id: int
    course_id: int
    line: Line
    place_at: datetime
    work: Work = Work.all
    due_at: datetime | None = None
    closes_at: datetime | None = None
    suspect: bool = False
    avoid: int | None = None
    language: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """One of the lane's last claims."""

    line: Line
    course_id: int


@dataclass(frozen=True, slots=True)
class Running:
    """A submission that a slot of the lane runs now; `line` is where it stood when it was claimed."""

    user_id: int
    line: Line
    suspect: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """A free slot, by what its node takes: `courses` are all where it is `None`, `lacks` the languages it cannot."""

    works: frozenset[Work] = frozenset(Work)
    quarantine: bool = False
    node: int = 0
    courses: frozenset[int] | None = None
    lacks: frozenset[str] = frozenset()

    def serves(self, course_id: int) -> bool:
        """Whether it gets the work of this course."""
        return self.courses is None or course_id in self.courses


@dataclass(frozen=True)
class Look:
    """One lane at one time.

    Attributes:
        waiting: everything that waits in it, in any order.
        claimed: its last claims, newest first; `WINDOW` of them are enough.
        slots: of all nodes that serve it, busy ones too.
        quarantine: a node set aside for suspects serves it.
    """

    now: datetime
    waiting: Sequence[Waiting] = ()
    claimed: Sequence[Claimed] = ()
    running: Sequence[Running] = ()
    slots: int = 1
    quarantine: bool = False


ANY = Slot()


class Queue:
    """Who is next in one lane, while slots are filled one after another. The look it is made from stays as it is."""

    def __init__(self, look: Look) -> None:
        self._groups: dict[_Group, dict[int, deque[tuple[Key, Waiting]]]] = {}
        for key, item in _sorted(look):
            courses = self._groups.setdefault(_group(item), {})
            courses.setdefault(item.course_id, deque()).append((key, item))
        recent = list(look.claimed[:WINDOW])
        self._last = deque(((claim.line, claim.course_id) for claim in reversed(recent)), maxlen=WINDOW)
        self._had = Counter(self._last)
        self._since = {line: _claims_since(line, recent) for line in EVERY}
        self._low = sum(item.line in LOW for item in look.running)
        self.low_most = max(1, look.slots - 1)
        """So many of the low lines may run at once."""
        self._suspects = sum(item.suspect for item in look.running)
        self._quarantine = look.quarantine

    def next(self, slot: Slot = ANY) -> Waiting | None:
        """Who gets this slot; `None` if it can take nobody."""
        heads = self._heads(slot)
        if not heads:
            return None
        line = self._line({item.line for _, item in heads})
        return min((head for head in heads if head[1].line is line), key=self._turn)[1]

    def take(self, item: Waiting) -> None:
        """It was claimed; `item` is what `next` said."""
        self.drop(item)
        if len(self._last) == WINDOW:
            self._had[self._last[0]] -= 1
        claim = (item.line, item.course_id)
        self._last.append(claim)
        self._had[claim] += 1
        for line in EVERY:
            self._since[line] = 0 if line is item.line else self._since[line] + 1
        self._low += item.line in LOW
        self._suspects += item.suspect

    def drop(self, item: Waiting) -> None:
        """It does not wait any more, and was not claimed; `item` is what `next` said."""
        group = _group(item)
        courses = self._groups[group]
        courses[item.course_id].popleft()
        if not courses[item.course_id]:
            del courses[item.course_id]
        if not courses:
            del self._groups[group]

    def hold_back(self, item: Waiting) -> None:
        """Nobody like this one, a suspect or of a low line, has a turn until one of them has ended."""
        if item.suspect:
            self._suspects = max(self._suspects, 1)
        if item.line in LOW:
            self.hold_low_lines_back()

    def hold_low_lines_back(self) -> None:
        """Nobody of a low line has a turn until one of them has ended."""
        self._low = max(self._low, self.low_most)

    def ended(self, item: Waiting | Running) -> None:
        """A slot that ran it is free again."""
        self._low -= item.line in LOW
        self._suspects -= item.suspect

    def _heads(self, slot: Slot) -> list[tuple[Key, Waiting]]:
        return [
            waiting[0]
            for (line, work, suspect, avoid, language), courses in self._groups.items()
            if work in slot.works and slot.node != avoid and language not in slot.lacks
            if self._may_run(line, slot, suspect=suspect)
            for course_id, waiting in courses.items()
            if slot.serves(course_id)
        ]

    def _may_run(self, line: Line, slot: Slot, *, suspect: bool) -> bool:
        if suspect != slot.quarantine and (slot.quarantine or self._quarantine or self._suspects):
            return False
        return line not in LOW or self._low < self.low_most

    def _line(self, waiting: set[Line]) -> Line:
        """The line whose reserve is longest overdue, for its length; else the first."""
        due = [line for line in LINES if line in waiting and line in EVERY and self._since[line] >= EVERY[line] - 1]
        if due:
            return max(due, key=lambda line: (self._since[line] + 1) / EVERY[line])
        return next(line for line in LINES if line in waiting)

    def _turn(self, head: tuple[Key, Waiting]) -> tuple[float, Key]:
        key, item = head
        # Of this line's claims only: what a course gets in one line must not keep it out of another.
        return self._had[item.line, item.course_id] / (1 if key[0] else HURRY), key


def _group(item: Waiting) -> _Group:
    return item.line, item.work, item.suspect, item.avoid, item.language


def order(look: Look, slot: Slot = ANY) -> list[Waiting]:
    """Everybody who waits, in the order of their turns if nobody else came and each ended before the next began."""
    queue, taken = Queue(look), []
    while (item := queue.next(slot)) is not None:
        queue.take(item)
        queue.ended(item)
        taken.append(item)
    if len(taken) == len(look.waiting):
        return taken
    # Who can run only once somebody else has ended comes last.
    ids = {item.id for item in taken}
    return taken + [item for _, item in _sorted(look) if item.id not in ids and _ever(item, slot, look)]


def _ever(item: Waiting, slot: Slot, look: Look) -> bool:
    """Whether a slot like this will take it at some time."""
    takes = item.work in slot.works and slot.node != item.avoid and slot.serves(item.course_id)
    if slot.quarantine or look.quarantine:
        return takes and item.suspect == slot.quarantine
    return takes


def _sorted(look: Look) -> list[tuple[Key, Waiting]]:
    """All that wait, each with its key inside its line and course, in that order."""
    own = Counter((item.user_id, item.line) for item in look.running)
    entries: list[tuple[Key, Waiting]] = []
    for item in sorted(look.waiting, key=lambda item: (item.place_at, item.id)):
        who = (item.user_id, item.line)
        entries.append(((not in_a_hurry(item, look.now), own[who], item.place_at, item.id), item))
        own[who] += 1
    entries.sort(key=lambda entry: entry[0])
    return entries


def in_a_hurry(item: Waiting, now: datetime) -> bool:
    """Whether its assignment is due soon, or was and is still open, or it waited long."""
    if now - item.place_at >= LONG:
        return True
    if item.due_at is None or now < item.due_at - DUE_SOON:
        return False
    return now <= (item.closes_at or item.due_at + LATE_FOR)


def _claims_since(line: Line, recent: Sequence[Claimed]) -> int:
    return next((index for index, claim in enumerate(recent) if claim.line is line), len(recent))
