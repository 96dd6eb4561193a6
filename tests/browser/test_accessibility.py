"""Every page that a role can open, in both themes and on a phone, held against WCAG 2.2 AA by axe.

The pages are those of the table in `test_authorisation`, with what is filled in there: a new page is tested here as
soon as it has its row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import DESKTOP, MANIFEST, PHONE
from tests.browser.test_looks import AXE
from tests.server import test_authorisation as table
from tests.server.conftest import served_stage  # noqa: F401  # a fixture
from tests.server.test_authorisation import client_of, fill, stage  # noqa: F401  # fixtures

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1800)]
logger = logging.getLogger(__name__)
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
ROLES = ("anonymous", "owner", "instructor")
COLOURS = ["color-contrast", "link-in-text-block"]
"""All that another theme can change."""


def pages_of(role: str) -> list[str]:
    """The addresses, with their names in braces, that the table lets this role read."""
    rows = table.TABLE.items()
    return [path for (method, path), row in rows if method == "GET" and row[role] == 200 and table.API not in path]


def is_page(client: httpx.Client, path: str) -> bool:
    """Whether what is there is HTML; files and streams are not looked at."""
    with client.stream("GET", path) as response:
        return response.status_code == 200 and response.headers["content-type"].startswith("text/html")


def violations(page: Page, only: dict[str, object]) -> list[str]:
    """What axe finds, one line each."""
    if page.evaluate("typeof axe") == "undefined":
        # Not there yet, or the page has loaded itself anew meanwhile.
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("only => axe.run(document, {runOnly: only})", only)["violations"]
    return [f"{item['id']}: {node['target']} {node['failureSummary']}" for item in found for node in item["nodes"]]


def looked_at(page: Page, url: str) -> list[str]:
    """Everything that is wrong with one page."""
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    page.goto(url)
    problems = violations(page, {"type": "tag", "values": WCAG})
    page.emulate_media(color_scheme="dark")
    problems += [f"dark: {item}" for item in violations(page, {"type": "rule", "values": COLOURS})]
    page.set_viewport_size(PHONE)
    width = page.evaluate("document.documentElement.scrollWidth")
    return problems if width <= PHONE["width"] else [*problems, f"on a phone it is {width} pixels wide"]


@pytest.mark.parametrize("role", ROLES)
def test_every_page_of_a_role_is_accessible(
    browser: Browser,
    role: str,
    fill: Callable[[str], str],  # noqa: F811  # the fixture
    client_of: Callable[[str, str], httpx.Client],  # noqa: F811  # the fixture
) -> None:
    if not MANIFEST.is_file() or not AXE.is_file():
        pytest.skip("the pages are not built, or axe-core is not installed: run scripts/build_pages.sh")
    client = client_of(role, "/")
    # No motion: colours that are on their way are neither those before nor those after.
    context = browser.new_context(reduced_motion="reduce")
    base = str(client.base_url)
    context.add_cookies([{"name": one.name, "value": one.value or "", "url": base} for one in client.cookies.jar])
    page = context.new_page()
    problems: dict[str, list[str]] = {}
    for name in pages_of(role):
        path = fill(name)
        if is_page(client, path):
            problems[name] = looked_at(page, str(client.base_url.join(path)))
            logger.info("%s %s: %s", role, name, problems[name])
            assert urlsplit(page.url).path == urlsplit(path).path, f"{name} led elsewhere"
    context.close()
    assert len(problems) >= 3
    assert "\n".join(f"{name}: {item}" for name, found in problems.items() for item in found) == ""
