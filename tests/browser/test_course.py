"""The course that screenshots are taken of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.course import populate
from tests.browser.stage import stage


@pytest.mark.full("slow")
def test_it_can_be_made(tmp_path: Path) -> None:
    with stage(tmp_path / "home") as scene:
        assert all(populate(scene).values())
