"""The figures of docs/measurement.md: how well a GPU lane measures. Raw results are kept, and continued if cut off.

python scripts/measurement.py read  --lane h200 --out DIR --part self  --times 20 [--rungs softmax …] [--limit-s 60]
python scripts/measurement.py read  --lane h200 --out DIR --part bench
python scripts/measurement.py read  --lane h200 --out DIR --part warm  --times 3
python scripts/measurement.py tables --out DIR [--anew]

self     the staff kernel against itself: every grading a new attempt with new runners; what is to be measured again, is
short    the same for vector adds of tens of microseconds
cold     the same with a new judge for every grading: its first of the rung, its native null, its reference's compiling
bench    the same kernels by triton.testing.do_bench, in a process of their own
warm     a check and a measurement by a warm judge: what a student waits for
steps    a measurement with a clock around each of the judge's steps, which takes longer than it does without

Each part appends one JSON object per grading to DIR/<part>.jsonl; started again, it goes on where it stopped.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder import codec  # noqa: E402
from autograder.assignment import Case, load_assignment  # noqa: E402
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Work  # noqa: E402
from measurement_steps import Clock, clocked, shown  # noqa: E402
from measurement_tables import entries_of, tables  # noqa: E402

RUNGS = ("vector_add", "softmax", "matmul_tiled")
SHORT = ("vector_add",)
SHORTER = {"134217728": 2**23, "268435456": 2**25}
"""Sizes of vector add's ranked cases, and what the part `short` makes of them: about 30 and 60 µs on an H200."""

WINDOWS, REST_S = 20, 0.1
"""Of `do_bench` in short windows: how many, and how long the device rests before each."""

PROCESS_SANDBOX = "autograder.sandbox.process:ProcessSandbox"
DECIMALS = 4
"""Of the numbers that are kept: a clock tells no more."""


