"""One sandbox for all grading tests; and hypothesis must not judge by the clock, because the machine may be busy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from grading_bench import Bench

from autograder.judge import References
from autograder.sandbox.process import ProcessSandbox

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
