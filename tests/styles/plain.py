"""A plain measurement, apart from the judge's: one process, K calls on K distinct inputs, both sides in turn.

python -m tests.styles.plain RUNG FILE --lane h100 [--rest-ms 5]

Before every call the L2 cache is flushed, two events lie around it, and nobody waits but the call itself. A turn
begins with work for the device, so that what the host does before a launch is not in the first calls' times. A side's
time is the median over its calls; the ratio is that of the two medians. Prints one JSON object by ranked case.

With --rest-ms the device rests before every call: a card that works without a pause may lower its clock.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from autograder.assignment import EXTENSIONS, Assignment, Case, load_assignment
from autograder.contract import Lane, Language
from autograder.judge.correctness.problem import load_problem
from autograder.judge.correctness.seeds import fresh_seed
from autograder.judge.protocol.loading import load_of
from autograder.runner.languages.cuda_gpu import CudaGpuLoader

ROOT = Path(__file__).parents[2]
ROUNDS = 6
"""Turns of each side."""
MOST_CALLS = 16
"""Of a side in one turn."""
MEMORY_SHARE = 0.4
"""Of the device, for inputs and outputs."""
LONGEST_MS = 400.0
"""Of one side's turn: slow programs are called less often."""
FLUSHED_BYTES = 2**28
HEAD_START = 20
"""Flushes before a turn, about 2 ms of the device's time: a launch from Python takes some tens of microseconds."""

Call = Callable[[list[Any]], object]


def main() -> None:
    """Measure every ranked case of a rung."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rung")
    parser.add_argument("file", type=Path)
    parser.add_argument("--lane", type=Lane, required=True)
    parser.add_argument("--rest-ms", type=float, default=0.0)
    options = parser.parse_args()
    assignment = load_assignment(ROOT / "assignments" / options.rung)
    if not assignment.entry:
        raise SystemExit(f"{options.rung} has several functions, which the judge alone measures")
    language = Language("cuda") if options.file.suffix == ".cu" else Language("triton")
    solution = ROOT / "reference" / options.rung / "solutions" / f"{language}.{EXTENSIONS[language]}"
    ours, theirs = (loaded(assignment, language, path, options.lane) for path in (options.file, solution))
    for case in (case for case in assignment.cases_for(options.lane) if case.ranked):
        print(json.dumps({"case": case.name, **ratio(assignment, case, ours, theirs, options.rest_ms)}), flush=True)


def loaded(assignment: Assignment, language: Language, path: Path, lane: Lane) -> Call:
    """The entry of a file, to be called with a list of arguments."""
    source = path.read_text(encoding="utf-8")
    if language is Language("cuda"):
        loader = CudaGpuLoader()
        loader.warm()
        loader.begin()
        folder = tempfile.mkdtemp(prefix="plain-")
        loader.made = lambda: Path(folder)  # type: ignore[method-assign]
        entry = loader.load(load_of(assignment, language, source, path.name, lane=lane))[assignment.entry]
        return lambda arguments: entry._library.call(entry._words.of(arguments))
    spec = importlib.util.spec_from_file_location(f"plain_{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return lambda arguments: getattr(module, assignment.entry)(*arguments)


def ratio(assignment: Assignment, case: Case, ours: Call, theirs: Call, rest_ms: float = 0.0) -> dict[str, Any]:
    """Medians of both sides in µs, and their ratio."""
    flushed = torch.empty(FLUSHED_BYTES // 4, dtype=torch.int32, device="cuda")
    sets = [arguments(assignment, case)]
    size = sum(one.numel() * one.element_size() for one in sets[0] if isinstance(one, torch.Tensor))
    for side in (ours, theirs):
        _times(side, sets, flushed)  # What is compiled or tuned at a first call.
    warm_ms = max(_times(side, sets, flushed)[-1] for side in (ours, theirs))
    room = MEMORY_SHARE * torch.cuda.get_device_properties(0).total_memory
    calls = int(max(2, min(MOST_CALLS, room // max(size, 1), LONGEST_MS // warm_ms)))
    sets += [arguments(assignment, case) for _ in range(calls - 1)]
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for turn in range(ROUNDS):
        for name, side in sorted({"ours": ours, "theirs": theirs}.items(), reverse=bool(turn % 2)):
            times[name] += _times(side, sets, flushed, rest_ms)
    ours_ms, theirs_ms = (statistics.median(times[name]) for name in ("ours", "theirs"))
    return {"ours_us": 1e3 * ours_ms, "theirs_us": 1e3 * theirs_ms, "ratio": ours_ms / theirs_ms, "calls": calls}


def _times(side: Call, sets: list[list[Any]], flushed: torch.Tensor, rest_ms: float = 0.0) -> list[float]:
    """Milliseconds of each call."""
    marks = []
    for number, one in enumerate(sets):
        if rest_ms or not number:
            torch.cuda.synchronize()
            time.sleep(rest_ms / 1e3)
            for _ in range(HEAD_START):
                flushed.zero_()
        flushed.zero_()
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        side(one)
        after.record()
        marks.append((before, after))
    torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in marks]


def arguments(assignment: Assignment, case: Case) -> list[Any]:
    """What the entry is called with: contiguous tensors on fresh inputs, poisoned outputs, sizes, strides, scalars."""
    problem = load_problem(assignment, ROOT / "assignments" / assignment.slug)
    values: dict[str, Any] = dict(problem.inputs(case, fresh_seed(), torch.device("cuda")))
    for one in assignment.outputs:
        dtype = getattr(torch, assignment.dtype_of(one, case))
        made = torch.empty(assignment.shape_of(one, case), dtype=dtype, device="cuda")
        values[one.name] = made.fill_(float("nan") if dtype.is_floating_point else 85)
    for one in assignment.arguments:
        if one.role == "size":
            values[one.name] = case.size[one.name]
        elif one.role == "stride":
            values[one.name] = values[one.of].stride(one.dim)
        elif one.role == "scalar":
            values[one.name] = values[one.name].item()
    return [values[one.name] for one in assignment.arguments]


if __name__ == "__main__":
    main()
