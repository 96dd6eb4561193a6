"""The figures of docs/measurement.md: how well a GPU lane measures. Raw results are kept, and continued if cut off.

python scripts/measurement.py read  --lane h200 --out DIR --part self  --times 20 [--rungs softmax …] [--limit-s 60]
python scripts/measurement.py read  --lane h200 --out DIR --part bench
python scripts/measurement.py read  --lane h200 --out DIR --part warm  --times 3
python scripts/measurement.py tables --out DIR

self     the staff kernel against itself: every grading a new attempt with new runners
bench    the same kernels by triton.testing.do_bench, in a process of their own
warm     a check and a measurement by a warm judge: what a student waits for

Each part appends one JSON object per grading to DIR/<part>.jsonl; started again, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder import codec  # noqa: E402
from autograder.assignment import Case, load_assignment  # noqa: E402
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Measurement, Mode, Work  # noqa: E402

RUNGS = ("vector_add", "softmax", "matmul_tiled")
PROCESS_SANDBOX = "autograder.sandbox.process:ProcessSandbox"


def main() -> int:
    """Read a part, or print the tables of what was read."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.command == "tables":
        print(tables(options.out))
    elif options.part == "bench":
        _bench(options)
    else:
        _gradings(options)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["read", "tables"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lane", type=Lane, default=Lane.h200)
    parser.add_argument("--part", choices=["self", "bench", "warm"], default="self")
    parser.add_argument("--times", type=int, default=20, help="gradings of each rung in all, those before counted")
    parser.add_argument("--rungs", nargs="+", default=list(RUNGS))
    parser.add_argument("--limit-s", type=float, default=600.0, help="begin no grading after so many seconds")
    parser.add_argument("--sandbox", default=PROCESS_SANDBOX)
    return parser.parse_args()


# --- gradings ---------------------------------------------------------------------------------------------------------


def _gradings(options: argparse.Namespace) -> None:
    """Grade in turns, so that what is cut off is cut off for all rungs alike."""
    from autograder.judge import References  # noqa: PLC0415
    from autograder.judge.__main__ import load_sandbox  # noqa: PLC0415

    began = time.monotonic()
    sandbox = load_sandbox(options.sandbox)
    references = References(sandbox)
    works = (Work.check, Work.measure) if options.part == "warm" else (Work.measure,)
    try:
        for slug, work in _left(options, works):
            if time.monotonic() - began > options.limit_s:
                print("out of time: call again to go on", flush=True)
                break
            _append(options, _graded(slug, work, options, sandbox, references))
    finally:
        references.close()
        sandbox.close()


def _left(options: argparse.Namespace, works: tuple[Work, ...]) -> Iterator[tuple[str, Work]]:
    done = [(entry["slug"], entry["work"]) for entry in _entries(options.out, options.part)]
    for number in range(options.times):
        for slug in options.rungs:
            for work in works:
                if done.count((slug, work.value)) <= number:
                    yield slug, work


def _graded(slug: str, work: Work, options: argparse.Namespace, sandbox: Any, references: Any) -> dict[str, Any]:
    from autograder.judge import grade  # noqa: PLC0415

    path = ROOT / "reference" / slug / "solutions" / "triton.py"
    source = path.read_text(encoding="utf-8")
    request = GradeRequest(slug, "", Language.triton, options.lane, Mode.submission, source, path.name, work)
    began = time.monotonic()
    result = grade(
        request,
        assignment_folder=ROOT / "assignments" / slug,
        reference_folder=ROOT / "reference" / slug,
        sandbox=sandbox,
        references=references,
    )
    entry = {"slug": slug, "work": work.value, "seconds": time.monotonic() - began, "sandbox": options.sandbox,
             "result": codec.to_json(result)}  # fmt: skip
    print(f"{slug} {work}: {_line(result)} in {entry['seconds']:.1f} s", flush=True)
    return entry


def _line(result: GradeResult) -> str:
    said = [f"{one.case} {one.ratio:.4f}" for one in result.measurements]
    return f"{result.verdict} {', '.join(said)} held {result.held_reason!r} again {result.remeasure!r}"


def _append(options: argparse.Namespace, entry: dict[str, Any]) -> None:
    with (options.out / f"{options.part}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, separators=(",", ":")) + "\n")


def _entries(folder: Path, part: str) -> list[dict[str, Any]]:
    path = folder / f"{part}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


# --- do_bench ---------------------------------------------------------------------------------------------------------


def _bench(options: argparse.Namespace) -> None:
    """Time the staff kernels as their authors would."""
    import torch  # noqa: PLC0415

    for slug in options.rungs:
        assignment = load_assignment(ROOT / "assignments" / slug)
        kernel = _module(ROOT / "reference" / slug / "solutions" / "triton.py")
        problem = _module(ROOT / "assignments" / slug / "problem.py")
        for case in (case for case in assignment.cases_for(options.lane) if case.ranked):
            arguments = _arguments(assignment, case, problem)
            entry = getattr(kernel, assignment.entry)
            entry(*arguments)
            torch.cuda.synchronize()
            times = [1000 * _do_bench(entry, arguments) for _ in range(3)]
            _append(options, {"slug": slug, "case": case.name, "do_bench_us": times})
            print(slug, case.name, [round(one, 2) for one in times], flush=True)


def _do_bench(entry: Any, arguments: list[Any]) -> float:
    """Milliseconds, the median, with a cold L2 cache."""
    import triton.testing  # noqa: PLC0415

    found: float = triton.testing.do_bench(lambda: entry(*arguments), return_mode="median")
    return found


def _arguments(assignment: Any, case: Case, problem: ModuleType) -> list[Any]:
    """What the entry is called with: contiguous tensors of torch's own."""
    import torch  # noqa: PLC0415

    generator = torch.Generator("cuda").manual_seed(1)
    made = problem.make_inputs(
        generator=generator, dtype=getattr(torch, case.dtype), distribution=case.distribution, **case.size
    )
    values: dict[str, Any] = dict(made)
    for one in assignment.outputs:
        dtype = getattr(torch, assignment.dtype_of(one, case))
        values[one.name] = torch.empty(assignment.shape_of(one, case), dtype=dtype, device="cuda")
    for one in assignment.arguments:
        if one.role == "size":
            values[one.name] = case.size[one.name]
        elif one.role == "stride":
            values[one.name] = values[one.of].stride(one.dim)
        elif one.role == "scalar":
            values[one.name] = values[one.name].item()
    return [values[one.name] for one in assignment.arguments]


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.parents[1].name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- tables -----------------------------------------------------------------------------------------------------------


def tables(folder: Path) -> str:
    """The tables of docs/measurement.md, in Markdown."""
    results = [
        codec.from_json(GradeResult, entry["result"])
        for part in ("self", "warm")
        for entry in _entries(folder, part)
        if entry["work"] == Work.measure
    ]
    by_case: dict[str, list[Measurement]] = {}
    for part in ("self", "warm"):
        for entry in _entries(folder, part):
            for found in codec.from_json(GradeResult, entry["result"]).measurements:
                by_case.setdefault(f"{entry['slug']} `{found.case}`", []).append(found)
    bench = {f"{e['slug']} `{e['case']}`": statistics.median(e["do_bench_us"]) for e in _entries(folder, "bench")}
    return "\n".join([*_spread_table(by_case, bench), "", *_bound_table(by_case), "", *_seconds(folder, results)])


def _spread_table(by_case: dict[str, list[Measurement]], bench: dict[str, float]) -> list[str]:
    heads = ("ranked case", "gradings", "time, µs", "do_bench, µs", "difference", "ratio to itself, median", "spread",
             "least – most")  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---:|---:|---:|---:|---:|---:|---|"]
    for name, found in by_case.items():
        ratios = [one.ratio for one in found]
        time_us = statistics.median(one.time_us for one in found)
        other = bench.get(name, 0.0)
        apart = f"{other:.1f} | {100 * (time_us / other - 1):+.1f} %" if other else "– | –"
        spread = 100 * statistics.stdev(ratios) if len(ratios) > 1 else 0.0
        rows.append(
            f"| {name} | {len(found)} | {time_us:.1f} | {apart} | {statistics.median(ratios):.4f} | {spread:.2f} % | "
            f"{min(ratios):.4f} – {max(ratios):.4f} |"
        )
    return rows


def _bound_table(by_case: dict[str, list[Measurement]]) -> list[str]:
    heads = ("ranked case", "K", "null, µs", "excess of the bound: median, most", "limit, most", "batches needed",
             "drift of T_ref: median, most", "held", "measure again")  # fmt: skip
    rows = [f"| {' | '.join(heads)} |", "|---|---:|---:|---|---:|---:|---|---:|---:|"]
    for name, found in by_case.items():
        bounds = [one.bound for one in found if one.bound]
        drifts = [abs(one.control.drift) for one in found if one.control]
        if not bounds or not drifts:
            continue
        excess = [one.excess for one in bounds]
        null_us = min(min(one.null_us) for one in bounds)
        rows.append(
            f"| {name} | {bounds[0].calls} | {null_us:.0f} | {100 * statistics.median(excess):.2f} %, "
            f"{100 * max(excess):.2f} % | {100 * max(one.epsilon for one in bounds):.1f} % | "
            f"{statistics.mean(len(one.batches) for one in bounds):.1f} | "
            f"{100 * statistics.median(drifts):.2f} %, {100 * max(drifts):.2f} % | "
            f"{sum(bool(one.held) for one in found)} of {len(found)} | "
            f"{sum(bool(one.remeasure) for one in found)} of {len(found)} |"
        )
    return rows


def _seconds(folder: Path, results: list[GradeResult]) -> list[str]:
    rows = ["| rung | check, s | measurement, s | exclusive GPU seconds |", "|---|---:|---:|---:|"]
    entries = _entries(folder, "warm")
    for slug in dict.fromkeys(entry["slug"] for entry in entries):
        # The first of each starts the judge's runners and prepares the reference: it is not warm.
        own = [entry for entry in entries if entry["slug"] == slug]
        check, whole = (
            statistics.median([entry["seconds"] for entry in own if entry["work"] == work][1:] or [float("nan")])
            for work in (Work.check, Work.measure)
        )
        exclusive = [entry["result"]["exclusive_s"] for entry in own if entry["work"] == Work.measure][1:]
        rows.append(f"| {slug} | {check:.1f} | {whole:.1f} | {statistics.median(exclusive or [float('nan')]):.1f} |")
    held = sum(result.held for result in results)
    return [
        *rows,
        "",
        f"{len(results)} gradings: {held} held, {sum(bool(one.remeasure) for one in results)} to repeat.",
    ]


if __name__ == "__main__":
    sys.exit(main())
