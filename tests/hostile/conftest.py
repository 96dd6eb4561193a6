"""The judge and the sandbox that hostile files meet, made once, and what a test may find of them afterwards."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


from tests.hostile.canary import canary as put_out
from tests.hostile.corpus import HONEST
from tests.hostile.stand import Stand, bare_sandbox

from autograder.sandbox.process import ProcessSandbox


@pytest.fixture(scope="session", autouse=True)
def canary() -> Iterator[None]:
    """Things to find: a secret in the judge's environment and on the disk, and somebody who listens."""
    try:
        with put_out():
            yield
    except OSError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def stand(canary: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The judge with everything on, in one sandbox for all files."""
    made = Stand(ProcessSandbox(), tmp_path_factory.mktemp("stand"))
    # What the first grading opens for good, such as the line to its zygote, is no attack's leftover.
    made.grade(HONEST.read_text(encoding="utf-8"), mode="run")
    yield made
    made.close()


@pytest.fixture(scope="session")
def bare_stand(canary: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The same without namespaces, control groups and another user, as on a laptop or in a container of somebody's."""
    made = Stand(bare_sandbox(), tmp_path_factory.mktemp("bare"))
    yield made
    made.close()
