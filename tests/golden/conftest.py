"""One sandbox and one set of warm references for all gradings of a test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autograder.judge import References
from autograder.sandbox.process import ProcessSandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[ProcessSandbox]:
    """The sandbox that students' kernels run in."""
    made = ProcessSandbox()
    yield made
    made.close()


@pytest.fixture(scope="session")
def references(sandbox: ProcessSandbox) -> Iterator[References]:
    """Warm runners with the staff kernels."""
    made = References(sandbox)
    yield made
    made.close()
