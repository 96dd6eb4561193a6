"""A sandbox for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.sandbox.process import ProcessSandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()
