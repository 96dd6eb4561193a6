"""A kernel of our own that does next to nothing, launched as a student's is: by way of torch and triton's launcher."""

from __future__ import annotations

import logging

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


class Touch:
    """Clears a word of scratch memory and launches the kernel on it; compiled and launched once when it is made.

    What a launcher calls first is called here as well: torch's allocator, a kernel of torch's, a launch of triton's.
    The functions are those of before a submission was loaded. The first scratch memory is kept, so that torch has a
    piece to give out afterwards without asking the driver.
    """

    def __init__(self) -> None:
        self._zeros = torch.zeros
        self._kept = self._scratch()
        _touch[(1,)](self._kept)

    def __call__(self) -> None:
        """Do it; not waited for."""
        _touch[(1,)](self._scratch())

    def _scratch(self) -> torch.Tensor:
        return self._zeros(1, dtype=torch.int32, device="cuda")
