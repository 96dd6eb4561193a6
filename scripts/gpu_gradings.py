"""Grade the staff kernels on a GPU lane by the judge as a process, and print what it took: a table, and raw results.

python scripts/gpu_gradings.py --lane h200 --out DIR [--work check measure] [SLUG …]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder import codec  # noqa: E402
from autograder.assignment import EXTENSIONS, slugs  # noqa: E402
from autograder.contract import GradeRequest, Lane, Language, Mode, Work  # noqa: E402


def main() -> int:
    """Grade, print, keep."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    status = 0
    for slug in options.slugs or slugs(ROOT / "assignments"):
        for work in options.work:
            result, seconds = _graded(slug, options, work)
            (options.out / f"{slug}.{work}.json").write_text(json.dumps(result), encoding="utf-8")
            _show(slug, work, result, seconds)
            status |= result["verdict"] != "passed"
    return status


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slugs", nargs="*", metavar="SLUG")
    parser.add_argument("--lane", type=Lane, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Work, nargs="+", default=[Work.all])
    parser.add_argument("--source", type=Path, help="instead of the staff kernel")
    return parser.parse_args()


def _graded(slug: str, options: argparse.Namespace, work: Work) -> tuple[dict[str, Any], float]:
    """The result of one grading in a process of its own, imports included."""
    path = options.source or ROOT / "reference" / slug / "solutions" / "triton.py"
    source = path.read_text(encoding="utf-8")
    language = next(one for one in Language if path.suffix == f".{EXTENSIONS[one]}")
    request = GradeRequest(slug, "", language, options.lane, Mode.submission, source, path.name, work)
    folder = Path(tempfile.mkdtemp(prefix="gpu-grading-"))
    (folder / "request.json").write_text(codec.dumps(request), encoding="utf-8")
    roots = ["--assignments", str(ROOT / "assignments"), "--reference", str(ROOT / "reference")]
    command = [sys.executable, "-m", "autograder.judge", *roots, "once", str(folder)]
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    shutil.rmtree(folder)
    if done.stderr:
        print(done.stderr[-3000:], file=sys.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["result"]
    return result, seconds


def _show(slug: str, work: Work, result: dict[str, Any], seconds: float) -> None:
    phases = ", ".join(f"{entry['phase']} {entry['seconds']:.1f}" for entry in result["phases"])
    print(f"{slug} {work}: {result['verdict']} in {seconds:.1f} s ({phases})")
    if result["verdict"] != "passed":
        print(f"  {result['explanation']} {result['log'][-1500:]}")
    print(f"  cases {len(result['cases'])}, findings {[found['kind'] for found in result['findings']]}, "
          f"launches {[(one['kernel'], one['calls']) for one in result['launches']]}")  # fmt: skip
    for one in result["measurements"]:
        sealed = sorted(pair["submission_sealed_us"] for pair in one["pairs"])
        bandwidth, rate = one["bytes_moved"] / one["time_us"] / 1e6, one["flops"] / one["time_us"] / 1e6
        print(f"  {one['case']}: {one['time_us']:.1f} µs [{one['time_low_us']:.1f}, {one['time_high_us']:.1f}], ratio "
              f"{one['ratio']:.4f} [{one['ratio_low']:.4f}, {one['ratio_high']:.4f}], {bandwidth:.2f} TB/s, "
              f"{rate:.0f} TFLOP/s, sealed median {sealed[len(sealed) // 2]:.0f} µs, {len(sealed)} pairs")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
