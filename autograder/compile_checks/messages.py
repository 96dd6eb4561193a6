"""What is said between the judge and a runner that compiles, over the same kind of channel as grading.

    judge → runner    Compile (descriptors: the source, and machine code of each target), Read (machine code),
                      or Precompile (the source, and room for a pack)
    runner → judge    Compiled and Ended for each target, Readings, or Precompiled

`Compiled` comes from a process that has loaded the submission: every word of it is a claim. `Readings` come from one
that has not: it has only read the bytes. The judge treats both as hostile. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

from autograder.contract import Frame

MOST_KERNELS = 24
"""How many kernels are kept per target."""

MOST_USES = 64
"""How many launches one kernel is said to serve."""

CODE_BYTES = 24 * 2**20
"""Room for machine code and PTX per target."""

NO_COMPILER = "NoCompiler"
"""Kind of the fault of a runner that has no compiler for the language."""

NO_TARGET = "NoTarget"
"""Kind of the fault of a runner whose compiler does not know the target."""

OUT_OF_TIME = "OutOfTime"
"""Kind of the fault of a runner whose compiler did not end."""

TEXT_BYTES = 24 * 2**20
"""Room for the machine code of all targets as text."""


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
    """One case as a dry call sees it.

    Attributes:
        signature: for a language with types, what the arguments are, as in `protocol.Load.signatures`.
    """

    name: str
    tensors: tuple[DryTensor, ...]
    scalars: dict[str, int | float]
    signature: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """What is compiled for one target: the launches of these cases."""

    target: str
    cases: tuple[DryCase, ...]


@dataclass(frozen=True)
class Compile:
    """For every target, in a process of its own: load the source, call the entry on every case, compile every launch.

    Attributes:
        source_bytes: of the source, UTF-8, in the first descriptor; machine code goes to the others, one for each part.
        budget_s: no compilation begins later.
        most: kernels that are kept of each target.
    """

    source_bytes: int
    filename: str
    entry: str
    arguments: tuple[str, ...]
    parts: tuple[Part, ...]
    budget_s: float
    most: int = MOST_KERNELS


@dataclass(frozen=True)
class Precompile:
    """Have triton's cache filled with what the entry launches in these cases, in several processes, and pack it.

    Attributes:
        source_bytes: of the source, UTF-8, in the first descriptor; the second is room for the archive,
            all others are packs of what need not be compiled again.
        budget_s: what is not compiled by then is left out.
        is_timed: what launches a kernel is built as triton builds it.
    """

    source_bytes: int
    filename: str
    entry: str
    arguments: tuple[str, ...]
    part: Part
    budget_s: float
    is_timed: bool = False


@dataclass(frozen=True)
class Precompiled:
    """What there is, is packed."""


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
        function: the one of that machine code that is the kernel, by its symbol; the first where it is not said.
        ptx_offset, ptx_bytes: where its PTX is.
    """

    kernel: str
    uses: tuple[tuple[int, int], ...]
    config: str
    arguments: str
    shared_bytes: int = 0
    offset: int = 0
    bytes: int = 0
    function: str = ""
    ptx_offset: int = 0
    ptx_bytes: int = 0
    fault: Fault | None = None


@dataclass(frozen=True)
class RefusedCall:
    """The call of a case, by number, that ends because the device or its compiler does not take a kernel."""

    case: int
    kernel: str
    fault: Fault


@dataclass(frozen=True)
class Compiled:
    """What the dry calls for one target came to.

    Attributes:
        left_out: launches that were not compiled or not kept.
        fault: what ended the host code of `case`, if anything did; `case` is empty where it did not load.
        refused: calls that would fail on the device, as it would not take a kernel of theirs.
    """

    target: str
    kernels: tuple[ClaimedKernel, ...]
    left_out: int = 0
    fault: Fault | None = None
    case: str = ""
    refused: tuple[RefusedCall, ...] = ()


@dataclass(frozen=True)
class Ended:
    """The process of one target is gone; if it said nothing before, this is all there is. As in `sandbox.Exit`."""

    target: str
    code: int | None = None
    signal: int | None = None


@dataclass(frozen=True)
class Read:
    """Read machine code. The last descriptor is room for text.

    Attributes:
        places: number of the descriptor, offset and size of each.
        functions: which of each machine code's functions it is, as in `ClaimedKernel`.
    """

    places: tuple[tuple[int, int, int], ...]
    functions: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """What stands in one kernel's machine code; names as in `contract.CompiledKernel`.

    Attributes:
        readable: it is what the tools can read.
        shared_bytes: static, beside what the launch asks for.
        text_offset, text_bytes: where its instructions stand as text; no bytes where there was no room.
    """

    readable: bool
    registers: int = 0
    stack_bytes: int = 0
    spills: int = 0
    shared_bytes: int = 0
    wgmma: int = 0
    imma: int = 0
    tcgen05: int = 0
    tma: int = 0
    ldg128: int = 0
    mfma: int = 0
    text_offset: int = 0
    text_bytes: int = 0


@dataclass(frozen=True)
class Readings:
    """In the order of `Read.places`."""

    kernels: tuple[Reading, ...]
