"""What goes wrong on a node; all of it is ours, and costs the student nothing.

WorkerError
├── BundleError              an assignment's files could not be had
├── FolderTakenError         another worker has the folder
├── GpuUnknownError          there is no such GPU, or several and none was named
├── UnfitError               the node must not serve as it is configured
├── RefusedError             the server does not take this node's key
├── HandedBackError          the attempt is given back untried
├── SuspectError             the attempt broke the node or the judge, and whose fault that is, is not known
└── JudgeError
    ├── JudgeDiedError       its process ended in the middle of a grading
    ├── JudgeSilentError     it did not end before the attempt's deadline
    └── JudgeBrokenError     it said something that is no event
"""

from __future__ import annotations


class WorkerError(Exception):
    """Ours; the message goes to staff as the attempt's reason."""


class BundleError(WorkerError):
    """An assignment's files could not be had."""


class FolderTakenError(WorkerError):
    """Another worker has the folder; this one does not start."""


class GpuUnknownError(WorkerError):
    """There is no such GPU, or several and none was named; the worker does not start."""


class UnfitError(WorkerError):
    """The node must not serve as it is configured; the worker does not start."""


class RefusedError(WorkerError):
    """The server does not take this node's key."""


class HandedBackError(WorkerError):
    """The attempt is given back: the node is stopped, or has no room. It does not count as one of the submission's."""


class SuspectError(WorkerError):
    """The attempt broke the node or the judge; whose fault that is, is not known."""


class JudgeError(WorkerError):
    """The judge's process failed; it is replaced."""


class JudgeDiedError(JudgeError):
    """It ended in the middle of a grading."""


class JudgeSilentError(JudgeError):
    """It did not end before the attempt's deadline."""


class JudgeBrokenError(JudgeError):
    """It said something that is no event."""
