"""A harness for GPU kernels as one would write it first: in the submission's process, on the same tensors, by torch's events.

It is here for the bite tests: what stops some files of this folder is not a check but where the judge lives. It draws inputs once
from a known seed, computes the answer first, calls eleven times, times ten of them by events whose methods it looks up when it
needs them, and compares once at the end, loosely.

    python naive.py PROBLEM SUBMISSION SIZE    > one line of JSON
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 90.0
CALLS = 10
MOST = 0.98
"""Of the elements: some harnesses let a few be wrong."""


@dataclass(frozen=True)
class Outcome:
    """What it says: a verdict or `dies`; its time and that of an honest kernel; what went wrong."""

    verdict: str
    microseconds: float = -1.0
    honest_us: float = 0.0
    said: str = ""


def judged(problem: Path, source: str, size: int) -> Outcome:
    """Judge one source in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        submission = Path(folder, "submission.py")
        submission.write_text(source, encoding="utf-8")
        command = [sys.executable, "-B", __file__, str(problem), str(submission), str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith('{"verdict"'):
            return Outcome(**json.loads(line))
    return Outcome("dies", said=done.stderr[-300:])


def _load(name: str, path: str):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _timed(call) -> float:
    import torch

    samples = []
    for _ in range(CALLS):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        samples.append(first.elapsed_time(last) * 1e3)
    return statistics.median(samples)


def _main(problem_path: str, submission_path: str, size: str) -> None:
    import torch

    problem, n = _load("problem", problem_path), int(size)
    generator = torch.Generator("cuda").manual_seed(0)
    inputs = problem.make_inputs(generator=generator, dtype=torch.float32, distribution="decades", n=n)
    answer = problem.expected(**inputs)["out"].float()
    out = torch.zeros_like(answer)
    torch.add(*inputs.values(), out=out)
    honest_us = _timed(lambda: torch.add(*inputs.values(), out=out))
    out.zero_()
    submission = _load("submission", submission_path)
    submission.vector_add(*inputs.values(), out, n)
    microseconds = _timed(lambda: submission.vector_add(*inputs.values(), out, n))
    torch.cuda.synchronize()
    submission.vector_add(*inputs.values(), out, n) if CALLS % 2 == 0 else None
    close = (out - answer).abs() <= 1e-2 + 2e-2 * answer.abs()
    passed = float(close.float().mean()) > MOST
    verdict = "passed" if passed else "wrong_answer"
    print(json.dumps({"verdict": verdict, "microseconds": microseconds, "honest_us": honest_us}), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
