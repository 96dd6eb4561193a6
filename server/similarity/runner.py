"""A comparison from its first source to its last pair. It takes minutes: no request waits for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heappush, heappushpop

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from autograder import codec
from server.apart.asking import GivenUpError, NoProcessError
from server.config import Config
from server.db import Database, now
from server.lexing import apart
from server.lexing.lexers import Token
from server.models import ComparedText, Comparison, ComparisonState, Language, PairMark, SimilarPair
from server.similarity import engine
from server.similarity.engine import Print, Shared
from server.similarity.gather import Gathered, Source, gather
from server.similarity.reduced import reduce
from server.similarity.scope import Scope

logger = logging.getLogger(__name__)

BEAT_S = 1.0
"""So often it says how far it is."""
SILENT = timedelta(minutes=5)
"""One that says nothing for so long has no process any more."""
MOST_PAIRS = 1_000
_LEXED_S = 10.0
"""The most alike ones are kept."""
Say = Callable[[str, int, int], None]


@dataclass(frozen=True)
class _Side:
    source: Source
    print: Print


@dataclass(frozen=True)
class _Pair:
    left: _Side
    right: _Side
    shared: Shared


def claim(session: Session) -> int | None:
    """Take the oldest comparison that waits; its id."""
    row = session.scalar(
        select(Comparison)
        .where(Comparison.state == ComparisonState.queued)
        .order_by(Comparison.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    if row is None:
        return None
    begin(row, now(session))
    return row.id


def begin(row: Comparison, at: datetime) -> None:
    """It runs from now on, in this process."""
    row.state, row.started_at, row.heartbeat_at = ComparisonState.running, at, at


def end_silent(session: Session) -> int:
    """Give up those whose process has ended without a word; how many."""
    at = now(session)
    rows = session.scalars(
        select(Comparison)
        .where(Comparison.state == ComparisonState.running, Comparison.heartbeat_at < at - SILENT)
        .with_for_update(skip_locked=True)
    ).all()
    for row in rows:
        row.state, row.finished_at = ComparisonState.failed, at
        row.error = "The process ended before it was done. Start it again."
    return len(rows)


def perform(database: Database, config: Config, comparison_id: int, say: Say | None = None) -> None:
    """Do a comparison that was claimed; what goes wrong is kept with it."""
    try:
        _perform(database, config, comparison_id, _Beat(database, comparison_id, say))
    except BaseException as error:
        logger.exception("comparison %s", comparison_id)
        with database.transaction() as session:
            row = session.get(Comparison, comparison_id)
            if row is not None:
                row.state, row.finished_at = ComparisonState.failed, now(session)
                row.error = f"{type(error).__name__}: {error}"[:1000]
        raise


class _Beat:
    """Says how far it is, now and then."""

    def __init__(self, database: Database, comparison_id: int, say: Say | None) -> None:
        self._database, self._id, self._say, self._at = database, comparison_id, say, 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        if time.monotonic() - self._at < BEAT_S and done < total:
            return
        self._at = time.monotonic()
        if self._say is not None:
            self._say(step, done, total)
        with self._database.transaction() as session:
            row = session.get_one(Comparison, self._id)
            row.step, row.done, row.total, row.heartbeat_at = step, done, total, now(session)


def _perform(database: Database, config: Config, comparison_id: int, beat: _Beat) -> None:
    with database.reading() as session:
        comparison = session.get_one(Comparison, comparison_id)
        found = gather(session, config, comparison, codec.from_json(Scope, comparison.scope))
    handed_out = {
        language: frozenset[int]().union(*(engine.fragments(reduce(text, language.value)) for text in texts))
        for language, texts in found.handed_out.items()
    }
    sides, left_out = _sides(found, handed_out, beat)
    pairs = sorted(_pairs(sides, beat), key=lambda pair: (-pair.shared.share, -pair.shared.common))
    with database.transaction() as session:
        _store(session, comparison_id, pairs, handed_out)
        row = session.get_one(Comparison, comparison_id)
        row.state, row.finished_at, row.step = ComparisonState.done, now(session), ""
        row.sources, row.left_out = len(sides), [*found.left_out, *left_out][:200]


def _sides(found: Gathered, handed_out: dict[Language, frozenset[int]], beat: _Beat) -> tuple[list[_Side], list[str]]:
    """The fingerprints, by language, without what most people have; and what could not be compared."""
    sides: list[_Side] = []
    left_out: list[str] = []
    for number, source in enumerate(found.sources, 1):
        beat("Reading sources", number, len(found.sources))
        try:
            reduced = reduce(source.text, source.language.value, _lexed)
        except NoProcessError:
            raise  # Else a comparison of nothing would look as if nobody were alike.
        except GivenUpError:
            left_out.append(f"{source.name}: it could not be read in time.")
            continue
        if len(reduced.text) > engine.MAX_REDUCED:
            left_out.append(f"{source.name}: it is too long.")
            continue
        made = engine.print_of(reduced, handed_out.get(source.language, frozenset()))
        if made is None:
            left_out.append(f"{source.name}: it has nothing beyond the handed-out code, or too little.")
            continue
        sides.append(_Side(source, made))
    return [side for language in Language for side in _uncommon(sides, language)], left_out


def _lexed(source: str, language: str) -> Sequence[Token]:
    return apart.tokens(source, language, seconds=_LEXED_S)


def _uncommon(sides: Sequence[_Side], language: Language) -> Iterator[_Side]:
    """Those of one language, without what most people of the course have alike."""
    same = [side for side in sides if side.source.language is language]
    people = {owner: number for number, owner in enumerate({side.source.owner for side in same if side.source.here})}
    common = engine.common_of((people[side.source.owner], side.print) for side in same if side.source.here)
    for side in same:
        rest = engine.without(side.print, common)
        if rest is not None:
            yield _Side(side.source, rest)


def _pairs(sides: Sequence[_Side], beat: _Beat) -> Iterator[_Pair]:
    """The most alike ones of all pairs of which the left source is of this course."""
    here = [side for side in sides if side.source.here]
    kept: list[tuple[float, int, int, _Pair]] = []
    for number, left in enumerate(here):
        beat("Comparing", number + 1, len(here))
        for at, right in enumerate([*here[number + 1 :], *(side for side in sides if not side.source.here)]):
            if left.source.language is not right.source.language or _same_owner(left, right):
                continue
            shared = engine.compare(left.print, right.print)
            if shared is not None:
                item = (shared.share, number, at, _Pair(left, right, shared))
                heappush(kept, item) if len(kept) < MOST_PAIRS else heappushpop(kept, item)
    return (pair for *_, pair in kept)


def _same_owner(left: _Side, right: _Side) -> bool:
    return left.source.owner is not None and left.source.owner == right.source.owner


def _store(
    session: Session, comparison_id: int, pairs: Sequence[_Pair], handed_out: dict[Language, frozenset[int]]
) -> None:
    session.execute(delete(SimilarPair).where(SimilarPair.comparison_id == comparison_id))
    texts = _texts(session, comparison_id, pairs)
    rows = [_row(comparison_id, pair, texts, handed_out) for pair in pairs]
    _keep_marks(session, rows)
    session.add_all(rows)


def _row(
    comparison_id: int, pair: _Pair, texts: dict[str, int], handed_out: dict[Language, frozenset[int]]
) -> SimilarPair:
    left, right = pair.left.source, pair.right.source
    where = engine.matches(pair.left.print, pair.right.print, handed_out.get(left.language, frozenset()))
    return SimilarPair(
        comparison_id=comparison_id,
        left_id=left.submission_id or 0,
        right_id=right.submission_id,
        text_id=texts.get(right.name) if right.submission_id is None else None,
        share=pair.shared.share,
        left_share=pair.shared.left_share,
        right_share=pair.shared.right_share,
        common=pair.shared.common,
        matches=codec.to_json(where),
        mark=PairMark.none,
        revision=0,
    )


def _texts(session: Session, comparison_id: int, pairs: Sequence[_Pair]) -> dict[str, int]:
    """Keep the files that something is like; their ids by name."""
    files = {pair.right.source.name: pair.right.source for pair in pairs if pair.right.source.submission_id is None}
    rows = [
        ComparedText(comparison_id=comparison_id, name=name, language=source.language.value, source=source.text)
        for name, source in files.items()
    ]
    session.add_all(rows)
    session.flush()
    return {row.name: row.id for row in rows}


def _keep_marks(session: Session, rows: Sequence[SimilarPair]) -> None:
    """What somebody said of the same two submissions in an earlier comparison holds still."""
    lefts = {row.left_id for row in rows if row.right_id is not None}
    if not lefts:
        return
    marked = session.scalars(
        select(SimilarPair)
        .where(SimilarPair.left_id.in_(lefts), SimilarPair.mark != PairMark.none)
        .order_by(SimilarPair.id)
    )
    earlier = {frozenset((row.left_id, row.right_id)): row for row in marked}
    for row in rows:
        before = earlier.get(frozenset((row.left_id, row.right_id)))
        if before is not None and row.right_id is not None:
            row.mark, row.reason = before.mark, before.reason
            row.marked_by_id, row.marked_at = before.marked_by_id, before.marked_at
