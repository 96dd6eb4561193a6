"""The page of operations as an admin meets it: accessible in both themes and on a phone, and its buttons work."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect
from sqlalchemy import select

from server import alerts
from server.accounts import accounts
from server.models import AlertKind, User
from server.reconciliation import runs as reconciliation
from server.submissions import submissions
from tests.browser import results
from tests.browser.conftest import Watched
from tests.browser.stage import PASSWORD, Stage
from tests.browser.test_looks import AXE, VARIANTS, violations

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(a_stage: Stage) -> Iterator[str]:
    """The page with something on it, and an admin to see it."""
    a_stage.grade(results.passed(), results.SOURCE)
    waiting = a_stage.submit(results.SOURCE, slug="softmax")
    reconciliation.check_due(a_stage.database)
    with a_stage.database.transaction() as session:
        accounts.create_user(session, email="olga@example.org", name="Olga Orlova", password=PASSWORD, is_admin=True)
        message = "anvil rests: its last 3 attempts all failed, the newest because: " + "x" * 300
        alerts.raise_alert(session, AlertKind.node_rests, "node:anvil", message, datetime.now(UTC))
    yield f"{a_stage.url}/operations"
    with a_stage.database.transaction() as session:
        # The stage is shared: what waits would be the next that another test claims.
        alice = session.scalars(select(User).where(User.email == "alice@example.org")).one()
        submissions.cancel(session, alice, waiting, now=datetime.now(UTC))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_page_is_accessible_and_fits_the_screen(watched: Watched, address: str, variant: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: run scripts/build_pages.sh")
    page = watched.page(login="olga", **VARIANTS[variant])
    page.goto(address)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= VARIANTS[variant]["viewport"]["width"]


@pytest.mark.quick
def test_an_admin_drains_a_node_and_ends_an_alert(watched: Watched, address: str) -> None:
    page = watched.page(login="olga")
    page.goto(address)
    page.get_by_role("button", name="Drain anvil").click()
    expect(page.get_by_role("group", name="Nodes")).to_contain_text("Drains")
    page.get_by_role("button", name="Undrain anvil").click()
    expect(page.get_by_role("group", name="Nodes")).not_to_contain_text("Drains")
    resolve = page.get_by_role("button", name="Resolve node rests about node:anvil")
    resolve.click()
    # This one, whatever else the course's other tests have set off.
    expect(resolve).to_have_count(0)
    page.get_by_role("button", name="Check now").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("accounted for")
