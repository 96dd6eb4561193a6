"""What a new node can do, tried and written down: one document that says whether it may serve, and what is known.

It needs neither server nor broker, only the assignments and the staff's kernels. Every part is made by what grades
students: this judge, this sandbox, this GPU under its lock. The document is plain JSON; `client.node_report` puts it
into words, and who asked for it signs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder import codec
from autograder.assignment import EXTENSIONS, load_assignment
from autograder.contract import (
    CompiledFor,
    GradeRequest,
    GradeResult,
    Lane,
    Language,
    Measurement,
    Mode,
    Verdict,
    Work,
)
from autograder.languages import lacking
from autograder.sandbox import Promise
from worker import selftest
from worker.known import Outcome, stage
from worker.lanes import machine_facts
from worker.life import PATIENCE_S
from worker.node import Node, compose
from worker.settings import REPOSITORY, NodeConfig
from worker.stopping import Stopping

KIND = "kernel-ladder node report"
VERSION = 1
RUNG_S = 300.0
RED_TEAM_S = 900.0
NO_PATH = 77
"""The red team's exit status where it had nothing to attack."""
FINE = ("as expected", "cleared", "skipped")
"""Outcomes of an attack that are nothing to tell; `cleared` is a hold that a second measurement took back."""
PARTS = ("self_test", "noise", "rungs")
"""What needs the judge, in the order in which it is tried."""
MOST_SPREAD = 0.02
"""A noise floor above this makes ranks of this node meaningless."""
MOST_DOUBTFUL = 0.25
"""So many of the golden kernel's measurements may ask to be repeated: a busy machine's, not a sick one's."""

