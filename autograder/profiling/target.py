"""The program that is traced, and that a tool runs: one call of the submission, after two that compile and tune.

    call("trace", …)                               list what the call ran, in FOLDER/trace
    python -m autograder.runner profile FOLDER     mark the call for the profiler that started this
    python -m autograder.runner sanitize FOLDER    make the call alone, for the sanitizer that started this

FOLDER has `job.json`, `source` and a file for each input. A call that does not return leaves `error.json`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder import codec
from autograder.contract import Lane
from autograder.profiles import MOST_SPANS
from autograder.profiling.asking import Ask
from autograder.protocol import Load, TensorSpec
from autograder.runner import languages, report
from autograder.runner.trace import Tracer, TracerError

MOST_KERNELS = 32
LEAST_HOST_NS = 1000
"""A shorter call on the host costs nothing and is not listed."""
_REHEARSALS = 2
FAILED = 3
"""Exit status where the submission did not do what it should; 4 where nothing could be traced."""
NO_TRACE = 4
_ALIGNED = 256
"""Bytes by which the driver aligns an allocation."""
Look = Callable[[Any, list[Any]], None]
"""Calls a loaded entry with its arguments."""


def main(how: str, folder: Path) -> int:
    """Import the toolchain, and make the call for the tool that started this; the exit status.

    Args:
        how: `profile` or `sanitize`.
    """
    ask = codec.loads(Ask, (folder / "job.json").read_bytes())
    loader = languages.get(ask.language, ask.lane)
    loader.warm()
    return call(how, folder, loader)


def call(how: str, folder: Path, loader: languages.Loader) -> int:
    """Make the call with a warm loader; the exit status."""
    ask = codec.loads(Ask, (folder / "job.json").read_bytes())
    loader.begin()
    # Before the submission is loaded: it may patch what this is made of.
    look = _LOOKS[how](folder)
    where = "cpu" if ask.lane is Lane.cpu else "cuda"
    exact = bool(ask.sanitize)
    values: dict[str, Any] = {spec.name: tensor_of(spec, folder, where, exact=exact) for spec in ask.tensors}
    values |= ask.scalars
    arguments = [values[name] for name in ask.arguments]
    try:
        entry = loader.load(_load(ask, folder))[ask.entry]
        look(entry, arguments)
    except TracerError as error:
        print(error, file=sys.stderr)  # noqa: T201 -- the runner's log.
        return NO_TRACE
    except BaseException as error:  # noqa: BLE001 -- the untrusted call: SystemExit and KeyboardInterrupt too.
        told = report.describe(error, ask.filename, loader.wrappers)
        stage = error.stage if isinstance(error, report.SubmissionError) else "call"
        (folder / "error.json").write_text(json.dumps({"nonce": 0, "stage": stage, **told}), encoding="utf-8")
        return FAILED
    return 0


def _load(ask: Ask, folder: Path) -> Load:
    return Load(
        source=(folder / "source").read_text(encoding="utf-8"), filename=ask.filename, language=ask.language,
        entry=ask.entry, arguments=ask.arguments, signatures=ask.signatures, tuned=True, adapter=ask.adapter,
    )  # fmt: skip


def tensor_of(spec: TensorSpec, folder: Path, where: str, *, exact: bool) -> Any:
    """An input as the judge drew it, or an output of zeros, on the device, with its case's strides and alignment.

    Args:
        exact: in memory that ends with its last element, and begins with its first where that is aligned; else with
            what the judge leaves around a tensor.
    """
    import torch  # noqa: PLC0415 -- the loader has imported it.

    dtype = getattr(torch, spec.dtype)
    begin, end = 0, spec.bytes
    if exact:
        elements = 1 + sum((size - 1) * stride for size, stride in zip(spec.shape, spec.stride, strict=True))
        begin = spec.offset - spec.offset % _ALIGNED
        end = spec.offset + (elements if 0 not in spec.shape else 0) * dtype.itemsize
    if spec.writable:
        whole = torch.zeros(end - begin, dtype=torch.uint8, device=where)
    else:
        read = torch.from_file(str(folder / spec.name), shared=False, size=spec.bytes, dtype=torch.uint8)
        whole = read[begin:end].to(where, copy=True)
    return whole.view(dtype).as_strided(spec.shape, spec.stride, (spec.offset - begin) // dtype.itemsize)


def _tracing(folder: Path) -> Look:
    """A traced call, after two that compile and tune."""
    import torch  # noqa: PLC0415 -- as above.

    tracer, wait = Tracer(), torch.cuda.synchronize

    def look(entry: Any, arguments: list[Any]) -> None:
        _rehearse(entry, arguments)
        times = _Times()
        tracer.traced(lambda: entry.batch(_twice(arguments, tracer, times, wait)), [])
        said = traced(*tracer.listed(), times, tracer.readable)
        (folder / "trace").write_text(json.dumps(said), encoding="utf-8")

    return look


def _marking(_folder: Path) -> Look:
    """A call between the marks that a profiler looks for, after two that compile and tune."""
    import torch  # noqa: PLC0415 -- as above.

    runtime, wait = torch.cuda.cudart(), torch.cuda.synchronize  # type: ignore[no-untyped-call]
    start, stop = runtime.cudaProfilerStart, runtime.cudaProfilerStop

    def look(entry: Any, arguments: list[Any]) -> None:
        _rehearse(entry, arguments)
        wait()
        start()
        entry.batch(iter([arguments]))
        wait()
        stop()

    return look


def _calling(_folder: Path) -> Look:
    """One call, every launch of which a sanitizer sees."""
    import torch  # noqa: PLC0415 -- as above.

    wait = torch.cuda.synchronize

    def look(entry: Any, arguments: list[Any]) -> None:
        entry.batch(iter([arguments]))
        wait()

    return look


def _rehearse(entry: Any, arguments: list[Any]) -> None:
    for _ in range(_REHEARSALS):
        entry.batch(iter([arguments]))


_LOOKS: Mapping[str, Callable[[Path], Look]] = {"trace": _tracing, "profile": _marking, "sanitize": _calling}


@dataclass
class _Times:
    """When the traced call began, and when the host was done with it."""

    begin_ns: int = 0
    end_ns: int = 0


def _twice(arguments: list[Any], tracer: Tracer, times: _Times, wait: Callable[[], object]) -> Iterator[list[Any]]:
    """Two calls of a batch, of which the second counts: a tracer makes the first one slower."""
    yield arguments
    wait()
    times.begin_ns = tracer.now_ns()
    yield arguments
    times.end_ns = tracer.now_ns()


def traced(
    device: Iterable[tuple[str, str, int, int]],
    host: Iterable[tuple[str, int, int]],
    times: _Times,
    readable: Callable[[str], str] = str,
) -> dict[str, Any]:
    """`asking.Traced` of what ran from the call's beginning on.

    Args:
        device: kind, name, start and end of what ran on the device, in nanoseconds.
        host: the same of calls on the host; those below `LEAST_HOST_NS` are left out, and those after the call's end.
    """
    begin = times.begin_ns
    ours = [row for row in device if row[2] >= begin]
    calls = [
        ("host", name, start, stop)
        for name, start, stop in host
        if begin <= start < times.end_ns and stop - start >= LEAST_HOST_NS
    ]
    end = max([times.end_ns, *(stop for *_, stop in ours)])
    ns: Counter[str] = Counter()
    launches: Counter[str] = Counter()
    busy = until = 0
    for kind, name, start, stop in sorted(ours, key=lambda row: row[2]):
        busy += max(0, stop - max(start, until))
        until = max(until, stop)
        if kind == "kernel":
            ns[name] += max(0, stop - start)
            launches[name] += 1
    rows = sorted([*ours, *calls], key=lambda row: row[2])
    return {
        "kernels": [
            {"name": name, "shown": readable(name), "calls": launches[name], "ns": total}
            for name, total in ns.most_common(MOST_KERNELS)
        ],
        "spans": [[kind, readable(name), start - begin, stop - begin] for kind, name, start, stop in rows[:MOST_SPANS]],
        "call_ns": end - begin,
        "busy_ns": busy,
        "left_out": max(0, len(rows) - MOST_SPANS),
    }  # fmt: skip
