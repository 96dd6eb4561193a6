"""How processes log: one id as a field, and nothing that opens anything."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from broker import logs

TRACE = "0123456789abcdef" * 2
SECRETS = (
    "kl_abcdefghijklmnopqrstuvwxyz012345",
    "kn_ABCDEFGHIJKLMNOPQRSTUVWXYZ-_0123",
    "Authorization: Bearer abcdefgh.ijklmnop",
    "redis://:hunter2-and-more@redis:6379/0",
    "postgresql+psycopg://ladder:hunter2-and-more@db/ladder",
    "dbname=x password=hunter2-and-more host=y",
)


@pytest.fixture
def said(capsys):
    """Log in a format and give back the lines; the root logger is put back afterwards."""
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level

    def call(form, log):
        root.handlers = []
        logs.configure(form)
        root.handlers[0].setStream(sys.stderr)
        log(logging.getLogger("server.test"))
        return capsys.readouterr().err.splitlines()

    yield call
    root.handlers, root.level = kept, level


def test_a_line_is_an_object_with_its_trace(said):
    (line,) = said("json", lambda log: log.info("trace %s: attempt %s begins", TRACE, "A"))
    data = json.loads(line)
    assert (data["level"], data["logger"], data["trace"]) == ("INFO", "server.test", TRACE)
    assert data["message"] == f"trace {TRACE}: attempt A begins"
    assert data["at"].endswith("+00:00")


def test_whoever_follows_a_request_names_it_in_every_line(said):
    def log(logger):
        with logs.follow(TRACE):
            logger.warning("something")
        logger.warning("something else")

    inside, outside = (json.loads(line) for line in said("json", log))
    assert inside["trace"] == TRACE
    assert "trace" not in outside
    first, second = said("text", log)
    assert first.endswith(f"something trace={TRACE}")
    assert "trace" not in second


def test_a_trace_is_said_once_in_text(said):
    (line,) = said("text", lambda log: log.info("trace %s: it begins", TRACE))
    assert line.count(TRACE) == 1


def test_an_error_is_one_object(said):
    def log(logger):
        error = ValueError('of "quotes"\nand lines')
        logger.error("it broke", exc_info=error)

    (line,) = said("json", log)
    assert "ValueError" in json.loads(line)["exc_info"]


@pytest.mark.parametrize("form", logs.FORMATS)
@pytest.mark.parametrize("secret", SECRETS)
def test_what_opens_something_is_struck_out(said, form, secret):
    def log(logger):
        logger.error("with %s", secret, exc_info=RuntimeError(f"cannot reach {secret}"))

    text = "\n".join(said(form, log))
    assert all(part not in text for part in ("hunter2", "abcdefgh", "ABCDEFGH", "ijklmnop"))
    assert logs.STRUCK in text
    if form == "json":
        json.loads(text)


def test_ordinary_words_stay_as_they_are():
    for text in (
        "https://ladder.example.org:8443/x@y",
        "kernel_of_a_long_name",
        "sha256:" + "a" * 64,
        "bearer of news",
    ):
        assert logs.strike_out(text) == text


def test_a_format_that_is_none_is_named():
    with pytest.raises(ValueError, match="text, json"):
        logs.configure("xml")
