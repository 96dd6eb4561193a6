"""On a GPU: CUDA C++ through the judge and the process sandbox.

A file `cuda.py` here would stand before NVIDIA's package of that name.

    python scripts/device/cuda_lane.py --out FILE [--lane h200] [--seconds 85] [--work measure] [SLUG …]

Staff kernels first, checked and measured; then a few files that must not pass; then the milestones, as far as the
seconds reach. Every row says what was graded, what it got, where the time went, and how it compares with Triton's staff
kernel of the same rung, timed alone in the same way.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from autograder.assignment import EXTENSIONS, load_assignment, slugs  # noqa: E402
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Work  # noqa: E402
from autograder.judge import References, grade  # noqa: E402
from autograder.sandbox.process import ProcessSandbox  # noqa: E402
from autograder.verify import trials  # noqa: E402

WRONG = {
    "illegal_access_no_guard", "runtime_error_block_too_large", "compile_error_missing_semicolon", "passed_host_code",
    "wrong_answer_missing_barrier", "passed_overloads",
}  # fmt: skip


def main() -> int:
    """Grade until the time is over; 1 if anything got what it must not get."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lane", type=Lane, default=Lane.h200)
    parser.add_argument("--seconds", type=float, default=85.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Work, choices=[Work.check, Work.measure], help="only this")
    parser.add_argument("slugs", nargs="*", help="rungs; all that take CUDA C++ if none is named")
    options = parser.parse_args()
    end, rows = time.monotonic() + options.seconds, []
    sandbox = ProcessSandbox()
    references = References(sandbox)
    try:
        for trial, work in plan(options.slugs or rungs()):
            if options.work not in {None, work}:
                continue
            if time.monotonic() > end:
                break
            rows.append(row_of(trial, work, options.lane, sandbox, references))
            print(json.dumps(rows[-1]), flush=True)
            options.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    finally:
        references.close()
        sandbox.close()
    return not all(row["right"] for row in rows)


def plan(chosen: list[str]) -> Iterator[tuple[trials.Trial, Work]]:
    """What is graded, most telling first."""
    known = [trial for slug in chosen for trial in trials.plan(ROOT / "assignments" / slug, ROOT / "reference" / slug)]
    staff = [trial for trial in known if trial.kind is trials.Kind.solution]
    cuda = [trial for trial in known if trial.language is Language("cuda")]
    yield from ((trial, Work.check) for trial in staff if trial.language is Language("cuda"))
    yield from ((trial, Work.measure) for trial in staff)
    yield from ((trial, Work.check) for trial in cuda if trial.kind is trials.Kind.submission and trial.name in WRONG)
    yield from ((trial, Work.measure) for trial in cuda if trial.kind is trials.Kind.milestone)


def rungs() -> list[str]:
    """The rungs that take CUDA C++."""
    folder = ROOT / "assignments"
    return [slug for slug in slugs(folder, Lane.h200) if Language("cuda") in load_assignment(folder / slug).languages]


def row_of(
    trial: trials.Trial, work: Work, lane: Lane, sandbox: ProcessSandbox, references: References
) -> dict[str, Any]:
    """Grade one."""
    row: dict[str, Any] = {"slug": trial.slug, "language": trial.language, "kind": trial.kind, "name": trial.name}
    request = GradeRequest(
        slug=trial.slug, bundle="", language=trial.language, lane=lane, mode=Mode.submission, source=trial.source,
        filename=f"{trial.slug}.{EXTENSIONS[trial.language]}", work=work,
    )  # fmt: skip
    started = time.monotonic()
    result = grade(
        request,
        assignment_folder=ROOT / "assignments" / trial.slug,
        reference_folder=ROOT / "reference" / trial.slug,
        sandbox=sandbox,
        references=references,
    )
    return row | said(result) | {"right": result.verdict is trial.verdict, "s": round(time.monotonic() - started, 2)}


def said(result: GradeResult) -> dict[str, Any]:
    """What a result says, as far as it is looked at here."""
    return {
        "verdict": result.verdict,
        "explanation": result.explanation,
        "log": result.log[-600:],
        "phases_s": {phase.phase.value: round(phase.seconds, 2) for phase in result.phases},
        "findings": [finding.kind.value for finding in result.findings],
        "launches": [f"{launch.kernel} {launch.grid} x {launch.calls}" for launch in result.launches[:6]],
        "measured": {
            one.case: {
                "us": round(one.time_us, 2),
                "reference_us": round(one.reference_us, 2),
                "ratio": round(one.ratio, 4),
            }
            for one in result.measurements
        },
        "environment": {name: result.environment.get(name, "") for name in ("nvcc", "gpu", "architecture", "torch")},
    }


if __name__ == "__main__":
    sys.exit(main())
