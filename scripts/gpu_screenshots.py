"""Pictures of the pages that a run on a GPU left: `python scripts/gpu_screenshots.py DIR`.

DIR holds `whole_way.json` and `whole_way.tar.xz` of `scripts/gpu_whole_way.py`. The pages are served from that database
as it came back. Nothing in it is changed but its schema's revision; an account that may see operations is added.
Where there is `faketime`, the pages are those of the minute in which the run ended.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from client.local import seed, up
from screenshots import take
from tests.browser.conftest import launch

ADMIN = "ada@example.org"
STARTED_S = 60.0
PREFERRED = ("softmax", "vector_add", "matmul_tiled")
BOARD = "vector_add"
"""The rung for which most people hand something in."""


@contextmanager
def served(home: Path, at: str) -> Iterator[str]:
    """Serve the pages of a home as at a time; its address."""
    port = up.choose_port()
    url = f"http://127.0.0.1:{port}"
    environ = {
        **os.environ, "LADDER_HOME": str(home), "LADDER_PUBLIC_URL": url,
        "TZ": "UTC", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }  # fmt: skip
    seed.admin(environ, "migrate")
    _add_admin(home, environ)
    command = [sys.executable, "-P", "-m", "client", "web", "--port", str(port)]
    if faketime := shutil.which("faketime"):
        # Slowed down, so that a node that was alive then is not found silent while pictures are taken.
        began = datetime.fromisoformat(at).astimezone(UTC)
        command = [faketime, "-f", f"@{began:%Y-%m-%d %H:%M:%S} x0.05", *command]
    with (home / "web.log").open("wb") as log:
        # A group of its own: faketime waits for what it has started, and a signal to it ends it alone.
        web = subprocess.Popen(command, env=environ, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait(url)
        yield url
    finally:
        os.killpg(web.pid, signal.SIGTERM)
        web.wait(30)


def _add_admin(home: Path, environ: Mapping[str, str]) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "client",
        "admin",
        "create-user",
        ADMIN,
        "Ada",
        "--admin",
        "--password-stdin",
    ]
    subprocess.run(command, env=dict(environ), input=_password(home), text=True, check=True, stdout=subprocess.DEVNULL)


def _password(home: Path) -> str:
    return (home / "demo-password").read_text(encoding="utf-8").strip()


def _wait(url: str) -> None:
    deadline = time.monotonic() + STARTED_S
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/healthz", trust_env=False)
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit("the web tier did not start")


def open_as(browser: Browser, url: str, email: str, password: str) -> Page:
    """A page in a browser of its own, logged in."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB").new_page()
    page.goto(f"{url}/login")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda address: "/login" not in address)
    return page


def chosen(report: Any) -> Iterator[tuple[str, str, str]]:
    """Name, person and path of each picture."""
    lane = report["lane"]
    handed = [one for one in report["submissions"] if one["final"]]
    passed = sorted(
        (one for one in handed if one["final"]["measurements"]), key=lambda one: PREFERRED.index(one["slug"])
    )
    held = [one for one in handed if one["final"]["review"] == "held"]
    hostile = [one for one in handed if one["person"] == "carol" and one not in held]
    for name, found in (("passed", passed), ("held", held), ("hostile", hostile)):
        if found:
            yield f"{lane}-{name}", f"{found[0]['person']}@example.org", f"/submissions/{found[0]['public_id']}"
    board = f"/courses/{seed.COURSE}/assignments/{BOARD}/leaderboard?lane={lane}"
    yield f"{lane}-leaderboard", "alice@example.org", board
    yield f"{lane}-node", ADMIN, "/operations#nodes"


def main() -> None:
    """Unpack, serve, take."""
    folder = Path(sys.argv[1])
    report = json.loads((folder / "whole_way.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        with tarfile.open(folder / "whole_way.tar.xz") as archive:
            archive.extractall(place, filter="data")
        home = Path(place) / "home"
        browser = launch(playwright)
        with served(home, report["at"]) as url:
            for name, email, path in chosen(report):
                page = open_as(browser, url, email, _password(home))
                answer = page.goto(url + path)
                if answer is None or not answer.ok:
                    raise SystemExit(f"{path} is not there: {answer.status if answer else 'no answer'}")
                take(page, name)
        browser.close()


if __name__ == "__main__":
    main()
