"""The same pipeline with the real judge: sandboxed runners, hidden cases, verdicts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

from autograder import codec
from autograder.contract import GradeResult, Verdict, Visibility
from server.courses.sync import sync_assignments
from server.models import Assignment, Course, Result, State
from tests.e2e.test_pipeline import REPOSITORY, Pipeline, made_pipeline

RUNG = "vector_add"
STAFF = REPOSITORY / "reference" / RUNG


@pytest.fixture
def pipeline(tmp_path, sqlite_url):
    with made_pipeline(tmp_path, sqlite_url, f"filesystem://{tmp_path / 'broker'}") as made:
        del made.environ["LADDER_JUDGE"]
        with made.world.database.transaction() as session:
            # The rung of the repository takes the place of the small world's own, which has the same name.
            sync_assignments(session, made.world.config, session.scalars(select(Course)).one())
            for other in session.scalars(select(Assignment).where(Assignment.slug != RUNG)):
                session.delete(other)
        yield made


def submit(pipeline: Pipeline, path: Path) -> str:
    pipeline.world.now = datetime.now(UTC)
    return pipeline.world.submit(source=path.read_bytes())


def result(pipeline: Pipeline, submission: str) -> GradeResult:
    row = pipeline.world.submission(submission)
    with pipeline.world.database.reading() as session:
        return codec.from_json(
            GradeResult, session.scalars(select(Result.payload).where(Result.id == row.result_id)).one()
        )


@pytest.mark.quick
def test_kernels_get_the_verdicts_they_deserve_from_the_real_judge(pipeline):
    pipeline.start_all()
    good = submit(pipeline, STAFF / "solutions" / "triton.py")
    wrong = submit(pipeline, STAFF / "submissions" / "wrong_answer_last_tile_skipped.py")
    broken = submit(pipeline, STAFF / "submissions" / "compile_error_missing_colon.py")
    pipeline.wait_for(good, wrong, broken)
    rows = [pipeline.world.submission(name) for name in (good, wrong, broken)]
    assert [row.state for row in rows] == [State.done] * 3
    assert [row.verdict for row in rows] == [Verdict.passed, Verdict.wrong_answer, Verdict.compile_error]
    assert [row.attempts_made for row in rows] == [1, 1, 1]
    found = result(pipeline, good)
    assert {case.visibility for case in found.cases} == {Visibility.public, Visibility.hidden}
    assert found.measurements
    assert rows[0].points > rows[1].points
    assert result(pipeline, wrong).explanation
    assert list((pipeline.logs / "work" / "attempts").iterdir()) == []
