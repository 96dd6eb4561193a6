"""A harness as one would write it first: everything in one process, and what that process says is believed.

It is here for the bite tests. What stops many of the files in this folder is not a check that could be switched off but
where the judge lives: outside the submission's process, with its own buffers. This harness has that one thing removed. It
imports the submission beside the oracle, believes what is returned, compares with the submission's own torch, takes the
first line that looks like a verdict, or an exit status of 0 for want of one, and waits for the process to end.

    python naive.py < one line of JSON per file: [problem.py, submission.py, size]    > one line of JSON: how it ended

It imports torch and triton once and forks for every file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
import triton  # noqa: F401 -- once, before the forks.

HANGS_S = 20.0
"""Three files are meant to; on a busy machine others have needed more than 6 s."""


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


def serve():
    """Fork for every line; in the child, return what it is to judge, so that its end is the interpreter's own."""
    for line in sys.stdin:
        problem, submission, size = json.loads(line)
        child = os.fork()
        if not child:
            become_a_harness(os.path.dirname(submission))
            return problem, submission, size
        print(json.dumps(ending(child)), flush=True)
    return None


def become_a_harness(folder):
    os.setsid()
    os.chdir(folder)
    os.environ["TMPDIR"] = os.environ["HOME"] = folder
    for stream, place in ((1, "printed"), (2, "complained")):
        os.dup2(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600), stream)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)


def ending(child):
    """The exit status, negative for a signal; `None` if it had to be killed."""
    deadline = time.monotonic() + HANGS_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@dataclass(frozen=True)
class Outcome:
    """What became of it: a verdict, or `dies`, or `hangs`; its time; whether something was looted."""

    verdict: str
    microseconds: float = -1.0
    loot: bool = False


class Naive:
    """The process that forks. Nothing shuts its children in: only for files that reach for no machine."""

    def __init__(self) -> None:
        environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-B", __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
        )

    def judged(self, problem: Path, submission: Path, size: int) -> Outcome:
        """Judge a file in the folder that it is in."""
        self._process.stdin.write(json.dumps([str(problem), str(submission), size]) + "\n")
        status = json.loads(self._process.stdout.readline())
        if status is None:
            return Outcome("hangs")
        return _believed((submission.parent / "printed").read_text(errors="replace"), status)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _believed(text: str, status: int) -> Outcome:
    for line in text.splitlines():
        with suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and "verdict" in said:
                return Outcome(said["verdict"], said.get("microseconds", -1.0), "LOOT" in text)
    return Outcome("dies" if status else "passed", loot="LOOT" in text)


if __name__ == "__main__" and (given := serve()):
    main(*given)
