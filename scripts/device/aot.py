"""On a GPU: are kernels that are compiled without a device the ones that it runs, and who is found to use a library?

    python scripts/device/aot.py compare [SLUG …] --out FILE   every honest kernel of these rungs, or all, both ways
    python scripts/device/aot.py findings --out FILE    check attempts of the corpus through the judge

`compare` calls each entry with real tensors of the cases that the judge compiles from, in one process, and has them
compiled without a device in another; then it holds registers, spilled words and shared memory, as the driver tells
them, against what was read from the machine code, and the machine code of both against each other.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from autograder import codec  # noqa: E402
from autograder.assignment import load_assignment, slugs  # noqa: E402
from autograder.compile_checks.messages import Compile, Compiled, Part  # noqa: E402
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Work  # noqa: E402
from autograder.judge.compile.cross_compile import cases_for, dry_case  # noqa: E402
from autograder.lanes import DEVICES  # noqa: E402

LANE = Lane(os.environ.get("LANE", Lane.h200))
TARGET = DEVICES[LANE].target
_LIMIT_S = 120
_AT_ONCE = 6
_JUDGES = 5
_FINDINGS_S = float(os.environ.get("FINDINGS_S", "120"))


def main() -> int:
    """Do one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compare", "findings", "launched", "absent", "found"])
    parser.add_argument("files", nargs="*", metavar="SLUG[:FILE]")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.what == "found":
        found(options.files)
        return 0
    if options.what in {"launched", "absent"}:
        slug, _, name = options.files[0].partition(":")
        print(json.dumps((launched if options.what == "launched" else absent)(slug, Path(name))))
        return 0
    rows = list(compare(options.files) if options.what == "compare" else findings())
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return not all(row["right"] for row in rows)


# --- the same kernel, both ways --------------------------------------------------------------------------------------


def compare(wanted: list[str]) -> Iterator[dict[str, Any]]:
    """One row per kernel of every staff kernel and honest variant."""
    files = [(slug, path) for slug, path in honest() if slug in wanted or not wanted]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        both = list(pool.map(lambda one: (_told("launched", *one), _told("absent", *one)), files))
    for (slug, path), (there, here) in zip(files, both, strict=True):
        if isinstance(there, str) or isinstance(here, str):
            row = {"slug": slug, "file": path.name, "right": False, "why": f"{str(there)[-300:]} | {str(here)[-300:]}"}
            print(row)
            yield row
            continue
        for kernel in there:
            same = [one for one in here if one["kernel"] == kernel["kernel"] and one["case"] == kernel["case"]]
            fits = [one for one in same if _numbers(one) == _numbers(kernel)]
            row = {
                "slug": slug, "file": path.name, **kernel, "right": bool(fits),
                "same machine code": any(one["code"] == kernel["code"] for one in same),
                "without a device": [_numbers(one) for one in same],
            }  # fmt: skip
            print(slug, path.name, kernel["kernel"], kernel["case"], _numbers(kernel), "same" if fits else same,
                  "machine code same" if row["same machine code"] else "machine code differs", flush=True)  # fmt: skip
            yield row


def honest() -> Iterator[tuple[str, Path]]:
    """Staff kernels, milestones and submissions that pass with kernels of their own."""
    for slug in slugs(ROOT / "assignments", LANE):
        if "triton" not in load_assignment(ROOT / "assignments" / slug).languages:
            continue
        yield slug, ROOT / "reference" / slug / "solutions" / "triton.py"
        files = [*(ROOT / "assignments" / slug / "milestones").glob("*.py")]
        files += (ROOT / "reference" / slug / "submissions").glob("passed_*.py")
        yield from ((slug, path) for path in sorted(files) if "library" not in path.name)


def _numbers(kernel: dict[str, Any]) -> tuple[int, int, int]:
    return kernel["registers"], kernel["spilled words"], kernel["shared"]


