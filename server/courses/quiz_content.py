"""Keep an assignment's quiz as its files say it, and mark old answers again where staff corrected the key."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from autograder import codec, quiz
from autograder.assignment import content_hash
from server.models import Assignment, Quiz, QuizAnswer


def store(session: Session, row: Assignment, found: quiz.Quiz) -> tuple[Quiz, dict[str, int]] | None:
    """Make these the assignment's questions; nothing, if they and their key are those that it has.

    A corrected key only adds: an answer that is right by the new key becomes right, one that was right stays so.

    Returns:
        The new row, and how many answers became right, by question.
    """
    current = session.get(Quiz, row.quiz_id) if row.quiz_id is not None else None
    if not differs(current.digest if current else None, found):
        return None
    made = Quiz(
        assignment_id=row.id,
        number=_next_number(session, row),
        digest=_digest(found),
        questions=codec.to_json(found.questions),
        keys=codec.to_json(found.keys),
        created_at=datetime.now(UTC),
    )
    session.add(made)
    session.flush()
    row.quiz_id = made.id
    # Before the old answers are read: whoever is storing one holds the row, and is waited for here.
    session.flush()
    return made, _mark_again(session, row, found)


def differs(digest: str | None, found: quiz.Quiz) -> bool:
    """Whether these questions and their key are not those with this digest; `None` is no quiz."""
    return bool(found.questions) if digest is None else digest != _digest(found)


def _digest(found: quiz.Quiz) -> str:
    return content_hash(codec.dumps(found).encode())


def _next_number(session: Session, row: Assignment) -> int:
    return (session.scalar(select(func.max(Quiz.number)).where(Quiz.assignment_id == row.id)) or 0) + 1


def _mark_again(session: Session, row: Assignment, found: quiz.Quiz) -> dict[str, int]:
    questions = {question.name: question for question in found.questions}
    query = select(QuizAnswer).where(
        QuizAnswer.assignment_id == row.id, QuizAnswer.right.is_(False), QuizAnswer.question.in_(questions)
    )
    became_right: Counter[str] = Counter()
    for answer in session.scalars(query.with_for_update()):
        question, key = questions[answer.question], found.key(answer.question)
        if quiz.is_right(question, key, codec.from_json(quiz.Response, answer.response)):
            answer.right, answer.remarked_at = True, datetime.now(UTC)
            became_right[answer.question] += 1
    return dict(became_right)
