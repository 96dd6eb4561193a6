"""One folder makes a language: pages, commands, judge and sandbox of a copy of the tree know it, no file changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import httpx
import pytest

from server.submissions.submissions import FINAL

ROOT = Path(__file__).parents[2]
PLANTED = ROOT / "tests" / "fixtures" / "languages" / "tally"
RUNGS = ROOT / "tests" / "server" / "rungs"
PACKAGES = ("autograder", "broker", "client", "server", "worker", "web/templates", "web/static")
SLUG = "add_one"
COURSE = "gpu-demo"
PATIENCE_S = 240
RIGHT = "; adds one to every element\nentry add_one\nsum = x + 1\nout = sum * 1\n"
WRONG = "entry add_one\nout = x + 2\n"
CLASHES = "entry add_one\nx = x + 1\n"
PROBLEM = """
import torch


def make_inputs(*, generator, n, dtype, distribution):
    return {"x": torch.randn(n, generator=generator).to(dtype)}


def expected(*, x):
    return {"out": (x.double() + 1).to(x.dtype)}
"""
MALFORMED = "entry add_one\nout is x plus one\n"


@dataclass(frozen=True)
class Planted:
    """A copy of the tree with the language in it, served."""

    tree: Path
    home: Path
    url: str
    password: str

    def ladder(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "client", *arguments], cwd=self.home, env=_environ(self.tree, self.home, **more),
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip


def _environ(tree: Path, home: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    return clean | {"LADDER_HOME": str(home), "PYTHONPATH": str(tree), "PYTHONUNBUFFERED": "1"} | more


def _plant(tree: Path) -> None:
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "pyproject.toml", tree / "pyproject.toml")
    shutil.copytree(PLANTED, tree / "autograder" / "languages" / PLANTED.name)
    for kind in ("assignments", "reference"):
        shutil.copytree(RUNGS / kind / SLUG, tree / kind / SLUG)
    public, staff = tree / "assignments" / SLUG, tree / "reference" / SLUG
    shutil.rmtree(public / "milestones")
    manifest = public / "assignment.toml"
    manifest.write_text(manifest.read_text().replace('languages = ["triton"]', f'languages = ["{PLANTED.name}"]'))
    (public / "problem.py").write_text(PROBLEM)
    (public / "starters" / "tally.tally").write_text("entry add_one\n")
    (staff / "solutions" / "tally.tally").write_text(RIGHT)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    tree, home = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("home")
    _plant(tree)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = str(unused.getsockname()[1])
    command = [sys.executable, "-m", "client", "up"]
    with subprocess.Popen(
        command, env=_environ(tree, home, LADDER_PORT=port), cwd=tree, stdout=subprocess.PIPE, text=True
    ) as process:
        said = ""
        for line in process.stdout or ():
            said += line
            if line.startswith("logs:"):
                break
        try:
            assert "password: " in said, said
            password = said.partition("password: ")[2].split()[0]
            yield Planted(tree, home, f"http://127.0.0.1:{port}", password)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def alice(planted: Planted) -> Iterator[httpx.Client]:
    """A browser with a login."""
    with httpx.Client(base_url=planted.url, follow_redirects=True, timeout=60) as browser:
        form = _form(browser.get("/login").text)
        done = browser.post("/login", data=form | {"email": "alice@example.org", "password": planted.password})
        assert done.status_code == 200, done.text
        yield browser


@pytest.fixture(scope="module")
def token(planted: Planted) -> str:
    body = {"email": "alice@example.org", "password": planted.password, "name": "test"}
    done = httpx.post(f"{planted.url}/api/v1/tokens", json=body, timeout=60)
    return str(done.json()["token"])


def _form(page: str) -> dict[str, str]:
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: unescape(value) for name, value in hidden}


@pytest.mark.timeout(PATIENCE_S * 2)
@pytest.mark.parametrize(("source", "verdict"), [(RIGHT, "passed"), (WRONG, "wrong_answer")])
def test_a_file_is_graded_from_the_page(
    planted: Planted, alice: httpx.Client, token: str, source: str, verdict: str
) -> None:
    page = alice.get(f"/courses/{COURSE}/assignments/{SLUG}").text
    assert re.search(r'<option value="tally" data-mode="plain"[^>]*>Tally sheets</option>', page)
    assert ".tally" in page
    form = _form(page[page.index('aria-label="Your solution"') :])
    sent = form | {"mode": "submission", "lane": "cpu", "language": "tally", "source": source}
    done = alice.post(f"/courses/{COURSE}/assignments/{SLUG}/submissions", data=sent)
    assert done.status_code == 200, done.text
    public_id = done.url.path.rpartition("/")[2]
    answer = _final(planted, token, public_id)
    assert (answer["state"], answer["verdict"], answer["language"]) == ("done", verdict, "tally")
    shown = alice.get(f"/submissions/{public_id}").text
    assert "Tally sheets on CPU" in shown
    # Its own lexer coloured it.
    assert source is not RIGHT or re.search(r'<span class="[^"]+">; adds one to every element</span>', shown)


def _final(planted: Planted, token: str, public_id: str) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {token}"}
    deadline = time.monotonic() + PATIENCE_S
    with httpx.Client(base_url=planted.url, headers=headers, timeout=60) as api:
        while True:
            done = api.get(f"/api/v1/submissions/{public_id}")
            answer: dict[str, object] = done.raise_for_status().json()
            if answer["state"] in {state.value for state in FINAL}:
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.5)


@pytest.mark.timeout(PATIENCE_S * 2)
@pytest.mark.parametrize(("source", "verdict"), [(RIGHT, "passed"), (WRONG, "wrong_answer")])
def test_a_file_is_graded_from_the_command_line(planted: Planted, token: str, source: str, verdict: str) -> None:
    # The ending alone says what it is written in. Other words than those from the page: what is sent again is no news.
    file = planted.home / f"{SLUG}.tally"
    file.write_text(source.replace("x +", "x  +"))
    done = planted.ladder("submit", str(file), "--json", LADDER_SERVER=planted.url, LADDER_TOKEN=token)
    assert json.loads(done.stdout.splitlines()[-1])["verdict"] == verdict, done.stdout + done.stderr


@pytest.mark.timeout(PATIENCE_S * 2)
@pytest.mark.parametrize(
    ("source", "verdict", "kind"),
    [
        (RIGHT, "passed", ""),
        (CLASHES, "illegal_access", "ReadOnlyLine"),
        (MALFORMED, "compile_error", "TallyError"),
        ("out = x + 1\n", "compile_error", "MissingEntry"),
    ],
)
def test_the_local_judge_knows_its_errors(planted: Planted, source: str, verdict: str, kind: str) -> None:
    file = planted.home / f"{SLUG}.tally"
    file.write_text(source)
    folder = planted.tree / "assignments" / SLUG
    done = planted.ladder("check", str(file), "--folder", str(folder), "--json")
    said = done.stdout + done.stderr
    assert f'"{verdict}"' in said, said
    assert kind in said, said
