"""What is no source is refused at the edge, before there is anything to grade, and nothing of it is stored."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.hostile.corpus import Attack, attacks
from sqlalchemy import func, select
from tests.hostile.stand import ROOT, Stand

from autograder.contract import GradeResult
from server.accounts import accounts
from server.config import load_config
from server.courses import courses
from server.courses import sync
from server.db import Database
from server.errors import InvalidInputError, TooLargeError
from server.models import Lane, Language, Mode, Role, Submission
from server.submissions import submissions

REFUSED = [attack for attack in attacks() if attack.at_the_edge]


@pytest.mark.quick
@pytest.mark.parametrize("attack", REFUSED, ids=lambda attack: attack.name)
def test_what_is_no_source_is_refused_and_nothing_is_stored(
    attack: Attack, database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    config = dataclasses.replace(
        load_config({"LADDER_HOME": str(tmp_path)}),
        database_url=database_url,
        assignments=ROOT / "assignments",
        reference=ROOT / "reference",
    )
    database = Database(config.database_url)
    request.addfinalizer(database.dispose)
    with database.transaction() as session:
        course = courses.create_course(session, slug="gpu", title="GPU programming")
        alice = accounts.create_user(session, email="alice@example.org", name="Alice", password="a long enough password")
        courses.enrol(session, course=course, user=alice, role=Role.student)
        sync.sync_assignments(session, config, course)
    with pytest.raises((InvalidInputError, TooLargeError)) as refused, database.transaction() as session:
        submissions.submit(
            session,
            membership=courses.membership(session, alice, "gpu"),
            assignment="vector_add",
            mode=Mode.submission,
            lane=Lane.cpu,
            language=Language.triton,
            filename="kernel.py",
            source=attack.uploaded(),
            config=config,
            now=datetime.now(UTC),
            trace="0" * 32,
        )
    assert "source" in str(refused.value)
    with database.transaction() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 0


@pytest.mark.parametrize("attack", REFUSED, ids=lambda attack: attack.name)
def test_without_the_edge_the_judge_gets_it(attack: Attack, stand: Stand) -> None:
    """The bite: the same bytes, taken for what they would be, are graded; what is huge the judge itself refuses again."""
    encoding = (attack.made or {}).get("encoding", "utf-8")
    result: GradeResult = stand.grade(attack.uploaded().decode(encoding), mode="run")
    assert result.verdict == attack.bite.succeeds, result.explanation
