"""Weigh the pages in Chromium: requests, bytes and layout shift, from an empty cache and over a slow line.

    python -m scripts.page_weights             print the table
    python -m scripts.page_weights --publish   also into docs/performance.md

The server and its pages are the real ones, the course on them is that of the screenshots (`tests/browser/course.py`).
The reader's clock is not the course's, which adds lines to some pages. Layout shift is the sum of what Chromium's
`PerformanceObserver` reports while a page loads; up to 0.1 counts as good (https://web.dev/articles/cls).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.browser.conftest import PHONE, Watched, launch
from tests.browser.course import populate
from tests.browser.stage import Stage, stage

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- weights:begin -->", "<!-- weights:end -->"
LAPTOP: ViewportSize = {"width": 1280, "height": 800}
LATENCY_MS, BYTES_PER_S = 60, 500_000
SETTLED_MS = 600
PAGES = (
    ("The ladder", "alice", "{course}"),
    ("A rung with its editor", "alice", "{rung}"),
    ("A submission, passed", "alice", "/submissions/{fast}"),
    ("A submission, wrong answer", "alice", "/submissions/{wrong}"),
    ("A leaderboard", "alice", "{rung}/leaderboard?lane=h200"),
    ("Standings", "alice", "{course}/standings"),
    ("Quiz", "alice", "{rung}/quiz"),
    ("Grades", "alice", "{course}/grades"),
    ("Gradebook", "ines", "{course}/gradebook"),
    ("Schedule", "ines", "{course}/schedule"),
    ("Roster", "ines", "{course}/roster"),
)
OBSERVE = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
WEIGH = """() => {
  const all = ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind));
  const sent = all.filter((one) => one.transferSize > 0);
  return [sent.length, sent.reduce((sum, one) => sum + one.transferSize, 0), window.shift];
}"""


@dataclass(frozen=True)
class Weight:
    """One look at a page: requests and bytes that crossed the line, and how far things moved."""

    requests: int
    size: int
    shift: float


def look(page: Page, url: str) -> Weight:
    """Open it, wait until nothing comes any more, and read what the browser says."""
    page.goto(url, wait_until="networkidle")
    page.wait_for_timeout(SETTLED_MS)
    return Weight(*page.evaluate(WEIGH))


def weighed(scene: Stage, watched: Watched, who: str, url: str) -> tuple[Weight, Weight, Weight]:
    """On a laptop for the first time, there once more, and on a phone for the first time."""
    found: list[Weight] = []
    for viewport in (LAPTOP, PHONE):
        page = watched.page(login=who, viewport=viewport)
        page.add_init_script(OBSERVE)
        session = page.context.new_cdp_session(page)
        line = {"latency": LATENCY_MS, "downloadThroughput": BYTES_PER_S, "uploadThroughput": BYTES_PER_S}
        session.send("Network.emulateNetworkConditions", {"offline": False, **line})
        session.send("Network.clearBrowserCache")
        found.append(look(page, scene.url + url))
        if viewport is LAPTOP:
            found.append(look(page, scene.url + url))
        page.context.close()
    return found[0], found[1], found[2]


def rows(scene: Stage, watched: Watched) -> Iterator[str]:
    """The table's rows."""
    names = populate(scene)
    names |= {
        "course": scene.course_url.removeprefix(scene.url),
        "rung": scene.assignment_url().removeprefix(scene.url),
    }
    for name, who, path in PAGES:
        first, again, phone = weighed(scene, watched, who, path.format(**names))
        yield (
            f"| {name} | {first.requests} | {first.size / 1024:.0f} KiB | {again.size / 1024:.0f} KiB "
            f"| {first.shift:.3f} | {phone.shift:.3f} |"
        )


def main() -> None:
    """Weigh them all."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright, stage(Path(folder)) as scene:
        browser = launch(playwright)
        watched = Watched(browser, scene)
        command = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        line = f"{LATENCY_MS} ms and {BYTES_PER_S * 8 / 1e6:.0f} Mbit/s, Chromium {browser.version}"
        told = [
            f"Read on {datetime.now(UTC):%Y-%m-%d} at commit {commit}, uncompressed, {line}.",
            "",
            "| page | requests | first visit | again | layout shift, 1280 px | on a phone |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        for row in rows(scene, watched):
            print(row, flush=True)
            told.append(row)
        browser.close()
    told += ["", "Command: `python -m scripts.page_weights --publish`"]
    if "--publish" in sys.argv:
        text = PUBLISHED.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PUBLISHED.write_text(before + "\n".join([BEGIN, *told, END]) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
