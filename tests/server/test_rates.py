"""How much one person, and one network, may ask for: 429 with when to come again, and bounded memory."""

from __future__ import annotations

import dataclasses
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from server.accounts import accounts
from server.errors import TooManyError
from server.http import rates as counting
from server.http.rates import BURST_S, Allowance, Rates, TooFast
from tests.server.conftest import COURSE, PATIENCE_S, Site, an_app, served, until

ME = "/api/v1/me"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def _rates(clock, per_s=1.0, at_once=3, streams=2, **options) -> Rates:
    return Rates(Allowance(per_s, at_once, streams), clock=clock, **options)


def _ask(rates, who="x", *, is_stream=False) -> None:
    rates.enter(who, is_stream=is_stream)
    rates.leave(who, is_stream=is_stream)


# --- counting --------------------------------------------------------------------------------------------------------


def test_a_burst_is_let_through_then_so_many_a_second(clock):
    rates = _rates(clock)
    for _ in range(int(BURST_S)):
        _ask(rates)
    with pytest.raises(TooManyError) as caught:
        _ask(rates)
    assert caught.value.retry_after_s == 1
    # What was refused costs nothing more, and others are not held up.
    _ask(rates, "y")
    clock.at += 1
    _ask(rates)
    with pytest.raises(TooManyError):
        _ask(rates)
    clock.at += 3600
    for _ in range(int(BURST_S)):
        _ask(rates)
    with pytest.raises(TooManyError):
        _ask(rates)


def test_so_many_at_once_and_so_many_streams_beside_them(clock):
    rates = _rates(clock, per_s=100)
    for _ in range(3):
        rates.enter("x", is_stream=False)
    for _ in range(2):
        rates.enter("x", is_stream=True)
    for is_stream in (True, False):
        with pytest.raises(TooManyError):
            rates.enter("x", is_stream=is_stream)
        rates.leave("x", is_stream=is_stream)
        rates.enter("x", is_stream=is_stream)


def test_nought_is_no_limit(clock):
    rates = _rates(clock, per_s=0, at_once=0, streams=0)
    for _ in range(1000):
        rates.enter("x", is_stream=False)
        rates.enter("x", is_stream=True)


def test_what_is_remembered_is_bounded_and_never_who_is_being_answered(clock):
    rates = _rates(clock, per_s=100, at_once=1, most_known=1000)
    rates.enter("held", is_stream=False)
    for number in range(50_000):
        _ask(rates, f"2001:db8:0:{number:x}::/64")
    assert len(rates) == 1000
    with pytest.raises(TooManyError):
        rates.enter("held", is_stream=False)
    rates.leave("held", is_stream=False)


def test_counting_is_quick_where_everybody_is_known(clock):
    rates = _rates(clock, per_s=100)
    for number in range(20_000):
        _ask(rates, number)
    began = time.process_time()
    for number in range(20_000, 40_000):
        _ask(rates, number)
    assert (time.process_time() - began) / 20_000 < 0.000_2
    assert sys.getsizeof(rates._known) < 4_000_000


def test_who_came_too_fast_is_refused_unseen_until_their_time_is_up(clock):
    too_fast = TooFast(most_known=100, clock=clock)
    too_fast.add("Bearer kl_x", 3.0, "slower")
    with pytest.raises(TooManyError, match="slower") as caught:
        too_fast.check("Bearer kl_x")
    assert caught.value.retry_after_s == 3
    too_fast.check("Bearer kl_y")
    clock.at += 3
    too_fast.check("Bearer kl_x")
    assert len(too_fast) == 0
    for number in range(1000):
        too_fast.add(str(number), 3.0, "slower")
    assert len(too_fast) == 100


# --- the application -------------------------------------------------------------------------------------------------


@contextmanager
def _served(config, database, **limits):
    with ExitStack() as stack:
        strict = dataclasses.replace(config, **limits)
        yield Site(stack.enter_context(served(an_app(strict))), stack, database)


def _from(address: str) -> dict[str, str]:
    """As a proxy on this machine says it."""
    return {"x-forwarded-for": address}


def _statuses(client: httpx.Client, path: str, count: int, **headers: str) -> list[int]:
    return [client.get(path, headers=headers).status_code for _ in range(count)]


@pytest.fixture
def slow(monkeypatch):
    """A burst of a few requests, and hardly any after it: no test waits, and none is too slow."""
    monkeypatch.setattr(counting, "BURST_S", 1000.0)


