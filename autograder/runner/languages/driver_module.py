"""The module in C of triton's driver, built before a source is there.

Versions of triton before 3.7 have the machine's C compiler build it, some tenths of a second in every runner, whose
caches are its own. It is the same for all: it is built when the toolchain is imported, and every runner that is forked
has it. Where anything is otherwise, triton does as it would.
"""

from __future__ import annotations

import importlib
import logging
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

logger = logging.getLogger(__name__)

_DRIVER = "triton.backends.nvidia.driver"
_BUILDER = "compile_module_from_src"


def build() -> bool:
    """Build and load the driver's module now; whether there is one, and it was built. Nothing of the GPU is used."""
    try:
        driver = importlib.import_module(_DRIVER)
        original: Callable[..., ModuleType] = getattr(driver, _BUILDER)
        make = driver.CudaUtils
    except (ImportError, AttributeError):
        return False
    built: dict[str, ModuleType] = {}
    setattr(driver, _BUILDER, _remembering(original, built))
    try:
        in_a_folder_of_its_own(make)
    except Exception as error:  # noqa: BLE001 - triton's own, of many kinds; each runner meets it by itself then.
        logger.warning("the driver module of triton was not built ahead: %r", error)
    return bool(built)


def _remembering(build: Callable[..., ModuleType], built: dict[str, ModuleType]) -> Callable[..., ModuleType]:
    """Build what was not built in this process or in the one that forked it."""

    def remembered(src: str, name: str, *arguments: Any, **options: Any) -> ModuleType:
        module = built.get(src)
        if module is None:
            module = build(src, name, *arguments, **options)
            if name == "cuda_utils":
                built[src] = module
        return module

    return remembered


def in_a_folder_of_its_own(make: Callable[[], object]) -> None:
    """Have triton make something with a cache that is thrown away.

    Not where others could have put something: this process may be root's, and loads what it finds in its cache.
    """
    from triton import knobs  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="kernel-ladder-triton-") as folder, knobs.cache.scope():
        knobs.cache.dir = folder
        make()
