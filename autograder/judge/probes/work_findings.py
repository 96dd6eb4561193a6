"""Was it the student's kernel that did the work? Findings for staff, never a verdict.

Three looks, each at what another may miss:

    record      launches and library operations, as the language's and torch's own hooks see them: a claim
    trace       kernels that ran on the GPU, as its tracing sees them, whoever launched them, by name and by their share
                of its time: a claim
    replay      in a fresh runner the student's own kernels are replaced by ones that do nothing; what is right all the
                same, something else did (`unaided`). That it is right is no claim; that all kernels were replaced is

From outside of the runner's process none of the first two can be had: the driver tells another process how busy a GPU
is and who holds memory, not what runs.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from autograder.assignment import Assignment
from autograder.contract import DeviceKernel, Finding, FindingKind, Launch, Measurement
from autograder.judge.correctness.checker import CallResult
from autograder.judge.protocol.failure import clean
from autograder.judge.protocol.runner_client import MAX_NAMES, CallReply

MAX_NAME = 120
MAX_GRID = 3
MAX_KERNEL = 200
MAX_SHOWN = 12
"""Of the device's kernels in a finding's evidence."""

LIBRARIES = re.compile(
    r"cutlass|cublas|cudnn|nvjet_|\bgeam_kernel|gemv\w*_kernel|splitKreduce|flash_fwd|fmha_|"
    r"\b(?:sm\d+|volta|turing|ampere|ada|hopper|blackwell)_\w*(?:gemm|conv|fprop|xmma)|"
    r"\btriton_(?:poi|red|per|tem|mm)_"
)
"""How the kernels of cuBLAS, CUTLASS, cuDNN and FlashAttention, and those that torch's compiler makes, are called."""

MAX_UNAIDED_SHARE = 0.1
"""Of the elements of a replayed case that take work, the share that may be right though no kernel did anything."""

MAX_OTHER_SHARE = 0.25
"""Of the device's time in traced calls, the share that kernels of others and copies from and to the host may have.

Of 36 honest programs that fill, cast, or finish a sum on the host, none had more than 0.02 (H100, docs/gpu.md)."""
OTHERS = re.compile(r"^(?:void )?(?:at|c10)::")
"""Torch's own kernels are never a student's, whatever a student's kernel is called."""
FILLS_AND_COPIES = re.compile(r"FillFunctor|copy_kernel|CatArrayBatchedCopy|^Memset|^Memcpy DtoD|^Memcpy PtoP")
"""What prepares memory and what changes its type: an honest file may do that by torch."""

MAX_COUNT = 10**9
"""Where counting ends: a runner claims what it likes, and a sum of claims has to fit a message."""


@dataclass
class WorkRecord:
    """What the runner said it launched and called, over all public cases."""

    launches: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)

    def add(self, checked: CallResult) -> None:
        """Add one case's record."""
        if checked.finished is None:
            return
        for launch in checked.finished.launches:
            key = (clean(launch.kernel, MAX_NAME), launch.grid[:MAX_GRID])
            self.launches[key] = _sum(self.launches.get(key, 0), launch.calls)
        for said, count in checked.finished.operations.items():
            name = clean(said, MAX_NAME)
            self.operations[name] = _sum(self.operations.get(name, 0), count)

    def as_launches(self) -> tuple[Launch, ...]:
        """The launches, most frequent kernels first."""
        ordered = sorted(self.launches.items(), key=lambda item: -item[1])[:MAX_NAMES]
        return tuple(Launch(kernel, grid, calls) for (kernel, grid), calls in ordered)


def _sum(counted: int, claimed: int) -> int:
    return min(counted + max(claimed, 0), MAX_COUNT)


def device_kernels(record: WorkRecord, traced: Iterable[CallReply]) -> tuple[DeviceKernel, ...]:
    """What ran on the device in traced calls, most of its time first."""
    calls: dict[str, int] = {}
    spent: dict[str, int] = {}
    for one in (ran for finished in traced for ran in finished.ran):
        name = clean(one.name, MAX_KERNEL)
        calls[name] = _sum(calls.get(name, 0), one.calls)
        spent[name] = _sum(spent.get(name, 0), one.ns)
    total = sum(spent.values()) or 1
    own = {kernel for kernel, _ in record.launches}
    ordered = sorted(calls, key=lambda name: -spent[name])[:MAX_NAMES]
    return tuple(DeviceKernel(name, calls[name], spent[name] / total, _is_own(name, own)) for name in ordered)


def _is_own(name: str, own: Container[str]) -> bool:
    """Whether a kernel on the device is one that the student's code launched, as the record names those."""
    return name in own or (base_name(name) in own and not OTHERS.search(name))


def base_name(signature: str) -> str:
    """`add` of `void (anonymous namespace)::add<float>(float const*)`; any other name as it is."""
    name = signature.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", name, maxsplit=1)[0].rpartition("::")[2]


def library_kernels(listed: Iterable[str], kernels: Iterable[DeviceKernel]) -> list[str]:
    """Kernels of a library's that ran, with their share: those that everybody knows, and those that a rung lists."""
    words = tuple(listed)
    return [
        f"{kernel.name} ({kernel.share:.0%})"
        for kernel in kernels
        if not kernel.own and (LIBRARIES.search(kernel.name) or any(word in kernel.name for word in words))
    ]


