"""What Prometheus reads: guarded, with the figures of the database, with routes and never paths as labels."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from server import alerts
from server.app import create_app
from server.config import REPOSITORY
from server.http import metrics as http_metrics
from server.models import AlertKind, Mode
from server.operations.metrics import Figures, exposition, silence
from server.reconciliation import runs as reconciliation
from tests.doubles.world import World, passed, wrong
from tests.server.conftest import served

TOKEN = "a-token-of-the-monitoring"


@pytest.fixture
def world(database_url, tmp_path):
    made = World.make(database_url, tmp_path, now=datetime.now(UTC))
    yield made
    made.database.dispose()


def samples(text):
    """Every sample by name and sorted labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def scraped(world):
    with world.database.reading() as session:
        return samples(exposition(session))


def value(found, name, **labels):
    return found[name, *sorted(labels.items())]


def test_the_figures_are_those_of_the_rows(world):
    world.grade(passed())
    world.grade(wrong(), "Bob")
    world.now -= timedelta(seconds=90)
    world.submit()
    world.now += timedelta(seconds=90)
    world.submit("Bob")
    found = scraped(world)
    assert value(found, "ladder_database_up") == 1
    assert value(found, "ladder_queue_depth", lane="cpu", line="submission") == 2
    assert 90 <= value(found, "ladder_queue_oldest_seconds", lane="cpu", line="submission") < 3600
    assert value(found, "ladder_submissions", mode="submission", lane="cpu", state="done") == 2
    assert value(found, "ladder_verdicts_total", mode="submission", lane="cpu", verdict="passed") == 1
    assert value(found, "ladder_verdicts_total", mode="submission", lane="cpu", verdict="wrong_answer") == 1
    assert value(found, "ladder_attempts_total", lane="cpu", work="all", end="finished") == 2
    assert value(found, "ladder_phase_seconds_bucket", lane="cpu", work="all", phase="whole", le="+Inf") == 2
    assert value(found, "ladder_node_slots", node="anvil") == 1


def test_phases_are_measured_by_the_nodes_clock(world):
    receipt = world.grade(passed())
    with world.database.transaction() as session:
        (attempt,) = world.attempts(receipt)
        row = session.merge(attempt, load=False)
        row.phases = [{"phase": "checking", "at": 10.0}, {"phase": "preparing", "at": 7.5}]
        session.flush()
        from sqlalchemy.orm.attributes import flag_modified  # noqa: PLC0415

        flag_modified(row, "phases")
    found = scraped(world)
    place = {"lane": "cpu", "work": "all", "phase": "preparing"}
    assert value(found, "ladder_phase_seconds_gsum", **place) == 2.5
    assert value(found, "ladder_phase_seconds_bucket", **place, le="1") == 0
    assert value(found, "ladder_phase_seconds_bucket", **place, le="2.5") == 1


def test_accounts_alerts_and_nodes_are_told(world):
    world.submit()
    reconciliation.check_due(world.database)
    with world.database.transaction() as session:
        alerts.raise_alert(session, AlertKind.queue_stuck, "lane:cpu", "…", world.now)
    found = scraped(world)
    assert value(found, "ladder_reconciliation_received", course="gpu") == 1
    assert value(found, "ladder_reconciliation_problems", course="gpu") == 0
    assert value(found, "ladder_alerts_open", kind="queue_stuck") == 1
    assert value(found, "ladder_alerts_open", kind="disk_full") == 0
    assert value(found, "ladder_node_condition", node="anvil", condition="works") == 1


def test_accounts_that_do_not_add_up_are_told(world):
    world.submit(source_hash="x")
    reconciliation.check_due(world.database)
    assert value(scraped(world), "ladder_reconciliation_problems", course="gpu") == 1


def test_every_metric_is_explained_in_the_book(world):
    world.grade(passed())
    world.submit(mode=Mode.run, number=1)
    reconciliation.check_due(world.database)
    with world.database.reading() as session:
        text = exposition(session) + http_metrics.exposition() + silence()
    names = {line.split()[2] for line in text.decode().splitlines() if line.startswith("# HELP")}
    said = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
    names = {name for name in names if not name.endswith(("_created", "_gsum", "_gcount"))}
    assert len(names) > 15
    assert sorted(name for name in names if f"`{name}`" not in said) == []


