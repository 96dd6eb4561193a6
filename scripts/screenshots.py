"""Take the pictures in docs/screenshots: `python -m scripts.screenshots` in the repository's root, with built pages.

The server and its pages are the real ones; the results on them come from `tests/browser/results.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

from autograder.contract import Phase
from tests.browser import results
from tests.browser.conftest import DESKTOP, PHONE, Watched, launch
from tests.browser.stage import Stage, stage

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
MOST_BYTES = 200_000
BOB, CAROL = "bob@example.org", "carol@example.org"
QUOTAS = {"run_quota_per_minute": "20", "submit_quota_per_minute": "10"}
"""Those of a real installation, because the page says them."""


def populate(scene: Stage) -> dict[str, str]:
    """Hand in what the pictures show; addresses by name."""
    scene.grade(results.wrong(), results.WRONG_SOURCE, ago=timedelta(hours=30))
    passed = scene.grade(results.passed(), results.SOURCE, ago=timedelta(hours=26))
    scene.grade(results.passed(1.31, 0.04), results.SOURCE, email=BOB, ago=timedelta(hours=20))
    scene.grade(results.passed(0.93, 0.02), results.SOURCE, email=CAROL, ago=timedelta(hours=10))
    wrong = scene.grade(results.columns(), results.SOURCE, slug="softmax", ago=timedelta(hours=5))
    running = scene.submit(results.SOURCE, email=BOB, ago=timedelta(seconds=5))
    task = scene.claim(ago=timedelta(seconds=4.8))
    for phase, seconds in ((Phase.preparing, 4.6), (Phase.compiling, 4.1), (Phase.checking, 2.2)):
        scene.phase(task, phase, ago=timedelta(seconds=seconds))
    for case in results.CASES[:5]:
        scene.case(task, case)
    here = scene.assignment_url()
    submission = f"{scene.url}/submissions/"
    return {
        "ladder": scene.course_url,
        "assignment": here,
        "leaderboard": f"{here}/leaderboard",
        "wrong-answer": submission + wrong,
        "passed": submission + passed,
        "running": submission + running,
    }


def take(page: Page, name: str) -> None:
    """One picture, refused if it is larger than a repository should carry."""
    path = FOLDER / f"{name}.png"
    page.wait_for_timeout(300)
    page.screenshot(path=path)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{path.name} has {size:,} bytes, at most {MOST_BYTES:,} are kept")
    print(f"{path.name}: {size:,} bytes")


def run_beside_the_editor(page: Page, scene: Stage) -> None:
    """A run that raised, with its line marked."""
    page.goto(scene.assignment_url())
    page.locator(".cm-content").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(results.SOURCE.replace("program_id", "program"))
    page.keyboard.press("ControlOrMeta+Enter")
    expect(page.locator("[data-run-panel]")).to_contain_text("Queued")
    scene.finish(scene.claim(), results.crashed())
    expect(page.locator("[data-run-panel]")).to_contain_text("Runtime error")


def main() -> None:
    """Take them all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, stage(Path(home), **QUOTAS) as scene, sync_playwright() as playwright:
        addresses = populate(scene)
        browser = launch(playwright)
        watched = Watched(browser, scene)

        def open_as(name: str, **options: Any) -> Callable[[str], Page]:
            page = watched.page(login=name, **options)

            def call(address: str) -> Page:
                page.goto(address)
                return page

            return call

        light, dark = open_as("alice", viewport=DESKTOP), open_as("alice", viewport=DESKTOP, color_scheme="dark")
        for name in ("ladder", "assignment", "leaderboard", "passed"):
            take(light(addresses[name]), name)
        bob = open_as("bob", viewport=DESKTOP)
        take(bob(addresses["running"]), "running")
        take(dark(addresses["wrong-answer"]), "wrong-answer-dark")
        take(open_as("alice", viewport=PHONE, is_mobile=True)(addresses["wrong-answer"]), "wrong-answer-phone")
        page = bob(scene.course_url)
        run_beside_the_editor(page, scene)
        take(page, "run-beside-the-editor")
        if problems := watched.close():
            raise SystemExit("\n".join(problems))
        browser.close()


if __name__ == "__main__":
    main()
