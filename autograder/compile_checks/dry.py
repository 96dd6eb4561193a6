"""A dry call: the entry is called as on the device, with tensors that have everything but memory.

torch's fake tensors have a device, types, shapes and strides, and views of them have too; nothing is computed. Host
code runs as it would on the device: it sees a CUDA tensor, chooses its blocks, and launches. It ends where it looks at
values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from autograder.compile_checks.messages import DryCase, DryTensor
from autograder.protocol import Load
from autograder.runner import source

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8,
        torch.bool,
    )
}  # fmt: skip


def without_memory() -> contextlib.AbstractContextManager[object]:
    """Where tensors that are made have no memory."""
    mode: contextlib.AbstractContextManager[object] = FakeTensorMode(allow_non_fake_inputs=True)
    return mode


def tensor(spec: DryTensor) -> torch.Tensor:
    """A tensor as the judge would lay it out on the device; to be made `without_memory`."""
    last = sum((length - 1) * step for length, step in zip(spec.shape, spec.stride, strict=True))
    whole = torch.empty(spec.offset + last + 1, dtype=_DTYPES[spec.dtype], device="cuda")
    return whole.as_strided(spec.shape, spec.stride, spec.offset)


def entry_of(load: Load) -> Callable[..., Any]:
    """The submission's entry, of its source that is loaded here; raises whatever that raises."""
    from triton.runtime.jit import KernelInterface  # noqa: PLC0415

    return source.find_entry(source.execute(load), load, (KernelInterface,))[0]


def call(entry: Callable[..., Any], names: tuple[str, ...], case: DryCase) -> None:
    """Call the entry once; raises whatever it raises."""
    values: dict[str, Any] = {one.name: tensor(one) for one in case.tensors} | case.scalars
    entry(*(values[name] for name in names))
