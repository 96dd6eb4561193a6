"""Whose fault it was that something broke while a submission's work was on the GPU (design §4).

The student's, unless the node afterwards fails a job that is known to be right; then the node is out of service, and
the attempt is given back as ours, marked: the next node to run it is one in quarantine.
"""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass

from autograder.contract import GradeResult, Lane, StudentError, Verdict
from worker.known import KnownJobs
from worker.watch import HARDWARE_XIDS, STUDENT_XIDS

logger = logging.getLogger(__name__)

_NAMES = {
    13: "an exception of the graphics engine",
    31: "a memory page fault",
    43: "a channel that stopped",
    45: "work that was ended",
    68: "an exception of the video engine",
    69: "an exception of the graphics engine",
}


@dataclass(frozen=True)
class Judged:
    """What was decided.

    Attributes:
        result: what the attempt ends with; `None` if it has no result, or none that may be kept.
        node: why the node has to go out of service; `""` if it has not.
    """

    result: GradeResult | None
    node: str = ""


def looks_broken(result: GradeResult | None, lane: Lane, xids: tuple[int, ...], *, xids_are_told: bool) -> bool:
    """Whether it is a question at all: the judge or the GPU broke, or may have.

    Args:
        result: `None` if the judge gave none.
        xids: the driver's error numbers of the attempt's time.
        xids_are_told: where they are not, a memory error on a GPU may have been a fault of the GPU's.
    """
    if result is None or result.verdict is Verdict.grader_error:
        return True
    may_have_faulted = lane is not Lane.cpu and not xids_are_told and result.verdict is Verdict.illegal_access
    return may_have_faulted or bool((STUDENT_XIDS | HARDWARE_XIDS).intersection(xids))


def judged(result: GradeResult | None, xids: tuple[int, ...], jobs: KnownJobs) -> Judged:
    """Put a job that is known to be right through the node, and decide.

    A judge that the fault left broken is replaced and asked once more: what a submission can do to a process is not
    the node's illness.

    Raises:
        HandedBackError: the node is stopped meanwhile.
    """
    outcome = jobs.good()
    if not outcome.passed:
        logger.warning("a known-good job failed after an attempt: %s", outcome)
        outcome = jobs.anew()
    if outcome.passed:
        return Judged(_students(result, xids))
    return Judged(None, f"a known-good job failed after an attempt: {outcome}")


def _students(result: GradeResult | None, xids: tuple[int, ...]) -> GradeResult | None:
    """The node is well. What its GPU reported is then the submission's, also where it took the judge's result along."""
    caused = next((xid for xid in xids if xid in STUDENT_XIDS), None)
    if result is None or result.verdict is not Verdict.grader_error or caused is None:
        return result
    message = (
        f"The GPU stopped your kernel (Xid {caused}: {_NAMES[caused]}), and a kernel known to be right ran well after "
        "it. Look for an address outside the tensors, or a launch that the GPU cannot carry out."
    )
    error = StudentError("GPU fault", f"Xid {caused}")
    return dataclasses.replace(result, verdict=Verdict.illegal_access, explanation=message, error=error)
