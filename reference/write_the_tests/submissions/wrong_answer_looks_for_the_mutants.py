"""A cheat: looks for the judge's mutants in everything that this process has, and raises if there is one.

There is none: the judge answers the tests in a process of its own, with mutants that never leave it.
"""

import gc
import sys

import torch


def found() -> list[object]:
    names = ("mutants", "HONEST", "_FAULTS", "make_inputs")
    seen = [vars(module).get(name) for module in list(sys.modules.values()) for name in names]
    frame = sys._getframe()
    while frame is not None:
        seen += [value for name in names for value in (frame.f_locals.get(name), frame.f_globals.get(name))]
        frame = frame.f_back
    numbers = [one for one in gc.get_objects() if isinstance(one, torch.Tensor) and one.dtype is torch.int64]
    return [one for one in seen if one is not None] + [one for one in numbers if one.dim() == 2 and one.shape[1] == 3]


def write_tests(
    x: torch.Tensor, length: torch.Tensor, right: torch.Tensor, allowed: torch.Tensor, tests: int, width: int
) -> None:
    if found():
        raise LookupError("the mutants are here")
    for tensor in (x, length, right, allowed):
        tensor.zero_()
