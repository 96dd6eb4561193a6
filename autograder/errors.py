"""What the harness raises.

The tree, each with when it is raised:

    HarnessError                 something of ours is wrong; never the student's fault
    ├── ContractError            a message does not have the shape, size or type that the contract gives it
    ├── ManifestError            an assignment's files are wrong: says the file, the key, the line and a suggestion
    ├── SandboxError             the sandbox could not start, freeze or remove a runner
    │   └── NotStoppedError      its processes go on though they were told to stop
    ├── GpuError                 there is no such GPU, or its driver refused something of ours
    │   └── GpuMemoryError       the device has no memory left for something of ours
    └── ProtocolError            the judge itself broke the protocol (a runner that breaks it gets a verdict instead)
"""

from __future__ import annotations

from pathlib import Path


class HarnessError(Exception):
    """Something of ours is wrong. A grading that ends in one has the verdict `grader_error`."""


class ContractError(HarnessError):
    """A message does not have the shape, size or type that the contract gives it."""


class SandboxError(HarnessError):
    """The sandbox could not start, freeze or remove a runner."""


class NotStoppedError(SandboxError):
    """Processes of a runner go on though they were told to stop; whose fault that is, the judge has to find out."""


class GpuError(HarnessError):
    """There is no such GPU, or its driver refused something of ours."""


class GpuMemoryError(GpuError):
    """The device has no memory left for something of ours; whose fault that is, the judge has to find out."""


class ProtocolError(HarnessError):
    """The judge itself broke the protocol; a runner that breaks it gets a verdict instead."""


class ScaffoldError(HarnessError):
    """A new rung cannot be begun like that."""


class ManifestError(HarnessError):
    """An assignment's files are wrong.

    Attributes:
        path: the file that is wrong.
        key: the dotted key in it, `""` for the file as a whole.
        line: its line, counted from 1, where it could be found.
    """

    def __init__(self, path: Path, key: str, problem: str, *, line: int | None = None, suggestion: str = "") -> None:
        self.path = path
        self.key = key
        self.line = line
        where = f"{path}:{line}" if line else str(path)
        subject = f"{key}: " if key else ""
        hint = f" {suggestion}" if suggestion else ""
        super().__init__(f"{where}: {subject}{problem}.{hint}")
