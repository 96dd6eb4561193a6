"""What the Docker sandbox promises on this machine and how long its parts take, as docs/sandbox.md publishes it.

python scripts/docker_figures.py --lane h200 --out FILE [--times 5] [--no-grading]

Needs root, a Docker daemon and the image (`sh scripts/device/docker_up.sh` makes both where there is nothing).
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder import protocol, wire_format  # noqa: E402
from autograder.assignment import Limits  # noqa: E402
from autograder.contract import GradeRequest, Lane, Language, Mode, Work  # noqa: E402
from autograder.errors import HarnessError  # noqa: E402
from autograder.judge import References, grade  # noqa: E402
from autograder.judge.protocol.loading import GPU_HOST_BYTES  # noqa: E402
from autograder.sandbox import Runner, RunnerLimits  # noqa: E402
from autograder.sandbox.docker import DockerConfig, DockerSandbox, load_config  # noqa: E402

_READY_S = 120.0
_FREEZES = 200


def main() -> int:
    """Read, print, keep."""
    options = _options()
    figures: dict[str, Any] = {"command": " ".join(sys.argv), "lane": options.lane, "kernel": platform.release()}
    status = 0
    parts: list[Callable[[argparse.Namespace], dict[str, Any]]] = [_promises, _cold, _warm]
    for part in parts if options.no_grading else [*parts, _gradings]:
        name = part.__name__.strip("_")
        try:
            figures[name] = part(options)
        except (HarnessError, OSError, TypeError, ValueError) as error:
            # One part that fails must not cost what the others read.
            figures[name], status = {"error": f"{type(error).__name__}: {error}"}, 1
        print(name, json.dumps(figures[name], indent=1), flush=True)
        options.out.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return status


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lane", type=Lane, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--no-grading", action="store_true")
    return parser.parse_args()


def _limits(lane: Lane) -> RunnerLimits:
    """Those of a manifest that names none."""
    own = Limits()
    more = 0 if lane is Lane.cpu else GPU_HOST_BYTES
    return RunnerLimits(own.memory_mib * 2**20 + more, own.processes, own.output_kib * 2**10, own.tmp_mib * 2**20)


def _promises(_: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    sandbox = DockerSandbox(_config(pool=0))
    seconds = time.monotonic() - began
    sandbox.close()
    return {"kept": sorted(sandbox.promises), "facts": sandbox.facts, "seconds": seconds}


def _config(*, pool: int) -> DockerConfig:
    found = load_config()
    return DockerConfig(**{**vars(found), "pool": pool})


def _cold(options: argparse.Namespace) -> dict[str, Any]:
    """Nobody waits: from the asking for a runner to its being ready, its GPU's context included."""
    sandbox = DockerSandbox(_config(pool=0))
    try:
        return _starts(sandbox, options, pause=lambda: None)
    finally:
        sandbox.close()


def _warm(options: argparse.Namespace) -> dict[str, Any]:
    """One waits with its imports done; and how long freezing, thawing and removing take."""
    sandbox = DockerSandbox(_config(pool=1))
    try:
        sandbox.start(_limits(options.lane), Language("triton"), options.lane).close()
        return _starts(sandbox, options, pause=lambda: _until(lambda: bool(sandbox.waiting())))
    finally:
        sandbox.close()


def _starts(sandbox: DockerSandbox, options: argparse.Namespace, pause: Callable[[], None]) -> dict[str, Any]:
    started, ready, closed = [], [], []
    frozen: list[float] = []
    thawed: list[float] = []
    for _ in range(options.times):
        pause()
        began = time.monotonic()
        runner = sandbox.start(_limits(options.lane), Language("triton"), options.lane)
        started.append(time.monotonic() - began)
        _wait_until_ready(runner)
        ready.append(time.monotonic() - began)
        _freeze_often(runner, frozen, thawed)
        began = time.monotonic()
        runner.close()
        closed.append(time.monotonic() - began)
    return {
        "start_s": _spread(started),
        "ready_s": _spread(ready),
        "close_s": _spread(closed),
        "freeze_us": _spread([1e6 * one for one in frozen]),
        "thaw_us": _spread([1e6 * one for one in thawed]),
    }


def _freeze_often(runner: Runner, frozen: list[float], thawed: list[float]) -> None:
    """A frozen runner cannot come to rest in between: it waits for the judge in a system call."""
    for _ in range(_FREEZES):
        first = time.monotonic()
        runner.freeze()
        second = time.monotonic()
        runner.thaw()
        frozen.append(second - first)
        thawed.append(time.monotonic() - second)


def _wait_until_ready(runner: Runner) -> None:
    runner.channel.settimeout(_READY_S)
    said = wire_format.decode(runner.channel.recv(protocol.MAX_PACKET), *protocol.RUNNER_SAYS)
    if not isinstance(said, protocol.Ready):
        raise TypeError(f"the runner said {said}; it printed {runner.log()}")


def _until(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _READY_S
    while not look() and time.monotonic() < deadline:
        time.sleep(0.02)


def _gradings(options: argparse.Namespace) -> dict[str, Any]:
    """The staff's vector add, graded as a submission: in a judge that has graded nothing yet, and then again."""
    sandbox = DockerSandbox(_config(pool=2))
    references = References(sandbox)
    source = (ROOT / "reference/vector_add/solutions/triton.py").read_text(encoding="utf-8")
    found = {}
    try:
        for work in (Work.check, Work.check, Work.measure, Work.measure):
            request = GradeRequest(
                "vector_add", "", Language("triton"), options.lane, Mode.submission, source, "vector_add.py", work
            )
            began = time.monotonic()
            result = grade(
                request,
                assignment_folder=ROOT / "assignments/vector_add",
                reference_folder=ROOT / "reference/vector_add",
                sandbox=sandbox,
                references=references,
            )
            found[f"{work} {'again' if str(work) in found else ''}".strip()] = {
                "verdict": result.verdict,
                "seconds": time.monotonic() - began,
                "explanation": result.explanation,
                "phases": [(one.phase, round(one.seconds, 3)) for one in result.phases],
                "ratios": [(one.case, one.ratio, one.time_us) for one in result.measurements],
            }
    finally:
        references.close()
        sandbox.close()
    return found


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values), "count": len(values)}


if __name__ == "__main__":
    sys.exit(main())
