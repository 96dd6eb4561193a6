"""The quiz in a browser: by keyboard, and without any script."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DESKTOP, PHONE, Watched
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser


def test_a_question_is_answered_by_keyboard_alone(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob", viewport=DESKTOP)
    page.goto(a_stage.assignment_url())
    page.get_by_role("link", name="Quiz", exact=True).click()
    question = page.locator("#blocks")
    question.get_by_role("textbox", name="Your answer").focus()
    page.keyboard.type("390")
    page.keyboard.press("Enter")
    expect(question).to_contain_text("2 tries left")
    expect(question.get_by_role("list", name="Your answers")).to_contain_text("390 blocks")
    question.get_by_role("textbox", name="Your answer").focus()
    page.keyboard.type("391")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(question).to_contain_text("has to be rounded up")
    expect(question.get_by_role("button")).to_have_count(0)
    choice = page.locator("#warp_and_block")
    choice.get_by_role("radio").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.locator("#warp_and_block")).to_contain_text("divides it into warps")


def test_a_question_is_answered_on_a_phone_without_scripts(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("422")
    page = watched.page(login="carol", viewport=PHONE, java_script_enabled=False)
    page.goto(f"{a_stage.assignment_url()}/quiz")
    page.locator("#blocks").get_by_role("textbox", name="Your answer").fill("about 400")
    page.locator("#blocks").get_by_role("button", name="Answer").click()
    expect(page.locator("#blocks").get_by_role("alert")).to_contain_text("Write a number")
    expect(page.locator("#blocks").get_by_role("textbox", name="Your answer")).to_have_value("about 400")
    page.locator("#blocks").get_by_role("textbox", name="Your answer").fill("391")
    page.locator("#blocks").get_by_role("button", name="Answer").click()
    expect(page.locator("#blocks")).to_contain_text("has to be rounded up")


def test_an_answer_leaves_what_is_half_made_of_the_others(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="alice", viewport=DESKTOP)
    page.goto(f"{a_stage.assignment_url()}/quiz")
    choice = page.locator("#warp_and_block").get_by_role("radio")
    choice.nth(1).check()
    number = page.locator("#blocks").get_by_role("textbox", name="Your answer")
    number.fill("390")
    number.press("Enter")
    expect(page.locator("#blocks")).to_contain_text("2 tries left")
    expect(choice.nth(1)).to_be_checked()
    expect(number).to_have_value("")
    number.fill("3")
    page.locator("#warp_and_block").get_by_role("button", name="Answer").click()
    expect(page.locator("#warp_and_block").get_by_role("list", name="Your answers")).to_be_visible()
    expect(number).to_have_value("3")
    expect(page.locator("#warp_and_block").get_by_role("radio", checked=True)).to_have_count(0)
    # What was taken back is not there again.
    number.fill("")
    page.reload()
    expect(number).to_have_value("")
