"""The emulator, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.emulator.build import Prepared, prepare
from tests.autograder.emulated import Kernel


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Prepared:
    return prepare(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def kernel(tmp_path: Path, prepared: Prepared):
    return lambda source: Kernel(source, tmp_path, prepared)
