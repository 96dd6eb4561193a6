"""What a student must never lose: the text that they write; and what they decide about their submissions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import results
from tests.browser.conftest import PHONE, Watched
from tests.browser.stage import Stage
from tests.browser.test_editor import editor, shown
from tests.browser.test_the_whole_way import write

pytestmark = pytest.mark.browser
SAVED = re.compile("Draft saved")


@pytest.fixture(autouse=True)
def _patient() -> Iterator[None]:
    """Saving waits for a pause in the writing, and then for a machine that does much else."""
    expect.set_options(timeout=30_000)
    yield
    expect.set_options(timeout=5_000)


def state(page: Page):  # Playwright's locator
    return page.locator("[data-draft-state]")


def test_a_draft_is_there_on_another_machine(watched: Watched, a_stage: Stage) -> None:
    here = watched.page(login="carol")
    editor(here, a_stage, "saxpy")
    write(here, "# written at home")
    expect(state(here)).to_have_text(SAVED)
    elsewhere = watched.page(login="carol")
    editor(elsewhere, a_stage, "saxpy")
    assert shown(elsewhere) == "# written at home"
    expect(elsewhere.locator("[data-draft-notice]")).to_contain_text("Your draft of")


def test_of_two_windows_the_older_is_told_and_nothing_is_lost(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("409")
    first, second = watched.page(login="carol"), watched.page(login="carol")
    editor(first, a_stage, "transpose")
    editor(second, a_stage, "transpose")
    write(second, "# the newer")
    expect(state(second)).to_have_text(SAVED)
    write(first, "# the older")
    notice = first.locator("[data-draft-notice]")
    expect(notice).to_contain_text("Another window saved a newer draft")
    assert shown(first) == "# the older"
    first.get_by_role("button", name="Show the newer one").click()
    assert shown(first) == "# the newer"
    first.get_by_role("button", name="Back to mine").click()
    assert shown(first) == "# the older"
    expect(state(first)).to_have_text(SAVED)
    second.reload()
    assert shown(second) == "# the older"


def test_without_a_network_the_text_waits_in_the_browser(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("ERR_INTERNET_DISCONNECTED")
    page = watched.page(login="carol")
    editor(page, a_stage, "reduction")
    page.context.set_offline(True)
    write(page, "# in a tunnel")
    expect(state(page)).to_contain_text("kept in this browser")
    page.context.set_offline(False)
    expect(state(page)).to_have_text(SAVED)
    page.reload()
    assert shown(page) == "# in a tunnel"


def test_a_student_decides_by_keyboard_which_submission_counts(watched: Watched, a_stage: Stage) -> None:
    best = a_stage.grade(results.passed(), results.SOURCE, email="carol@example.org")
    other = a_stage.grade(results.wrong(), results.WRONG_SOURCE, email="carol@example.org")
    page = watched.page(login="carol")
    page.goto(f"{a_stage.assignment_url()}/submissions")
    chosen = page.get_by_role("row").filter(has=page.locator(f"a[href$='{other}']"))
    # Which of those that passed counts is not this test's: others hand in on this stage too.
    expect(page.locator("tr.is-you")).to_have_count(1)
    expect(chosen).not_to_have_class("is-you")
    chosen.get_by_role("button", name="Count this one").focus()
    page.keyboard.press("Enter")
    expect(chosen).to_contain_text("your choice")
    page.get_by_role("button", name="Count the best one").press("Enter")
    expect(page.get_by_text("Resubmitting never lowers the grade")).to_be_visible()
    page.get_by_role("button", name="Compare the two").press("Enter")
    page.wait_for_url(f"**/submissions/{other}/diff?from={best}")


@pytest.mark.parametrize("viewport", [None, PHONE])
def test_the_ladder_fits_its_window_and_leads_on(watched: Watched, a_stage: Stage, viewport) -> None:
    options = {"viewport": viewport} if viewport else {}
    page = watched.page(login="bob", **options)
    page.goto(a_stage.course_url)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]
    expect(page.get_by_role("img", name=re.compile("The climb: "))).to_be_visible()
    page.get_by_role("link", name=re.compile("^(Start here:|Begin|Go on with) ")).click()
    expect(page.locator(".cm-content")).to_be_visible()
