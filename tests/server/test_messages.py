"""Notifications: once per person and event, as each person wants them, and never more than one query for a page."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import event, func, select

from server.accounts import accounts
from server.db import Database
from server.errors import NotFoundError
from server.messages import messages
from server.messages.kinds import KINDS
from server.messages.messages import Wanted
from server.models import Enrolment, Mail, Notification, NotificationKind, User


def tell(session, *users: User, kind=NotificationKind.comment, key="event:1", title="Something happened", **changes):
    given = {"course_id": None, "url": "/submissions/1", **changes}
    return messages.notify(session, [user.id for user in users], kind, title=title, key=key, **given)


def mails(database):
    with database.reading() as session:
        return [(mail.to, mail.subject) for mail in session.scalars(select(Mail).order_by(Mail.to))]


def test_every_kind_is_described_and_fits_its_column():
    assert set(KINDS) == set(NotificationKind)
    assert max(len(kind) for kind in NotificationKind) <= 24


def test_a_person_is_told_once_per_key(database, people):
    with database.transaction() as session:
        assert tell(session, people.alice, people.bob, people.alice) == 2
    with database.transaction() as session:
        assert tell(session, people.alice, people.bob, people.tom) == 1
        assert tell(session, people.alice, key="event:2") == 1
    with database.reading() as session:
        assert [len(messages.told(session, user.id)) for user in (people.alice, people.bob, people.tom)] == [2, 1, 1]


def test_two_transactions_that_tell_the_same_at_once_tell_it_once(database, people):
    told, begin = [], threading.Barrier(4)

    def work():
        begin.wait()
        with database.transaction() as session:
            told.append(tell(session, people.alice, people.bob, kind=NotificationKind.announcement))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == [0, 0, 0, 2]
    assert len(mails(database)) == 2


def test_it_stands_and_falls_with_the_transaction_that_told_it(database, people):
    def fail():
        with database.transaction() as session:
            tell(session, people.alice, kind=NotificationKind.announcement)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with database.reading() as session:
        assert messages.unread(session, people.alice.id) == 0
    assert mails(database) == []


def test_who_wants_mail_for_a_kind_gets_it_and_who_does_not_does_not(database, people):
    with database.transaction() as session:
        messages.want(session, people.bob.id, {NotificationKind.announcement: Wanted(in_app=True, by_mail=False)})
        messages.want(session, people.tom.id, {NotificationKind.announcement: Wanted(in_app=False, by_mail=True)})
        messages.want(session, people.ines.id, {NotificationKind.announcement: Wanted(in_app=False, by_mail=False)})
        everybody = (people.alice, people.bob, people.tom, people.ines)
        assert tell(session, *everybody, kind=NotificationKind.announcement, course_id=people.course.id) == 3
    subject = "[GPU programming] Something happened"
    assert mails(database) == [("alice@example.org", subject), ("tom@example.org", subject)]
    with database.transaction() as session:
        assert [messages.unread(session, user.id) for user in everybody] == [1, 1, 0, 0]
        # The same again sends no second mail, where it is not shown either.
        assert tell(session, people.tom, kind=NotificationKind.announcement) == 0


def test_a_closed_account_is_told_nothing(database, people):
    with database.transaction() as session:
        session.get_one(User, people.alice.id).disabled_at = people.alice.created_at
        assert tell(session, people.alice, kind=NotificationKind.announcement) == 0
    assert mails(database) == []


def test_who_dropped_a_course_is_told_nothing_of_it(database, people):
    """And an admin who was never in it is told: only whoever left is left out."""
    kind, everybody = NotificationKind.announcement, (people.alice, people.admin, people.carol)
    with database.transaction() as session:
        assert tell(session, *everybody, kind=kind, course_id=people.course.id) == 2
        assert [messages.unread(session, user.id) for user in everybody] == [1, 1, 0]
        # What is about no course, or another one, is theirs as before.
        assert tell(session, *everybody, kind=kind, key="event:2") == 3
    with database.transaction() as session:
        dropped = select(Enrolment).where(Enrolment.user_id == people.carol.id)
        session.scalars(dropped).one().dropped_at = None
        assert tell(session, *everybody, kind=kind, course_id=people.course.id) == 1
    told = [to for to, subject in mails(database) if subject.startswith("[")]
    assert told == ["admin@example.org", "alice@example.org", "carol@example.org"]


def test_a_title_is_one_line_and_has_an_end(database, people):
    with database.transaction() as session:
        tell(session, people.alice, title="a\r\nBcc: eve@example.org\0" + "x" * 300, kind=NotificationKind.announcement)
    with database.reading() as session:
        title = messages.told(session, people.alice.id)[0].row.title
        subject = session.scalars(select(Mail.subject)).one()
    assert title.startswith("a Bcc: eve@example.org x")
    assert title == subject
    assert len(title) == 200


@pytest.mark.parametrize(
    "changes", [{"url": "https://evil.example"}, {"url": "//evil.example"}, {"url": "/" + "x" * 500}, {"key": ""}]
)
def test_what_leads_elsewhere_or_has_no_name_is_told_to_nobody(database, people, changes):
    with database.transaction() as session, pytest.raises(ValueError, match="nobody can be told"):
        tell(session, people.alice, **changes)


def test_reading_one_all_and_anothers(database, people):
    with database.transaction() as session:
        for number in range(3):
            tell(session, people.alice, people.bob, key=f"event:{number}")
    with database.transaction() as session:
        rows = [told.row for told in messages.told(session, people.alice.id)]
        assert messages.unread(session, people.alice.id) == 3
        messages.read(session, people.alice.id, rows[0].id)
        with pytest.raises(NotFoundError):
            messages.read(session, people.bob.id, rows[1].id)
        session.flush()
        assert messages.unread(session, people.alice.id) == 2
        # What came since the page was made stays unread.
        messages.read_all(session, people.alice.id, up_to=rows[1].id)
        tell(session, people.alice, key="new")
        assert messages.unread(session, people.alice.id) == 1
        assert messages.unread(session, people.bob.id) == 3


def test_a_long_list_is_read_in_pages(database, people):
    with database.transaction() as session:
        for number in range(7):
            tell(session, people.alice, key=f"event:{number}", title=f"number {number}")
    with database.reading() as session:
        first = messages.told(session, people.alice.id, most=4)
        rest = messages.told(session, people.alice.id, before=first[-1].row.id, most=4)
        titles = [told.row.title for told in (*first, *rest)]
    assert titles == [f"number {number}" for number in reversed(range(7))]


def test_a_whole_course_is_told_in_a_few_statements(database: Database, people):
    with database.transaction() as session:
        users = [
            User(email=f"s{number}@example.org", name="S", handle=f"s-{number}", created_at=people.alice.created_at)
            for number in range(700)
        ]
        session.add_all(users)
        session.flush()
        statements = []
        listen = lambda *given: statements.append(given[2])  # noqa: E731
        event.listen(database.engine, "before_cursor_execute", listen)
        assert tell(session, *users, kind=NotificationKind.announcement) == 700
        event.remove(database.engine, "before_cursor_execute", listen)
    assert len(statements) <= 8
    with database.reading() as session:
        assert session.scalar(select(func.count(Notification.id))) == 700
    assert len(mails(database)) == 700


def test_the_count_in_the_bar_is_bounded(database, people):
    with database.transaction() as session:
        for number in range(messages.MOST_COUNTED + 5):
            tell(session, people.alice, key=f"event:{number}")
    with database.reading() as session:
        assert messages.unread(session, people.alice.id) == messages.MOST_COUNTED


def test_mail_about_the_account_asks_no_setting(database, people):
    with database.transaction() as session:
        user = accounts.user_by_email(session, "alice@example.org")
        messages.want(session, user.id, {kind: Wanted(in_app=False, by_mail=False) for kind in NotificationKind})
        messages.send_mail(session, user, subject="Your password\nwas changed", body="…")
    assert mails(database) == [("alice@example.org", "Your password was changed")]
