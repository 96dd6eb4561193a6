"""What staff should look at, of several looks at the same submission."""

from __future__ import annotations

from collections.abc import Iterable

from autograder.contract import Finding


def together(first: Iterable[Finding], later: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first look's, and the later one's of kinds that the first has not shown: one thing is to be said once."""
    shown = tuple(first)
    kinds = {finding.kind for finding in shown}
    return shown + tuple(finding for finding in later if finding.kind not in kinds)
