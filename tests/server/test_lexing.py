"""Sources whose lexing would never end hold up nobody, and are shown plain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest
from pygments.token import Name

from autograder.contract import Language
from server.apart.asking import Apart, GivenUpError, NoProcessError
from server.lexing import lexers
from server.lexing.apart import tokens
from server.pages.commented import _sections
from server.pages.highlight import highlight, listing
from server.similarity.reduced import reduce

ENDLESS = "a b" + "//\\\n" * 60 + ";\n"
"""Each line doubles what a rule for whole functions tries: 2^60 ways to read a comment."""
UNCLOSED = 'R"(' * 30_000
"""Each raw string is looked for the end of, to the end of the file."""
HEADS = ("cuda", "cpp", "c++")
PATIENCE_S = 60


@pytest.fixture
def apart():
    made = Apart()
    yield made
    made.close()


@pytest.mark.parametrize("language", HEADS)
def test_comments_that_go_on_are_read_once(language: str) -> None:
    """In a process of its own, which can be ended: a match cannot."""
    code = f"from server.lexing import lexers; print(len(list(lexers.tokens({ENDLESS!r}, {language!r}))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert int(done.stdout) > 3


def test_what_takes_too_long_is_given_up_and_asked_no_second_time(apart: Apart) -> None:
    with pytest.raises(GivenUpError):
        tokens(ENDLESS, "c", seconds=0.3, apart=apart)  # Pygments' own lexer of C.
    first = apart._child
    assert first.is_alive()
    assert "".join(value for _, value in tokens("x = 1\n", "triton", seconds=1, apart=apart)) == "x = 1\n"
    assert apart._child is first
    apart.close()
    with pytest.raises(GivenUpError):
        tokens(ENDLESS, "c", seconds=0.3, apart=apart)
    assert apart._child is None


def test_a_process_that_died_is_begun_again(apart: Apart) -> None:
    tokens("x", "triton", seconds=1, apart=apart)
    os.kill(apart._child._process.pid, signal.SIGKILL)
    apart._child._process.wait()
    assert [value for _, value in tokens("x", "triton", seconds=1, apart=apart)] == ["x"]


@pytest.mark.parametrize("command", [("/nowhere/python",), (sys.executable, "-c", "")])
def test_where_there_is_no_process_the_source_is_asked_for_again(
    apart: Apart, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """A machine that has no room for a process now may have it later; the page is without colours meanwhile."""
    with monkeypatch.context() as patched:
        patched.setattr("server.apart.asking._COMMAND", command)
        with pytest.raises(NoProcessError):
            tokens("x", "triton", seconds=1, apart=apart)
    assert [value for _, value in tokens("x", "triton", seconds=1, apart=apart)] == ["x"]


def test_one_that_says_nothing_is_ended(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.apart.asking._COMMAND", (sys.executable, "-c", "import time; time.sleep(600)"))
    monkeypatch.setattr("server.apart.asking._WAIT_S", 0.2)
    with pytest.raises(GivenUpError):
        tokens("x", "triton", seconds=0.1, apart=apart)
    assert apart._child is None


def test_threads_get_their_own_answers(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.apart.asking._WAIT_S", 300)
    said: dict[int, str] = {}

    def ask(number: int) -> None:
        code = f"x{number} = {number}\n" * 2000
        said[number] = "".join(value for _, value in tokens(code, "triton", seconds=5, apart=apart))
        assert said[number] == code

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == len(threads)


@pytest.mark.parametrize("source", [ENDLESS, UNCLOSED])
def test_a_page_shows_it_all_the_same(source: str) -> None:
    shown = "\n".join(line.html.striptags() for line in listing(source, "cuda").lines)
    assert "".join(shown.split()).startswith("".join(source[:1000].split()))


def test_a_fence_may_name_any_language() -> None:
    assert "int" in highlight(ENDLESS + "int x;", "c")


def test_functions_are_named_and_control_is_not() -> None:
    source = "__global__ void add(float* x) {\n  if (x) return;\n  for (;;) { f(x); }\n}\n"
    kinds = {value: kind for kind, value in lexers.tokens(source, Language.cuda.value) if value.strip()}
    assert kinds["add"] in Name.Function
    assert kinds["f"] in Name.Function
    assert "Keyword" in str(kinds["if"])
    assert "Keyword" in str(kinds["for"])
    assert "Keyword" in str(kinds["void"])


def test_a_comparison_reads_it_too(apart: Apart) -> None:
    assert reduce(ENDLESS, "cuda").text.startswith("VV")
    with pytest.raises(GivenUpError):
        reduce(ENDLESS, "c", lambda source, language: tokens(source, language, seconds=0.3, apart=apart))


def test_a_heading_is_found_in_time_however_it_is_spaced() -> None:
    long = "# a" + " " * 200_000 + "b"
    assert _sections(f"{long}\n##  Results  ##\n#\n####### no\n") == (long[2:202], "Results")
