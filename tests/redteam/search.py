"""Searches for the largest gain of a timing attack that goes unnoticed, for kernels of 16 µs to 1.5 ms.

    python -m tests.redteam.search --lane h200 --out FILE [--limit-s 200]     on a GPU: gradings, and what they showed
    python -m tests.redteam.search --from FILE                                anywhere: the table from recorded gradings

What an attack can do is of two kinds. Some of it is *physical*: how little the sealed clock sees of its batches, how
far it slows the reference. That is tried, a grading each, and the knob of what is left queued is turned up until it is
noticed. The other kind is *forged*: by what its reported times are multiplied. No physics depends on it, so for every
physical attempt the smallest factor that goes unnoticed is found by bisection over the recorded samples, with the
judge's own decision. The best of all is then graded for real, forgery included, and has to go unnoticed.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from autograder import codec
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Measurement, Mode, Work
from autograder.judge import References, grade
from autograder.lanes import expanded
from autograder.sandbox import Sandbox
from autograder.sandbox.process import ProcessSandbox
from tests.hostile.stand import ROOT, Folders, to_toml
from tests.redteam.decide import LAST, judged, smallest_scale
from tests.redteam.strategies import Knobs, source_of

PAIRS = 11
LEAST_CHUNK, COPIES, STEPS = 64 * 1024, 400, 3
"""Where the knob of queued copies begins, how many are queued, and how often it is turned."""


@dataclass(frozen=True)
class Kernel:
    """A staff kernel at one size.

    Attributes:
        case: the ranked case whose sizes are replaced by `size`.
    """

    slug: str
    case: str
    size: dict[str, int]

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.slug} {', '.join(f'{name} = {_power(value)}' for name, value in self.size.items())}"


KERNELS = (
    Kernel("vector_add", "gpu_ranked", {"n": 2**27}),
    Kernel("vector_add", "gpu_ranked", {"n": 2**24}),
    Kernel("matmul_tiled", "gpu_ranked", {"m": 4096, "n": 4096, "k": 4096}),
    Kernel("vector_add", "gpu_ranked", {"n": 2**26}),
    Kernel("vector_add", "gpu_ranked", {"n": 2**25}),
    Kernel("vector_add", "gpu_ranked", {"n": 2**22}),
    Kernel("vector_add", "gpu_ranked", {"n": 2**29}),
)
"""The most telling first, should time run out; a matrix product, as what is bound by arithmetic leaves memory free."""


SLOWED = (KERNELS[0], KERNELS[2])
"""For which the knob of queued copies is turned: what it does is the reference's affair, not the size's."""


@dataclass(frozen=True)
class Probe:
    """One grading of the search.

    Attributes:
        measurement: everything that the judge recorded.
        noticed: why it was, or would be, held or measured again; `""` if it went through.
        gain: by how much faster it was credited than it is; of an unnoticed one.
    """

    kernel: Kernel
    knobs: Knobs
    verdict: str
    noticed: str
    gain: float
    measurement: Measurement | None = None


class Bench:
    """Grades a kernel with knobs, on a GPU."""

    def __init__(self, lane: Lane, sandbox: Sandbox, root: Path) -> None:
        self._lane = lane
        self._sandbox = sandbox
        self._root = root
        self._references = References(sandbox)
        self._folders: dict[str, Folders] = {}

    def probe(self, kernel: Kernel, knobs: Knobs) -> Probe:
        """One grading; an honest one twice where the judge asks for it, an attack as if it were the last."""
        result = self._graded(kernel, knobs, remeasured=0 if knobs == Knobs() else LAST)
        if result.remeasure and knobs == Knobs():
            result = self._graded(kernel, knobs, remeasured=1)
        if not result.measurements:
            return Probe(kernel, knobs, str(result.verdict), result.explanation[:200], 0.0)
        found = result.measurements[0]
        why = result.held_reason if result.held else result.remeasure
        # Its work is the reference's own, so its true ratio is 1.
        return Probe(kernel, knobs, str(result.verdict), why, 1 - found.ratio, found)

    def _graded(self, kernel: Kernel, knobs: Knobs, remeasured: int = 0) -> GradeResult:
        folders = self._of(kernel)
        staff = (folders.reference / "solutions" / "triton.py").read_text(encoding="utf-8")
        manifest = tomllib.loads((folders.assignment / "assignment.toml").read_text(encoding="utf-8"))
        request = GradeRequest(
            kernel.slug, "", Language("triton"), self._lane, Mode.submission,
            source_of(staff, manifest["entry"], knobs), "kernel.py", Work.measure, remeasured=remeasured,
        )  # fmt: skip
        return grade(
            request, assignment_folder=folders.assignment, reference_folder=folders.reference, sandbox=self._sandbox,
            references=self._references,
        )  # fmt: skip

    def _of(self, kernel: Kernel) -> Folders:
        if kernel.name not in self._folders:
            self._folders[kernel.name] = _written(kernel, self._lane, self._root / str(len(self._folders)))
        return self._folders[kernel.name]

    def close(self) -> None:
        """End the references."""
        self._references.close()


def search(
    bench: Bench, kernels: Sequence[Kernel], until: float, told: Callable[[Probe], None], honest: int = 2
) -> list[Probe]:
    """Every kernel's probes. What has not begun at `until`, by the monotonic clock, is left out; so is everything after
    an honest kernel that could not be measured."""
    probes: list[Probe] = []

    def probe(kernel: Kernel, knobs: Knobs) -> Probe | None:
        if time.monotonic() > until:
            return None
        found = bench.probe(kernel, knobs)
        probes.append(found)
        told(found)
        return found

    for kernel in kernels:
        plain = [probe(kernel, Knobs()) for _ in range(honest)]
        measured = [one.measurement for one in plain if one and one.measurement]
        if not measured:
            return probes
        true_us = min(one.time_us for one in measured)
        _physical(kernel, true_us, probe)
        _confirmed(kernel, true_us, probes, probe)
    return probes


def _physical(kernel: Kernel, true_us: float, probe: Callable[..., Probe | None]) -> None:
    """Its own protocol, merged, early, and neither; and copies left queued, larger ones until it is noticed."""
    probe(kernel, Knobs(takes_over=True))
    if kernel.slug == "vector_add":
        probe(kernel, Knobs(takes_over=True, merged=True))
    probe(kernel, Knobs(takes_over=True, early=True, claim_ns=round(true_us * 1e3)))
    if kernel not in SLOWED:
        return
    chunk, step = LEAST_CHUNK, 8
    for _ in range(STEPS):
        found = probe(kernel, Knobs(copies=COPIES, chunk=chunk))
        chunk = chunk // step if found and found.noticed else chunk * step
        step = max(2, step // 2)


def _confirmed(kernel: Kernel, true_us: float, probes: Sequence[Probe], probe: Callable[..., Probe | None]) -> None:
    """The best of this kernel's probes, forged as far as its samples allow, for real; less if it is noticed."""
    best = max((one for one in probes if one.kernel == kernel and one.measurement), key=lambda one: reach(one)[0])
    _, scale = reach(best)
    for room in (0.002, 0.008):
        knobs = replace(best.knobs, scale=min(1.0, scale + room))
        if best.knobs.claim_ns:
            knobs = replace(knobs, claim_ns=round(true_us * knobs.scale * 1e3))
        found = probe(kernel, knobs)
        if found is None or not found.noticed:
            return


