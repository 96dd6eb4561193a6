"""The closed sets of words that columns hold. What crosses a process stands in `autograder.contract`."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a person is in one course."""

    student = "student"
    ta = "ta"
    instructor = "instructor"


class SourceSharing(StrEnum):
    """Who can read sources that were opened on a leaderboard, once nobody can hand in any more."""

    nobody = "nobody"
    members = "members"
    everyone = "everyone"
    """Whoever can look at the board."""


class Line(StrEnum):
    """Where in the queue a submission stands; `server.grading.policy` says who goes first and what each is kept."""

    submission = "submission"
    """It has no verdict yet."""
    measuring = "measuring"
    """It passed and waits for its times, on lanes that measure apart."""
    run = "run"
    profile = "profile"
    """One call is to be looked at under counters, when nobody waits for a grade or a run."""
    regrade = "regrade"
    superseded = "superseded"
    """A newer one took its place."""
    confirm = "confirm"
    """It has its grade, and is graded once more when nobody else waits: to confirm it, or because a node was sick."""


class AlertKind(StrEnum):
    """What staff are told of; docs/operations.md has a page of its runbook for each."""

    submission_failed = "submission_failed"
    """It has no result after the last attempt; ours."""
    node_rests = "node_rests"
    node_silent = "node_silent"
    suspect_held = "suspect_held"
    """Nodes went silent while they ran it."""
    queue_stuck = "queue_stuck"
    reconciliation_failed = "reconciliation_failed"
    """Received is not final plus in flight."""
    clock_jumped = "clock_jumped"
    recorder_behind = "recorder_behind"
    forged_message = "forged_message"
    broker_misused = "broker_misused"
    """A node said too much or what is not a message, or a key at the broker had the wrong type; it was set aside."""
    disk_full = "disk_full"
    node_unfit = "node_unfit"
    """A node takes nothing because of what it found out about itself."""
    result_held = "result_held"
    """A measurement waits for a person."""
    confirmation_failed = "confirmation_failed"
    """It had passed, and did not when it was graded once more."""
    judge_beaten = "judge_beaten"
    """A submission passed an assignment that no honest kernel passes."""
    mail_failed = "mail_failed"
    """The mail server takes nothing, or a mail was given up."""


class ChangeReason(StrEnum):
    """Why a submission's points are other than before."""

    graded = "graded"
    pooled = "pooled"
    """The same source was measured again: its samples were added."""
    rescored = "rescored"
    """Staff had it worked out anew by another formula."""
    regraded = "regraded"
    """Staff applied a regrade."""
    rolled_back = "rolled_back"
    """Staff rolled one back."""
    reviewed = "reviewed"
    """Staff held, cleared or rejected it; or it was held until they look."""


class AttemptState(StrEnum):
    """Where an attempt is: `dispatched` (claimed, sent), `running` (a node has it), then one of the ends."""

    dispatched = "dispatched"
    running = "running"
    finished = "finished"
    lost = "lost"
    """Its lease expired; ours."""
    failed = "failed"
    """Its node said that it could not; ours."""
