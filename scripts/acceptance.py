"""What a GPU of a lane has to show before a course uses it, in steps, as one signed table.

    python scripts/acceptance.py run --lane b200 --out DIR --key FILE [--only PATTERN …] [--limit-s 300]
    python scripts/acceptance.py verify DIR [--key PUBLIC]

Each call goes on where the last one stopped: a step that went as expected on this device, from these sources, is not
run again, and none begins after `--limit-s`. DIR gets `acceptance.json`, signed anew after every step,
`acceptance.md`, and what each step wrote. Exit status: 0 where everything asked for went as expected, of `verify` where
every step did; 1 otherwise; 2 where a table cannot be trusted.

The steps: `node` (sandbox, self-test, golden kernel), `kernels:SLUG` (the staff's kernels in every language that is
installed, with their compile checks), and on a GPU `structure:SLUG` (Triton's kernels compiled without a device against
those that the device is given), `redteam` (its short table), and `search` (for the largest gain that goes unnoticed).
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder.assignment import load_assignment, slugs  # noqa: E402
from autograder.contract import Lane, Language  # noqa: E402
from autograder.languages import of  # noqa: E402
from autograder.signing import SignatureError, SigningKey, key_id, verify  # noqa: E402
from worker.accept import FINE as HARMLESS  # noqa: E402

KIND = "kernel-ladder acceptance"
FINE, NOT_RUN = "as expected", "not run"
STEP_S = 280
"""A step that takes longer is stopped: with the last one begun in time, a call stays below ten minutes."""
STOP_S = 20
_SOURCES = ("autograder", "assignments", "reference", "worker", "client", "tests/hostile", "tests/redteam", "scripts")

Document = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One part.

    Attributes:
        command: what does it.
        file: what it writes, below the folder of the report.
        read: what of that file is wrong, and what of it stands in the table.
    """

    name: str
    command: tuple[str, ...]
    file: str
    read: Callable[[Any], tuple[list[str], str]]


def main() -> int:
    """Run, or verify."""
    options = _options()
    return run(options) if options.what == "run" else check(options.out, options.key)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "verify"))
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, dest="folder")
    parser.add_argument("--lane", type=Lane)
    parser.add_argument("--key", help="run: file with the node's key, made if missing; verify: public key in base64")
    parser.add_argument("--only", nargs="*", default=[], metavar="PATTERN", help="steps, as `kernels:*`")
    parser.add_argument("--language", type=Language, nargs="*", default=[], help="of the staff's kernels")
    parser.add_argument("--sandbox", choices=("process", "docker"), default="process")
    parser.add_argument("--gradings", type=int, default=20, help="measurements of the golden kernel")
    parser.add_argument("--limit-s", type=float, default=300.0)
    options = parser.parse_args()
    options.out = options.out or options.folder
    if options.out is None or (options.what == "run" and not (options.lane and options.key)):
        parser.error("run needs --lane, --out and --key; verify a folder")
    return options


# --- the steps --------------------------------------------------------------------------------------------------------


def steps(options: argparse.Namespace) -> Iterator[Step]:
    """Every step of the lane, the ones that say most first."""
    lane, out = options.lane, options.out
    yield _accept(options, "node", ("self_test", "noise"))
    rungs = [slug for slug in slugs(ROOT / "assignments", lane) if _has_kernels(slug)]
    yield from (_accept(options, f"kernels:{slug}", ("rungs",), slug) for slug in rungs)
    team = [sys.executable, "-m", "tests.redteam", "--lane", lane.value, "--sandbox", options.sandbox, "--quick"]
    if lane is not Lane.cpu:
        for slug in rungs:
            if "triton" in load_assignment(ROOT / "assignments" / slug).languages:
                file = f"structure-{slug}.json"
                command = (sys.executable, "scripts/device/aot.py", "compare", slug, "--out", str(out / file))
                yield Step(f"structure:{slug}", command, file, _structure)
        team += ["--limit-s", str(STEP_S - 40)]
    yield Step("redteam", (*team, "--json", str(out / "redteam.json")), "redteam.json", _red_team)
    if lane is not Lane.cpu:
        search = (sys.executable, "-m", "tests.redteam.search", "--lane", lane.value, "--sandbox", options.sandbox)
        more = ("--limit-s", str(STEP_S - 60), "--out", str(out / "search.json"))
        yield Step("search", (*search, *more), "search.json", _search)


def _has_kernels(slug: str) -> bool:
    """Whether its answer is a kernel of the staff's."""
    solutions = ROOT / "reference" / slug / "solutions"
    return any((solutions / f"{one}.{of(one).extension}").is_file() for one in Language)


