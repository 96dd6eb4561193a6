"""Setting up a second factor and logging in with it, as a person does it: keyboard, dark, on a phone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyotp
import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from server.accounts import accounts, second_factor
from server.models import SecondFactor
from tests.browser.conftest import DESKTOP, PHONE, Watched
from tests.browser.stage import PASSWORD, Stage
from tests.browser.test_accessibility import AXE, COLOURS, WCAG, violations

pytestmark = pytest.mark.browser
SHOTS = os.environ.get("LADDER_SHOTS", "")
"""A folder for pictures of each step; none are taken without."""


@pytest.fixture
def tom(a_stage: Stage) -> Iterator[str]:
    """A TA, who has no second factor before and after."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: run scripts/build_pages.sh")
    yield "tom"
    with a_stage.database.transaction() as session:
        user = accounts.user_by_email(session, "tom@example.org")
        if session.get(SecondFactor, user.id) is not None:
            second_factor.reset(session, user)


def _look(page: Page, name: str) -> None:
    """See that the page as it is now is accessible in both themes and fits a phone."""
    problems = violations(page, {"type": "tag", "values": WCAG})
    _shoot(page, name)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    problems += [f"dark: {item}" for item in violations(page, {"type": "rule", "values": COLOURS})]
    _shoot(page, f"{name}-dark")
    page.set_viewport_size(PHONE)
    _shoot(page, f"{name}-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    assert problems == [], name


def _shoot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def test_it_is_set_up_and_asked_for(watched: Watched, a_stage: Stage, tom: str) -> None:
    page = watched.page(login=tom, reduced_motion="reduce")
    page.goto(f"{a_stage.url}/account")
    page.get_by_role("link", name="Set one up").click()
    _look(page, "1-begin")
    page.get_by_label("Your password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("img", name="QR code for an authenticator app")).to_be_visible()
    page.get_by_text("Or type the secret into the app").click()
    secret = page.locator("#totp-secret").inner_text().replace(" ", "")
    _look(page, "2-scan")
    watched.expected.append("422")
    page.get_by_label("Code that the app shows").fill("000000")
    page.keyboard.press("Enter")
    expect(page.get_by_text("That code is wrong")).to_be_visible()
    _look(page, "3-wrong")
    page.get_by_label("Code that the app shows").fill(pyotp.TOTP(secret).now())
    page.keyboard.press("Enter")
    expect(page.locator("#recovery-codes li")).to_have_count(10)
    recovery = page.locator("#recovery-codes li").first.inner_text()
    _look(page, "4-codes")
    page.goto(f"{a_stage.url}/account/second-factor")
    _look(page, "5-on")

    page.get_by_role("button", name="Log out").click()
    page.get_by_label("E-mail address").fill(f"{tom}@example.org")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
    expect(page.get_by_label("Code")).to_be_focused()
    _look(page, "6-asked")
    page.keyboard.type("111111")
    page.keyboard.press("Enter")
    expect(page.get_by_text("That code is wrong")).to_be_visible()
    page.get_by_label("Code").fill(recovery)
    page.keyboard.press("Enter")
    page.wait_for_url("**/courses/**")
    with a_stage.database.transaction() as session:
        # The app's next code, without half a minute's wait.
        session.execute(update(SecondFactor).values(last_step=0))
    page.goto(f"{a_stage.url}/account")
    expect(page.get_by_text("9 recovery codes left")).to_be_visible()
    _shoot(page, "7-account")
