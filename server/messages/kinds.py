"""What people are told of: what each kind is called, and how it comes unless a person says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from server.models import NotificationKind


@dataclass(frozen=True)
class About:
    """A kind for people.

    Attributes:
        label: what it is called, in the plural.
        by_mail: whether it comes by mail too, unless the person says otherwise.
        staff: whether only staff get it.
    """

    label: str
    by_mail: bool = False
    staff: bool = False


KINDS: Mapping[NotificationKind, About] = {
    NotificationKind.announcement: About("Announcements", by_mail=True),
    NotificationKind.grades_published: About("Published grades", by_mail=True),
    NotificationKind.grade_changed: About("Grade changes", by_mail=True),
    NotificationKind.regrade_applied: About("Regrades by staff", by_mail=True),
    NotificationKind.regrade_request_opened: About("New regrade requests", staff=True),
    NotificationKind.regrade_request_answered: About("Answers to your regrade requests", by_mail=True),
    NotificationKind.comment: About("Comments on your submissions"),
    NotificationKind.held_decided: About("Decisions about held submissions", by_mail=True),
    NotificationKind.extension_granted: About("Extensions", by_mail=True),
    NotificationKind.submission_late: About("Late submissions and late days"),
    NotificationKind.group_changed: About("Changes to your group"),
    NotificationKind.group_result: About("Results of your group's submissions"),
}
