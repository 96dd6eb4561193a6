"""Profile or sanitize programs on a GPU lane by the judge as a process: what it took and showed, and the raw results.

python scripts/gpu_profiles.py --lane h200 --out DIR [--sanitize] SLUG:FILE …
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

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder import codec  # noqa: E402
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Work  # noqa: E402
from autograder.languages import ALL  # noqa: E402
from autograder.profiles import REPORT, Figure  # noqa: E402
from autograder.profiling import able, ncu  # noqa: E402

HAND_S = 60.0
SHOWN = (Figure.duration_us, Figure.compute_percent, Figure.memory_percent, Figure.occupancy_percent, Figure.registers)


def main() -> int:
    """Profile, print, keep."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    tool = able.find_tool()
    print(f"tool {tool or 'none'}; refused because: {able.why_not(tool) or 'it is not'}")
    status = 0
    for wanted in options.programs:
        slug, _, file = wanted.partition(":")
        status |= not _profiled(slug, ROOT / file, options)
    return status


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="SLUG:FILE")
    parser.add_argument("--lane", type=Lane, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--case", default="")
    parser.add_argument("--sanitize", action="store_true", help="run the sanitizer, not the profiler")
    return parser.parse_args()


def _profiled(slug: str, path: Path, options: argparse.Namespace) -> bool:
    language = Language(next(one.id for one in ALL if path.suffix in one.endings))
    source = path.read_text(encoding="utf-8")
    mode = Mode.sanitize if options.sanitize else Mode.profile
    request = GradeRequest(
        slug, "", language, options.lane, mode, source, path.name, Work(mode.value), case=options.case
    )
    folder = Path(tempfile.mkdtemp(prefix="gpu-profile-"))
    (folder / "request.json").write_text(codec.dumps(request), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "autograder.judge",
        "--assignments",
        str(ROOT / "assignments"),
        "once",
        str(folder),
    ]
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    name = f"{slug}.{path.stem}"
    try:
        event = json.loads(done.stdout.splitlines()[-1])
        result = codec.from_json(GradeResult, event["result"])
    except (IndexError, KeyError, ValueError) as error:
        print(f"{name}: no result in {seconds:.1f} s ({error!r}) {done.stderr[-3000:]}")
        return False
    (options.out / f"{name}.json").write_text(codec.dumps(result), encoding="utf-8")
    report = folder / "artefacts" / REPORT
    if report.is_file():
        shutil.copy(report, options.out / f"{name}.ncu-rep")
    if options.sanitize:
        shutil.rmtree(folder)
        return _show_sanitized(name, result, seconds, done.stderr)
    _show(name, result, seconds, done.stderr)
    if report.is_file():
        _beside_the_tool(report)
    shutil.rmtree(folder)
    return result.profile is not None and bool(result.profile.kernels)


def _show(name: str, result: GradeResult, seconds: float, stderr: str) -> None:
    phases = ", ".join(f"{one.phase} {one.seconds:.1f}" for one in result.phases)
    print(f"{name}: {result.verdict} in {seconds:.1f} s ({phases}). {result.explanation[:300]}")
    made = result.profile
    if made is None:
        print(f"  no profile; {result.error} {stderr[-2000:]}")
        return
    line = made.timeline
    print(f"  {made.case} ({made.size}), {made.tool}, report {made.report_bytes / 2**20:.2f} MiB, "
          f"{len(line.spans)} spans, device {line.busy_ns / 1e3:.0f} of {line.call_ns / 1e3:.0f} µs")  # fmt: skip
    for one in result.requirements:
        print(f"  asked: {one.name} ({one.rule}): {one.met}. {one.message}")
    for what, why in made.missing.items():
        print(f"  missing {what}: {why[:400]}")
    for kernel in made.kernels:
        figures = ", ".join(f"{one} {kernel.figures.get(one, float('nan')):.4g}" for one in SHOWN)
        stalls = ", ".join(f"{one.reason} {one.samples}" for one in kernel.stalls[:3])
        print(f"  {kernel.name[:60]}: {kernel.share:.0%} of the device's time, {kernel.calls} calls; {figures}")
        print(f"    stalls {stalls}; lines {[(one.line, one.samples) for one in kernel.lines[:6]]}")
        print(f"    mix {dict(sorted(kernel.mix.items(), key=lambda one: -one[1])[:6])}")
        print(f"    hints {[(one.rule, one.estimate_percent) for one in kernel.hints[:4]]}")


def _show_sanitized(name: str, result: GradeResult, seconds: float, stderr: str) -> bool:
    found = result.sanitized
    print(f"{name}: {result.verdict} in {seconds:.1f} s. {result.explanation[:300]}")
    if found is None:
        print(f"  nothing was sanitized; {result.error} {stderr[-2000:]}")
        return False
    print(f"  {found.case} ({found.size}), {found.tool}, {found.seconds:.1f} s; clean: {', '.join(found.clean) or '-'}")
    for one in found.findings[:8]:
        print(f"  {one.check}: line {one.line} {one.other_line or ''} {one.what} in {one.kernel[:40]} x{one.count}; "
              f"{one.thread} {one.detail[:120]}")  # fmt: skip
    for what, why in found.missing.items():
        print(f"  missing {what}: {why[:300]}")
    return True


def _beside_the_tool(report: Path) -> None:
    """Read the report without our adapter: whether each figure is the tool's own number, by its default units."""
    said = subprocess.run(
        [able.find_tool(), "--import", str(report), "--csv", "--page", "details", "--print-units", "base"],
        capture_output=True, text=True, check=False, timeout=HAND_S,
    ).stdout  # fmt: skip
    rows = ncu._table(said, "Kernel Name") or []  # noqa: SLF001 -- a script of the same tree.
    wanted = {"Duration", "Registers Per Thread", "Achieved Occupancy", "Memory Throughput", "DRAM Throughput"}
    found = {
        (row["Kernel Name"][:40], row["Section Name"][:24], row["Metric Name"]): row["Metric Value"]
        for row in rows
        if row.get("Metric Name") in wanted
    }
    print(f"    by the tool: {found}")


if __name__ == "__main__":
    sys.exit(main())
