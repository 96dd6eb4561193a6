"""Two clocks on a GPU: what is forged, slowed or taken is found; each defence has its bite."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.contract import GradeRequest, GradeResult, Lane, Language, Measurement, Mode, Verdict, Work
from autograder.judge import ALL_ON, Defences, References, grade
from autograder.judge.timing import validity
from autograder.sandbox.process import ProcessSandbox

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
STAFF = (ROOT / "reference" / "vector_add" / "solutions" / "triton.py").read_text(encoding="utf-8")
LAUNCH = "    _vector_add_kernel[grid](x, y, out, n, BLOCK_SIZE=block_size, num_warps=8)\n"
ENTRY_CLOCK = (
    "import gc\ndef clock():\n    return next(one for one in gc.get_objects() if type(one).__name__ == 'EventClock')\n"
)
Measure = Callable[..., GradeResult]


def with_lines(before: str = "", after: str = "", *, top: str = "", instead: str = LAUNCH) -> str:
    """The staff kernel with lines before and after its launch, or instead of it."""
    assert LAUNCH in STAFF
    indented = ["".join(f"    {line}\n" for line in lines.splitlines()) for lines in (before, after)]
    return top + STAFF.replace(LAUNCH, indented[0] + instead + indented[1])


FORGES = with_lines(top=ENTRY_CLOCK, before="clock()._between = lambda *events: 0.1")
TAKES_THE_MEMORY = with_lines(
    top="kept = []\n",
    before="while True:\n"
    "    try: kept.append(torch.empty(2**30, dtype=torch.uint8, device=x.device))\n"
    "    except torch.OutOfMemoryError: break",
)
SLOWS_THE_REFERENCE = with_lines(
    top=ENTRY_CLOCK + "stream = None\n",
    before="global stream\n"
    "if stream is None:\n"
    "    stream = torch.cuda.Stream()\n"
    "    mine = clock()\n"
    "    # Waits for the call's own work only; what is queued beside it goes on in the reference's turn.\n"
    "    mine._wait = mine._last.synchronize",
    after="with torch.cuda.stream(stream): torch.cuda._sleep(60_000_000)",
)


DOES_NOT_FLUSH = with_lines(
    top=ENTRY_CLOCK + "mine = None\n",
    before="global mine\n"
    "if mine is None:\n"
    "    mine = clock()\n"
    "    # Long enough for the launch to be queued meanwhile, as behind the flush.\n"
    "    mine._zero = lambda *_: torch.cuda._sleep(200_000)",
)


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vector add with one ranked case of about 190 µs on an H200."""
    return with_one_case(tmp_path_factory.mktemp("assignments"), 2**26)


@pytest.fixture(scope="module")
def in_the_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vector add with one ranked case that fits into the L2 cache twice."""
    return with_one_case(tmp_path_factory.mktemp("assignments"), 2**21)


def with_one_case(parent: Path, n: int) -> Path:
    folder = parent / "vector_add"
    shutil.copytree(ROOT / "assignments" / "vector_add", folder)
    manifest = folder / "assignment.toml"
    text = manifest.read_text(encoding="utf-8").replace("134217728", str(n)).replace("pairs = 25", "pairs = 9")
    head, second = text.split('[[case]]\nname = "gpu_ranked_bfloat16"')
    rest = second.partition("[[case]]")[2]
    manifest.write_text(head + ("[[case]]" + rest if rest else ""), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def measure(lane: Lane, sandbox: ProcessSandbox, assignment: Path) -> Iterator[Measure]:
    references = References(sandbox)

    def run(
        source: str, *, remeasured: int = 0, defences: Defences = ALL_ON, assignment: Path = assignment
    ) -> GradeResult:
        request = GradeRequest(
            "vector_add", "", Language.triton, lane, Mode.submission, source, "vector_add.py", Work.measure,
            remeasured=remeasured,
        )  # fmt: skip
        return grade(
            request, assignment_folder=assignment, reference_folder=ROOT / "reference" / "vector_add",
            sandbox=sandbox, references=references, defences=defences,
        )  # fmt: skip

    yield run
    references.close()


def only(result: GradeResult) -> Measurement:
    assert result.verdict is Verdict.passed, result.explanation
    (found,) = result.measurements
    return found


def test_an_honest_kernel_is_bounded(measure: Measure) -> None:
    result = measure(STAFF)
    found = only(result)
    assert found.bound
    assert found.control
    assert found.bound.sealed_us > 0
    assert 0 < found.floor_us < found.time_us
    assert not result.held
    assert result.exclusive_s > 0


def test_a_forged_clock_gains_nothing_and_accuses_nobody(measure: Measure) -> None:
    result = measure(FORGES)
    found = only(result)
    assert {pair.submission_event_us for pair in found.pairs} == {100.0}
    assert found.clock == "batches"
    assert found.ratio > 0.95
    assert "by the device's" in found.note
    assert (result.held, result.remeasure, result.findings) == (False, "", ())


def test_without_batches_a_forged_clock_ranks(measure: Measure) -> None:
    found = only(measure(FORGES, remeasured=1, defences=dataclasses.replace(ALL_ON, batches=False)))
    assert found.time_us == 100.0
    # The data sheet would have held it: another defence.
    assert found.held in {"", validity.BELOW_FLOOR}


def test_whoever_takes_all_memory_runs_out_of_it(measure: Measure) -> None:
    result = measure(TAKES_THE_MEMORY)
    assert result.verdict is Verdict.out_of_memory, result.explanation
    assert measure(STAFF).verdict is Verdict.passed


def test_without_that_defence_the_grader_fails(measure: Measure) -> None:
    off = dataclasses.replace(ALL_ON, memory_blame=False)
    assert measure(TAKES_THE_MEMORY, defences=off).verdict is Verdict.grader_error


def test_a_slowed_reference_gains_nothing(measure: Measure) -> None:
    result = measure(SLOWS_THE_REFERENCE)
    if result.verdict is Verdict.passed:
        found = only(result)
        assert found.ratio > 0.95
        assert result.remeasure or found.control is None or found.control.agrees


def test_below_the_floor_is_held_at_once(measure: Measure) -> None:
    source = FORGES.replace("0.1", "0.01")
    off = dataclasses.replace(ALL_ON, batches=False)
    result = measure(source, defences=off)
    assert only(result).held == validity.BELOW_FLOOR
    assert result.held
    assert not measure(source, defences=dataclasses.replace(off, floor=False)).held


def test_without_cooling_what_the_judge_wrote_is_in_the_cache_for_whoever_does_not_flush(
    measure: Measure, in_the_cache: Path
) -> None:
    """The bound would see it in a longer case; one of some microseconds is not bounded."""
    unbounded = dataclasses.replace(ALL_ON, batches=False, floor=False)
    cooled = only(measure(DOES_NOT_FLUSH, defences=unbounded, assignment=in_the_cache))
    warm = dataclasses.replace(unbounded, cold=False)
    found = only(measure(DOES_NOT_FLUSH, defences=warm, assignment=in_the_cache))
    assert found.ratio < 0.9 * cooled.ratio
    assert cooled.ratio > 0.9
