"""From what a runner did to a verdict and a sentence."""

from __future__ import annotations

import json
import signal
import time

import numpy as np
import pytest

from autograder.contract import Frame, Verdict
from autograder.judge.protocol import failure
from autograder.judge.protocol.failure import MAX_FRAMES, MAX_MESSAGE, clean, from_exit, from_raised, out_of_time
from autograder.protocol import Raised
from autograder.sandbox import Exit

SOURCE = "\n".join(f"    line {number}" for number in range(1, 501))


def raised(stage: str = "call", kind: str = "ValueError", message: str = "no", frames: int = 1) -> Raised:
    return Raised(1, stage, kind, message, tuple(Frame(line, "f", "x = 1") for line in range(1, frames + 1)))


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        (Exit(code=0), Verdict.runtime_error),
        (Exit(code=3), Verdict.runtime_error),
        (Exit(signal=signal.SIGKILL), Verdict.runtime_error),
        (Exit(signal=signal.SIGABRT), Verdict.runtime_error),
        (Exit(signal=signal.SIGSEGV), Verdict.illegal_access),
        (Exit(signal=signal.SIGBUS), Verdict.illegal_access),
        (Exit(signal=signal.SIGSYS), Verdict.rule_violation),
        (Exit(signal=signal.SIGKILL, out_of_memory=True), Verdict.out_of_memory),
        (Exit(signal=signal.SIGKILL, output_exceeded=True), Verdict.output_limit),
        (Exit(signal=64), Verdict.runtime_error),
    ],
)
def test_the_way_a_runner_ended_decides(ending: Exit, verdict: Verdict) -> None:
    failure = from_exit(ending, "the call")
    assert failure.verdict is verdict
    assert failure.ended
    assert "the call" in failure.message


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("an illegal memory access: thread (1,0,0) of k writes element 9 of out, which has 9.", ""),
        ("CUDA error: misaligned address", "A wide load or store begins at a multiple of its own size"),
        ("an illegal memory access: the host's code reads x: that is device memory. Work on it in a kernel.", ""),
    ],
)
def test_what_to_look_at_depends_on_the_access(message: str, advice: str) -> None:
    failure = from_raised(raised(kind="IllegalAccess", message=message), SOURCE)
    assert failure.verdict is Verdict.illegal_access
    assert advice in failure.message
    assert "masks" not in failure.message, "what a case that failed cannot say alone"


@pytest.mark.parametrize(
    ("said", "loading", "verdict", "ended"),
    [
        (raised(), False, Verdict.runtime_error, False),
        (raised("load"), False, Verdict.runtime_error, False),
        (raised("load", "SyntaxError"), True, Verdict.compile_error, True),
        (raised("entry", "MissingEntry"), True, Verdict.compile_error, True),
        (raised("call", "SyntaxError"), True, Verdict.compile_error, True),
        (raised(kind="MemoryError", message=""), False, Verdict.out_of_memory, False),
        # A student's class of that name, around what leaves the device unusable.
        (
            raised(kind="DataRace", message="an illegal memory access was encountered"),
            False,
            Verdict.illegal_access,
            True,
        ),
        (
            raised(kind="RuntimeError", message="DefaultCPUAllocator: can't allocate memory"),
            False,
            Verdict.out_of_memory,
            False,
        ),
    ],
)
def test_an_exception_is_judged_by_what_was_waited_for_and_its_kind(
    said: Raised, loading: bool, verdict: Verdict, ended: bool
) -> None:
    failure = from_raised(said, SOURCE, loading=loading)
    assert (failure.verdict, failure.ended) == (verdict, ended)


def test_an_exceptions_line_and_text_are_in_the_sentence() -> None:
    assert from_raised(raised(message="bad shape"), SOURCE).message == "line 1: ValueError: bad shape."


def test_a_kind_that_the_message_says_in_words_is_not_said_twice() -> None:
    race = raised(kind="DataRace", message="a data race: program 0 writes element 1 of out.")
    assert from_raised(race, SOURCE).message.startswith("line 1: a data race: program 0 writes element 1 of out.")
    own = raised(kind="ValueError", message="a value error: 3")
    assert from_raised(own, SOURCE).message == "line 1: ValueError: a value error: 3."


def test_only_the_first_line_of_a_long_text_is_in_the_sentence_and_all_of_it_in_the_error() -> None:
    failure = from_raised(raised(message="first\nsecond"), SOURCE)
    assert failure.message == "line 1: ValueError: first."
    assert failure.error is not None
    assert failure.error.message == "first\nsecond"


def test_an_exception_without_text_or_frames_still_makes_a_sentence() -> None:
    assert from_raised(raised(message="", frames=0), SOURCE).message == "ValueError."
    for kind in ("", "\n", " "):
        assert from_raised(raised(kind=kind, message="", frames=0), SOURCE).message == "an exception."


def test_frames_and_text_are_capped() -> None:
    failure = from_raised(raised(message="m" * 10**6, frames=500), SOURCE)
    assert failure.error is not None
    assert len(failure.error.frames) == MAX_FRAMES
    assert failure.error.frames[-1].line == 500
    assert len(failure.error.message) <= MAX_MESSAGE + 2


def test_a_frames_code_is_the_sources_own_line_and_a_line_that_there_is_not_has_no_frame() -> None:
    frames = (Frame(0, "f", "a lie"), Frame(3, "f", "n is 4099"), Frame(501, "f", "a lie"))
    failure = from_raised(Raised(1, "call", "ValueError", "", frames), SOURCE)
    assert failure.error is not None
    assert failure.error.frames == (Frame(3, "f", "line 3"),)


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert clean("red \x1b[31mtext\x07\nnext\u202e", 100) == "red �[31mtext�\nnext�"


def test_running_out_of_time_names_the_limit() -> None:
    failure = out_of_time("the call", 10.0)
    assert failure.verdict is Verdict.time_limit
    assert failure.message.startswith("The call did not end within 10 s and was stopped.")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"{np.__file__}:3: RuntimeWarning: overflow", "numpy/__init__.py:3: RuntimeWarning: overflow"),
        ("/usr/local/lib/python3.12/dist-packages/torch/x.py", "torch/x.py"),
        (f'File "{json.__file__}", line 3', 'File "json/__init__.py", line 3'),
        (f"{failure.__file__}:7: error", "autograder/judge/protocol/failure.py:7: error"),
        ("/tmp/mine/x.txt is 3/4 of a/b", "/tmp/mine/x.txt is 3/4 of a/b"),
    ],
)
def test_no_path_of_the_node_stands_in_what_is_shown(said: str, shown: str) -> None:
    assert clean(said, 1000) == shown


def test_paths_of_a_log_without_spaces_are_looked_at_once() -> None:
    began = time.process_time()
    clean("/site-packages" * 20_000, 10**6)
    clean("/lib/python3.11" * 20_000, 10**6)
    assert time.process_time() - began < 1.5
