"""What judge and runner say to each other, over one `SOCK_SEQPACKET` unix socket.

    judge → runner     Load, then Call (with descriptors, at t0), Arm and Reveal, or Pack; end of file
    runner → judge     Ready, Loaded, Returned, Released, Raised; Armed before a batch; Packed

Each packet is one JSON object with its class's name under `"is"` (see `autograder.wire_format`). The judge
treats every packet from a runner as hostile: capped before it is parsed, typed by `autograder.codec`, and worth nothing
by itself. A call is over when the runner's own control word equals the call's nonce; `Returned` only wakes the judge to
look.

Two control words, each in its own sealed memfd, are shared with a runner once, with `Load`:

    judge's word    the nonce of the call the runner may work on; sealed so that only the judge can write it
    runner's word   the nonce of the last call it finished, then its event clock in nanoseconds (a claim)

Standard library only: the runner imports it before it shuts itself in.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from autograder.contract import Frame, Language, Launch

MAX_PACKET = 128 * 1024
"""Bytes of one packet; the judge reads no more and refuses a longer one."""

MAX_DESCRIPTORS = 64
"""That come with one packet; a batch has at most as many calls."""
WORD = struct.Struct("<QQ")
"""A control word: nonce, nanoseconds."""
WORD_BYTES = 4096

ORDERS = 3
"""How blocks and threads take turns in the emulator of CUDA C++, from call to call: forward, reverse, shuffled."""


@dataclass(frozen=True)
class TensorSpec:
    """One tensor inside the descriptor that comes with a `Call`, in the order of `Call.tensors`.

    Attributes:
        bytes: size of the descriptor's memory.
        offset: byte at which the first element lies (after the guard band and the case's own misalignment).
        stride: in elements.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    bytes: int
    writable: bool


@dataclass(frozen=True)
class Function:
    """One of several functions that a source defines; the fields are as in `Load`."""

    name: str
    arguments: tuple[str, ...]
    signatures: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Load:
    """Load this source. Sent with two descriptors: the judge's word and the runner's word; then perhaps with others.

    Attributes:
        source: its text; `""` where it would not fit a packet.
        source_bytes: if not 0, the source is that many bytes of UTF-8 in a third descriptor.
        ghost: replace the submission's own kernels by ones that do nothing (design §6); the host code still runs.
        arguments: the entry's argument names in order, to check its signature.
        signatures: for a language with types, what the arguments are in the cases of the lane, once for each
            combination of dtypes: `input float32`, `output float16`, `scalar float32` or `integer`.
        packs: so many descriptors at the end are what other runners of this source have packed.
        tuned: what other runners found by tuning is taken as well; else the kernels are tuned anew.
        functions: where a call may be of one of several functions, all of them; then there is no `entry`.
        adapter: a source of ours that is executed after the submission's; if it is there, it defines the functions.
    """

    source: str
    filename: str
    language: Language
    entry: str
    arguments: tuple[str, ...]
    ghost: bool = False
    source_bytes: int = 0
    signatures: tuple[tuple[str, ...], ...] = ()
    packs: int = 0
    tuned: bool = False
    functions: tuple[Function, ...] = ()
    adapter: str = ""

    def each(self) -> Iterator[Load]:
        """One for each function that the source has to define, in order, as if it were the only one."""
        alone = Function(self.entry, self.arguments, self.signatures)
        for one in self.functions or (alone,):
            yield replace(self, entry=one.name, arguments=one.arguments, signatures=one.signatures, functions=())


@dataclass(frozen=True)
class Pack:
    """Put what compilers have made of the source into the descriptor that comes with this packet, if it fits.

    The judge never reads it: the next runner of the same source may have it.
    """


@dataclass(frozen=True)
class Call:
    """Call a function once, on tensors whose descriptors come with this packet: nothing of them was reachable before.

    Attributes:
        record: record kernels, library operations and written inputs for `Returned`, after the event clock has stopped
            and before the runner's word is set; a timed call does without.
        trace: list what ran on the device for `Returned`, by its own tracing; such a call is not timed.
        function: which of the source's functions; `""` where it has one.
        count: count what a recorded call does to memory, where the language has something that counts.
    """

    nonce: int
    tensors: tuple[TensorSpec, ...]
    scalars: dict[str, int | float]
    record: bool = True
    trace: bool = False
    function: str = ""
    count: bool = False


@dataclass(frozen=True)
class Arm:
    """Get ready for several calls as one exchange. Comes with one descriptor per *batch buffer* of outputs.

    It is one piece of memory for all inputs, or all outputs, of one call, or of a few short ones together. What
    comes here is no secret: outputs hold nothing yet, and of the inputs only the layout is told.

    Attributes:
        calls: how many.
        tensors: of the first call of a buffer; `bytes` is the buffer's size and `offset` counts from its start. The
            next call's lie `bytes / together` farther on.
        scalars: those that are the same for all calls.
        together: calls of one buffer, a divisor of `calls`.
        function: as in `Call`.
    """

    nonce: int
    calls: int
    tensors: tuple[TensorSpec, ...]
    scalars: dict[str, int | float]
    together: int = 1
    function: str = ""


@dataclass(frozen=True)
class Reveal:
    """Make the calls that were armed for, now. Comes with one descriptor per buffer of inputs.

    Attributes:
        drawn: by call, the scalars that were drawn for it; empty where the assignment has none.
    """

    nonce: int
    drawn: tuple[dict[str, int | float], ...] = ()


@dataclass(frozen=True)
class Ready:
    """The toolchain is imported; `versions` by name."""

    versions: dict[str, str]


@dataclass(frozen=True)
class Loaded:
    """The source was executed and has the entry. `signature` is the entry's own, as text."""

    signature: str


@dataclass(frozen=True)
class Packed:
    """What `Pack` asked for is done, or cannot be."""


@dataclass(frozen=True)
class Armed:
    """Outputs are mapped, room for the inputs is reserved: the runner waits for `Reveal`."""

    nonce: int


@dataclass(frozen=True)
class Ran:
    """What ran on a GPU in a traced call under one name, kernels and copies: how often, and its nanoseconds in all."""

    name: str
    calls: int
    ns: int


@dataclass(frozen=True)
class Returned:
    """The entry returned; what it returned is ignored. Sent after the runner's word was set, to wake the judge.

    It ends a call, or all calls of a batch.

    Attributes:
        launches: kernels launched in a recorded call, at most 64.
        operations: library operations by name and count, at most 64.
        ran: what ran on the device in a traced call, at most 64.
        busy_ns: for how many nanoseconds the device worked on it; what ran side by side counts once.
        waited_for: calls of CUDA in which the device rested, at most 64, with the nanoseconds of rest.
        written: inputs that were written to. The runner has a private copy-on-write view of every input, so a write
            changes nothing for anybody else; whoever denies it has gained nothing.
        counters: what was counted of a call, at most 64.
    """

    nonce: int
    launches: tuple[Launch, ...] = ()
    operations: dict[str, int] = field(default_factory=dict)
    written: tuple[str, ...] = ()
    ran: tuple[Ran, ...] = ()
    busy_ns: int = 0
    waited_for: tuple[Ran, ...] = ()
    counters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Released:
    """The memory of a call or a batch that returned is unmapped; the judge waits for it (`RunnerClient`)."""

    nonce: int


@dataclass(frozen=True)
class Raised:
    """Loading (`nonce` 0) or a call ended in an exception; frames of the student's file only.

    `stage` is `load`, `entry` (missing or with the wrong signature) or `call`, as the runner sees it: the judge
    knows by itself what it waits for.
    """

    nonce: int
    stage: str
    kind: str
    message: str
    frames: tuple[Frame, ...] = ()


FromRunner = Ready | Loaded | Packed | Armed | Returned | Released | Raised
FromJudge = Load | Pack | Call | Arm | Reveal
RUNNER_SAYS = (Ready, Loaded, Packed, Armed, Returned, Released, Raised)
JUDGE_SAYS = (Load, Pack, Call, Arm, Reveal)
