"""A kernel of our own that does next to nothing, launched as a student's is: by way of triton's launcher."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
import triton
import triton.language as tl

from autograder.runner.languages.driver_module import in_a_folder_of_its_own

logger = logging.getLogger(__name__)

_SOME_TARGET = ("cuda", 90, 32)


@triton.jit
def _touch(speck):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 -- triton reads no annotations of ours
    tl.store(speck, 0)


def compile_ahead() -> bool:
    """Compile it for some target, and throw that away; whether it could be. Nothing of the GPU is used.

    The first compilation of a process takes several times as long as the next: what it imports and sets up is there
    before a source is.
    """
    try:
        from triton.backends.compiler import GPUTarget  # noqa: PLC0415
        from triton.compiler import ASTSource  # noqa: PLC0415

        kernel = ASTSource(_touch, {"speck": "*i32"}, {})
        in_a_folder_of_its_own(lambda: triton.compile(kernel, target=GPUTarget(*_SOME_TARGET)))
    except Exception as error:  # noqa: BLE001 - triton's own, of many kinds; each runner compiles by itself then.
        logger.warning("triton's compiler was not warmed: %r", error)
        return False
    return True


def touching() -> Callable[[], object]:
    """What launches it; compiled and launched once."""
    speck = torch.zeros(1, dtype=torch.int32, device="cuda")

    def touch() -> object:
        return _touch[(1,)](speck)

    touch()
    return touch