def reach(probe: Probe) -> tuple[float, float]:
    """The gain that a probe's samples would allow with the smallest forgery that goes unnoticed, and that factor."""
    if probe.measurement is None or probe.verdict != "passed":
        return 0.0, 1.0
    scale = smallest_scale(probe.measurement)
    return (1 - judged(probe.measurement, scale).ratio, scale) if scale < math.inf else (0.0, 1.0)


def _written(kernel: Kernel, lane: Lane, root: Path) -> Folders:
    """The assignment with this one case."""
    folders = Folders(root / "assignments" / kernel.slug, root / "reference" / kernel.slug)
    shutil.copytree(ROOT / "assignments" / kernel.slug, folders.assignment)
    shutil.copytree(ROOT / "reference" / kernel.slug, folders.reference)
    manifest = expanded(tomllib.loads((folders.assignment / "assignment.toml").read_text(encoding="utf-8")))
    case = next(case for case in manifest["case"] if case["name"] == kernel.case)
    manifest["case"] = [{**case, "size": {**case["size"], **kernel.size}}]
    manifest["lane"] = {str(lane): {**manifest["lane"][lane], "pairs": PAIRS}}
    manifest.pop("requirement", None)  # They name other cases.
    (folders.assignment / "assignment.toml").write_text(to_toml(manifest), encoding="utf-8")
    return folders


def _power(value: int) -> str:
    return f"2^{value.bit_length() - 1}" if value & (value - 1) == 0 and value > 2**16 else str(value)


