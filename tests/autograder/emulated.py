"""A file that the emulator runs, called without a runner."""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch

from autograder.emulator.build import Prepared, build, line_of
from autograder.runner.languages.cuda_library import counters_of

FORWARD, REVERSE, SHUFFLED = range(3)


class Kernel:
    """A compiled file whose launcher `go` is called with tensors and integers."""

    def __init__(self, source: str, folder: Path, prepared: Prepared) -> None:
        self.path = build(source, folder, prepared, filename="mine.cu")
        self._library = ctypes.CDLL(str(self.path))
        self._library.cuda_emulator_trouble.restype = ctypes.c_char_p
        self._library.cuda_emulator_trouble_kind.restype = ctypes.c_char_p
        self._library.cuda_emulator_trouble_code.restype = ctypes.c_size_t
        self._library.cuda_emulator_trouble_other_code.restype = ctypes.c_size_t

    def __call__(self, *arguments: torch.Tensor | int, order: int = FORWARD, seed: int = 0, races: bool = False) -> str:
        """What went wrong, or an empty text."""
        self._library.cuda_emulator_forget()
        self._library.cuda_emulator_set_order(order, seed)
        self._library.cuda_emulator_watch_races(int(races))
        for name, item in zip("abcdefgh", arguments, strict=False):
            if isinstance(item, torch.Tensor):
                sizes = (item.element_size(), 1, item.numel(), 0)
                address = ctypes.c_void_p(item.data_ptr())
                self._library.cuda_emulator_add_array(name.encode(), address, *map(ctypes.c_size_t, sizes))
        self._library.go(
            *(
                ctypes.c_void_p(item.data_ptr()) if isinstance(item, torch.Tensor) else ctypes.c_int(item)
                for item in arguments
            )
        )
        return self._library.cuda_emulator_trouble().decode()

    def counted(self, *arguments: torch.Tensor | int, order: int = FORWARD) -> dict[str, int]:
        """What a call that goes well does, by counter; those that are 0 left out."""
        self._library.cuda_emulator_count(1)
        assert self(*arguments, order=order, races=True) == ""
        self._library.cuda_emulator_count(0)
        return {name: value for name, value in counters_of(self._library).items() if value}

    @property
    def kind(self) -> str:
        """One word for what went wrong."""
        return self._library.cuda_emulator_trouble_kind().decode()

    @property
    def line(self) -> int:
        """Where."""
        return self._library.cuda_emulator_trouble_line() or line_of(
            self.path, self._library.cuda_emulator_trouble_code(), "mine.cu"
        )

    @property
    def other_line(self) -> int:
        """Where the other of two accesses is."""
        return line_of(self.path, self._library.cuda_emulator_trouble_other_code(), "mine.cu")
