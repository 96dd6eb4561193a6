"""A judge that grades nothing: the process boundary's double, deterministic by the request alone.

It speaks the judge's protocol (JSON lines in, events out) and obeys comments in the source:

    # judge: verdict wrong_answer      the verdict; `passed` where none is given
    # judge: ratio 1.5                 of the one ranked case
    # judge: sleep 2.0                 between two phases
    # judge: held | die | silent | garbage | flood | leave_child | ours

Standard library and the vocabulary only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from autograder import codec
from autograder.contract import (
    CaseFinished,
    CaseResult,
    Event,
    GradeRequest,
    GradeResult,
    Measurement,
    Mode,
    Pair,
    Phase,
    PhaseStarted,
    StudentError,
    Verdict,
    Visibility,
    Work,
)


def directives(source: str) -> dict[str, str]:
    """What the source asks for."""
    lines = (line.partition("# judge:")[2].split() for line in source.splitlines() if "# judge:" in line)
    return {words[0]: " ".join(words[1:]) for words in lines if words}


def cases(verdict: Verdict, mode: Mode, work: Work) -> tuple[CaseResult, ...]:
    """A public case, the ranked one and, for a submission, a hidden one; the last one has the verdict.

    Measuring alone meets the ranked one alone.
    """
    names = ["small", "large"] if mode is Mode.run else ["small", "large", "hidden 7 of 13"]
    names = ["large"] if work is Work.measure else names
    return tuple(
        CaseResult(
            name=name,
            category="odd sizes",
            group="hidden" if name.startswith("hidden") else "public",
            visibility=Visibility.hidden if name.startswith("hidden") else Visibility.public,
            ranked=name == "large",
            verdict=verdict if name == names[-1] else Verdict.passed,
            message=f"The double says {verdict if name == names[-1] else 'passed'}.",
        )
        for name in names
    )


def result(request: GradeRequest) -> GradeResult:
    """The result that this source always gets."""
    asked = directives(request.source)
    if "ours" in asked:
        error = StudentError("HarnessError", "the double was asked to fail")
        return GradeResult(Verdict.grader_error, "The grader failed.", (), error=error)
    verdict = Verdict(asked.get("verdict", "passed"))
    ratio = float(asked.get("ratio", "1.0"))
    measured = Measurement(
        case="large",
        clock="sealed",
        ratio=ratio,
        ratio_low=ratio * 0.99,
        ratio_high=ratio * 1.01,
        time_us=100 * ratio,
        time_low_us=99 * ratio,
        time_high_us=101 * ratio,
        reference_us=100.0,
        flops=1.0,
        bytes_moved=1.0,
        pairs=(Pair(100 * ratio, 100 * ratio, 100.0, 100.0),),
    )
    return GradeResult(
        verdict=verdict,
        explanation=f"The double says {verdict}.",
        cases=cases(verdict, request.mode, request.work),
        measurements=(measured,) if verdict is Verdict.passed and request.work is not Work.check else (),
        held="held" in asked,
    )


def misbehave(asked: dict[str, str]) -> None:
    """Do what a broken judge does."""
    if "leave_child" in asked:
        # In a session of its own, and longer than anybody waits; its id is left where the test looks.
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        Path(asked["leave_child"]).write_text(str(child.pid), encoding="utf-8")
    if "die" in asked:
        os.kill(os.getpid(), signal.SIGKILL)
    if "silent" in asked:
        time.sleep(600)
    if "garbage" in asked:
        sys.stdout.write("Segmentation fault\n")
        sys.stdout.flush()
    while "flood" in asked:
        sys.stdout.write("x" * 65_536)


def events(request: GradeRequest) -> Iterator[Event]:
    """What a grading says, in order."""
    asked = directives(request.source)
    yield Event(phase=PhaseStarted(Phase.preparing, time.time()))
    misbehave(asked)
    yield Event(phase=PhaseStarted(Phase.checking, time.time()))
    found = result(request)
    for index, case in enumerate(found.cases):
        yield Event(case=CaseFinished(index, len(found.cases), case))
    time.sleep(float(asked.get("sleep", "0")))
    yield Event(phase=PhaseStarted(Phase.measuring, time.time()))
    yield Event(result=found)


def main() -> None:
    """Grade one folder per line until the end of input."""
    for line in sys.stdin:
        folder = Path(json.loads(line)["folder"])
        request = codec.loads(GradeRequest, (folder / "request.json").read_text(encoding="utf-8"))
        if not (folder / "bundle" / "assignments" / request.slug).is_dir():
            sys.exit(f"no assignment in {folder}")
        for event in events(request):
            text = codec.dumps(event)
            if event.result is not None:
                (folder / "result.json").write_text(codec.dumps(event.result), encoding="utf-8")
            print(text, flush=True)


if __name__ == "__main__":
    main()