def main() -> int:
    """Read a part, or print the tables of what was read."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.command == "tables":
        print(tables(options.out, anew=options.anew))
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
    parser.add_argument("--part", choices=["self", "short", "cold", "bench", "warm", "steps"], default="self")
    parser.add_argument("--times", type=int, default=20, help="gradings of each rung in all, those before counted")
    parser.add_argument("--rungs", nargs="+", default=list(RUNGS))
    parser.add_argument("--limit-s", type=float, default=600.0, help="begin no grading after so many seconds")
    parser.add_argument("--sandbox", default=PROCESS_SANDBOX)
    parser.add_argument("--anew", action="store_true", help="decide recorded samples by today's rules")
    return parser.parse_args()


# --- gradings ---------------------------------------------------------------------------------------------------------


class Judge:
    """A judge with warm references, as a worker has one."""

    def __init__(self, options: argparse.Namespace) -> None:
        from autograder.judge import References  # noqa: PLC0415
        from autograder.judge.__main__ import load_sandbox  # noqa: PLC0415
        from autograder.judge.compile import cross_compile  # noqa: PLC0415

        self._options = options
        self._known: set[str] = set()
        self._sandbox = load_sandbox(options.sandbox)
        # As a worker's judge does before its first job: one that compiles waits for each.
        cross_compile.prewarm(self._sandbox, Language("triton"))
        self._references = References(self._sandbox)

    def graded(self, slug: str, work: Work, remeasured: int = 0) -> dict[str, Any]:
        """One grading of the staff kernel, with what is to be known of it."""
        from autograder.judge import grade  # noqa: PLC0415

        options = self._options
        path = ROOT / "reference" / slug / "solutions" / "triton.py"
        request = GradeRequest(
            slug, "", Language("triton"), options.lane, Mode.submission, path.read_text(encoding="utf-8"), path.name,
            work, remeasured=remeasured,
        )  # fmt: skip
        began = time.monotonic()
        result = grade(
            request,
            assignment_folder=_assignment(slug, options.part),
            reference_folder=ROOT / "reference" / slug,
            sandbox=self._sandbox,
            references=self._references,
        )
        seconds = time.monotonic() - began
        first = slug not in self._known
        self._known.add(slug)
        entry = {"slug": slug, "work": work.value, "at": time.time(), "seconds": seconds, "sandbox": options.sandbox,
                 "first": first, "remeasured": remeasured, "result": codec.to_json(result)}  # fmt: skip
        print(f"{slug} {work}: {_line(result)} in {seconds:.1f} s, {result.exclusive_s:.1f} exclusive", flush=True)
        return entry

    def close(self) -> None:
        """End its runners."""
        self._references.close()
        self._sandbox.close()


def _gradings(options: argparse.Namespace) -> None:
    """Grade in turns, so that what is cut off is cut off for all rungs alike."""
    import torch  # noqa: PLC0415

    # As the judge's own process does.
    torch.set_num_threads(1)
    began = time.monotonic()
    works = (Work.check, Work.measure) if options.part == "warm" else (Work.measure,)
    with ExitStack() as around, ExitStack() as judges:
        clock = around.enter_context(clocked(options.lane)) if options.part == "steps" else None
        judge: Judge | None = None
        for slug, work in _left(options, works):
            if time.monotonic() - began > options.limit_s:
                print("out of time: call again to go on", flush=True)
                break
            if judge is None or options.part == "cold":
                judges.close()
                judge = Judge(options)
                judges.callback(judge.close)
            _attempts(judge, slug, work, options, clock)


def _attempts(judge: Judge, slug: str, work: Work, options: argparse.Namespace, clock: Clock | None) -> None:
    """One attempt, and those that the judge asks for."""
    remeasured = 0
    while True:
        entry = judge.graded(slug, work, remeasured)
        if clock is not None:
            entry["steps"] = clock.taken()
            print(shown(entry["steps"]), flush=True)
        _append(options, entry)
        if not entry["result"]["remeasure"] or entry["result"]["held"]:
            return
        remeasured += 1


def _left(options: argparse.Namespace, works: tuple[Work, ...]) -> Iterator[tuple[str, Work]]:
    done = [(one["slug"], one["work"]) for one in entries_of(options.out, options.part) if not one["remeasured"]]
    for number in range(options.times):
        for slug in SHORT if options.part == "short" else options.rungs:
            for work in works:
                if done.count((slug, work.value)) <= number:
                    yield slug, work


def _assignment(slug: str, part: str) -> Path:
    """The rung's folder; for the part `short` a copy whose ranked cases are smaller."""
    folder = ROOT / "assignments" / slug
    if part != "short":
        return folder
    copy = Path(tempfile.gettempdir()) / f"kernel-ladder-{part}" / slug
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    manifest = copy / "assignment.toml"
    text = manifest.read_text(encoding="utf-8")
    for size, shorter in SHORTER.items():
        if size not in text:
            raise SystemExit(f"{slug} has no ranked case of {size} elements")
        text = text.replace(size, str(shorter))
    manifest.write_text(text, encoding="utf-8")
    return copy


def _line(result: GradeResult) -> str:
    said = [f"{one.case} {one.time_us:.1f} µs {one.ratio:.4f} {one.clock}" for one in result.measurements]
    return f"{result.verdict} {', '.join(said)} held {result.held_reason!r} again {result.remeasure!r}"


def _append(options: argparse.Namespace, entry: dict[str, Any]) -> None:
    with (options.out / f"{options.part}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(_rounded(entry), separators=(",", ":")) + "\n")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return round(value, DECIMALS) if isinstance(value, float) else value


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
            short = [1000 * _do_bench_rested(entry, arguments) for _ in range(WINDOWS)]
            _append(options, {"slug": slug, "case": case.name, "do_bench_us": times, "do_bench_short_us": short})
            print(slug, case.name, [round(one, 2) for one in times], round(statistics.median(short), 2), flush=True)


def _do_bench(entry: Any, arguments: list[Any], **window: float) -> float:
    """Milliseconds, the median, with a cold L2 cache.

    Args:
        window: `warmup` and `rep` in milliseconds; triton's own are 25 and 100.
    """
    import triton.testing  # noqa: PLC0415

    found: float = triton.testing.do_bench(lambda: entry(*arguments), return_mode="median", **window)
    return found


def _do_bench_rested(entry: Any, arguments: list[Any]) -> float:
    """The same after a rest, for so short a time that a device at its power limit does not lower its clocks."""
    time.sleep(REST_S)
    return _do_bench(entry, arguments, warmup=1, rep=1)


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


if __name__ == "__main__":
    sys.exit(main())
