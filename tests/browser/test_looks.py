"""Every page in both themes and on a phone: accessible, no wider than the screen, nothing refused by the policy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from autograder.contract import Frame, Lane, Mode, Phase, StudentError
from server.courses import courses, demo
from server.leaderboard import shared_sources
from server.models import Assignment, Best, SharedSource, SourceSharing, Submission, User
from tests.browser import results
from tests.browser.conftest import DESKTOP, PHONE, Watched
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
VARIANTS = {
    "light": {"viewport": DESKTOP, "color_scheme": "light"},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "is_mobile": True, "has_touch": True},
}


@pytest.fixture(scope="module")
def addresses(a_stage: Stage) -> dict[str, str]:
    """Every kind of page, with something on it."""
    a_stage.grade(results.passed(0.94, 0.02), results.SOURCE, email="carol@example.org")
    ids = {
        "wrong": a_stage.grade(results.wrong(), results.WRONG_SOURCE),
        "matrix": a_stage.grade(results.columns(), results.SOURCE, slug="softmax"),
        "crashed": a_stage.grade(results.crashed(), results.SOURCE),
        "passed": a_stage.grade(results.passed(), results.SOURCE),
        "run": a_stage.grade(results.wrong(), results.WRONG_SOURCE, mode=Mode.run),
        "running": a_stage.submit(results.SOURCE, slug="softmax"),
    }
    task = a_stage.claim()
    a_stage.phase(task, Phase.checking)
    a_stage.case(task, results.CASES[0])
    ids["queued"] = a_stage.submit(results.SOURCE, slug="softmax")
    a_stage.claim()
    ids |= on_a_gpu(a_stage)
    here = a_stage.assignment_url()
    return {
        "course": a_stage.course_url,
        "assignment": here,
        "history": f"{here}/submissions",
        "share": f"{a_stage.url}/submissions/{ids['passed']}/share",
        "quiz": f"{here}/quiz",
        "leaderboard": f"{here}/leaderboard",
        "empty leaderboard": f"{here}/leaderboard?lane=b200",
        "account": f"{a_stage.url}/account",
        "components": f"{a_stage.url}/components",
        "error": f"{a_stage.url}/courses/none",
        **{name: f"{a_stage.url}/submissions/{public_id}" for name, public_id in ids.items()},
    }


def on_a_gpu(a_stage: Stage) -> dict[str, str]:
    """Measured, to be measured, to be measured again, and held: each another kernel."""
    a_stage.serve(Lane.cpu, Lane.h200)
    check, done = results.gpu_check(), results.gpu_measured()
    again = results.gpu_measured(remeasure="The times vary too much on this node.")
    held = results.gpu_measured(0.4, held=True, held_reason="Shorter than the device can do.")
    sources = [f"{results.SOURCE}VARIANT = {number}\n" for number in range(4)]
    # Those that wait come last, of two assignments: a newer one that passed would take the older one's place.
    ids = {
        "measured": a_stage.measure(check, done, source=sources[0]),
        "held": a_stage.measure(check, held, source=sources[1]),
        "measured again": a_stage.measure(check, again, source=sources[2], slug="softmax"),
        "to be measured": a_stage.measure(check, source=sources[3]),
    }
    a_stage.serve(Lane.cpu)
    return ids


def violations(page: Page) -> list[str]:
    """What axe finds, one line each."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("tags => axe.run(document, {runOnly: {type: 'tag', values: tags}})", TAGS)["violations"]
    return [f"{item['id']}: {node['target']} {node['failureSummary']}" for item in found for node in item["nodes"]]


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_page_is_accessible_and_fits_the_screen(
    watched: Watched, a_stage: Stage, addresses: dict[str, str], variant: str
) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: run scripts/build_pages.sh")
    watched.expected.append("404 (Not Found)")
    page = watched.page(**VARIANTS[variant])
    page.goto(f"{a_stage.url}/login")
    problems = {"login": violations(page)}
    watched.log_in(page, "alice")
    for name, address in addresses.items():
        page.goto(address)
        problems[name] = violations(page)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > VARIANTS[variant]["viewport"]["width"]:
            problems[name].append(f"the page is {width} pixels wide")
    assert "\n".join(f"{name}: {item}" for name, found in problems.items() for item in found) == ""


