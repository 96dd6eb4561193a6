"""Whose fault it was that something broke while a submission's work was on the GPU (design §4).

The student's, unless the node afterwards fails a job that is known to be right: a fault in the runner's own context
ends the runner, which the judge has called an illegal access, and that stands. Where the node is ill it goes out of
service. Where the judge broke under a fault on a healthy node nobody is accused: the judge has a context of its
own, and its fault may be ours. In both cases the attempt is given back as ours and marked, and the next node to run
it is one in quarantine, so that no submission takes down one node after the other.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from autograder.contract import GradeResult, Lane, Verdict
from worker.known import KnownJobs
from worker.watch import HARDWARE_XIDS, STUDENT_XIDS

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Judged:
    """What was decided.

    Attributes:
        result: what the attempt ends with; `None` if it has no result, or none that may be kept.
        node: why the node has to go out of service; `""` if it has not.
        suspect: why the submission runs in quarantine from now on; `""` if it does not.
    """

    result: GradeResult | None
    node: str = ""
    suspect: str = ""


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
    if not outcome.passed:
        why = f"a known-good job failed after an attempt: {outcome}"
        return Judged(None, node=why, suspect=why)
    faults = [xid for xid in xids if xid in STUDENT_XIDS]
    if faults and (result is None or result.verdict is Verdict.grader_error):
        return Judged(None, suspect=f"the GPU reported Xid {faults[0]}, and the judge broke with it")
    return Judged(result)
