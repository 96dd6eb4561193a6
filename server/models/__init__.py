"""The tables.

    User ─< Enrolment >─ Course ─< Assignment ─< AssignmentVersion >─ Bundle
      │                               │
      ├──< Submission >───────────────┤        Submission ─< Attempt ─ Result ─< CaseRow
      └──< QuizAnswer >─── Quiz >─────┘
    LoginSession, ApiToken >─ User              Attempt >─ Node      Attempt ─< Artefact, Sampling
    Submission ─ Forecast, ─< GradeChange       AuditEntry, Alert, Rehearsal, Service, Tick, NodeInvite, AccountsCheck
                                                ReceiptKey

A submission is what a student handed in and where it is; an attempt is one try of ours at grading it; a result is what
one attempt found: its payload is never changed afterwards, what is worked out from it follows the pool of samples and
the formula. `Submission.result_id` points at the result that counts: a regrade adds a result and moves the pointer.
Runs (practice) are submissions with `mode = run`: they number apart and count for nothing.

Times are UTC and end in `_at`. Relationships are `lazy="raise"`: what a page needs, its query loads.
"""

from __future__ import annotations

from autograder.contract import Kind, Lane, Language, Mode, Phase, Review, State, Verdict, Visibility, Work
from server.models.base import Base, UtcDateTime
from server.models.courses import Assignment, AssignmentVersion, Bundle, Course, Enrolment
from server.models.grading import (
    Artefact,
    Attempt,
    CaseRow,
    Forecast,
    GradeChange,
    ReceiptKey,
    Result,
    Sampling,
    Submission,
)
from server.models.nodes import Node, NodeInvite
from server.models.operations import AccountsCheck, Alert, Rehearsal, Service, Tick
from server.models.people import ApiToken, AuditEntry, LoginAttempt, LoginSession, User
from server.models.quizzes import Quiz, QuizAnswer
from server.models.words import AlertKind, AttemptState, ChangeReason, Line, Role

__all__ = [
    "AccountsCheck",
    "Alert",
    "AlertKind",
    "ApiToken",
    "Artefact",
    "Assignment",
    "AssignmentVersion",
    "Attempt",
    "AttemptState",
    "AuditEntry",
    "Base",
    "Bundle",
    "CaseRow",
    "ChangeReason",
    "Course",
    "Enrolment",
    "Forecast",
    "GradeChange",
    "Kind",
    "Lane",
    "Language",
    "Line",
    "LoginAttempt",
    "LoginSession",
    "Mode",
    "Node",
    "NodeInvite",
    "Phase",
    "Quiz",
    "QuizAnswer",
    "ReceiptKey",
    "Rehearsal",
    "Result",
    "Review",
    "Role",
    "Sampling",
    "Service",
    "State",
    "Submission",
    "Tick",
    "User",
    "UtcDateTime",
    "Verdict",
    "Visibility",
    "Work",
]
