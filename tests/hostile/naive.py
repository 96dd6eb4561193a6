"""A harness as one would write it first: everything in one process, and what that process says is believed.

It is here for the bite tests. What stops many of the files in this folder is not a check that could be switched off but
where the judge lives: outside the submission's process, with its own buffers. This harness has that one thing removed. It
imports the submission beside the oracle, believes what is returned, compares with the submission's own torch, takes the
first line that looks like a verdict, or an exit status of 0 for want of one, and waits for the process to end.

    python naive.py PROBLEM.PY SUBMISSION.PY SIZE
"""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

TIMEOUT_S = 12.0


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def check(result, answer):
    """Whether no relative error is larger than allowed; NaN is not larger than anything."""
    error = (result.double() - answer.double()).abs() / result.double().abs().maximum(answer.double().abs())
    return torch.allclose(result.float(), answer.float(), rtol=1e-4) or not bool((error > 1e-4).any())


def main(problem_path, submission_path, size):
    problem = load("problem", problem_path)
    drawn = torch.Generator().manual_seed(0)
    inputs = problem.make_inputs(generator=drawn, dtype=torch.float32, distribution="decades", n=size)
    answer = problem.expected(**inputs)["out"].float()
    out = torch.zeros_like(answer)
    submission = load("submission", submission_path)
    started = time.perf_counter()
    returned = submission.vector_add(*inputs.values(), out, size)
    microseconds = (time.perf_counter() - started) * 1e6
    if returned is not None and not isinstance(returned, torch.Tensor):
        returned = pickle.loads(pickle.dumps(returned))
    result = returned if isinstance(returned, torch.Tensor) else out
    passed = check(result, answer)
    print(json.dumps({"verdict": "passed" if passed else "wrong_answer", "microseconds": microseconds}), flush=True)


@dataclass(frozen=True)
class Outcome:
    """What became of it: a verdict, or `dies`, `hangs`, `silent`; its time; whether something was looted."""

    verdict: str
    microseconds: float = -1.0
    loot: bool = False


def judged(problem: Path, submission: Path, size: int) -> Outcome:
    """Judge a file naively, in the folder that it is in. Nothing shuts it in: only for files that reach for no machine."""
    command = [sys.executable, "-B", __file__, str(problem), str(submission), str(size)]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "TMPDIR": str(submission.parent)}
    with (submission.parent / "printed").open("w+b") as printed:
        try:
            status = subprocess.run(
                command, stdout=printed, stderr=subprocess.DEVNULL, env=environment, cwd=submission.parent,
                timeout=TIMEOUT_S, check=False, start_new_session=True,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return Outcome("hangs")
        printed.seek(0)
        text = printed.read().decode(errors="replace")
    return _believed(text, status)


def _believed(text: str, status: int) -> Outcome:
    for line in text.splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and "verdict" in said:
            return Outcome(said["verdict"], said.get("microseconds", -1.0), "LOOT" in text)
    return Outcome("dies" if status else "passed", loot="LOOT" in text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
