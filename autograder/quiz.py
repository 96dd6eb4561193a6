"""An assignment's quiz: its questions, the key to them, and whether an answer is right.

    assignments/<slug>/quiz.toml            the questions: what a student may see
    reference/<slug>/answer_key.toml        the key: right answers with explanations; staff only, in no bundle

Standard library only: the server reads quizzes too. The key is never part of what travels to nodes or students; who has
to be told an explanation is decided in `server.quizzes`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from autograder import languages
from autograder.manifest import Reader

QUIZ_FILE = "quiz.toml"
KEY_FILE = "answer_key.toml"
LANGUAGES = (*(record.id for record in languages.ALL), "text")
"""Of a question's code."""
MIN_OPTIONS, MAX_OPTIONS = 2, 8
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")


class QuestionKind(StrEnum):
    """How a question is answered."""

    numeric = "numeric"
    """A number."""
    choice = "choice"
    """One of its options."""
    several = "several"
    """One option or more: all that are right and no other."""


TRIES: Mapping[QuestionKind, int] = {QuestionKind.numeric: 3, QuestionKind.choice: 2, QuestionKind.several: 3}


@dataclass(frozen=True)
class Question:
    """One question, as students see it.

    Attributes:
        name: what answers and the key refer to; stays when the text is improved.
        text: Markdown with maths.
        unit: of a numeric answer, shown behind the box.
        tries: how many answers may be given; 0 takes the usual number for its kind.
        code, language: a piece of code under the text.
        options: name to Markdown, in the order in which they are shown.
    """

    name: str
    kind: QuestionKind
    text: str
    unit: str = ""
    tries: int = 0
    code: str = ""
    language: str = ""
    options: dict[str, str] = field(default_factory=dict)

    @property
    def tries_allowed(self) -> int:
        """How many answers may be given."""
        return self.tries or TRIES[self.kind]


@dataclass(frozen=True)
class Key:
    """The right answer to one question. Staff only.

    Attributes:
        value, tolerance: of a numeric question, in its unit; right is what is off by no more than `tolerance`.
        options: of the others, those that are right.
        explanation: Markdown; why it is so, and why what tempts is wrong.
    """

    question: str
    explanation: str
    value: float | None = None
    tolerance: float = 0.0
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Response:
    """What somebody answered: a number, or names of options."""

    value: float | None = None
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quiz:
    """The questions of an assignment with the key to them."""

    questions: tuple[Question, ...]
    keys: tuple[Key, ...]

    def key(self, name: str) -> Key:
        """The key to one question."""
        return next(key for key in self.keys if key.question == name)


class AnswerError(ValueError):
    """What was answered is no answer to this question; the message is for who wrote it, and uses up no try."""


def load_quiz(assignment_folder: Path, reference_folder: Path) -> Quiz:
    """The quiz of an assignment; one without questions where there is no `quiz.toml`.

    Raises:
        ManifestError: with the key, its line and a suggestion.
    """
    if not (assignment_folder / QUIZ_FILE).exists():
        return Quiz((), ())
    questions = load_questions(assignment_folder)
    return Quiz(questions, load_keys(reference_folder, questions))


def load_questions(folder: Path) -> tuple[Question, ...]:
    """Read `folder/quiz.toml`.

    Raises:
        ManifestError: with the key, its line and a suggestion.
    """
    reader = Reader(folder / QUIZ_FILE, what="a question", plurals={"question": "questions"})
    questions = reader.read(_Questions).questions
    for index, question in enumerate(questions):
        where = f"question[{index}]"
        if not _NAME.fullmatch(question.name):
            raise reader.error(f"{where}.name", f"{question.name!r} is no name", "Use a-z, 0-9 and _, at most 40.")
        if question.name in {other.name for other in questions[:index]}:
            raise reader.error(f"{where}.name", f"two questions have the name {question.name!r}")
        _check_question(question, where, reader)
    return questions


def load_keys(folder: Path, questions: Sequence[Question]) -> tuple[Key, ...]:
    """Read `folder/answer_key.toml`: one key to each of the questions, in their order.

    Raises:
        ManifestError: with the key, its line and a suggestion.
    """
    reader = Reader(folder / KEY_FILE, what="a key", plurals={"key": "keys"})
    keys = reader.read(_Keys).keys
    known = {question.name: question for question in questions}
    for index, key in enumerate(keys):
        where = f"key[{index}]"
        if key.question not in known:
            hint = reader.nearest(key.question, known)
            raise reader.error(f"{where}.question", f"there is no question {key.question!r}", hint)
        if key.question in {other.question for other in keys[:index]}:
            raise reader.error(f"{where}.question", f"two keys are for the question {key.question!r}")
        _check_key(key, known[key.question], where, reader)
    found = {key.question: key for key in keys}
    if missing := [name for name in known if name not in found]:
        raise reader.error("", f"the question {missing[0]!r} has no key")
    return tuple(found[name] for name in known)


