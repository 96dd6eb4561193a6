"""`python -m autograder.sandbox.docker sweep|promises`: remove what a killed judge left; say what is kept here."""

from __future__ import annotations

import json
import sys

from autograder.sandbox.docker.config import load_config
from autograder.sandbox.docker.engine import Engine
from autograder.sandbox.docker.sandbox import DockerSandbox
from autograder.sandbox.docker.sweep import sweep


def main(arguments: list[str]) -> None:
    """Run one command."""
    if arguments == ["sweep"]:
        engine = Engine()
        for container in sweep(engine, load_config().folder):
            print(container)  # noqa: T201 -- this is its answer.
        engine.close()
    elif arguments == ["promises"]:
        sandbox = DockerSandbox()
        print(json.dumps({"promises": sorted(sandbox.promises), **sandbox.facts}, indent=2))  # noqa: T201
        sandbox.close()
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
