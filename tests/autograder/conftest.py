"""One sandbox for all grading tests; and hypothesis must not judge by the clock, because the machine may be busy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from autograder.judge import References
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.grading_bench import Bench

settings.register_profile("ladder", deadline=None)
settings.load_profile("ladder")


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    """A real sandbox and warm references."""
    sandbox = ProcessSandbox()
    references = References(sandbox)
    yield Bench(sandbox, references)
    references.close()
    sandbox.close()