def is_right(question: Question, key: Key, response: Response) -> bool:
    """Whether this is the answer."""
    if question.kind is not QuestionKind.numeric:
        return set(response.options) == set(key.options)
    if response.value is None or key.value is None:
        return False
    # A little more than the tolerance: 0.3 ± 0.1 takes 0.4, whose difference is not 0.1 in binary.
    return abs(response.value - key.value) <= key.tolerance + 1e-9 * abs(key.value)


def read_number(text: str) -> float:
    """A number as people type it: `1024`, `6.92`, `1.5e6`, with spaces or `_` between digits.

    Raises:
        AnswerError: it is none; a comma is refused, because it means two things.
    """
    compact = re.sub(r"(?<=\d)[ \u00a0\u2009\u202f_](?=\d)", "", text.strip()).replace("\N{MINUS SIGN}", "-")
    if not _NUMBER.fullmatch(compact):
        raise AnswerError("Write a number such as 1024, 0.75 or 1.5e6, with a point and without commas or units.")
    return float(compact)


def check_response(question: Question, response: Response) -> Response:
    """The response with its options in the question's order.

    Raises:
        AnswerError: it is no answer to this question.
    """
    if question.kind is QuestionKind.numeric:
        if response.value is None or response.options or not math.isfinite(response.value):
            raise AnswerError("This question is answered with one number.")
        return response
    if response.value is not None or not set(response.options) <= set(question.options):
        raise AnswerError(f"This question is answered with options: {', '.join(question.options)}.")
    chosen = tuple(name for name in question.options if name in response.options)
    if not chosen:
        raise AnswerError("Choose an option first.")
    if question.kind is QuestionKind.choice and len(chosen) > 1:
        raise AnswerError("Choose one option.")
    return Response(options=chosen)


@dataclass(frozen=True)
class _Questions:
    questions: tuple[Question, ...] = ()


@dataclass(frozen=True)
class _Keys:
    keys: tuple[Key, ...] = ()


def _check_question(question: Question, where: str, reader: Reader) -> None:
    if not question.text.strip():
        raise reader.error(f"{where}.text", "is empty")
    if question.tries < 0:
        raise reader.error(f"{where}.tries", "has to be 1 or more")
    if bool(question.code) != bool(question.language):
        raise reader.error(f"{where}.code", "`code` and `language` belong together")
    if question.language and question.language not in LANGUAGES:
        hint = reader.nearest(question.language, LANGUAGES)
        raise reader.error(f"{where}.language", f"{question.language!r} is no language of code", hint)
    if question.kind is QuestionKind.numeric:
        if question.options:
            raise reader.error(f"{where}.options", "a numeric question has none")
        return
    if question.unit:
        raise reader.error(f"{where}.unit", "only a numeric question has one")
    _check_options(question, where, reader)


def _check_options(question: Question, where: str, reader: Reader) -> None:
    if not MIN_OPTIONS <= len(question.options) <= MAX_OPTIONS:
        problem = f"has {len(question.options)} options; there have to be {MIN_OPTIONS} to {MAX_OPTIONS}"
        raise reader.error(f"{where}.options", problem)
    for name, text in question.options.items():
        if not _NAME.fullmatch(name) or not text.strip():
            raise reader.error(f"{where}.options", f"{name!r} needs a name of a-z, 0-9 and _, and a text")
    if question.kind is QuestionKind.choice and question.tries_allowed >= len(question.options):
        problem = f"{question.tries_allowed} tries at {len(question.options)} options: who tries them all is right"
        raise reader.error(f"{where}.tries", problem, f"Say tries = {len(question.options) - 1}, or give more options.")


def _check_key(key: Key, question: Question, where: str, reader: Reader) -> None:
    if not key.explanation.strip():
        raise reader.error(f"{where}.explanation", "is empty")
    if question.kind is QuestionKind.numeric:
        if key.value is None or key.options:
            raise reader.error(f"{where}.question", "a numeric question has a `value`, and no `options`")
        if key.tolerance < 0 or not math.isfinite(key.value) or not math.isfinite(key.tolerance):
            raise reader.error(f"{where}.tolerance", "value and tolerance are finite, and no tolerance is below 0")
        return
    if key.value is not None or key.tolerance or not key.options:
        raise reader.error(f"{where}.question", f"a question of kind {question.kind} has `options`, and no `value`")
    for name in key.options:
        if name not in question.options:
            hint = reader.nearest(name, question.options)
            raise reader.error(f"{where}.options", f"{question.name!r} has no option {name!r}", hint)
    if question.kind is QuestionKind.choice and len(set(key.options)) != 1:
        raise reader.error(f"{where}.options", "exactly one option of a choice is right", 'Use kind = "several".')
