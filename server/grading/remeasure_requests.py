"""Taking the times of a submission once more because its student asks: its samples are added, none is replaced.

It is one more attempt, on another node where there is one, in the line of regrades. What came of it is written on the
request, for the person who reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import Verdict
from server.models import Attempt, Line, Node, RegradeRequest, Result, Submission


@dataclass(frozen=True)
class Speeds:
    """What counted at one time: of how many attempts, and what it was worth."""

    ratio: float | None
    low: float | None
    high: float | None
    attempts: int
    points: float | None


@dataclass(frozen=True)
class Retime:
    """What came of taking the times once more.

    Attributes:
        why_not: why they were not taken; `""` where they were, or are about to be.
        verdict: of the attempt; `None` until it has ended.
        nodes: which measured before, and now.
        other_node: whether it was another one.
    """

    why_not: str = ""
    before: Speeds | None = None
    after: Speeds | None = None
    verdict: Verdict | None = None
    nodes: tuple[str, str] = ("", "")

    @property
    def other_node(self) -> bool:
        """Whether another node measured than before."""
        return bool(self.nodes[1]) and self.nodes[0] != self.nodes[1]


def retime_of(request: RegradeRequest) -> Retime:
    """What stands on a request."""
    return codec.from_json(Retime, request.retime) if request.retime else Retime()


def speeds_of(session: Session, submission: Submission) -> Speeds:
    """Of what counts now."""
    row = session.get_one(Result, submission.result_id)
    return Speeds(row.ratio, row.ratio_low, row.ratio_high, row.pooled_attempts, submission.points)


def open_request(session: Session, submission: Submission) -> RegradeRequest | None:
    """The request that a submission's times are taken for; `None` where it waits or runs for something else."""
    if submission.line is not Line.regrade:
        return None
    query = select(RegradeRequest).where(RegradeRequest.submission_id == submission.id, RegradeRequest.retiming)
    return session.scalar(query.execution_options(populate_existing=True))


def end_retime(
    session: Session, request: RegradeRequest, submission: Submission, attempt: Attempt, verdict: Verdict
) -> None:
    """Write down what came of it; from now on the request waits for a person."""
    before = retime_of(request)
    node = session.get_one(Node, attempt.node_id)
    done = Retime("", before.before, speeds_of(session, submission), verdict, (before.nodes[0], node.name))
    request.retime, request.retiming = codec.to_json(done), False
    request.revision += 1


def fail_retime(request: RegradeRequest) -> None:
    """Our side could not take them; a person reads it all the same."""
    before = retime_of(request)
    failed = Retime("No node could measure it, which is our fault.", before.before, nodes=before.nodes)
    request.retime, request.retiming = codec.to_json(failed), False
    request.revision += 1