def _accept(options: argparse.Namespace, name: str, parts: tuple[str, ...], rung: str = "") -> Step:
    """`ladder node accept` with some of its parts, on one rung."""
    folder = name.replace(":", "-")
    asked = [word for part in parts for word in ("--part", part)]
    asked += [word for one in options.language for word in ("--language", one.value)]
    asked += ["--rung", rung] if rung else []
    command = (
        sys.executable, "-m", "client", "node", "accept", "--lane", options.lane.value, "--sandbox", options.sandbox,
        "--red-team", "none", "--gradings", str(options.gradings), "--key", options.key,
        "--out", str(options.out / folder), *asked,
    )  # fmt: skip
    return Step(name, command, f"{folder}/node-report.json", _node)


def _node(report: Any) -> tuple[list[str], str]:
    said = [f"{len(report['self_test'])} jobs"] if report["self_test"] else []
    if floor := (report["noise"] or {}).get("calibration"):
        said.append(f"noise floor {floor['ratio_spread']:.2%}")
    said += [_kernel(one) for one in report["rungs"] or ()]
    nothing = ["nothing was graded"] if report["rungs"] == [] else []
    said += [f"not installed: {', '.join(report['not_installed'])}"] if report["not_installed"] else []
    return [*report["problems"], *nothing], "; ".join(said)


def _kernel(rung: Document) -> str:
    times = ", ".join(f"{case['time_us'][0]:.1f} µs" for case in rung["cases"]) or "not measured"
    tensor = {one["target"]: one["tcgen05"] for one in rung.get("compiled", ()) if one["tcgen05"]}
    unmet = [one["name"] for one in rung.get("requirements", ()) if one.get("met") is False]
    words = [f"{rung['language']}: {times}", *(f"tcgen05 {count} for {target}" for target, count in tensor.items())]
    return ", ".join([*words, *(f"not met: {name}" for name in unmet)])


def _structure(rows: Any) -> tuple[list[str], str]:
    other = [
        f"{row['file']}: {row.get('why') or 'other numbers than on the device'}" for row in rows if not row["right"]
    ]
    same = sum(bool(row.get("same machine code")) for row in rows)
    return other or ([] if rows else ["nothing was compared"]), f"{len(rows)} kernels, {same} of the same machine code"


def _red_team(table: Any) -> tuple[list[str], str]:
    differing = [row for row in table["rows"] if row["outcome"] not in HARMLESS]
    wrong = [f"{row['attack']}: {row['outcome']} ({row['verdict']})" for row in differing]
    counts = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in table["counts"].items())
    return wrong or ([] if table["ok"] else ["the table is not ok"]), counts


def _search(found: Any) -> tuple[list[str], str]:
    passed = [one for one in found["probes"] if one["verdict"] == "passed"]
    through = [one["gain"] for one in passed if not one["noticed"]]
    gain = f"{max([*through, 0.0]):.1%}"
    return [] if passed else ["nothing was measured"], f"{len(passed)} gradings, largest gain unnoticed {gain}"


# --- running them -----------------------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> int:
    """Take the steps that are not done, sign, print the table."""
    began = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    key = _key(Path(options.key))
    plan = list(steps(options))
    wanted = [step for step in plan if _is_wanted(step.name, options.only)]
    if not wanted:
        print(f"no such step; there are {', '.join(step.name for step in plan)}")
        return 2
    where = {"lane": options.lane.value, "device": _device(options.lane), "sources": _sources()}
    where["languages"] = ", ".join(options.language) or "all"
    done = _done(options.out, key.public, where)
    for step in wanted:
        if step.name not in done and time.monotonic() - began < options.limit_s:
            print(f"{step.name} …", flush=True)
            done[step.name] = _taken(step, options)
            _write(options.out, key, where, plan, done)
    report = _write(options.out, key, where, plan, done)
    print(page(report))
    asked = [row for row in report["steps"] if row["step"] in {step.name for step in wanted}]
    return int(any(row["outcome"] != FINE for row in asked))


def _is_wanted(name: str, only: list[str]) -> bool:
    return not only or any(fnmatch.fnmatchcase(name, pattern) for pattern in only)


def _taken(step: Step, options: argparse.Namespace) -> Document:
    """Run one step; what an older run of it wrote is gone first."""
    path = options.out / step.file
    path.unlink(missing_ok=True)
    began = time.monotonic()
    log = options.out / f"{step.name.replace(':', '-')}.log"
    modules = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    code = _ran(step, {**os.environ, "LANE": options.lane.value, "PYTHONPATH": modules}, log)
    problems, said = _found(step, path, log, code)
    print(f"  {'; '.join(problems) or said} ({time.monotonic() - began:.0f} s)", flush=True)
    return {
        "step": step.name, "outcome": "; ".join(problems)[:2000] or FINE, "found": said, "exit": code,
        "seconds": round(time.monotonic() - began, 1), "file": step.file, "sha256": _sha256(path),
    }  # fmt: skip


