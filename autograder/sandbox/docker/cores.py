"""Which cores a GPU node gives to whom.

A batch of calls takes the host ten milliseconds, in which a core that serves somebody else for two of them makes the
batch a fifth longer. So whoever imports or compiles in the background is kept on other cores than
the two who are timed and the judge who times them. Where a node's owner says nothing, the machine decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.errors import SandboxError
from autograder.sandbox import gpu

FEWEST = 4
"""Physical cores; a machine with fewer has none to give away."""
_LIST = re.compile(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")
_SYSTEM = Path("/sys")
_AT_FIRST = frozenset(os.sched_getaffinity(0))
"""What this process might use before a sandbox kept it on some of it; a second sandbox shares out all of it again."""


@dataclass(frozen=True)
class Cores:
    """Sets of cores as in `2-5,8`; `""` is any.

    Attributes:
        judge: of the judge's process.
        submission, reference: of either side; they take turns.
        warm: of containers that import and wait.
    """

    judge: str = ""
    submission: str = ""
    reference: str = ""
    warm: str = ""

    @property
    def untimed(self) -> str:
        """Of a submission's containers while nothing is timed: all that are not the judge's."""
        others = (self.submission, self.reference, self.warm)
        return ",".join(map(str, sorted(frozenset().union(*map(numbers, others))))) if all(others) else ""


ANY = Cores()
"""Nobody is kept anywhere."""


def by_the_machine(
    environ: Mapping[str, str] = os.environ,
    *,
    gpus: Path = gpu.FOLDER,
    system: Path = _SYSTEM,
    allowed: Collection[int] = _AT_FIRST,
) -> Cores:
    """An eighth of the cores near the GPU for the judge, half for what waits, the others for both sides.

    Whole physical cores, as siblings slow each other. GPUs that are near the same cores share them equally. Both sides
    have the same cores, so that none has the faster ones.

    Args:
        allowed: what this process may use.
    """
    try:
        bus, buses = gpu.bus(environ, gpus), gpu.buses(gpus)
    except SandboxError:
        return ANY
    near = _near(system, bus)
    beside = [other for other in buses if _near(system, other) == near]
    physical = _physical(system, near.intersection(allowed) if near else allowed)
    size, place = len(physical) // len(beside), beside.index(bus)
    own = physical[place * size : (place + 1) * size]
    if size < FEWEST:
        return ANY
    first, half = max(1, size // 8), size - size // 2
    sides = _text(own[first:half])
    return Cores(_text(own[:first]), sides, sides, _text(own[half:]))


def numbers(text: str) -> frozenset[int]:
    """The cores in a list such as `0-3,8`.

    Raises:
        ValueError: it is no such list.
    """
    if not _LIST.fullmatch(text):
        raise ValueError(f"cores are listed as in 0-3,8, not as {text!r}")
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


def apart(text: str, system: Path = _SYSTEM) -> tuple[str, ...]:
    """The physical cores in a list such as `2-5`, each as a list of its own: `2,4` and `3,5` if those are siblings."""
    return tuple(_text([siblings]) for siblings in _physical(system, numbers(text)))


def _near(system: Path, bus: str) -> frozenset[int]:
    """Cores of the GPU's side of the machine; none if the system does not tell."""
    return _read(system / "bus/pci/devices" / bus.lower() / "local_cpulist")


def _physical(system: Path, cores: Iterable[int]) -> list[tuple[int, ...]]:
    """Siblings together, in the order of their numbers."""
    left, found = set(cores), list[tuple[int, ...]]()
    for core in sorted(left):
        siblings = _read(system / f"devices/system/cpu/cpu{core}/topology/thread_siblings_list") | {core}
        if core in left:
            found.append(tuple(sorted(siblings & left)))
            left -= siblings
    return found


def _read(path: Path) -> frozenset[int]:
    try:
        return numbers(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return frozenset()


def _text(physical: Iterable[tuple[int, ...]]) -> str:
    return ",".join(str(core) for core in sorted(core for group in physical for core in group))
