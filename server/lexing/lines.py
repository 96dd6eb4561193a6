"""Which lines of two versions are the same, in a number of steps that does not grow with their product.

Equal beginnings and ends are taken first. What lies between is cut at lines that stand once in either version and come
in the same order in both (patience diff, Bram Cohen), again and again; where there is no such line the shortest edit is
looked for (E. Myers, "An O(ND) difference algorithm and its variations", 1986). A part that would take more steps than
are left counts as replaced whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise

STEPS = 2_000_000
"""Less than half a second."""
_SHARE = 4
"""One part may take this part of the steps that are left: a strange one leaves something for the others."""
Part = tuple[int, int, int, int]
"""From and to, in the older version and in the newer one."""


def same_lines(before: Sequence[Hashable], after: Sequence[Hashable], steps: int = STEPS) -> tuple[list[int], bool]:
    """For each line of `before` its number in `after`, from 0, or -1; and whether all of it was looked at."""
    search = _Search(before, after, steps)
    search.run()
    return search.where, search.whole


def numbered(before: Sequence[str], after: Sequence[str]) -> tuple[list[int], list[int]]:
    """Equal lines as equal numbers, which cost little to send and to compare."""
    numbers: dict[str, int] = {}
    old, new = ([numbers.setdefault(line, len(numbers)) for line in lines] for lines in (before, after))
    return old, new


class _Search:
    def __init__(self, before: Sequence[Hashable], after: Sequence[Hashable], steps: int) -> None:
        self._before, self._after, self._left = before, after, steps
        self.where = [-1] * len(before)
        self.whole = True

    def run(self) -> None:
        parts: list[Part] = [(0, len(self._before), 0, len(self._after))]
        while parts:
            old, old_end, new, new_end = self._trimmed(parts.pop())
            cost = old_end - old + new_end - new
            if old == old_end or new == new_end:
                continue
            if cost > self._left:
                self.whole = False
                continue
            self._left -= cost
            pairs = self._anchors(old, old_end, new, new_end)
            if pairs:
                places = [(old - 1, new - 1), *pairs, (old_end, new_end)]
                parts += [(was + 1, to, at + 1, end) for (was, at), (to, end) in pairwise(places)]
            else:
                pairs = self._shortest(old, old_end, new, new_end)
            for was, now in pairs:
                self.where[was] = now

    def _trimmed(self, part: Part) -> Part:
        old, old_end, new, new_end = part
        before, after, where = self._before, self._after, self.where
        while old < old_end and new < new_end and before[old] == after[new]:
            where[old] = new
            old, new = old + 1, new + 1
        while old < old_end and new < new_end and before[old_end - 1] == after[new_end - 1]:
            old_end, new_end = old_end - 1, new_end - 1
            where[old_end] = new_end
        return old, old_end, new, new_end

    def _anchors(self, old: int, old_end: int, new: int, new_end: int) -> list[tuple[int, int]]:
        """Lines that stand once in either part, as many as come in one order."""
        once = _once(self._before, old, old_end)
        there = _once(self._after, new, new_end)
        return _rising([(place, there[line]) for line, place in once.items() if line in there])

    def _shortest(self, old: int, old_end: int, new: int, new_end: int) -> list[tuple[int, int]]:
        """The equal lines of a shortest edit; none where finding it takes too many steps."""
        before, after = self._before[old:old_end], self._after[new:new_end]
        allowed = self._left // _SHARE
        reached, trail, steps = {1: 0}, [], 0
        for edits in range(len(before) + len(after) + 1):
            steps += 2 * edits + 1
            if steps > allowed:
                break
            trail.append(dict(reached))
            for diagonal in range(-edits, edits + 1, 2):
                down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
                at = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
                begin = at
                while at < len(before) and 0 <= at - diagonal < len(after) and before[at] == after[at - diagonal]:
                    at += 1
                reached[diagonal] = at
                steps += at - begin
                if at >= len(before) and at - diagonal >= len(after):
                    self._left -= steps
                    return [(old + was, new + now) for was, now in _walked(trail, len(before), len(after))]
        self._left -= min(steps, allowed)
        self.whole = False
        return []


def _once(lines: Sequence[Hashable], begin: int, end: int) -> dict[Hashable, int]:
    """The lines of a part that stand there once, with their places."""
    counts = Counter(lines[begin:end])
    return {lines[place]: place for place in range(begin, end) if counts[lines[place]] == 1}


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs whose second numbers rise as their first do (they are in order by the first)."""
    ends: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for number, (_, value) in enumerate(pairs):
        place = bisect_left(ends, value)
        previous.append(last[place - 1] if place else -1)
        ends[place : place + 1] = [value]
        last[place : place + 1] = [number]
    found, at = [], last[-1] if last else -1
    while at >= 0:
        found.append(pairs[at])
        at = previous[at]
    return found[::-1]


def _walked(trail: Sequence[dict[int, int]], old: int, new: int) -> list[tuple[int, int]]:
    """The equal lines on the way back from the end, by what was reached with each number of edits."""
    pairs = []
    for edits in range(len(trail) - 1, -1, -1):
        reached, diagonal = trail[edits], old - new
        down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
        from_diagonal = diagonal + 1 if down else diagonal - 1
        from_old = reached[from_diagonal]
        from_new = from_old - from_diagonal
        while old > max(from_old, 0) and new > max(from_new, 0):
            old, new = old - 1, new - 1
            pairs.append((old, new))
        old, new = from_old, from_new
    return pairs[::-1]
