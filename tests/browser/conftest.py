"""A real browser against a real server. Every page that a test opens is watched: an error on the console, an uncaught
exception or a violation of the content security policy fails the test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Playwright, sync_playwright

from tests.browser.stage import PASSWORD, Stage, stage

MANIFEST = Path(__file__).parents[2] / "web" / "static" / "dist" / "manifest.json"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-gpu", "--disable-dev-shm-usage"]
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
WATCH = """
document.addEventListener("securitypolicyviolation", (event) => {
  window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""


@pytest.fixture(scope="session")
def a_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One server for all browser tests."""
    if not MANIFEST.is_file():
        pytest.skip("the pages are not built: run `make setup`, or scripts/build_pages.sh")
    with stage(tmp_path_factory.mktemp("stage")) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium for one module: while Playwright runs, no other test of this process could use `asyncio.run`."""
    with sync_playwright() as playwright:
        launched = launch(playwright)
        yield launched
        launched.close()


def launch(playwright: Playwright) -> Browser:
    """Chromium, wherever this machine has it; skips if it has none."""
    paths = [found for name in CHROMIUM if (found := shutil.which(name))]
    problems = []
    for path in [*paths, None]:
        try:
            return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except Error as error:
            problems.append(f"{path or 'that of Playwright'}: {str(error).splitlines()[0]}")
    pytest.skip("no browser could be started: " + "; ".join(problems))


class Watched:
    """Opens pages, and remembers what went wrong in them."""

    def __init__(self, browser: Browser, stage: Stage) -> None:
        self._browser = browser
        self._stage = stage
        self._contexts: list[BrowserContext] = []
        self.expected: list[str] = []
        """Parts of messages that this test causes on purpose."""
        self._problems: list[str] = []

    def page(self, *, login: str = "", **options: object) -> Page:
        """A page in a browser of its own, logged in if a name is given."""
        settings = {"viewport": DESKTOP, "timezone_id": "Europe/Berlin", "locale": "en-GB", **options}
        context = self._browser.new_context(**settings)
        context.set_default_timeout(float(os.environ.get("LADDER_BROWSER_TIMEOUT_MS", "15000")))
        self._contexts.append(context)
        page = context.new_page()
        page.expose_function("reportViolation", lambda text: self._problems.append(f"policy: {text}"))
        page.add_init_script(WATCH)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self._problems.append(f"uncaught: {error}"))
        if login:
            self.log_in(page, login)
        return page

    def log_in(self, page: Page, name: str) -> None:
        """As a person does it."""
        page.goto(f"{self._stage.url}/login")
        page.get_by_label("E-mail address").fill(f"{name}@example.org")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/courses/**")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self._problems.append(f"console {message.type}: {message.text}")

    def close(self) -> list[str]:
        """End every page; what went wrong in any of them."""
        for context in self._contexts:
            context.close()
        return [item for item in self._problems if not any(part in item for part in self.expected)]


@pytest.fixture
def watched(browser: Browser, a_stage: Stage) -> Iterator[Watched]:
    """Pages for one test."""
    made = Watched(browser, a_stage)
    yield made
    assert made.close() == []


@pytest.fixture
def no_scripts(watched: Watched) -> Callable[..., Page]:
    """A page in a browser with JavaScript switched off."""

    def call(**options: object) -> Page:
        return watched.page(java_script_enabled=False, **options)

    return call
