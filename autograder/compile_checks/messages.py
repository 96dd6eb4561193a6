"""What is said between the judge and a runner that compiles, over the same kind of channel as grading.

    judge → runner    Compile (with the source's and the machine code's descriptors), or Read (with the latter's)
    runner → judge    Compiled, or Readings

Each is said once. `Compiled` comes from a process that has loaded the submission: every word of it is a claim.
`Readings` come from one that has not: it has only read the bytes. The judge treats both as hostile. Standard library
only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeVar

from autograder import codec
from autograder.contract import Frame
from autograder.errors import ContractError
from autograder.protocol import MAX_PACKET

MOST_KERNELS = 24
"""How many kernels are kept per target."""

MOST_USES = 64
"""How many launches one kernel is said to serve."""

CODE_BYTES = 24 * 2**20
"""Room for machine code per target."""

Message = TypeVar("Message")


@dataclass(frozen=True)
class DryTensor:
    """One tensor of a dry call: no memory stands behind it.

    Attributes:
        stride: in elements.
        offset: elements before the first, so that the pointer is not aligned.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0


@dataclass(frozen=True)
class DryCase:
    """One case as a dry call sees it."""

    name: str
    tensors: tuple[DryTensor, ...]
    scalars: dict[str, int | float]


@dataclass(frozen=True)
class Compile:
    """Load the source, call the entry without a device on every case, and compile every launch.

    Attributes:
        source_bytes: of the source, UTF-8, in the first descriptor; machine code goes to the second.
        budget_s: no compilation begins later.
        most: kernels that are kept.
    """

    source_bytes: int
    filename: str
    entry: str
    arguments: tuple[str, ...]
    target: str
    cases: tuple[DryCase, ...]
    budget_s: float
    most: int = MOST_KERNELS


@dataclass(frozen=True)
class Fault:
    """An exception: its type, its text, and the student's lines on the way to it."""

    kind: str
    message: str
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class ClaimedKernel:
    """One kernel as `Compiled` tells of it; names as in `contract.CompiledKernel`.

    Attributes:
        uses: numbers of case and launch, for every launch that came to this kernel.
        shared_bytes: asked for at the launch; it is not in the machine code.
        offset, bytes: where its machine code is; no bytes where there is none.
    """

    kernel: str
    uses: tuple[tuple[int, int], ...]
    config: str
    arguments: str
    shared_bytes: int = 0
    offset: int = 0
    bytes: int = 0
    fault: Fault | None = None


@dataclass(frozen=True)
class Compiled:
    """What the dry calls came to.

    Attributes:
        left_out: launches that were not compiled or not kept.
        fault: what ended the host code of `case`, if anything did; `case` is empty where it did not load.
    """

    kernels: tuple[ClaimedKernel, ...]
    left_out: int = 0
    fault: Fault | None = None
    case: str = ""


@dataclass(frozen=True)
class Read:
    """Read machine code at these offsets and sizes."""

    places: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Reading:
    """What stands in one kernel's machine code; names as in `contract.CompiledKernel`.

    Attributes:
        readable: it is what the tools can read.
        shared_bytes: static, beside what the launch asks for.
    """

    readable: bool
    registers: int = 0
    stack_bytes: int = 0
    spills: int = 0
    shared_bytes: int = 0
    wgmma: int = 0
    tcgen05: int = 0
    tma: int = 0


@dataclass(frozen=True)
class Readings:
    """In the order of `Read.places`."""

    kernels: tuple[Reading, ...]


def encode(message: Compile | Read) -> bytes:
    """One packet of the judge's."""
    data = json.dumps({"is": type(message).__name__, **codec.to_json(message)}, separators=(",", ":")).encode()
    if len(data) > MAX_PACKET:
        raise ContractError(f"a packet may have {MAX_PACKET} bytes, this one has {len(data)}")
    return data


def decode(packet: bytes, wanted: type[Message]) -> Message:
    """Parse a packet that may only be `wanted`; raise `ContractError` for anything else."""
    if len(packet) > MAX_PACKET:
        raise ContractError("the packet is too long")
    try:
        data = json.loads(packet)
    except (ValueError, RecursionError):
        raise ContractError("the packet is not JSON") from None
    if not isinstance(data, dict) or data.pop("is", None) != wanted.__name__:
        raise ContractError("the packet is of no kind that belongs here")
    return codec.from_json(wanted, data)
