"""The tables.

    User ─< Enrolment >─ Course ─< Assignment ─< AssignmentVersion >─ Bundle
      │                               │
      ├──< Submission >───────────────┤        Submission ─< Attempt ─ Result ─< CaseRow
      └──< QuizAnswer >─── Quiz >─────┘
    LoginSession, ApiToken, KnownPlace, SecondFactor >─ User
                                                            Attempt >─ Node      Attempt ─< Artefact, Sampling
    Submission ─ Forecast, ─< GradeChange       AuditEntry, Alert, Rehearsal, Service, Tick, NodeInvite
                                                ReceiptKey, ReconciliationRun

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
from server.models.enums import AlertKind, AttemptState, ChangeReason, Line, Role, SourceSharing
from server.models.gradebook import ActiveChoice, Extension, Grade, GradeOverride, LateDayGrant
from server.models.grading import (
    ERASED_HASH,
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
from server.models.leaderboard import Best, ConfirmNight, Milestone, MilestoneKind, SharedSource
from server.models.messages import (
    Announcement,
    AnnouncementEdit,
    AnnouncementRead,
    Mail,
    MailState,
    Notification,
    NotificationKind,
    NotificationSetting,
)
from server.models.nodes import Node, NodeInvite, NodeStamps
from server.models.operations import Alert, ReconciliationRun, Rehearsal, Service, Tick
from server.models.people import (
    ApiToken,
    AuditEntry,
    KnownPlace,
    LinkPurpose,
    LinkRequest,
    LoginAttempt,
    LoginChallenge,
    LoginSession,
    OutsideIdentity,
    OutsideLogin,
    PasswordLink,
    RecoveryCode,
    SecondFactor,
    TokenScope,
    User,
)
from server.models.quizzes import Quiz, QuizAnswer
from server.models.regrades import (
    Regrade,
    RegradeItem,
    RegradeItemState,
    RegradeKind,
    RegradeMessage,
    RegradeRequest,
    RegradeRules,
    RegradeState,
    RequestState,
    Trial,
    Why,
)
from server.models.roster import CourseInvite, Preview, RosterImport
from server.models.staff import (
    Appeal,
    Comment,
    CommentText,
    ComparedText,
    Comparison,
    ComparisonState,
    FindingLook,
    PairMark,
    RubricItem,
    RubricMark,
    RubricSheet,
    SavedComment,
    Showing,
    SimilarPair,
)
from server.models.student import DataExport, Draft, Group, GroupInvite, GroupMember, WriteUp, WriteUpFormat

__all__ = [
    "ERASED_HASH",
    "ActiveChoice",
    "Alert",
    "AlertKind",
    "Announcement",
    "AnnouncementEdit",
    "AnnouncementRead",
    "ApiToken",
    "Appeal",
    "Artefact",
    "Assignment",
    "AssignmentVersion",
    "Attempt",
    "AttemptState",
    "AuditEntry",
    "Base",
    "Best",
    "Bundle",
    "CaseRow",
    "ChangeReason",
    "Comment",
    "CommentText",
    "ComparedText",
    "Comparison",
    "ComparisonState",
    "ConfirmNight",
    "Course",
    "CourseInvite",
    "DataExport",
    "Draft",
    "Enrolment",
    "Extension",
    "FindingLook",
    "Forecast",
    "Grade",
    "GradeChange",
    "GradeOverride",
    "Group",
    "GroupInvite",
    "GroupMember",
    "Kind",
    "KnownPlace",
    "Lane",
    "Language",
    "LateDayGrant",
    "Line",
    "LinkPurpose",
    "LinkRequest",
    "LoginAttempt",
    "LoginChallenge",
    "LoginSession",
    "Mail",
    "MailState",
    "Milestone",
    "MilestoneKind",
    "Mode",
    "Node",
    "NodeInvite",
    "NodeStamps",
    "Notification",
    "NotificationKind",
    "NotificationSetting",
    "OutsideIdentity",
    "OutsideLogin",
    "PairMark",
    "PasswordLink",
    "Phase",
    "Preview",
    "Quiz",
    "QuizAnswer",
    "ReceiptKey",
    "ReconciliationRun",
    "RecoveryCode",
    "Regrade",
    "RegradeItem",
    "RegradeItemState",
    "RegradeKind",
    "RegradeMessage",
    "RegradeRequest",
    "RegradeRules",
    "RegradeState",
    "Rehearsal",
    "RequestState",
    "Result",
    "Review",
    "Role",
    "RosterImport",
    "RubricItem",
    "RubricMark",
    "RubricSheet",
    "Sampling",
    "SavedComment",
    "SecondFactor",
    "Service",
    "SharedSource",
    "Showing",
    "SimilarPair",
    "SourceSharing",
    "State",
    "Submission",
    "Tick",
    "TokenScope",
    "Trial",
    "User",
    "UtcDateTime",
    "Verdict",
    "Visibility",
    "Why",
    "Work",
    "WriteUp",
    "WriteUpFormat",
]