def test_a_second_scrape_soon_after_asks_the_database_nothing(world, monkeypatch):
    figures = Figures(world.database)
    first = figures.exposition()
    world.submit()
    assert figures.exposition() == first
    monkeypatch.setattr("server.operations.metrics.KEPT_S", 0.0)
    assert figures.exposition() != first


@pytest.fixture
def guarded(config):
    """The web tier with a token for metrics."""
    with served(create_app(dataclasses.replace(config, metrics_token=TOKEN))) as url:
        yield url


def test_only_who_has_the_token_reads_them(guarded, site, people):
    stranger, other = site.browser(), site.bearer(people.admin)
    assert stranger.get(f"{guarded}/metrics").status_code == 401
    assert other.get(f"{guarded}/metrics").status_code == 401
    for wrong_one in (f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer", "Bearer é".encode()):
        assert stranger.get(f"{guarded}/metrics", headers={"authorization": wrong_one}).status_code == 401
    answer = stranger.get(f"{guarded}/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert TOKEN not in answer.text
    assert stranger.get(f"{guarded}/metrics?token={TOKEN}").status_code == 401
    assert stranger.post(f"{guarded}/metrics").status_code == 405


def test_without_a_token_there_are_none(site):
    assert site.browser().get("/metrics").status_code == 404
    assert site.browser().get("/metrics", headers={"authorization": "Bearer x"}).status_code == 404


def test_requests_are_counted_by_route_and_never_by_path(guarded, site, people, submit):
    receipt = submit(people.alice).public_id
    client = site.bearer(people.alice)
    for path in (f"/api/v1/submissions/{receipt}", "/api/v1/submissions/none", "/static/x.js", f"/{receipt}/none"):
        client.get(f"{guarded}{path}")
    # A method that the parser lets through and no route has.
    client.request("PURGE", f"{guarded}/coffee")
    text = client.get(f"{guarded}/metrics", headers={"authorization": f"Bearer {TOKEN}"}).content
    assert receipt.encode() not in text
    found = samples(text)
    place = {"method": "GET", "route": "/api/v1/submissions/{public_id}"}
    assert value(found, "ladder_http_request_seconds_count", **place, status="200") >= 1
    assert value(found, "ladder_http_request_seconds_count", **place, status="404") >= 1
    # The numbers are those of this process, and other tests asked it for other things.
    methods = {dict(key[1:]).get("method") for key in found if key[0] == "ladder_http_request_seconds_count"}
    assert "PURGE" not in methods
    assert "other" in methods


SCRIPT = """
import sys
from pathlib import Path
from server.http import metrics
metrics.requests.labels("GET", "/x", "200").observe(0.2)
metrics.watchers.inc()
if "stay" in sys.argv:
    print("there", flush=True)
    sys.stdin.read()
elif "read" in sys.argv:
    metrics.watchers.dec()
    sys.stdout.write(metrics.exposition().decode())
"""


def test_whichever_process_is_asked_answers_for_all_and_the_dead_watch_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(http_metrics.SHARED, "")
    http_metrics.share(tmp_path / "shared")
    command = [sys.executable, "-c", SCRIPT]
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run(command, check=True, env=environ)
    living = subprocess.Popen([*command, "stay"], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert living.stdout.readline() == b"there\n"
        text = subprocess.run([*command, "read"], check=True, env=environ, capture_output=True).stdout
    finally:
        living.kill()
        living.communicate()
    found = samples(text)
    place = {"method": "GET", "route": "/x", "status": "200"}
    assert value(found, "ladder_http_request_seconds_count", **place) == 3
    assert value(found, "ladder_live_watchers") == 1


def test_a_database_that_does_not_answer_is_told_too():
    assert value(samples(silence()), "ladder_database_up") == 0