MAX_TRACED_TO_TIMED = 1.25
"""How much longer the device may work in a traced call than a timed one took from end to end; an honest one works less
than that (1.01 times as long at most on an H200)."""
_MIN_US = 10.0
"""Of what a traced call may take longer whatever the ratio: a first launch after tracing was switched on."""


def timed_work_differs(found: Measurement) -> Finding | None:
    """Whether the timed calls of a case can have been the work that was traced after them."""
    if found.traced_us <= MAX_TRACED_TO_TIMED * found.time_us + _MIN_US:
        return None
    summary = "The device worked longer in the inspected call than the timed calls took: they did other work."
    evidence = {"case": found.case, "timed": f"{found.time_us:.1f} µs", "traced": f"{found.traced_us:.1f} µs"}
    return Finding(FindingKind.timed_otherwise, summary, evidence)


def of_timed_calls(
    assignment: Assignment, record: WorkRecord, kernels: Sequence[DeviceKernel], failed: str
) -> tuple[Finding, ...]:
    """What staff should look at, by calls after the timed ones; `failed` says why there were no more of them."""
    seen = record.launches or record.operations or not failed
    found = findings(assignment, record, {}, complete=True, kernels=kernels) if seen else ()
    if failed:
        summary = "A call after the timed ones, made to see what does the work, gave a wrong result."
        found += (Finding(FindingKind.no_replay, summary, {"what it showed": failed}),)
    return found


def findings(
    assignment: Assignment,
    record: WorkRecord,
    replays: Mapping[str, CallResult],
    *,
    complete: bool,
    kernels: Sequence[DeviceKernel] = (),
) -> tuple[Finding, ...]:
    """What staff should look at; `replays` are the replayed cases by name, all of them if `complete`."""
    found = [*_own_work(record, replays, complete=complete, kernels=kernels)]
    used = exercise_operations(assignment.library_operations, record.operations)
    used += library_kernels(assignment.library_kernels, kernels)
    if used:
        summary = f"Library operations that do the exercise's work ran: {', '.join(used)}."
        found.append(Finding(FindingKind.library_call, summary, _evidence(record, _right(replays), kernels)))
    elif other := other_kernels(kernels):
        found.append(other)
    return tuple(found)


def other_kernels(kernels: Iterable[DeviceKernel]) -> Finding | None:
    """Whether the device worked in traced calls for more than a quarter on what no kernel of the student's did."""
    others = [one for one in kernels if not one.own and not FILLS_AND_COPIES.search(one.name)]
    share = sum(one.share for one in others)
    if share <= MAX_OTHER_SHARE:
        return None
    summary = f"{share:.0%} of the device's time went to work other than the student's kernels."
    return Finding(FindingKind.other_kernels, summary, {"on the device": _on_the_device(others)})


def _own_work(
    record: WorkRecord, replays: Mapping[str, CallResult], *, complete: bool, kernels: Sequence[DeviceKernel]
) -> Iterator[Finding]:
    """Whether kernels of the student's ran, and whether they did anything."""
    right = _right(replays)
    evidence = _evidence(record, right, kernels)
    if not record.launches:
        yield Finding(FindingKind.no_kernel, "No kernel of the student's was launched.", evidence)
    elif right:
        summary = f"Up to {max(right.values()):.0%} of the output is right though the student's kernels did nothing."
        yield Finding(FindingKind.decoration, summary, evidence)
    elif not complete:
        summary = "The replay without the student's kernels ended early, so it does not tell what did the work."
        yield Finding(FindingKind.no_replay, summary, evidence)


def _right(replays: Mapping[str, CallResult]) -> dict[str, float]:
    """The cases of which more was right than an honest file leaves right, each with its share."""
    return {name: checked.unaided for name, checked in replays.items() if checked.unaided > MAX_UNAIDED_SHARE}


def exercise_operations(listed: Iterable[str], operations: Mapping[str, int]) -> list[str]:
    """Which of the operations that ran are listed, with or without their overload: `aten.add` lists `aten.add.out`."""
    names = set(listed)
    return sorted(name for name in operations if name in names or ".".join(name.split(".")[:2]) in names)


def _evidence(record: WorkRecord, right: Mapping[str, float], kernels: Sequence[DeviceKernel] = ()) -> dict[str, str]:
    launches = ", ".join(f"{kernel} × {calls}" for (kernel, _), calls in record.launches.items())
    operations = ", ".join(f"{name} × {count}" for name, count in sorted(record.operations.items()))
    return {
        "launches": launches or "none",
        "operations": operations or "none",
        "right without the kernels": ", ".join(f"{name} ({share:.0%})" for name, share in right.items()) or "none",
        **({"on the device": _on_the_device(kernels)} if kernels else {}),
    }


def _on_the_device(kernels: Sequence[DeviceKernel]) -> str:
    """The kernels that took most of the time, each with its share."""
    return ", ".join(f"{one.name} × {one.calls} ({one.share:.0%})" for one in kernels[:MAX_SHOWN])