def _ran(step: Step, environment: Mapping[str, str], log: Path) -> int | None:
    """Its exit status; none if it took too long, and was asked to end and to keep what it had."""
    with log.open("wb") as file:
        process = subprocess.Popen(step.command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, env=environment)
        try:
            return process.wait(STEP_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return None


def _found(step: Step, path: Path, log: Path, code: int | None) -> tuple[list[str], str]:
    """What is wrong, and what there is to tell."""
    stopped = [f"stopped after {STEP_S} s"] if code is None else []
    if not path.is_file():
        return [
            *stopped,
            f"no {step.file}: {log.read_text(errors='replace').strip()[-300:] or f'exit status {code}'}",
        ], ""
    try:
        problems, said = step.read(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        return [*stopped, f"{step.file} cannot be read: {error!r}"], ""
    return stopped + (problems or ([f"exit status {code}"] if code else [])), said


def _done(out: Path, public: str, where: Mapping[str, str]) -> dict[str, Document]:
    """Steps that went as expected here, by this table's own word, and whose files are as they were."""
    try:
        report = json.loads((out / "acceptance.json").read_text(encoding="utf-8"))
        verify(report, public)
    except (OSError, ValueError, SignatureError):
        return {}
    if any(report.get(name) != said for name, said in where.items()):
        return {}
    return {
        row["step"]: row
        for row in report["steps"]
        if row["outcome"] == FINE and _sha256(out / row["file"]) == row["sha256"]
    }


def _write(
    out: Path, key: SigningKey, where: Mapping[str, str], plan: list[Step], done: Mapping[str, Document]
) -> Document:
    rows = [done.get(step.name, {"step": step.name, "outcome": NOT_RUN}) for step in plan]
    report = key.sign({
        "kind": KIND, "made_at": datetime.now(UTC).isoformat(timespec="seconds"), **where, "steps": rows,
        "accepted": all(row["outcome"] == FINE for row in rows) and where["languages"] == "all",
    })  # fmt: skip
    new = out / ".acceptance.json"
    new.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(out / "acceptance.json")
    (out / "acceptance.md").write_text(page(report), encoding="utf-8")
    return report


def page(report: Document) -> str:
    """The table in words."""
    ran = [row for row in report["steps"] if row["outcome"] != NOT_RUN]
    about = (
        f"{report['device'] or 'No GPU'}; {report['made_at']}; {len(ran)} of {len(report['steps'])} steps, "
        f"{sum(row['seconds'] for row in ran):.0f} s; sources {report['sources'][:16]}; "
        f"languages: {report['languages']}; key {key_id(report['signature']['key'])}."
    )
    lines = [
        f"# Lane {report['lane']}: {'accepted' if report['accepted'] else 'not accepted'}",
        "",
        about,
        "",
        "| step | outcome | s | found |",
        "|---|---|---:|---|",
    ]
    for row in report["steps"]:
        cells = (row["step"], row["outcome"], f"{row['seconds']:.0f}" if "seconds" in row else "", row.get("found", ""))
        lines.append("| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


# --- believing it -----------------------------------------------------------------------------------------------------


def check(out: Path, public: str | None) -> int:
    """Whether the table is what its key signed, and the files beside it are what it tells of."""
    try:
        report = json.loads((out / "acceptance.json").read_text(encoding="utf-8"))
        signed_by = verify(report, public)
        _check_files(out, report, signed_by)
    except (OSError, ValueError, SignatureError) as error:
        print(f"{out} cannot be trusted: {error}")
        return 2
    print(page(report))
    print(f"Signed by the key {key_id(signed_by)} ({signed_by}).")
    if public is None:
        print("Nothing here says whose key that is: compare it with the owner's.")
    return 0 if report["accepted"] is True else 1


def _check_files(out: Path, report: Document, signed_by: str) -> None:
    if report.get("kind") != KIND:
        raise SignatureError("it is another kind of document")
    for row in report["steps"]:
        path = out / row.get("file", "")
        if row["outcome"] == NOT_RUN:
            continue
        if _sha256(path) != row["sha256"]:
            raise SignatureError(f"{row['file']} is missing or was changed")
        if path.name == "node-report.json" and row["sha256"]:
            verify(json.loads(path.read_text(encoding="utf-8")), signed_by)


# --- where it runs ----------------------------------------------------------------------------------------------------


def _key(path: Path) -> SigningKey:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        SigningKey.generate().save(path)
    return SigningKey.load(path)


def _device(lane: Lane) -> str:
    """The GPU by name and UUID; `""` on the CPU lane."""
    if lane is Lane.cpu:
        return ""
    query = ["nvidia-smi", "--query-gpu=name,uuid,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()


def _sources() -> str:
    """One hash of all that decides what the steps find; a device machine has no history to ask."""
    whole = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                whole.update(f"{path.relative_to(ROOT)}\0{_sha256(path)}\n".encode())
    return whole.hexdigest()


def _sha256(path: Path) -> str:
    """Of a file; `""` where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