@pytest.fixture
def shown_to_all(a_stage: Stage, addresses: dict[str, str]) -> Iterator[dict[str, str]]:
    """The public pages of the course while it shows strangers everything, with the source of whoever leads a board."""
    now = datetime.now(UTC)
    with a_stage.database.transaction() as session:
        course = courses.course_by_slug(session, demo.SLUG)
        rung = session.scalars(
            select(Assignment).where(Assignment.course_id == course.id, Assignment.slug == "vector_add")
        ).one()
        kept = {name: getattr(rung, name) for name in ("open_at", "due_at", "late_until")}
        course.public_leaderboards = course.public_handouts = True
        course.source_sharing = SourceSharing.everyone
        carol = session.scalars(select(User).where(User.email == "carol@example.org")).one()
        best = session.scalars(select(Best).where(Best.assignment_id == rung.id, Best.user_id == carol.id)).first()
        entry = session.get_one(Submission, best.submission_id).public_id
        shared_sources.open_source(session, carol, entry, note="Wide loads.\n\nNothing else.", now=now)
        rung.open_at, rung.due_at, rung.late_until = None, now - timedelta(hours=2), now - timedelta(hours=1)
        shared = session.get_one(SharedSource, best.submission_id).public_id
    here = a_stage.assignment_url()
    yield {
        "front": a_stage.url,
        "course": a_stage.course_url,
        "handout": f"{here}/handout",
        "leaderboard": f"{here}/leaderboard",
        "entry": f"{here}/leaderboard/entries/{shared}",
    }
    with a_stage.database.transaction() as session:
        course = courses.course_by_slug(session, demo.SLUG)
        course.public_leaderboards = course.public_handouts = False
        rung = session.scalars(
            select(Assignment).where(Assignment.course_id == course.id, Assignment.slug == "vector_add")
        ).one()
        for name, value in kept.items():
            setattr(rung, name, value)


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_a_stranger_reads_is_accessible_and_fits_the_screen(
    watched: Watched, shown_to_all: dict[str, str], variant: str
) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: run scripts/build_pages.sh")
    page = watched.page(**VARIANTS[variant])
    problems = {}
    for name, address in shown_to_all.items():
        answer = page.goto(address)
        assert answer is not None
        assert (answer.status, answer.url.rstrip("/")) == (200, address)
        problems[name] = violations(page)
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > VARIANTS[variant]["viewport"]["width"]:
            problems[name].append(f"the page is {width} pixels wide")
    assert "\n".join(f"{name}: {item}" for name, found in problems.items() for item in found) == ""


BEHIND = """() => [...document.querySelectorAll("main [id], main a, main button, main input, main summary")]
  .filter((one) => one.getClientRects().length)
  .filter((one) => {
    one.scrollIntoView({ block: "start", behavior: "instant" });
    return one.getBoundingClientRect().top < document.querySelector(".topbar").getBoundingClientRect().bottom - 1;
  })
  .map((one) => one.id || one.textContent.trim().slice(0, 40))"""
"""What is jumped to, or focused from below, and then stands behind the bar that stays: WCAG 2.4.11."""


@pytest.mark.parametrize("variant", ["light", "phone"])
def test_nothing_that_is_jumped_to_is_behind_the_bar(watched: Watched, addresses: dict[str, str], variant: str) -> None:
    page = watched.page(login="alice", **VARIANTS[variant])
    watched.expected.append("404 (Not Found)")
    found: dict[str, list[str]] = {}
    for name, address in addresses.items():
        page.goto(address)
        found[name] = page.evaluate(BEHIND)
    assert {name: some for name, some in found.items() if some} == {}


