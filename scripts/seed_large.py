"""Fill a database with a course as large as they come. `make seed-large` runs it.

    python -m scripts.seed_large                              a SQLite file, var/large/ladder.db
    python -m scripts.seed_large --url postgresql://…         an empty database elsewhere
    python -m scripts.seed_large --students 30 --submissions 2000

The same seed, date and files make the same rows. Nothing of it is graded: rows are written as grading leaves them, the
grades are then worked out by the gradebook, and at the end the course's accounts are checked as `ladder admin doctor`
checks them.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from scripts.large_course import SLUG, Bulk, Cast, Size, make_course, plan_rungs
from scripts.large_grading import Grading
from scripts.large_staff import Desk, ask_for_a_write_up
from server import dirty_grades, migrations
from server.config import Config, load_config
from server.db import Database
from server.gradebook import queries as gradebook
from server.grading import leaderboard_entries
from server.models import (
    Attempt,
    CaseRow,
    Course,
    Grade,
    QuizAnswer,
    RegradeItem,
    Result,
    Sampling,
    SimilarPair,
    Submission,
    User,
)
from server.reconciliation.checks import broken_rules

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "var" / "large"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SEED = 20261121
COUNTED = (User, Submission, Attempt, Result, CaseRow, Sampling, QuizAnswer, Grade, RegradeItem, SimilarPair)


def seed(session: Session, config: Config, size: Size, *, number: int = SEED, now: datetime = NOW) -> Course:
    """Make the course in the caller's transaction.

    Raises:
        ConflictError: it is there already.
    """
    dice, bulk = random.Random(number), Bulk(session)  # noqa: S311  # the same seed, the same course
    course = make_course(session, config, size, now)
    cast = Cast(bulk, course, dice, now, rungs=plan_rungs(session, course, size, now))
    ask_for_a_write_up(session, cast.rungs[-2])
    cast.make_people(size)
    Grading(cast, size).make()
    cast.make_the_rest()
    desk = Desk(cast)
    desk.make()
    bulk.renumber()
    desk.regrade()
    gradebook.refresh(session, course.id)
    dirty_grades.settle(session)
    # Rows were written past the session, which would have seen them.
    leaderboard_entries.renew(session, course.id)
    return course


def main() -> int:
    """Make the database, fill it, check it, and say what is in it."""
    asked = _arguments()
    config = _config(asked.url)
    began = time.perf_counter()
    migrations.upgrade(config.database_url)
    database = Database(config.database_url)
    with database.transaction() as session:
        size = Size(asked.students, asked.rungs, asked.submissions)
        seed(session, config, size, number=asked.seed)
    took_s = time.perf_counter() - began
    with database.transaction() as session:
        if session.get_bind().dialect.name == "postgresql":
            # Its own daemon would do it within a minute.
            session.execute(text("ANALYZE"))
        for model in COUNTED:
            print(f"{session.scalar(select(func.count()).select_from(model)):>10,} {model.__tablename__}")
        broken = broken_rules(session)
    for problem in broken:
        print(f"BROKEN: {problem.message} {problem.count}, such as {', '.join(problem.examples)}")
    print(f"{config.database_url}: made in {took_s:.0f} s; the course is {SLUG!r}.")
    return 1 if broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="", help="an empty database; SQLite in var/large, made anew, otherwise")
    parser.add_argument("--students", type=int, default=Size.students)
    parser.add_argument("--rungs", type=int, default=Size.rungs)
    parser.add_argument("--submissions", type=int, default=Size.submissions)
    parser.add_argument("--seed", type=int, default=SEED)
    return parser.parse_args()


def _config(url: str) -> Config:
    config = load_config({"LADDER_HOME": str(HOME)})
    if url:
        return dataclasses.replace(config, database_url=url)
    for path in HOME.glob("ladder.db*"):
        path.unlink()
    return dataclasses.replace(config, database_url=f"sqlite:///{HOME / 'ladder.db'}")


if __name__ == "__main__":
    sys.exit(main())