def table(probes: Sequence[Probe]) -> str:
    """By kernel: how many honest gradings were noticed, the best unnoticed gain, and by what."""
    heads = ("kernel", "µs", "honest, noticed", "attacks", "samples allow", "gain graded", "by")
    rows = [_line(kernel, [probe for probe in probes if probe.kernel == kernel]) for kernel in _kernels(probes)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ("---",) * len(heads), *rows))


def _kernels(probes: Sequence[Probe]) -> list[Kernel]:
    """Those of which anything was measured."""
    return [kernel for kernel in KERNELS if any(probe.kernel == kernel and probe.measurement for probe in probes)]


def _line(kernel: Kernel, own: Sequence[Probe]) -> tuple[str, ...]:
    honest = [probe for probe in own if probe.knobs == Knobs() and probe.verdict == "passed"]
    times = sorted(probe.measurement.time_us for probe in honest if probe.measurement)
    through = [probe for probe in own if probe.verdict == "passed" and not probe.noticed]
    best = max(through, key=lambda probe: probe.gain, default=None)
    return (
        kernel.name,
        f"{times[len(times) // 2]:.1f}" if times else "—",
        f"{sum(bool(probe.noticed) for probe in honest)}/{len(honest)}",
        str(sum(probe.verdict == "passed" for probe in own) - len(honest)),
        f"{max((reach(probe)[0] for probe in own), default=0.0):.1%}",
        f"{max(best.gain, 0.0):.1%}" if best else "none",
        best.knobs.name if best else "—",
    )


def load(path: Path) -> list[Probe]:
    """Probes as `main` wrote them, decided anew by the thresholds of today."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return [_again(codec.from_json(Probe, one)) for one in data["probes"]]


def _again(probe: Probe) -> Probe:
    if probe.measurement is None or probe.verdict != "passed":
        return probe
    made = judged(probe.measurement, remeasured=1 if probe.knobs == Knobs() else LAST)
    return replace(probe, noticed=made.held or made.remeasure, gain=1 - made.ratio)


def main() -> int:
    """Search, or read what was found."""
    options = _options()
    if options.recorded:
        print(table(load(options.recorded)))
        return 0
    started = time.monotonic()
    sandbox = _sandbox(options.sandbox)
    so_far: list[Probe] = []

    def told(probe: Probe) -> None:
        """Show it, and keep what there is: who stops a long search has it so far."""
        _tell(probe)
        so_far.append(probe)
        if options.out:
            _write(options.out, so_far, time.monotonic() - started, options.sandbox)

    with tempfile.TemporaryDirectory(prefix="redteam-") as root:
        bench = Bench(options.lane, sandbox, Path(root))
        try:
            probes = search(
                bench, KERNELS[options.skip :][: options.kernels], started + options.limit_s, told, options.honest
            )
        finally:
            bench.close()
            sandbox.close()
    print(table(probes))
    return 0 if any(probe.measurement for probe in probes) else 1


def _write(path: Path, probes: Sequence[Probe], seconds: float, sandbox: str) -> None:
    data: dict[str, Any] = {
        "seconds": round(seconds, 1),
        "sandbox": sandbox,
        "probes": [codec.to_json(probe) for probe in probes],
    }
    path.write_text(json.dumps(data) + "\n", encoding="utf-8")


def _sandbox(name: str) -> Sandbox:
    from tests.redteam.stands import SANDBOXES  # noqa: PLC0415 - it asks the machine for its GPU

    return SANDBOXES[name]() if name != "process" else ProcessSandbox()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.redteam.search", description=__doc__.splitlines()[0])
    parser.add_argument("--lane", type=Lane, default=Lane.h200)
    parser.add_argument("--sandbox", choices=("process", "docker"), default="process")
    parser.add_argument("--limit-s", type=float, default=200.0)
    parser.add_argument("--kernels", type=int, default=len(KERNELS), help="how many of them, the most telling first")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many, which were searched before")
    parser.add_argument("--honest", type=int, default=2, help="gradings without a cheat, of each")
    parser.add_argument("--out", type=Path, help="every probe with its samples")
    parser.add_argument("--from", dest="recorded", type=Path, help="no GPU: decide recorded probes anew")
    return parser.parse_args()


def _tell(probe: Probe) -> None:
    found = probe.measurement
    seen = f"{found.time_us:.1f} µs, ratio {found.ratio:.4f}" if found else "no measurement"
    gain, scale = reach(probe)
    said = json.dumps(asdict(probe.knobs))
    print(
        f"{probe.kernel.name}: {probe.knobs.name}: {probe.verdict}, {seen}, {probe.noticed or 'unnoticed'}; "
        f"samples allow × {scale:.4f}, a gain of {gain:.3f} {said if not probe.noticed else ''}",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
