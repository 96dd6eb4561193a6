"""What to try next: from where a result stands against the hardware's limits, and from its kernels as compiled.

Advice is a place to look, in the order in which it is likely to pay; it knows nothing of the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autograder.contract import CompiledFor, CompiledKernel
from autograder.lanes import DEVICES
from server.pages.formats import amount, microseconds, percent, plural, rate
from server.pages.roofline import CaseLimits, Roofline

NEARLY = 0.85
"""A plain copy reaches about nine tenths of the data sheet's bandwidth: beyond this share there is little left."""
HALF = 0.5
TENSOR = 0.2
"""Of the tensor cores' peak: a kernel without them, or one that starves them, stays below."""
SHORT_US = 20.0
"""A call that is so short is starting and ending for a good part of it."""

_COALESCE = "Coalesce: let neighbouring threads take neighbouring addresses, along the dimension with stride 1."
_ONCE = (
    "Read everything once: an intermediate that is stored and loaded again, or a second pass over the input, "
    "is traffic too."
)
_VECTORS = (
    "Fetch 16 bytes with one instruction: contiguous elements per thread, pointers to multiples of 16, and the tail "
    "by itself."
)
_IN_FLIGHT = (
    "Keep more bytes in flight: more elements per thread or more warps per block, until the time stops falling."
)
_LAST_WAVE = "Look at the last wave: a grid that does not fill the multiprocessors evenly leaves some idle."
_NOTHING = (
    "It already moves its bytes about as fast as the memory can deliver them. Only moving less would be faster, and "
    "this case needs every byte."
)
_REUSE = "Reuse what is loaded: larger tiles in shared memory or registers do more operations for each byte."
_TENSOR = (
    "Use the tensor cores: `tl.dot`, or `mma` in CUDA C++, on tiles of at least 16 × 16, with the sums kept in "
    "registers."
)
_FEED = "Have the next tile on its way while this one is multiplied: more stages (`num_stages`, asynchronous copies)."
_SHAPE = (
    "Try other tile shapes and numbers of warps: the first one is seldom the best, and `triton.autotune` tries them "
    "for you."
)
_ORDER = "Order the programs so that neighbours share tiles in the L2 cache."
_LAUNCH = "Much of so short a call is launch overhead: use fewer launches, with no work on the host between them."
_MULTIPLIED = frozenset({"float16", "bfloat16", "int8"})
"""Types that tensor cores take as they are; float32 would be rounded to TF32, which not every rung allows."""


@dataclass(frozen=True)
class Advice:
    """Where the slowest case stands, and what to look at, the likeliest first."""

    case: str
    lead: str
    steps: tuple[str, ...]
    techniques: tuple[str, ...]


def advise(found: Roofline, compiled: Sequence[CompiledFor], techniques: tuple[str, ...]) -> Advice:
    """What the case that is furthest from its limit suggests."""
    furthest = min(found.cases, key=lambda case: case.share)
    kernels = _kernels(compiled, DEVICES[found.lane].target)
    steps = tuple(dict.fromkeys([*_spilled(kernels), *_steps(furthest, kernels)]))
    return Advice(furthest.case, _lead(furthest, found), steps, techniques)


def _lead(case: CaseLimits, found: Roofline) -> str:
    dot, time, device = case.this, microseconds(case.this.time_us), f"{found.device}'s"
    if case.is_memory_bound:
        moved = f"{amount(case.bytes_moved, 'B')} in {time} is {rate(dot.tb_s, 'B')}"
        cached = " All of it fits into the L2 cache, which is faster than memory." if case.fits_cache else ""
        return f"Memory-bound: {moved}, {percent(case.share)} of the {device} bandwidth.{cached}"
    done = f"{amount(case.flops, 'FLOP')} in {time} is {rate(dot.tflops, 'FLOP')}"
    rounded = " (as TF32 on the tensor cores)" if case.dtype == "float32" else ""
    return f"Compute-bound: {done}, {percent(case.share)} of the {device} peak for {case.dtype}{rounded}."


def _steps(case: CaseLimits, kernels: Sequence[CompiledKernel]) -> Iterator[str]:
    if case.this.time_us < SHORT_US and case.share < HALF:
        yield _LAUNCH
    yield from _of_memory(case.share, kernels) if case.is_memory_bound else _of_arithmetic(case, kernels)


def _of_memory(share: float, kernels: Sequence[CompiledKernel]) -> Iterator[str]:
    vectors = () if any(kernel.ldg128 or kernel.tma for kernel in kernels) else (_VECTORS,)
    if share >= NEARLY:
        yield _NOTHING
    elif share >= HALF:
        yield from (*vectors, _IN_FLIGHT, _LAST_WAVE)
    else:
        yield from (_COALESCE, _ONCE, *vectors, _IN_FLIGHT)


def _of_arithmetic(case: CaseLimits, kernels: Sequence[CompiledKernel]) -> Iterator[str]:
    with_tensor_cores = any(kernel.wgmma or kernel.tcgen05 for kernel in kernels)
    if case.share < TENSOR:
        if case.dtype in _MULTIPLIED and not with_tensor_cores:
            yield _TENSOR
        yield _REUSE
    if case.share < HALF:
        yield _FEED
    yield from (_SHAPE, _ORDER)


def _kernels(compiled: Sequence[CompiledFor], target: str) -> list[CompiledKernel]:
    return [kernel for one in compiled if one.target == target for kernel in one.kernels if not kernel.message]


def _spilled(kernels: Sequence[CompiledKernel]) -> Iterator[str]:
    """What spills may be one candidate of many; its name says which."""
    for kernel in kernels:
        if kernel.spills:
            many = plural(kernel.spills, "load or store", "loads and stores")
            yield (
                f"`{kernel.kernel[:60]}` spills: {many} of values that did not fit in registers. A smaller tile, or "
                "the same one shared by more warps, needs fewer."
            )
            return