def _told(what: str, slug: str, path: Path) -> list[dict[str, Any]] | str:
    """What a process of its own says, or how it failed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TRITON_CACHE_DIR": folder, "TMPDIR": folder, "HOME": folder}
        environment.pop("TRITON_INTERPRET", None)
        if what == "absent":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        command = [sys.executable, __file__, what, f"{slug}:{path}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_LIMIT_S, check=False, env=environment
            )
        except subprocess.TimeoutExpired:
            return f"{what} took more than {_LIMIT_S} s"
    if done.returncode:
        return done.stderr
    said: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return said


def launched(slug: str, path: Path) -> list[dict[str, Any]]:
    """Every kernel that the device was given, as its driver tells of it."""
    import torch  # noqa: PLC0415
    from triton.compiler.compiler import CompiledKernel  # noqa: PLC0415
    from triton.runtime.jit import JITFunction  # noqa: PLC0415

    seen: list[tuple[str, CompiledKernel]] = []
    now = {"case": ""}
    run = JITFunction.run

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = run(self, *args, **kwargs)
        if kernel is not None:
            kernel._init_handles()  # noqa: SLF001 -- what loads it, and asks the driver about it.
            seen.append((now["case"], kernel))
        return kernel

    JITFunction.run = watched
    assignment = load_assignment(ROOT / "assignments" / slug)
    loader = SourceFileLoader("submission", str(path))
    namespace = sys.modules["submission"] = ModuleType("submission")
    loader.exec_module(namespace)
    module = namespace.__dict__
    for case in cases_for(TARGET, assignment):
        now["case"] = case.name
        dry = dry_case(case, assignment)
        values: dict[str, Any] = dict(dry.scalars)
        for one in dry.tensors:
            last = sum((length - 1) * step for length, step in zip(one.shape, one.stride, strict=True))
            whole = torch.zeros(one.offset + last + 1, dtype=getattr(torch, one.dtype), device="cuda")
            values[one.name] = whole.as_strided(one.shape, one.stride, one.offset)
        module[assignment.entry](*(values[argument.name] for argument in assignment.arguments))
        torch.cuda.synchronize()
    unique = {(case, kernel.hash): (case, kernel) for case, kernel in seen}
    return [
        {
            "kernel": kernel.src.fn.__name__, "case": case, "registers": kernel.n_regs,
            "spilled words": kernel.n_spills, "shared": kernel.metadata.shared,
            "code": hashlib.sha256(kernel.asm["cubin"]).hexdigest(),
        }
        for case, kernel in unique.values()
    ]  # fmt: skip


def absent(slug: str, path: Path) -> list[dict[str, Any]]:
    """The same kernels, by the compile checks."""
    from autograder.compile_checks import machine_code, triton_session  # noqa: PLC0415

    triton_session.warm()
    assignment = load_assignment(ROOT / "assignments" / slug)
    text, code = os.memfd_create("text"), os.memfd_create("code")
    source = path.read_text(encoding="utf-8-sig").encode()
    os.pwrite(text, source, 0)
    cases = tuple(dry_case(case, assignment) for case in cases_for(TARGET, assignment))
    arguments = tuple(argument.name for argument in assignment.arguments)
    # The file's name stands in the machine code.
    part = Part(TARGET, cases)
    ask = Compile(len(source), str(path), assignment.entry, arguments, (part,), budget_s=60.0)
    said = codec.from_json(Compiled, triton_session.compile_part(ask, part, text, code))
    if said.fault or said.left_out:
        raise SystemExit(f"incomplete: {said.fault} {said.left_out}")
    return [row for kernel in said.kernels for row in _rows(kernel, machine_code, code, cases)]


def _rows(kernel: Any, machine_code: Any, code: int, cases: Any) -> Iterator[dict[str, Any]]:
    if kernel.fault:
        raise SystemExit(f"{kernel.kernel}: {kernel.fault}")
    cubin = os.pread(code, kernel.bytes, kernel.offset)
    found = machine_code.read(cubin)
    for number in sorted({case for case, _ in kernel.uses}):
        yield {
            "kernel": kernel.kernel, "case": cases[number].name, "registers": found.registers,
            "spilled words": found.stack_bytes // 4, "shared": kernel.shared_bytes,
            "code": hashlib.sha256(cubin).hexdigest(),
            "counts": [found.spills, found.wgmma, found.tcgen05, found.tma, found.ldg128],
        }  # fmt: skip


# --- who is found ----------------------------------------------------------------------------------------------------


def findings() -> Iterator[dict[str, Any]]:
    """A check attempt of each of these, several judges beside each other: nothing is timed."""
    files = [f"{slug}:{path}" for slug, path in corpus()]
    command = [sys.executable, __file__, "found"]
    judges = [
        subprocess.Popen([*command, *files[first::_JUDGES]], stdout=subprocess.PIPE, text=True)
        for first in range(_JUDGES)
    ]
    end = time.monotonic() + _FINDINGS_S
    for judge in judges:
        try:
            said = judge.communicate(timeout=max(end - time.monotonic(), 0.1))[0]
        except subprocess.TimeoutExpired:
            judge.kill()
            said = judge.communicate()[0]
        for line in said.splitlines():
            print(line, flush=True)
            yield json.loads(line)


def found(files: list[str]) -> None:
    """Print what the judge finds of each, a line as soon as it is there."""
    from autograder.judge import grade  # noqa: PLC0415
    from autograder.sandbox.process import ProcessSandbox  # noqa: PLC0415

    sandbox = ProcessSandbox()
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            slug, _, name = file.partition(":")
            path, start = Path(name), time.monotonic()
            text = path.read_text(encoding="utf-8-sig")
            request = GradeRequest(slug, "", Language("triton"), LANE, Mode.submission, text, path.name, Work.check)
            # Without the hidden cases, which add nothing to what is looked for.
            result = grade(
                request, assignment_folder=_small(slug, Path(folder)), reference_folder=None, sandbox=sandbox
            )
            print(json.dumps(_told_of(slug, path, result, time.monotonic() - start)), flush=True)
    sandbox.close()


def _small(slug: str, folder: Path) -> Path:
    """The assignment without compile checks, and vector add with small cases: neither matters here."""
    to = folder / slug
    if not to.exists():
        shutil.copytree(ROOT / "assignments" / slug, to)
        manifest = to / "assignment.toml"
        text = re.sub(r"^compile_for.*\n", "", manifest.read_text(encoding="utf-8"), flags=re.MULTILINE)
        text = re.sub(r"\[\[requirement\]\][^\[]*", "", text)
        manifest.write_text(re.sub("n = (134217728|268435456)", "n = 4194304", text), encoding="utf-8")
    return to


def corpus() -> Iterator[tuple[str, Path]]:
    """Who has to be found, and who must not be."""
    gpu = ROOT / "tests" / "gpu"
    yield from (("vector_add", path) for path in sorted((gpu / "evasion").glob("passed_*.py")))
    for slug in ("matmul_tiled", "softmax", "vector_add"):
        yield slug, ROOT / "reference" / slug / "solutions" / "triton.py"
        yield from ((slug, path) for path in sorted((ROOT / "reference" / slug / "submissions").glob("*library*.py")))
    yield from (("vector_add", path) for path in sorted((gpu / "hostile").glob("honest_*.py")))


def _told_of(slug: str, path: Path, result: GradeResult, seconds: float) -> dict[str, Any]:
    kinds = [found.kind.value for found in result.findings]
    wanted = "library" in path.name or "native" in path.name
    return {
        "slug": slug, "file": path.name, "verdict": result.verdict.value, "findings": kinds,
        "right": result.verdict.value == "passed" and bool(kinds) == wanted,
        "explanation": result.explanation,
        "evidence": [found.evidence for found in result.findings],
        "device kernels": [(one.name, one.calls, round(one.share, 3), one.own) for one in result.device_kernels],
        "compiled": [(one.target, len(one.kernels), one.message, round(one.seconds, 2)) for one in result.compiled],
        "phases": {one.phase.value: round(one.seconds, 2) for one in result.phases}, "seconds": round(seconds, 1),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
