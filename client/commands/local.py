"""`ladder up`, `ladder down` and `ladder demo`: one machine that does everything."""

from __future__ import annotations

import importlib.util
import sys

import click

from autograder import languages
from client.errors import UsageError
from client.local import demo as story
from client.local import up


def _require_node() -> None:
    if sys.platform != "linux":
        raise UsageError("a server runs on Linux only (on Windows: WSL).")
    needed = ("torch", *languages.imports(), "numpy", "sqlalchemy", "fastapi", "celery", "supervisor")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"this needs {', '.join(missing)}: pip install 'kernel-ladder[node]', or `make setup`.")


@click.command("up")
def start() -> None:
    """Serve from this machine: database, pages, API, and a node that grades. Ctrl-C stops it.

    Everything is kept in LADDER_HOME (default: var/ in the checkout). LADDER_PORT chooses the port.
    """
    _require_node()
    up.serve(up.home_folder())


@click.command("down")
def stop() -> None:
    """Stop what `ladder up` started."""
    folder = up.home_folder()
    click.echo("Stopped." if up.down(folder) else f"Nothing runs in {folder}.")


@click.command()
@click.option("--keep", is_flag=True, help="Keep serving afterwards, until Ctrl-C.")
def demo(*, keep: bool) -> None:
    """Serve a fresh demo course, submit five kernels from correct to hostile, and show each result.

    Exit status: 0 only if every verdict is the expected one.
    """
    _require_node()
    sys.exit(story.demo(up.home_folder(), keep=keep))
