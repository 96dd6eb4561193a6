"""`ladder demo`: five kernels handed in by three students through the public API, and what becomes of each.

It uses nothing that a student on another machine could not: a token, a submission, its live events, the board.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from autograder import languages
from autograder.contract import FIRST_LANGUAGE, Verdict
from client import boards, show
from client.account import Account
from client.api import Api, Json
from client.commands.grading import watch
from client.errors import OursError, UsageError
from client.local import seed, up
from client.local.home import Home

SLUG = "vector_add"
LANE = "cpu"
KERNELS = Path(__file__).resolve().parents[2] / "scripts" / "demo"


@dataclass(frozen=True)
class Step:
    """One kernel: who hands it in, and the verdict that its file's name says it must get."""

    person: str
    file: str

    @property
    def expected(self) -> str:
        """The longest verdict that the file's name begins with."""
        return max((v.value for v in Verdict if self.file.startswith(f"{v.value}_")), key=len)

    @property
    def title(self) -> str:
        """What the file's name says beside the verdict."""
        return Path(self.file).stem.removeprefix(f"{self.expected}_").replace("_", " ")


STEPS = (
    Step("alice@example.org", "passed_correct.py"),
    Step("bob@example.org", "wrong_answer_forgets_the_tail.py"),
    Step("carol@example.org", "runtime_error_crashes.py"),
    Step("carol@example.org", "time_limit_endless.py"),
    Step("bob@example.org", "rule_violation_hostile.py"),
)

# The demo is about its own installation: what points at another's database, queue or accounts does not apply.
_NOT_INHERITED = re.compile(r"LADDER_(DATABASE_URL|BROKER_URL|PUBLIC_URL|SERVER|TOKEN|COURSE|NODE_.*|WORK|LANES)")


def demo(folder: Path, *, keep: bool) -> int:
    """Run it in a fresh home below `folder`; the exit status is 0 if every verdict was the expected one."""
    if not KERNELS.is_dir():
        raise UsageError("the demo needs a checkout: its kernels are in scripts/demo.")
    environ = {name: value for name, value in os.environ.items() if not _NOT_INHERITED.fullmatch(name)}
    home = fresh_home(folder / "demo")
    status = 1
    with _timed("everything"), up.stopping_on_signals(), _serving(home, environ) as served:
        status = 1 if _show(served) else 0
        if keep:
            _keep(served)
    return status


def fresh_home(folder: Path) -> Path:
    """An empty folder where an earlier demo may have been.

    Raises:
        UsageError: that demo still runs.
    """
    if folder.is_dir():
        with Home(folder).locked():
            shutil.rmtree(folder)
    return folder


@contextmanager
def _serving(home: Path, environ: Mapping[str, str]) -> Iterator[up.Serving]:
    started = time.monotonic()
    with up.serving(home, lambda text: click.echo(f"· {text}"), environ) as served:
        click.echo(f"· ready at {served.url}  ({time.monotonic() - started:.1f} s)")
        yield served


def _show(served: up.Serving) -> list[str]:
    """Hand in every kernel; returns what did not come as expected."""
    if served.accounts is None:
        raise OursError("the demo's own home has no demo accounts.")
    tokens = {email: _log_in(served, email) for email in sorted({step.person for step in STEPS})}
    surprises = []
    for number, step in enumerate(STEPS, start=1):
        _heading(f"{number} of {len(STEPS)}: {step.person} submits {step.title!r}, expected: {step.expected}")
        with _timed("submit to verdict"), Api(Account(served.url, tokens[step.person])) as api:
            final = _hand_in(api, step)
        if (final["state"], final["verdict"]) != ("done", step.expected):
            surprises.append(f"{step.file}: {final['state']}, {final['verdict']} instead of {step.expected}")
    _heading("the leaderboard, as Alice sees it")
    with Api(Account(served.url, tokens["alice@example.org"])) as api:
        boards.show_board(show.console(), api.leaderboard(seed.COURSE, SLUG, LANE))
    _heading("results")
    for surprise in surprises:
        click.echo(f"not as expected: {surprise}")
    if not surprises:
        click.echo("Every verdict is the expected one.")
    return surprises


def _log_in(served: up.Serving, email: str) -> str:
    password = served.accounts.password if served.accounts else ""
    with Api(Account(served.url, "")) as api:
        return str(api.create_token(email, password, "demo")["token"])


def _hand_in(api: Api, step: Step) -> Json:
    source = (KERNELS / step.file).read_text(encoding="utf-8")
    written_in = languages.of_file(step.file, source)
    language = written_in.id if written_in else FIRST_LANGUAGE.value
    name = f"{SLUG}{Path(step.file).suffix}"
    submission = {"mode": "submission", "lane": LANE, "language": language, "filename": name, "source": source}
    return watch(api, api.submit(seed.COURSE, SLUG, submission), as_json=False)


def _keep(served: up.Serving) -> None:
    _heading(f"Kernel Ladder keeps running at {served.url}; Ctrl-C stops it")
    for line in up.account_lines(served.accounts):
        click.echo(line)
    served.supervisor.wait()


def _heading(text: str) -> None:
    click.echo(f"\n── {text}")


@contextmanager
def _timed(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    click.echo(f"({what}: {time.monotonic() - started:.1f} s)")
