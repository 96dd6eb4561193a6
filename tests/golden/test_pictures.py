"""Pictures that a script draws stand in their handouts as it draws them."""

from __future__ import annotations

import runpy

import pytest

from tests.golden.rungs import ASSIGNMENTS, REFERENCE, SLUGS

DRAWN = [slug for slug in SLUGS if (REFERENCE / slug / "picture.py").is_file()]


@pytest.mark.parametrize("slug", DRAWN)
def test_a_handout_shows_what_its_script_draws(slug: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(REFERENCE / slug / "picture.py"), run_name="__main__")
    drawn = capsys.readouterr().out.strip("\n")
    assert f"```text\n{drawn}\n```" in (ASSIGNMENTS / slug / "README.md").read_text(encoding="utf-8")
