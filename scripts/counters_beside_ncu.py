"""Hold what the CPU lane counts of CUDA C++ kernels against Nsight Compute, on the same calls.

    python -m scripts.counters_beside_ncu count --out counts.json RUNG:FILE …     here: the emulator's counters
    python -m scripts.counters_beside_ncu compare --counts counts.json --out DIR  on a GPU, beside `ncu`

A kernel is called once on the case that its rung counts, with contiguous tensors. Of ncu's counters the sums over all
launches of that call are compared.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from autograder import codec
from autograder.assignment import load_assignment
from autograder.contract import GradeResult, Lane, Language
from autograder.profiling import able
from tests.styles.plain import arguments, loaded

ROOT = Path(__file__).resolve().parents[1]
NCU = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld": "load requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld": "load sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st": "store requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st": "store sectors",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld": "load conflicts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st": "store conflicts",
}
"""The counters that both have, by the name of both, and what the table calls them."""
BESIDE = (
    "smsp__inst_executed_op_shared_ld", "smsp__inst_executed_op_shared_st",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
    "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red", "l1tex__t_sectors_pipe_lsu_mem_global_op_atom",
)  # fmt: skip
"""What helps to explain a difference; kept in the raw results."""


def main() -> int:
    """Count, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    count = parts.add_parser("count")
    count.add_argument("kernels", nargs="+", metavar="RUNG:FILE")
    count.add_argument("--out", type=Path, required=True)
    compare = parts.add_parser("compare")
    compare.add_argument("--counts", type=Path, required=True)
    compare.add_argument("--out", type=Path, required=True)
    called = parts.add_parser("call", help="one call between the marks of the profiler")
    called.add_argument("kernel", metavar="RUNG:FILE")
    called.add_argument("case")
    options = parser.parse_args()
    if options.part == "count":
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = dict(zip(options.kernels, pool.map(counted, options.kernels), strict=True))
        options.out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    elif options.part == "compare":
        return compared(json.loads(options.counts.read_text(encoding="utf-8")), options.out)
    else:
        call(options.kernel, options.case)
    return 0


def counted(kernel: str) -> dict[str, object]:
    """The case and the counters of a kernel, by the CPU lane."""
    slug, _, file = kernel.partition(":")
    done = subprocess.run(
        [sys.executable, "-m", "client", "admin", "grade-file", slug, file, "--work", "check", "--json"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    result = codec.from_json(GradeResult, json.loads(done.stdout.splitlines()[-1])["result"])
    (one,) = result.counted
    return {"case": one.case, "counters": dict(one.counters)}


def compared(counts: dict[str, dict[str, object]], out: Path) -> int:
    """Print a row for each kernel; exit status 1 where ncu counted nothing of one."""
    out.mkdir(parents=True, exist_ok=True)
    raw, status = {}, 0
    for kernel, one in counts.items():
        found = by_the_tool(kernel, str(one["case"]))
        raw[kernel] = {**one, "ncu": found}
        (out / "counters_beside_ncu.json").write_text(json.dumps(raw, indent=1), encoding="utf-8")
        mine = one["counters"]
        status |= not found
        print(kernel)
        for name, title in NCU.items():
            print(f"    {title:16}{mine[name]:>12}{found.get(name, -1):>12}")  # type: ignore[index]
        print(f"    {'launches':16}{mine['launches']:>12}{found.get('launches', -1):>12}", flush=True)  # type: ignore[index]
    return status


def by_the_tool(kernel: str, case: str) -> dict[str, int]:
    """Sums of ncu's counters over the launches of one call."""
    metrics = ",".join(f"{name}.sum" for name in (*NCU, *BESIDE))
    command = [
        able.find_tool() or "ncu", "--csv", "--page", "raw", "--print-units", "base", "--profile-from-start", "off",
        "--target-processes", "all", "--metrics", metrics,
        sys.executable, "-m", "scripts.counters_beside_ncu", "call", kernel, case,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    sums: Counter[str] = Counter()
    for row in list(csv.DictReader(io.StringIO("\n".join(lines))))[1:]:
        sums["launches"] += 1
        for name, value in row.items():
            bare = name.removesuffix(".sum")
            if bare in NCU or bare in BESIDE:
                sums[bare] += int(float(value.replace(",", "")))
    if not sums:
        print(done.stdout[-1500:], done.stderr[-1500:])
    return dict(sums)


def call(kernel: str, case_name: str) -> None:
    """One call on fresh inputs, between the marks."""
    slug, _, file = kernel.partition(":")
    assignment = load_assignment(ROOT / "assignments" / slug)
    case = next(case for case in assignment.cases if case.name == case_name)
    entry = loaded(assignment, Language("cuda"), ROOT / file, Lane.h200)
    values = arguments(assignment, case)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()  # type: ignore[no-untyped-call]
    entry(values)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    sys.exit(main())
