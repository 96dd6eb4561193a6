"""What anybody can make expensive has an end, in processor time and in what was asked for; a figure is no wall time."""

from __future__ import annotations

import asyncio
import json
import operator
import random
import time
from collections.abc import Callable

import httpx
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from autograder.contract import Lane
from server import db
from server.apart import asking
from server.apart.asking import APART, Apart, GivenUpError
from server.comments.carried import MOST_LINES, follow
from server.errors import TooManyError
from server.http.turns import Turns
from server.lexing import lines
from server.pages.diff import compare
from server.pages.markdown import markdown_html
from server.writeups import SHOWN_BYTES
from tests.doubles.world import passed
from tests.server.conftest import an_app

MOST_S = 1.5
"""Of processor time, of this process and the one apart; three times what is aimed at."""


def crafted(count: int, shift: int) -> list[str]:
    """Lines of which every other stands in few places: difflib took 16 s for 5 000 of them."""
    return [line for number in range(count // 2) for line in (f"x{number}=0", f"s{(number + shift) % 49}=0")]


def drawn_from(symbols: str, count: int, seed: int) -> list[str]:
    chosen = random.Random(seed)
    return [chosen.choice(symbols) for _ in range(count)]


PAIRS = {
    "crafted": (crafted(5_000, 0), crafted(5_000, 24)),
    "two lines": (drawn_from("ab", 5_000, 1), drawn_from("ab", 5_000, 2)),
    "backwards": ([str(n) for n in range(5_000)], [str(n) for n in range(5_000)][::-1]),
    "each twice": ([str(n // 2) for n in range(5_000)], [str(n // 2) for n in range(5_000)][::-1]),
    "in turn": ([str(n % 70) for n in range(5_000)], [str(n * n % 70) for n in range(5_000)]),
    "one line": (["a"] * 5_000, ["b"] * 5_000),
}
TEXTS = {
    "pictures": "![" * (SHOWN_BYTES // 2),
    "formulas that end nowhere": "$a" * (SHOWN_BYTES // 2),
    "one formula": "$" + "x^{2}" * (SHOWN_BYTES // 5 - 1) + "$",
    "brackets": "[" * SHOWN_BYTES,
    "a wide table": "|" + "a|" * 5_000 + "\n|" + "-|" * 5_000 + "\n" + ("|" * 5_000 + "\n") * 40,
    "links in links": "[a](" * (SHOWN_BYTES // 4),
    "stars": "*a_" * (SHOWN_BYTES // 3),
    "quotes": "> " * (SHOWN_BYTES // 2),
    "lists": "- " * (SHOWN_BYTES // 2),
    "fences": "```c\na b" + "//\\\n" * 60 + ";\n```\n",
}


@pytest.fixture
def database_url(sqlite_url):
    return sqlite_url


@pytest.fixture
def spent() -> Callable[[], float]:
    """Processor time so far, of both processes."""
    APART.ask(lines.same_lines, [], [], seconds=1)
    return lambda: time.process_time() + APART.processor_s()


@pytest.mark.parametrize("name", PAIRS)
def test_comparing_any_two_sources_ends_soon(name, spent):
    before, after = PAIRS[name]
    began = spent()
    found = compare("\n".join(before), "\n".join(after), "triton", "triton")
    assert spent() - began < MOST_S + 2.0  # Each of the two is coloured, too, for up to a second.
    rows = [row for hunk in found.hunks for row in hunk.rows]
    equal = sum(hunk.skipped for hunk in found.hunks) + found.left_out
    assert sum(row.old is not None for row in rows) + equal == len(before)
    assert sum(row.new is not None for row in rows) + equal == len(after)


@pytest.mark.parametrize("name", PAIRS)
def test_matching_lines_is_a_number_of_steps(name, spent):
    began = spent()
    where, whole = APART.ask(lines.same_lines, *lines.numbered(*PAIRS[name]), seconds=60)
    assert spent() - began < MOST_S
    assert whole is (name in {"crafted", "backwards"})
    assert len(where) == len(PAIRS[name][0])


@pytest.mark.parametrize("name", TEXTS)
def test_laying_out_any_text_ends_soon(name, spent):
    began = spent()
    assert markdown_html(TEXTS[name])
    assert spent() - began < MOST_S


def test_following_comments_ends_soon(spent):
    began = spent()
    assert len(follow(drawn_from("ab", MOST_LINES, 3), drawn_from("ab", MOST_LINES, 4))) == MOST_LINES
    assert spent() - began < MOST_S


def test_a_text_that_takes_too_long_is_shown_as_it_was_written():
    html = markdown_html("a <script>\u202e" + TEXTS["brackets"])
    assert "takes too long" in html
    assert "a &lt;script&gt;⟨U+202E⟩[[[" in html


FEW = st.lists(st.sampled_from("abcd"), max_size=25)


@given(before=FEW, after=FEW, steps=st.integers(0, 400))
def test_what_is_called_the_same_is(before, after, steps):
    where, _whole = lines.same_lines(before, after, steps)
    pairs = [(was, now) for was, now in enumerate(where) if now >= 0]
    assert all(before[was] == after[now] for was, now in pairs)
    assert [now for _, now in pairs] == sorted({now for _, now in pairs})


@given(before=FEW, after=FEW)
def test_with_steps_enough_everything_was_looked_at(before, after):
    where, whole = lines.same_lines(before, after)
    assert whole
    assert before != after or where == list(range(len(before)))


def test_a_small_change_to_a_long_source_is_found_however_alike_its_lines_are():
    before = ["  }", "  {"] * 2_400
    after = [*before[:2_000], "new", *before[2_000:]]
    where, whole = lines.same_lines(before, after)
    assert whole
    assert where == [*range(2_000), *range(2_001, 4_801)]


def test_the_same_is_done_once():
    apart = Apart()
    try:
        apart.ask(sorted, [3, 1], seconds=1)
        first = apart.processor_s()
        assert apart.ask(sorted, [3, 1], seconds=1) == [1, 3]
        apart.close()
        assert apart.ask(sorted, [3, 1], seconds=1) == [1, 3]
        assert apart._child is None
        assert first > 0
    finally:
        apart.close()


def test_answers_are_kept_up_to_a_size(monkeypatch):
    monkeypatch.setattr(asking, "KEPT_BYTES", 1_000)
    kept = asking._Answers()
    for number in range(10):
        kept.keep(bytes([number]), json.dumps("x" * 100).encode())
    assert [kept.get(bytes([number])) is not None for number in range(10)] == [False] * 7 + [True] * 3


def test_what_is_too_large_is_given_up():
    with pytest.raises(GivenUpError):
        APART.ask(operator.mul, "x", 5 * 2**20, seconds=5)


# --- whose turn it is -------------------------------------------------------------------------------------------------


def test_one_page_of_a_person_at_a_time_and_a_few_of_all():
    made, most = {1: 0, 2: 0}, {1: 0, 2: 0, "all": 0}

    async def page(turns: Turns, person: int) -> None:
        async with turns.turn(person):
            made[person] += 1
            most[person] = max(most[person], made[person])
            most["all"] = max(most["all"], sum(made.values()))
            await asyncio.sleep(0)
            made[person] -= 1

    async def run() -> list[object]:
        turns = Turns(at_once=2, most_waiting=3)
        pages = [page(turns, person) for person in (1, 1, 1, 1, 2)]
        said = await asyncio.gather(*pages, return_exceptions=True)
        assert turns._lines == {}
        return said

    said = asyncio.run(run())
    assert [type(one) for one in said] == [type(None)] * 3 + [TooManyError, type(None)]
    assert most == {1: 1, 2: 1, "all": 2}


def test_who_waits_too_long_is_told():
    async def run() -> None:
        turns = Turns(patience_s=0.01)
        async with turns.turn(1):
            with pytest.raises(TooManyError, match="busy with other pages"):
                async with turns.turn(1):
                    pass

    asyncio.run(run())


@pytest.fixture
def busy(monkeypatch):
    monkeypatch.setattr("server.app.Turns", lambda: Turns(most_waiting=0))


def test_a_page_says_that_others_are_still_being_drawn(world, busy, visit):
    made = world.grade(passed(1.0), "Alice", node="forge", lane=Lane.h200)
    status, text, _ = visit("Alice", f"/submissions/{made}/diff")
    assert status == 429
    assert "still loading" in text


def test_the_health_of_a_busy_process_is_told_without_its_threads(world):
    """All threads for requests are taken, and stay so."""

    async def run() -> int:
        limiter = to_thread.current_default_thread_limiter()
        limiter.total_tokens = 1
        async with limiter, httpx.AsyncClient(transport=httpx.ASGITransport(an_app(world.config))) as client:
            return (await client.get("http://localhost/healthz", timeout=60)).status_code

    assert asyncio.run(asyncio.wait_for(run(), 30)) == 200


# --- whole pages ------------------------------------------------------------------------------------------------------


def test_the_connection_is_given_back_while_sources_are_compared(world, visit, monkeypatch):
    first, second = (world.grade(passed(ratio), "Alice", node="forge", lane=Lane.h200) for ratio in (2.0, 1.0))
    seen = []

    def ask(*_: object, **__: object) -> object:
        seen.append(world.database.engine.pool.checkedout())
        raise GivenUpError

    monkeypatch.setattr("server.pages.diff.let_go", lambda session: (db.let_go(session), seen.append("let go")))
    monkeypatch.setattr(APART, "ask", ask)
    assert visit("Alice", f"/submissions/{second}/diff?from={first}").status == 200
    assert seen[0] == "let go"