Document = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What is tried.

    Attributes:
        slugs, languages: rungs whose staff kernels are graded, in which languages; those that are not installed here
            are named in the report and left out.
        gradings: how often the golden kernel is measured for the noise floor.
        red_team: `quick`, `full` or `none`.
        parts: of `PARTS`; a known-good kernel has to pass before any of them.
    """

    assignments: Path
    reference: Path
    slugs: tuple[str, ...]
    languages: tuple[Language, ...] = tuple(Language)
    gradings: int = 20
    red_team: str = "quick"
    parts: tuple[str, ...] = PARTS


def run(config: NodeConfig, plan: Plan, say: Say) -> Document:
    """Try everything and return the document, unsigned.

    Args:
        say: told about each part as it ends.

    Raises:
        UnfitError, GpuUnknownError: there is no such node here.
        GpuError: its GPU belongs to no lane.
    """
    began = time.monotonic()
    node = compose(config, Stopping(0.0))
    accept = _Accept(config, plan, node, say)
    try:
        node.judge.start()
        accept.all()
    finally:
        accept.end_judge()
    accept.after()
    return accept.document | {"seconds": round(time.monotonic() - began, 1)}


class _Accept:
    """The parts, each of which fills its own place in `document` and may add to `problems`."""

    def __init__(self, config: NodeConfig, plan: Plan, node: Node, say: Say) -> None:
        self._config = config
        self._plan = plan
        self._node = node
        self._lane = node.jobs.lane
        self._say = say
        self._problems: list[str] = []
        self._works = False
        self._interrupted = False
        self.document: Document = {
            "kind": KIND,
            "version": VERSION,
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "lane": self._lane.value,
            "node": (facts := machine_facts() | node.serves.facts),
            "not_installed": sorted(lacking(facts).intersection(plan.languages)),
        }

    def all(self) -> None:
        """What needs the judge; where not even a known-good kernel passes, the rest would only take long to fail."""
        self._fill("sandbox", self._sandbox)
        parts = {"self_test": self._self_test, "noise": self._noise, "rungs": self._rungs}
        for name, part in parts.items():
            if name in self._plan.parts and self._works and not self._interrupted:
                self._fill(name, part)
            else:
                self.document[name] = None

    def end_judge(self) -> None:
        """Who interrupts does not wait for it to end by itself; nor is what was found lost while it is waited for."""
        judge = self._node.judge
        try:
            (judge.kill if self._interrupted else judge.close)()
        except KeyboardInterrupt:
            self._note_interruption("the judge")
            judge.kill()

    def after(self) -> None:
        """What is looked at when the judge has ended: what it left behind, and the red team, which starts its own."""
        self._fill("left_behind", self._left_behind)
        self._fill("red_team", self._red_team)
        self.document |= {"problems": self._problems, "accepted": not self._problems}

    def _fill(self, name: str, part: Callable[[], Any]) -> None:
        began, before = time.monotonic(), len(self._problems)
        told = name.replace("_", " ")
        try:
            self.document[name] = part()
        except KeyboardInterrupt:
            # It can take an hour: who ends it has what was found so far, signed as what it is.
            self._note_interruption(told)
            self.document.setdefault(name, None)
        except Exception as error:  # noqa: BLE001  (around the job: one part that breaks must not cost the others)
            self._problems.append(f"{told}: {error!r}")
            self.document.setdefault(name, None)
        found = self.document[name]
        skipped = found.get("skipped") if isinstance(found, dict) else None
        new = "; ".join(one.removeprefix(f"{told}: ") for one in self._problems[before:])
        new = new or (f"not tried: {skipped}" if skipped else "as expected")
        self._say(f"{told}: {new} ({time.monotonic() - began:.1f} s)")

    def _note_interruption(self, told: str) -> None:
        self._interrupted = True
        self._problems.append(f"{told}: interrupted; tests that are not listed were not run")

    # --- parts --------------------------------------------------------------------------------------------------------

    def _sandbox(self) -> Document:
        """Promises and environment, as a result of this node names them."""
        outcome = self._graded(Work.check, self._node.jobs.good)
        self._works = outcome.passed
        if not self._works:
            self._problems.append(f"a known-good kernel does not pass: {outcome}")
        kept = outcome.result.promises if outcome.result else ()
        missing = sorted(set(Promise) - set(kept))
        refused = [name for name in missing if name not in self._config.sandbox.accepted]
        if refused:
            self._problems.append(f"the sandbox does not keep {', '.join(refused)}")
        return {
            "driver": self._config.sandbox.driver,
            "kept": sorted(kept),
            "missing": missing,
            "accepted_missing": list(self._config.sandbox.accepted),
            "environment": outcome.result.environment if outcome.result else {},
        }

    def _self_test(self) -> list[Document]:
        tried = self._alone(
            lambda: selftest.run(
                self._node.jobs,
                self._config.work,
                secrets_of_node=self._config.secrets,
                accepted=self._config.sandbox.accepted,
            )
        )
        if wrong := selftest.problems(tried):
            self._problems.append(wrong)
        return [codec.to_json(one) for one in tried]

    def _noise(self) -> Document:
        """The golden kernel, again and again: ratio, time, and what the GPU did meanwhile."""
        songs: list[Document] = []
        found: Document = {"songs": songs, "doubtful": 0, "calibration": None}
        self.document["noise"] = found
        songs.extend(self._song() for _ in range(self._plan.gradings))
        floor = self._node.life.calibration()
        doubtful = [song["trouble"] for song in songs if song["trouble"]]
        if len(doubtful) > MOST_DOUBTFUL * len(songs):
            self._problems.append(f"the golden kernel, {len(doubtful)} of {len(songs)} times: {doubtful[-1]}")
        if floor is None:
            self._problems.append("the golden kernel could not be measured")
        elif self._lane is not Lane.cpu and floor.ratio_spread > MOST_SPREAD:
            self._problems.append(f"the noise floor is {floor.ratio_spread:.2%}; at most {MOST_SPREAD:.0%} is allowed")
        return found | {"doubtful": len(doubtful), "calibration": codec.to_json(floor) if floor else None}

    def _song(self) -> Document:
        with self._node.life.attempt(Work.measure, patience_s=PATIENCE_S) as attempt:
            attempt.measuring()
            song = self._node.life.canary.sing()
        facts = attempt.facts()
        trouble = song.trouble or (facts.trouble if facts else "")
        measured = song.measurement
        return {
            "trouble": trouble,
            "ratio": measured.ratio if measured else None,
            "time_us": measured.time_us if measured else None,
            "gpu": codec.to_json(facts) if facts else None,
        }

    def _rungs(self) -> list[Document]:
        found: list[Document] = []
        self.document["rungs"] = found
        for slug, language, path in self._kernels():
            rung: Document = {"slug": slug, "language": language.value, "cases": [], "remeasured": ""}
            found.append(rung)
            self._rung(rung, language, path)
            works = [rung[work.value] for work in (Work.check, Work.measure) if work.value in rung]
            said = ", ".join(f"{one['outcome']} in {one['seconds']:.1f} s" for one in works)
            self._say(f"  {slug} ({language}): {said}")
        return found

    def _kernels(self) -> Iterator[tuple[str, Language, Path]]:
        """The staff's kernel of each rung of this lane, in each language that it has one in."""
        here = set(self._plan.languages).difference(self.document["not_installed"])
        for slug in self._plan.slugs:
            assignment = load_assignment(self._plan.assignments / slug)
            if assignment.policy(self._lane) is None:
                continue
            for language in (one for one in assignment.languages if one in here):
                path = self._plan.reference / slug / "solutions" / f"{language}.{EXTENSIONS[language]}"
                if path.is_file():
                    yield slug, language, path

    def _rung(self, found: Document, language: Language, path: Path) -> None:
        """Check one staff kernel, and measure it where its lane ranks: each is an attempt, a doubtful one is two."""
        slug, source = found["slug"], path.read_text(encoding="utf-8")
        policy = load_assignment(self._plan.assignments / slug).policy(self._lane)
        for work in (Work.check, Work.measure) if policy and policy.ranks else (Work.check,):
            request = GradeRequest(slug, "", language, self._lane, Mode.submission, source, path.name, work)
            result = self._attempt(request, found)
            if result is not None and result.remeasure:
                found["remeasured"] = result.remeasure
                result = self._attempt(request, found)
            if result is not None and work is Work.check:
                found["requirements"] = [codec.to_json(one) for one in result.requirements]
                found["compiled"] = [_structure(one) for one in result.compiled]
            if result is not None and work is Work.measure:
                found["cases"] = [self._case(slug, one) for one in result.measurements]
                found["gpu"] = codec.to_json(result.gpu) if result.gpu else None

    def _attempt(self, request: GradeRequest, found: Document) -> GradeResult | None:
        """One half of a rung; its result if it passed."""
        began = time.monotonic()
        outcome, result = self._graded_folder(request)
        found[request.work.value] = {
            "outcome": str(outcome),
            "seconds": round(time.monotonic() - began, 2),
            "exclusive_s": round(result.exclusive_s, 2) if result else None,
        }
        if not outcome.passed:
            self._problems.append(f"{request.slug} ({request.language}), {request.work}: {outcome}")
        return result if outcome.passed else None

    def _case(self, slug: str, one: Measurement) -> Document:
        """The figures of one ranked case; the samples themselves are left out."""
        for doubt in filter(None, (one.held and f"held: {one.held}", one.remeasure)):
            self._problems.append(f"{slug}, {one.case}: {doubt}")
        bound, control = one.bound, one.control
        return {
            "case": one.case,
            "clock": one.clock,
            "time_us": [one.time_us, one.time_low_us, one.time_high_us],
            "ratio": [one.ratio, one.ratio_low, one.ratio_high],
            "reference_us": one.reference_us,
            "pairs": len(one.pairs),
            "terabytes_per_s": one.bytes_moved / one.time_us / 1e6,
            "teraflops": one.flops / one.time_us / 1e6,
            "floor_us": one.floor_us,
            "of_the_floor": one.floor_us / one.time_us if one.floor_us else None,
            "held": one.held,
            "remeasure": one.remeasure,
            "bound": bound and _without(codec.to_json(bound), "batches", "reference_batches", "dropped"),
            "control": control and _without(codec.to_json(control), "pairs"),
        }

    def _left_behind(self) -> Document:
        hygiene = self._node.device.hygiene
        found = hygiene.strict() if hygiene is not None else ""
        if found:
            self._problems.append(f"the GPU is not in the state of the start: {found}")
        baseline = hygiene.baseline if hygiene is not None else None
        return {"baseline_mib": baseline and (baseline.used_bytes or 0) // 2**20, "trouble": found}

    def _red_team(self) -> Document:
        """The hostile corpus of the checkout against this path, as a summary with every row that differs."""
        if self._plan.red_team == "none" or not self._works or self._interrupted:
            return {"skipped": self._why_no_red_team()}
        if not (REPOSITORY / "tests" / "redteam").is_dir():
            return {"skipped": "there is no checkout here: tests/redteam is in no wheel"}
        with tempfile.TemporaryDirectory(prefix="ladder-redteam-") as folder:
            out = Path(folder) / "table.json"
            lane, driver = self._lane.value, self._config.sandbox.driver
            command = [sys.executable, "-m", "tests.redteam", "--lane", lane, "--sandbox", driver, "--json", str(out)]
            command += ["--quick"] if self._plan.red_team == "quick" else []
            done = subprocess.run(
                command, cwd=REPOSITORY, capture_output=True, text=True, timeout=RED_TEAM_S, check=False
            )
            return self._read_red_team(out, done)

    def _why_no_red_team(self) -> str:
        if self._interrupted:
            return "interrupted before"
        return "not asked for" if self._works else "not even a known-good kernel passes"

    def _read_red_team(self, out: Path, done: subprocess.CompletedProcess[str]) -> Document:
        if done.returncode == NO_PATH:
            return {"skipped": done.stdout.strip()[-500:]}
        if not out.is_file():
            self._problems.append(f"the red team ended with status {done.returncode}: {done.stderr.strip()[-500:]}")
            return {"skipped": "it ended without a table"}
        table = json.loads(out.read_text(encoding="utf-8"))
        differing = [row for row in table["rows"] if row["outcome"] not in FINE]
        if not table["ok"]:
            self._problems += [f"red team: {row['attack']}: {row['outcome']} ({row['verdict']})" for row in differing]
        return {"counts": table["counts"], "ok": table["ok"], "differing": differing}

    # --- how parts are made -------------------------------------------------------------------------------------------

    def _graded(self, work: Work, job: Callable[[], Outcome]) -> Outcome:
        with self._node.device.lock.held(work, patience_s=PATIENCE_S):
            return job()

    def _graded_folder(self, request: GradeRequest) -> tuple[Outcome, GradeResult | None]:
        """One attempt as the worker makes it: under the lock, watched, with what was seen put into its result."""
        with tempfile.TemporaryDirectory(prefix="ladder-accept-") as folder:
            stage(Path(folder) / "job", request, self._plan.assignments, self._plan.reference)
            with self._node.life.attempt(request.work, patience_s=PATIENCE_S) as attempt:
                outcome = self._node.jobs.judged(Path(folder) / "job", RUNG_S, attempt.enter)
        if outcome.result is None or outcome.result.verdict is Verdict.grader_error:
            return outcome, outcome.result
        return outcome, attempt.with_facts(outcome.result)

    def _alone(self, part: Callable[[], list[selftest.Tried]]) -> list[selftest.Tried]:
        with self._node.device.lock.held(Work.measure, patience_s=PATIENCE_S):
            return part()


def _structure(compiled: CompiledFor) -> Document:
    """What the kernels became for one target: the most registers and spills of one, tensor instructions of all."""
    kernels = compiled.kernels
    return {
        "target": compiled.target,
        "kernels": len(kernels),
        "registers": max((one.registers for one in kernels), default=0),
        "spills": max((one.spills for one in kernels), default=0),
        "wgmma": sum(one.wgmma for one in kernels),
        "tcgen05": sum(one.tcgen05 for one in kernels),
        "message": compiled.message,
    }


def _without(document: Mapping[str, Any], *names: str) -> Document:
    return {name: value for name, value in document.items() if name not in names}
