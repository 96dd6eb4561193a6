"""A quiz is read strictly, its key too, and an answer is right or it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.errors import ManifestError
from autograder.quiz import (
    AnswerError,
    Key,
    Question,
    QuestionKind,
    Response,
    check_response,
    is_right,
    load_quiz,
    read_number,
)

QUESTIONS = """
[[question]]
name = "waves"
kind = "numeric"
text = "How many?"
unit = "waves"

[[question]]
name = "reads"
kind = "choice"
text = "What is read?"
code = "x[i]"
language = "cuda"
[question.options]
one = "One line"
two = "Two lines"
all = "All"

[[question]]
name = "true_ones"
kind = "several"
text = "Which are true?"
tries = 1
[question.options]
first = "The first"
second = "The second"
"""
KEYS = """
[[key]]
question = "waves"
value = 7
tolerance = 0.25
explanation = "Because."

[[key]]
question = "true_ones"
options = ["first", "second"]
explanation = "Both."

[[key]]
question = "reads"
options = ["two"]
explanation = "Two."
"""


@pytest.fixture
def rung(tmp_path: Path) -> tuple[Path, Path]:
    """A public and a staff folder with a quiz."""
    public, staff = tmp_path / "public", tmp_path / "staff"
    public.mkdir()
    staff.mkdir()
    (public / "quiz.toml").write_text(QUESTIONS, encoding="utf-8")
    (staff / "answer_key.toml").write_text(KEYS, encoding="utf-8")
    return public, staff


def test_a_quiz_is_read_whole_and_its_key_in_its_order(rung: tuple[Path, Path]) -> None:
    quiz = load_quiz(*rung)
    assert [question.name for question in quiz.questions] == ["waves", "reads", "true_ones"]
    assert [key.question for key in quiz.keys] == ["waves", "reads", "true_ones"]
    assert [question.tries_allowed for question in quiz.questions] == [3, 2, 1]
    assert quiz.questions[1].options == {"one": "One line", "two": "Two lines", "all": "All"}
    assert quiz.key("waves") == Key("waves", "Because.", 7.0, 0.25)


def test_a_rung_without_questions_has_an_empty_quiz(tmp_path: Path) -> None:
    assert load_quiz(tmp_path, tmp_path).questions == ()


WRONG_QUESTIONS = [
    ('unit = "waves"', 'units = "waves"', "units: is not a key that a question has. Did you mean 'unit'?", 6),
    ('kind = "several"', 'kind = "severl"', "'severl' is none of numeric, choice, several. Did you mean", 21),
    ("[[question]]", "[[questoin]]", "is not a key that a question has. Did you mean 'question'?", 2),
    ('name = "reads"', 'name = "waves"', "two questions have the name 'waves'", 9),
    ('name = "reads"', 'name = "Reads it"', "'Reads it' is no name. Use a-z", 9),
    ('name = "reads"\n', "", "question[1]: 'name' is missing", 8),
    ('text = "What is read?"', 'text = " "', "text: is empty", 11),
    ('text = "What is read?"', "text = 3", "has to be str, not int", 11),
    ("tries = 1", "tries = -1", "has to be 1 or more", 23),
    ('language = "cuda"', "", "`code` and `language` belong together", 12),
    ('language = "cuda"', 'language = "cudda"', "is no language of code. Did you mean 'cuda'?", 13),
    ('unit = "waves"', '[question.options]\na = "1"\nb = "2"', "a numeric question has none", 6),
    ('text = "What is read?"', 'text = "?"\nunit = "s"', "only a numeric question has one", 12),
    ('two = "Two lines"\nall = "All"', "", "has 1 options; there have to be 2 to 8", 14),
    ('all = "All"', 'all = ""', "'all' needs a name", 14),
    ('all = "All"', "", "who tries them all is right. Say tries = 1", 8),
    ("tries = 1", "tries =", "is not TOML", 23),
]


def test_what_is_wrong_with_a_question_is_said(rung: tuple[Path, Path]) -> None:
    for old, new, words, line in WRONG_QUESTIONS:
        error = _refused(rung, rung[0] / "quiz.toml", old, new)
        assert words in str(error)
        assert error.path.name == "quiz.toml", words
        assert error.line == line, words


WRONG_KEYS = [
    ('question = "reads"', 'question = "reds"', "there is no question 'reds'. Did you mean 'reads'?", 14),
    ('question = "reads"', 'question = "waves"', "two keys are for the question 'waves'", 14),
    ("value = 7", 'options = ["one"]', "a numeric question has a `value`", 3),
    ("value = 7", "value = nan", "value and tolerance are finite", 5),
    ("tolerance = 0.25", "tolerance = -1.0", "no tolerance is below 0", 5),
    ('options = ["two"]', "value = 2", "a question of kind choice has `options`", 14),
    ('options = ["two"]', 'options = ["tow"]', "has no option 'tow'. Did you mean 'two'?", 15),
    ('options = ["two"]', 'options = ["two", "one"]', 'exactly one option of a choice is right. Use kind = "', 15),
    ('explanation = "Two."', 'explanation = ""', "explanation: is empty", 16),
    ('explanation = "Two."', 'explanaton = ""', "Did you mean 'explanation'?", 16),
    (
        'question = "reads"\noptions = ["two"]\nexplanation = "Two."',
        'question = ""',
        "'explanation' is missing",
        13,
    ),
]


def test_what_is_wrong_with_a_key_is_said(rung: tuple[Path, Path]) -> None:
    for old, new, words, line in WRONG_KEYS:
        error = _refused(rung, rung[1] / "answer_key.toml", old, new)
        assert words in str(error)
        assert error.line == line, words


def test_every_question_needs_its_key(rung: tuple[Path, Path]) -> None:
    _edit(rung[1] / "answer_key.toml", '[[key]]\nquestion = "reads"\noptions = ["two"]\nexplanation = "Two."', "")
    with pytest.raises(ManifestError, match="the question 'reads' has no key"):
        load_quiz(*rung)
    (rung[1] / "answer_key.toml").unlink()
    with pytest.raises(ManifestError, match="cannot be read"):
        load_quiz(*rung)


NUMERIC = Question("n", QuestionKind.numeric, "?")
SEVERAL = Question("s", QuestionKind.several, "?", options={"a": "A", "b": "B", "c": "C"})
CHOICE = Question("c", QuestionKind.choice, "?", options={"a": "A", "b": "B", "c": "C"})


NUMBERS = [
    (7, 0, 7, True),
    (7, 0, 7.01, False),
    (0.3, 0.1, 0.4, True),
    (0.3, 0.1, 0.41, False),
    (6.92, 0.05, 6.9, True),
    (-2, 0, 2, False),
    (0, 0, 0, True),
    (0, 0, 1e-9, False),
    (2**40, 0, 2**40 + 2000, False),
]


def test_a_number_is_right_within_the_tolerance() -> None:
    for value, tolerance, answer, right in NUMBERS:
        key = Key("n", "", value, tolerance)
        assert is_right(NUMERIC, key, Response(answer)) is right, (value, tolerance, answer)


def test_all_right_options_and_no_other_are_right() -> None:
    key = Key("s", "", options=("c", "a"))
    chosen = [("a",), ("a", "b", "c"), ("a", "c"), ("b",)]
    assert [is_right(SEVERAL, key, Response(options=names)) for names in chosen] == [False, False, True, False]


def test_a_response_of_another_kind_is_never_right() -> None:
    """A question may have changed its kind since it was answered."""
    assert not is_right(NUMERIC, Key("n", "", 1.0), Response(options=("a",)))
    assert not is_right(SEVERAL, Key("s", "", options=("a",)), Response(1.0))


TYPED = [
    ("1024", 1024.0), (" 6.92 ", 6.92), ("1.5e6", 1.5e6), ("1 048 576", 1048576.0), ("1_024", 1024.0), (".5", 0.5),
    ("\N{MINUS SIGN}3", -3.0), ("+2.", 2.0),
]  # fmt: skip


def test_a_number_is_read_as_people_type_it() -> None:
    assert [(text, read_number(text)) for text, _ in TYPED] == TYPED


def test_what_is_no_number_is_refused() -> None:
    texts = ("", "a", "1,5", "1,024", "7 waves", "0x10", "nan", "inf", "1e9999", "--1", "1.2.3", "²")
    assert [text for text in texts if not _is_no_number(text)] == []


def _is_no_number(text: str) -> bool:
    try:
        read_number(text)
    except AnswerError as error:
        return "Write a number" in str(error)
    return False


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e20, max_value=1e20))
def test_what_python_writes_is_read_again(number: float) -> None:
    assert read_number(repr(number)) == number


@pytest.mark.parametrize(
    ("question", "response", "words"),
    [
        (NUMERIC, Response(), "one number"),
        (NUMERIC, Response(1.0, ("a",)), "one number"),
        (NUMERIC, Response(float("inf")), "one number"),
        (CHOICE, Response(), "Choose an option first"),
        (CHOICE, Response(options=("a", "b")), "Choose one option"),
        (CHOICE, Response(options=("z",)), "answered with options: a, b, c"),
        (SEVERAL, Response(1.0), "answered with options"),
        (SEVERAL, Response(), "Choose an option first"),
    ],
)
def test_what_is_no_answer_is_refused(question: Question, response: Response, words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        check_response(question, response)


def test_chosen_options_stand_in_the_questions_order_once() -> None:
    assert check_response(SEVERAL, Response(options=("c", "a", "c"))) == Response(options=("a", "c"))


def _refused(rung: tuple[Path, Path], path: Path, old: str, new: str) -> ManifestError:
    """The error with this edit of a file, which is afterwards as it was."""
    before = path.read_text(encoding="utf-8")
    _edit(path, old, new)
    try:
        load_quiz(*rung)
    except ManifestError as error:
        return error
    finally:
        path.write_text(before, encoding="utf-8")
    pytest.fail(f"a quiz with {new!r} for {old!r} is taken")


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
