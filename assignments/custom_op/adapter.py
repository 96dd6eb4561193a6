"""How the judge calls an op: it registers nothing, and stores what torch makes of what the file before it registered.

Every function fills tensors that the judge compares in a process of its own. It takes no word for an answer: there is
no "ok" here, only numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
import torch._dynamo  # The first call of an op would import it, and take seconds.
from functorch.compile import aot_function, nop
from torch._subclasses.fake_tensor import FakeTensorMode

SCHEMA = "ladder::residual_norm(Tensor x, Tensor r, Tensor weight, float eps) -> (Tensor, Tensor)"
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
ELSEWHERE = "cuda" if torch.cuda.is_available() else "meta"
"""A device that is not the default one."""

Tensors = tuple[torch.Tensor, ...]


def _registered() -> Callable[..., Tensors]:
    if not hasattr(torch.ops.ladder, "residual_norm"):
        raise NameError("The file registers no op `ladder::residual_norm`.")
    packet = torch.ops.ladder.residual_norm
    schema = str(packet.default._schema)  # noqa: SLF001 -- there is no public way.
    if schema != SCHEMA:
        raise TypeError(f"The op's schema has to be `{SCHEMA}`, and is `{schema}`.")
    return packet


OP = _registered()


def forward(
    x: torch.Tensor,
    r: torch.Tensor,
    weight: torch.Tensor,
    s: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    eps: float,
) -> None:
    """Call the op."""
    _store((s, out), OP(x, r, weight, eps))


def describe(like: torch.Tensor, real: torch.Tensor, fake: torch.Tensor, tests: int) -> None:
    """Say what the op's results are like, and what its fake kernel says of them for tensors on another device.

    A row of `like` is a test: the number of a type, rows, columns, and how x and r lie in memory. 0: row by row.
    1: column by column. 2: as a part of longer rows. 3: one row, expanded.
    """
    for test, (kind, rows, cols, order) in enumerate(like.tolist()):
        real[test] = _numbers(OP(*_like(DTYPES[kind], rows, cols, order, like.device.type), 1e-5), like.device.type)
        with FakeTensorMode():
            found = OP(*_like(DTYPES[kind], rows, cols, order, ELSEWHERE), 1e-5)
        fake[test] = _numbers(found, ELSEWHERE)


def _like(dtype: torch.dtype, rows: int, cols: int, order: int, device: str) -> Tensors:
    """Inputs of ones."""
    weight = torch.ones(cols, dtype=dtype, device=device)
    if order == 3:
        return (*(torch.ones(1, cols, dtype=dtype, device=device).expand(rows, cols) for _ in range(2)), weight)
    x, r = (torch.ones(rows, cols + 3 * (order == 2), dtype=dtype, device=device)[:, :cols] for _ in range(2))
    return (_by_columns(x), _by_columns(r), weight) if order == 1 else (x, r, weight)


def gradients(
    x: torch.Tensor,
    r: torch.Tensor,
    weight: torch.Tensor,
    ds: torch.Tensor,
    dout: torch.Tensor,
    dx: torch.Tensor,
    dr: torch.Tensor,
    dweight: torch.Tensor,
    rows: int,
    cols: int,
    order: int,
    eps: float,
) -> None:
    """Call the op and go back through it, with tensors in several orders in memory.

    0: as they are. 1: x and r by columns. 2: the results' gradients by columns. 3: the gradient of out is one row,
    expanded. 4: only out is used. 5: only s is used.
    """
    if order == 1:
        x, r = _by_columns(x), _by_columns(r)
    if order == 2:
        ds, dout = _by_columns(ds), _by_columns(dout)
    if order == 3:
        # Behind the row there are others, which are wrong.
        dout = torch.cat((dout[:1], -dout[1:]))[:1].expand(rows, cols)
    leaves = _leaves(x, r, weight)
    results, given = OP(*leaves, eps), (ds, dout)
    if order in (4, 5):
        results, given = results[5 - order :][:1], given[5 - order :][:1]
    _store((dx, dr, dweight), torch.autograd.grad(results, leaves, given))


def traced(
    x: torch.Tensor,
    r: torch.Tensor,
    weight: torch.Tensor,
    ds: torch.Tensor,
    dout: torch.Tensor,
    s: torch.Tensor,
    out: torch.Tensor,
    dx: torch.Tensor,
    dr: torch.Tensor,
    dweight: torch.Tensor,
    rows: int,
    cols: int,
    eps: float,
) -> None:
    """Call a graph that was traced with tensors of 6 rows and 10 columns, and go back through it."""
    leaves = _leaves(x, r, weight)
    results = _graph(x.dtype, x.device, eps)(*leaves)
    _store((s, out, dx, dr, dweight), (*results, *torch.autograd.grad(results, leaves, (ds, dout))))


@functools.lru_cache(maxsize=4)
def _graph(dtype: torch.dtype, device: torch.device, eps: float) -> Callable[..., Tensors]:
    """The op and a use of its result's shape, as torch.compile's first two stages trace them, for any size."""

    def layer(x: torch.Tensor, r: torch.Tensor, weight: torch.Tensor) -> Tensors:
        s, out = OP(x, r, weight, eps)
        return s, out.view(out.shape[0] * out.shape[1]).view(out.shape)

    graph: Callable[..., Tensors] = aot_function(layer, fw_compiler=nop, bw_compiler=nop, dynamic=True)
    graph(*_leaves(*(torch.ones(shape, dtype=dtype, device=device) for shape in ((6, 10), (6, 10), (10,)))))
    return graph


def _leaves(*tensors: torch.Tensor) -> Tensors:
    return tuple(tensor.detach().requires_grad_() for tensor in tensors)


def _by_columns(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, a column's one after the other in memory."""
    return tensor.t().contiguous().t()


def _store(outputs: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
    """Copy results that have the shapes of the outputs; a copy would spread others over them."""
    for output, result in zip(outputs, results, strict=True):
        if result.shape != output.shape:
            raise ValueError(f"A result has the shape {tuple(result.shape)} instead of {tuple(output.shape)}.")
        output.copy_(result)


def _numbers(results: Sequence[torch.Tensor], device: str) -> torch.Tensor:
    """Of each result: type, rows, columns, stride of rows, of columns, offset, and whether it is on the device."""
    numbers: list[int] = []
    for one in results:
        shape, stride = (one.shape, one.stride()) if one.dim() == 2 else ((-1, -1), (-1, -1))
        kind = DTYPES.index(one.dtype) if one.dtype in DTYPES else -1
        numbers += [kind, *shape, *stride, one.storage_offset(), int(one.device.type == device)]
    return torch.tensor(numbers, dtype=torch.int32)
