"""From logging in to the leaderboard, as a student goes it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from autograder.contract import Phase
from tests.browser import results
from tests.browser.conftest import Watched
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser


def write(page: Page, source: str) -> None:
    """Replace what stands in the editor, with the keyboard alone."""
    page.locator(".cm-content").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(source)


@pytest.mark.quick
def test_a_student_submits_with_the_keyboard_and_watches_it_go_to_its_verdict(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="alice")
    page.get_by_role("link", name="Vector add").first.click()
    write(page, results.SOURCE)
    page.keyboard.press("ControlOrMeta+Shift+Enter")

    page.wait_for_url("**/submissions/*")
    head = page.locator("[data-part=head]")
    expect(head).to_contain_text("Queued")
    # It is the page that was loaded now that shows everything below.
    page.evaluate("window.sameDocument = true")

    task = a_stage.claim()
    a_stage.phase(task, Phase.compiling)
    expect(head).to_contain_text("Compiling")
    a_stage.phase(task, Phase.checking)
    a_stage.case(task, results.CASES[0], index=0, total=9)
    expect(page.locator("table.cases tbody tr")).to_have_count(1)
    a_stage.case(task, results.CASES[1], index=1, total=9)
    expect(page.locator("table.cases tbody tr")).to_have_count(2)

    a_stage.finish(task, results.passed())
    expect(head).to_contain_text("Passed")
    expect(head).to_contain_text("60 of 60 points")
    expect(page.locator("table.cases tbody tr")).to_have_count(12)
    # The interval is the samples', not what the result says of itself.
    expect(page.get_by_text(re.compile(r"1\.34× the reference \(1\.\d\d–1\.\d\d\)"))).to_be_visible()
    expect(page.get_by_text("practice: timed on CPU, no speed points")).to_be_visible()
    expect(page).to_have_title(re.compile("^Passed"))
    assert page.evaluate("window.sameDocument") is True

    page.get_by_role("link", name="Leaderboard").click()
    expect(page.locator("tr.is-you")).to_contain_text("you")


def test_a_run_shows_beside_the_editor_and_marks_the_line(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob")
    page.goto(a_stage.assignment_url())
    write(page, results.SOURCE.replace("program_id", "program"))
    page.keyboard.press("ControlOrMeta+Enter")

    panel = page.get_by_role("region", name="Result of your run")
    expect(panel).to_contain_text("Queued")
    a_stage.finish(a_stage.claim(), results.crashed())
    expect(panel).to_contain_text("Runtime error")
    expect(panel).to_contain_text("has no attribute 'program'")
    expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    assert page.url == a_stage.assignment_url()

    panel.get_by_role("link", name="line 11").click()
    expect(page.locator(".cm-activeLine")).to_contain_text("tl.program(0)")


def test_a_wrong_answer_is_shown_as_a_picture_with_its_first_element(watched: Watched, a_stage: Stage) -> None:
    submission = a_stage.grade(results.columns(), results.SOURCE, slug="softmax")
    page = watched.page(login="alice")
    page.goto(f"{a_stage.url}/submissions/{submission}")
    expect(page.get_by_role("img", name=re.compile("^Map of out: 34 of 1024 tiles"))).to_be_visible()
    expect(page.locator(".damage__mark")).to_have_count(34 + 2)
    expect(page.get_by_text("[0, 992]")).to_be_visible()
    expect(page.get_by_role("heading", name="Wrong answer")).to_be_visible()


def test_what_staff_see_of_hidden_cases_stays_from_the_student(watched: Watched, a_stage: Stage) -> None:
    submission = a_stage.grade(results.wrong(), results.WRONG_SOURCE)
    student = watched.page(login="alice")
    student.goto(f"{a_stage.url}/submissions/{submission}")
    staff = watched.page(login="tom")
    staff.goto(f"{a_stage.url}/submissions/{submission}")
    for secret in ("n=7919", "A library call does the work"):
        expect(staff.locator("main")).to_contain_text(secret)
        assert secret not in student.content()


def test_a_failure_of_ours_is_said_to_be_ours(watched: Watched, a_stage: Stage) -> None:
    submission = a_stage.submit(results.SOURCE, email="carol@example.org")
    for _ in range(3):
        a_stage.finish(a_stage.claim(), results.grader_error())
    page = watched.page(login="carol")
    page.goto(f"{a_stage.url}/submissions/{submission}")
    expect(page.locator("[data-part=head]")).to_contain_text("Our grader failed")
    expect(page.locator("[data-part=head]")).to_contain_text("not in your code")


def test_a_page_without_scripts_shows_the_state_and_takes_a_submission(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(java_script_enabled=False)
    watched.log_in(page, "carol")
    page.goto(a_stage.assignment_url())
    page.get_by_label("Source code").fill(results.SOURCE)
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/submissions/*")
    expect(page.get_by_role("heading", name="Queued")).to_be_visible()
    expect(page.get_by_role("link", name="Refresh")).to_be_visible()

    a_stage.finish(a_stage.claim(), results.passed())
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_role("heading", name="Passed 60 of 60 points")).to_be_visible()


@pytest.mark.quick
def test_logging_out_leads_back_to_where_one_wanted_to_go(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="alice")
    page.goto(f"{a_stage.url}/account")
    page.get_by_role("button", name="Log out").first.click()
    page.wait_for_url("**/login")
    page.goto(f"{a_stage.url}/account")
    assert page.url == f"{a_stage.url}/login?next=/account"


def test_a_token_is_shown_once_and_can_be_revoked(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob")
    page.goto(f"{a_stage.url}/account")
    page.get_by_label("Name of the new token").fill("laptop")
    page.get_by_role("button", name="Create a token").click()
    secret = page.locator("#secret").inner_text()
    assert secret.startswith("kl_")
    page.goto(f"{a_stage.url}/account")
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke the token laptop").click()
    expect(page.get_by_text("None yet.")).to_be_visible()


def test_a_student_chooses_to_stand_on_the_board_by_name(watched: Watched, a_stage: Stage) -> None:
    a_stage.grade(results.passed(1.1), results.SOURCE, email="bob@example.org")
    page = watched.page(login="bob")
    page.goto(f"{a_stage.url}/account")
    page.get_by_role("button", name="Use my name").click()
    page.goto(f"{a_stage.assignment_url()}/leaderboard?lane=cpu")
    expect(page.locator("tr.is-you")).to_contain_text("Bob Brown")


def test_a_lost_connection_is_said_and_taken_up_again(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("ERR_CONNECTION_RESET")
    submission = a_stage.submit(results.SOURCE)
    page = watched.page(login="alice")
    is_down = True

    def answer(route: Route) -> None:
        if is_down:
            route.abort("connectionreset")
        else:
            route.fallback()

    page.route("**/live", answer)
    page.goto(f"{a_stage.url}/submissions/{submission}")
    lost = page.get_by_text("The connection was lost. Reconnecting")
    expect(lost).to_be_visible()
    a_stage.finish(a_stage.claim(), results.passed())
    is_down = False
    expect(page.locator("[data-part=head]")).to_contain_text("Passed", timeout=10_000)
    expect(lost).to_be_hidden()
