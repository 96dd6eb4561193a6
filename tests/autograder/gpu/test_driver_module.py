"""The C module of triton's driver: built once, in a folder of its own, and no reason to fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from autograder.runner.languages import driver_module

pytest.importorskip("triton")
from triton import knobs


class Driver(SimpleNamespace):
    """Stands for a driver of triton 3.6: it looks its builder up anew whenever it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.built: list[tuple[str, str]] = []
        self.fails = False
        self.compile_module_from_src = self._build
        self.CudaUtils = lambda: self.compile_module_from_src(src="utilities", name="cuda_utils")

    def _build(self, src: str, name: str) -> ModuleType:
        if self.fails:
            raise RuntimeError("no compiler")
        self.built.append((name, knobs.cache.dir))
        return ModuleType(src)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = Driver()
    monkeypatch.setitem(sys.modules, driver_module._DRIVER, made)
    return made


def test_the_module_is_built_once_where_nobody_else_can_put_anything(driver: Any) -> None:
    before = knobs.cache.dir
    assert driver_module.build()
    again = driver.CudaUtils()
    assert again is driver.CudaUtils()
    ((name, folder),) = driver.built
    assert name == "cuda_utils"
    assert folder != before
    assert not os.path.exists(folder)  # noqa: PTH110 - a name, of what is gone
    assert knobs.cache.dir == before


def test_what_is_built_for_a_submission_is_not_remembered(driver: Any) -> None:
    driver_module.build()
    launchers = [driver.compile_module_from_src(src="launcher", name="__triton_launcher") for _ in range(2)]
    assert launchers[0] is not launchers[1]


def test_what_cannot_be_built_is_left_to_each_runner(driver: Any) -> None:
    driver.fails = True
    assert not driver_module.build()
    driver.fails = False
    assert driver.CudaUtils().__name__ == "utilities"


def test_a_triton_that_builds_none_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, driver_module._DRIVER, SimpleNamespace(CudaUtils=object))
    assert not driver_module.build()