@pytest.mark.usefixtures("slow")
def test_a_person_who_asks_too_fast_is_told_when_to_come_again(config, database, people, monkeypatch):
    with _served(config, database, person_requests_per_s=0.002) as site:
        program = site.bearer(people.alice)
        assert set(_statuses(program, ME, 2)) == {200}
        answer = program.get(ME)
        assert answer.status_code == 429
        assert answer.json()["error"] == "TooManyError"
        assert 1 <= int(answer.headers["retry-after"]) <= 500
        # Without asking the database who it is.
        with monkeypatch.context() as patched:
            patched.setattr(accounts, "token_of", None)
            assert program.get(ME).status_code == 429
        # Another token or browser is the same person, and somebody else is not.
        page = site.logged_in(people.alice, config).get(f"/courses/{COURSE}")
        assert (page.status_code, "<h1>Too many requests</h1>" in page.text) == (429, True)
        assert f'href="/courses/{COURSE}">Reload' in page.text
        assert "retry-after" in page.headers
        assert site.bearer(people.bob).get(ME).status_code == 200


@pytest.mark.usefixtures("slow")
def test_a_network_that_asks_too_fast_is_refused_by_its_64(config, database, people):
    with _served(config, database, network_requests_per_s=0.003) as site:
        client = site.browser()
        three = [f"2001:db8:1:2::{number}" for number in (1, 2, 3)]
        assert [client.get("/login", headers=_from(one)).status_code for one in three] == [200] * 3
        answer = client.get("/login", headers=_from("2001:db8:1:2:ffff::9"))
        assert (answer.status_code, "Too many requests" in answer.text) == (429, True)
        assert int(answer.headers["retry-after"]) >= 1
        assert "content-security-policy" in answer.headers
        assert client.get("/api/v1/me", headers=_from(three[0])).json()["error"] == "TooManyError"
        for other in ("2001:db8:1:3::1", "192.0.2.1"):
            assert client.get("/login", headers=_from(other)).status_code == 200
        # What watches us, files, and this machine itself.
        assert client.get("/healthz", headers=_from(three[0])).status_code == 200
        assert client.get("/static/favicon.svg", headers=_from(three[0])).status_code == 200
        assert set(_statuses(client, "/login", 10)) == {200}


@pytest.mark.parametrize("limit", ["person_streams", "network_streams"])
def test_streams_are_counted_until_they_end(config, database, people, submit, limit):
    path = f"/api/v1/submissions/{submit(people.alice).public_id}/events"
    with _served(config, database, **{limit: 2}) as site, ExitStack() as open_ones:
        client = site.bearer(people.alice)
        for _ in range(2):
            stream = open_ones.enter_context(client.stream("GET", path, headers=_from("192.0.2.7")))
            assert stream.status_code == 200
        refused = client.get(path, headers=_from("192.0.2.7"))
        assert (refused.status_code, "live pages are open" in refused.json()["message"]) == (429, True)
        assert client.get(ME, headers=_from("192.0.2.7")).status_code == 200
        open_ones.close()

        def opens() -> bool:
            with client.stream("GET", path, headers=_from("192.0.2.7")) as again:
                return again.status_code == 200

        until(opens, patience_s=PATIENCE_S)


@pytest.mark.parametrize("limit", ["person_requests_at_once", "network_requests_at_once"])
def test_requests_at_once_are_counted_until_they_are_answered(config, database, people, limit):
    with _served(config, database, **{limit: 2}) as site:
        client = site.bearer(people.alice)
        with ThreadPoolExecutor(12) as pool:
            answers = list(
                pool.map(
                    lambda _: client.get(f"/api/v1/courses/{COURSE}/assignments", headers=_from("192.0.2.7")), range(60)
                )
            )
        assert {answer.status_code for answer in answers} <= {200, 429}
        assert sum(answer.status_code == 200 for answer in answers) >= 2
        assert all("retry-after" in answer.headers for answer in answers if answer.status_code == 429)
        until(lambda: client.get(ME, headers=_from("192.0.2.7")).status_code == 200)


def test_a_form_that_is_refused_changes_nothing_and_an_error_leaves_nothing_counted(config, database, people):
    with _served(config, database, person_requests_at_once=1) as site:
        client = site.bearer(people.alice)
        for _ in range(5):
            assert client.get("/api/v1/courses/none/assignments").status_code == 404
            assert client.post("/api/v1/tokens", content=b"\xff{").status_code == 422
        assert client.get(ME).status_code == 200