EDGES = """() => {
  const left = (one) => { const range = document.createRange(); range.selectNodeContents(one); return range.getBoundingClientRect().left; };
  return [".brand", ".places a", "main h1", ".footer li"].map((one) => document.querySelector(one)).filter(Boolean).map(left);
}"""  # noqa: E501


@pytest.mark.parametrize("width", [390, 1280, 1920, 2560])
def test_header_content_and_footer_begin_at_one_edge(watched: Watched, addresses: dict[str, str], width: int) -> None:
    page = watched.page(login="alice", viewport={"width": width, "height": 900})
    for name in ("course", "assignment", "passed", "leaderboard", "account"):
        page.goto(addresses[name])
        edges = page.evaluate(EDGES)
        assert len(edges) >= 3
        assert max(edges) - min(edges) < 2, f"{name}: {edges}"


def test_type_faces_are_there_and_a_menu_moves_nothing(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.goto(a_stage.course_url)
    page.evaluate("document.fonts.ready")
    loaded = (
        "[...document.fonts].filter((face) => face.status == 'loaded').map((face) => face.family.replaceAll('\"', ''))"
    )
    assert "Inter" in page.evaluate(loaded)
    before = page.locator(".topbar").bounding_box()
    page.locator("details.menu > summary").first.click()
    expect(page.locator("details.menu[open] .menu__list")).to_be_visible()
    assert page.locator(".topbar").bounding_box() == before


def test_the_theme_is_chosen_by_hand_and_kept(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="alice", color_scheme="light")
    colour = "getComputedStyle(document.body).color"
    light = page.evaluate(colour)
    toggle = page.get_by_role("button", name="Theme: system")
    toggle.click()
    page.get_by_role("button", name="Theme: light").click()
    dark = page.evaluate(colour)
    assert dark != light
    page.goto(f"{a_stage.url}/account")
    assert page.evaluate(colour) == dark
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()


def test_the_first_tab_reaches_the_content_and_a_question_mark_shows_the_keys(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="alice")
    page.goto(a_stage.course_url)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_a_due_date_stands_in_the_courses_zone_and_in_the_readers(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="alice", timezone_id="America/New_York")
    page.goto(a_stage.assignment_url())
    due = page.locator(".answers > div").first
    expect(due).to_contain_text("22:00 UTC")
    expect(due).to_contain_text("17:00 your time")
    # The next page keeps the line free before its script runs.
    page.route("**/app-*.js", lambda route: route.abort())
    watched.expected.append("ERR_FAILED")
    height = due.bounding_box()
    page.reload()
    expect(due).not_to_contain_text("your time")
    assert due.bounding_box() == height


HOSTILE = "</code><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
REVERSED = "\u202egnp.exe\u2066"


def test_hostile_text_is_text(watched: Watched, a_stage: Stage) -> None:
    error = StudentError(
        kind=f"Error{HOSTILE}",
        message=f"{REVERSED} {HOSTILE} \x1b[31m \x00 {'A' * 10_000}",
        frames=(Frame(3, f"f{HOSTILE}", f"    raise {HOSTILE}{REVERSED}" + "x" * 10_000),),
    )
    source = f"# {HOSTILE} {REVERSED}\nx = '{'y' * 10_000}'\n</textarea>{HOSTILE}\n"
    submission = a_stage.grade(results.crashed(error), source, filename=f"{REVERSED}<b>.py")
    page = watched.page(login="alice")
    page.goto(f"{a_stage.url}/submissions/{submission}")
    text = page.locator("main").inner_text()
    assert "<script>window.hacked" in text
    assert "⟨U+202E⟩gnp.exe" in text
    assert "\u202e" not in text
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= DESKTOP["width"]
    assert len(text) < 60_000

    page.get_by_role("link", name="Edit this version").click()
    expect(page.locator(".cm-content")).to_contain_text("window.hacked")
    assert page.evaluate("window.hacked") is None
    # The form holds the text exactly as it was handed in, direction marks included.
    assert page.locator("textarea[name=source]").input_value() == source
