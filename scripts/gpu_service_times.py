"""How long a warm judge on a GPU lane takes for a check and for a measurement: what the queue's arithmetic needs.

python scripts/gpu_service_times.py --lane h200 --out DIR [--times 3] [SLUG …]

One judge process serves all of them, as a worker's does; the first round is thrown away.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder import codec  # noqa: E402
from autograder.assignment import slugs  # noqa: E402
from autograder.contract import GradeRequest, Lane, Language, Mode, Work  # noqa: E402


def main() -> int:
    """Grade every rung's staff kernel in both halves, again and again; print and keep the seconds."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, _judge() as judge:
        for _ in range(options.times + 1):
            for slug in options.slugs or slugs(ROOT / "assignments", options.lane):
                for work in (Work.check, Work.measure):
                    seconds = _seconds(judge, _staged(Path(folder), slug, options.lane, work))
                    found.setdefault(f"{slug} {work}", []).append(seconds)
        _pipe(judge.stdin).close()
        judge.wait(60)
    (options.out / "service_times.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    for name, seconds_of in found.items():
        print(f"{name}: cold {seconds_of[0]:.1f} s, warm median {statistics.median(seconds_of[1:]):.1f} s")
    for work in (Work.check, Work.measure):
        warm = [item for name, each in found.items() if name.endswith(work) for item in each[1:]]
        print(f"{work}: mean of all rungs, warm {statistics.mean(warm):.1f} s")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slugs", nargs="*", metavar="SLUG")
    parser.add_argument("--lane", type=Lane, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--times", type=int, default=3)
    return parser.parse_args()


def _judge() -> subprocess.Popen[str]:
    roots = ["--assignments", str(ROOT / "assignments"), "--reference", str(ROOT / "reference")]
    command = [sys.executable, "-m", "autograder.judge", *roots, "serve"]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _staged(folder: Path, slug: str, lane: Lane, work: Work) -> Path:
    path = ROOT / "reference" / slug / "solutions" / "triton.py"
    source = path.read_text(encoding="utf-8")
    request = GradeRequest(slug, "", Language("triton"), lane, Mode.submission, source, path.name, work)
    (folder / "request.json").write_text(codec.dumps(request), encoding="utf-8")
    return folder


def _seconds(judge: subprocess.Popen[str], folder: Path) -> float:
    """From asking the judge to its result, which has to be a pass."""
    started = time.monotonic()
    asked = _pipe(judge.stdin)
    asked.write(json.dumps({"folder": str(folder)}) + "\n")
    asked.flush()
    for line in _pipe(judge.stdout):
        if (result := json.loads(line)["result"]) is not None:
            if result["verdict"] != "passed":
                raise SystemExit(f"{result['verdict']}: {result['explanation']}")
            return time.monotonic() - started
    raise SystemExit("the judge ended")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise SystemExit("the judge was started without pipes")
    return pipe


if __name__ == "__main__":
    sys.exit(main())
