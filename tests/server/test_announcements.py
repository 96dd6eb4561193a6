"""Announcements: who writes and who sees them, when they are told, and what they said before."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from server import announcements
from server.announcements import Draft
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.messages import messages
from server.models import Announcement, AuditEntry, Mail
from tests.server.conftest import until

PATH = "/courses/gpu/announcements"
HTML = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1))\n\n**bold**"


def as_(session, user):
    return courses.membership(session, user, "gpu")


def announce(database, people, **changes):
    given = {"title": "Room change", "text": "We meet in **room 7**.", **changes}
    with database.transaction() as session:
        return announcements.write(session, as_(session, people.tom), Draft(**given)).id


def titles(database, user):
    with database.reading() as session:
        shown, _more = announcements.listed(session, as_(session, user))
        return [item.row.title for item in shown]


def told(database, user):
    with database.reading() as session:
        return [item.row.title for item in messages.told(session, user.id)]


def later(**given):
    return datetime.now(UTC) + timedelta(**given)


def test_everybody_in_the_course_is_told_once_but_its_author_and_who_left(database, people):
    announce(database, people)
    everybody = (people.alice, people.bob, people.ines, people.tom, people.carol, people.stranger)
    assert [told(database, user) for user in everybody] == [["Room change"]] * 3 + [[]] * 3
    with database.reading() as session:
        mails = {mail.to: mail.subject for mail in session.scalars(select(Mail))}
    assert mails == dict.fromkeys(
        ("alice@example.org", "bob@example.org", "ines@example.org"), "[GPU programming] Room change"
    )
    with database.transaction() as session:
        assert announcements.tell_due(session) == 0


def test_one_that_waits_is_seen_by_staff_only_and_told_when_it_is_time(database, people):
    made = announce(database, people, publish_at=later(hours=1))
    assert (titles(database, people.alice), titles(database, people.tom)) == ([], ["Room change"])
    assert told(database, people.alice) == []
    with pytest.raises(NotFoundError), database.reading() as session:
        announcements.one(session, as_(session, people.alice), made)
    with database.transaction() as session:
        assert announcements.tell_due(session) == 0
        session.execute(update(Announcement).values(publish_at=later(seconds=-1)))
    for expected in (1, 0):
        with database.transaction() as session:
            assert announcements.tell_due(session) == expected
    assert (titles(database, people.alice), told(database, people.alice)) == (["Room change"], ["Room change"])


def test_who_wants_nobody_told_tells_nobody(database, people):
    announce(database, people, tell=False)
    assert titles(database, people.alice) == ["Room change"]
    assert told(database, people.alice) == []


def test_pinned_ones_come_first_then_the_newest(database, people):
    for title, pinned in (("first", False), ("pinned", True), ("last", False)):
        announce(database, people, title=title, pinned=pinned)
    assert titles(database, people.alice) == ["pinned", "last", "first"]


def test_a_long_list_has_pages(database, people):
    for number in range(announcements.PAGE + 1):
        announce(database, people, title=f"number {number}", tell=False)
    with database.reading() as session:
        member = as_(session, people.alice)
        first, more = announcements.listed(session, member)
        second, rest = announcements.listed(session, member, page=1)
        assert [len(first), more, len(second), rest] == [announcements.PAGE, True, 1, False]
        assert second[0].row.title == "number 0"


def test_what_was_seen_is_not_new_any_more(database, people):
    made = announce(database, people)
    with database.transaction() as session:
        assert announcements.unseen(session, as_(session, people.alice)) == 1
        for _ in range(2):
            announcements.mark_seen(session, people.alice.id, [made])
        assert announcements.unseen(session, as_(session, people.alice)) == 0
        assert announcements.unseen(session, as_(session, people.bob)) == 1
        assert announcements.one(session, as_(session, people.bob), made).is_new


def test_what_it_said_before_stays(database, people):
    made = announce(database, people)
    with database.transaction() as session:
        draft = Draft("Room change again", "Room 8.")
        announcements.edit(session, as_(session, people.ines), made, draft, revision=1)
    with database.reading() as session:
        shown = announcements.one(session, as_(session, people.alice), made)
        [before] = announcements.edits_of(session, as_(session, people.alice), shown.row)
        assert (shown.row.title, shown.row.revision, shown.row.edited_at is not None) == ("Room change again", 2, True)
        assert (before.title, before.revision, before.editor.name) == ("Room change", 1, "Ines")
        actions = session.scalars(select(AuditEntry.action).where(AuditEntry.subject == f"announcement:{made}")).all()
    assert sorted(actions) == ["announcement.edited", "announcement.written"]
    assert told(database, people.alice) == ["Room change"], "nobody is told twice"


def test_what_it_said_before_it_was_published_is_read_by_staff_only(database, people):
    made = announce(database, people, text="The draft.", publish_at=later(hours=1))
    with database.transaction() as session:
        tom = as_(session, people.tom)
        announcements.edit(session, tom, made, Draft("Room change", "Still a draft.", later(hours=1)), revision=1)
    # Published by the change itself: what it said until then nobody was told either.
    with database.transaction() as session:
        announcements.edit(session, as_(session, people.tom), made, Draft("Room change", "Room 8."), revision=2)
    assert _before(database, people.alice, made) == []
    assert _before(database, people.tom, made) == ["Still a draft.", "The draft."]
    with database.transaction() as session:
        announcements.edit(session, as_(session, people.tom), made, Draft("Room change", "Room 9."), revision=3)
    assert _before(database, people.alice, made) == ["Room 8."]
    assert _before(database, people.tom, made) == ["Room 8.", "Still a draft.", "The draft."]


def _before(database, user, made):
    with database.reading() as session:
        member = as_(session, user)
        shown = announcements.one(session, member, made)
        return [edit.text for edit in announcements.edits_of(session, member, shown.row)]


def test_the_second_of_two_who_edit_is_told(database, people):
    made = announce(database, people)
    with database.transaction() as session:
        announcements.edit(session, as_(session, people.ines), made, Draft("Hers", "…"), revision=1)
    for act in (
        lambda session: announcements.edit(session, as_(session, people.tom), made, Draft("His", "…"), revision=1),
        lambda session: announcements.withdraw(session, as_(session, people.tom), made, revision=1),
    ):
        with pytest.raises(ConflictError), database.transaction() as session:
            act(session)
    assert titles(database, people.alice) == ["Hers"]


def test_one_that_waits_can_be_put_off_or_published_now(database, people):
    made = announce(database, people, publish_at=later(hours=1))
    with database.transaction() as session:
        draft = Draft("Room change", "…", later(hours=2))
        announcements.edit(session, as_(session, people.tom), made, draft, revision=1)
    assert told(database, people.alice) == []
    with database.transaction() as session:
        row = announcements.edit(session, as_(session, people.tom), made, Draft("Room change", "…"), revision=2)
        assert (row.told_at is not None, row.edited_at) == (True, None)
    assert told(database, people.alice) == ["Room change"]


def test_a_withdrawn_one_is_gone_and_is_never_told(database, people):
    made = announce(database, people, publish_at=later(hours=1))
    with database.transaction() as session:
        announcements.withdraw(session, as_(session, people.tom), made, revision=1)
        session.execute(update(Announcement).values(publish_at=later(seconds=-1)))
        assert announcements.tell_due(session) == 0
    assert titles(database, people.tom) == []


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_students_write_none(database, people, who):
    made = announce(database, people)
    for act in (
        lambda session, member: announcements.write(session, member, Draft("x", "y")),
        lambda session, member: announcements.edit(session, member, made, Draft("x", "y"), revision=1),
        lambda session, member: announcements.withdraw(session, member, made, revision=1),
    ):
        with pytest.raises(ForbiddenError), database.transaction() as session:
            act(session, as_(session, getattr(people, who)))


def test_another_courses_is_not_there(database, people):
    made = announce(database, people)
    with database.transaction() as session:
        member = courses.membership(session, people.stranger, "other")
        with pytest.raises(NotFoundError):
            announcements.one(session, member, made)
        with pytest.raises(NotFoundError):
            announcements.edit(session, member, made, Draft("x", "y"), revision=1)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": " "}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": "a\0b"}, "title"),
        ({"text": "\n"}, "text"),
        ({"text": "x" * 20_001}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"publish_at": datetime(2126, 1, 1, tzinfo=UTC)}, "publish_at"),
    ],
)
def test_what_cannot_be_announced_is_named(database, people, changes, field):
    with pytest.raises(InvalidInputError) as error:
        announce(database, people, **changes)
    assert error.value.field == field


class TestPages:
    """Through the real application."""

    @pytest.fixture
    def database_url(self, sqlite_url):
        return sqlite_url

    def test_staff_write_students_read_and_nothing_in_it_runs(self, site, people, config):
        tom, alice = site.logged_in(people.tom, config), site.logged_in(people.alice, config)
        answer = tom.post(PATH, data={"title": "<b>Hi</b>", "text": HTML, "tell": "1"})
        assert (answer.status_code, answer.headers["location"]) == (303, f"{PATH}?done=published")
        page = alice.get(PATH).text
        article = page.partition("<article")[2].partition("</article>")[0]
        assert "&lt;b&gt;Hi&lt;/b&gt;" in article
        assert "<strong>bold</strong>" in article
        assert not re.search(r"<script|<img|href=\"javascript", article)
        assert "New announcement" not in page
        assert ">new</span>" in article
        # It is written down once the page is sent.
        until(lambda: ">new</span>" not in alice.get(PATH).text)

    def test_a_refused_form_comes_back_with_what_was_typed(self, site, people, config):
        tom = site.logged_in(people.tom, config)
        answer = tom.post(PATH, data={"title": "", "text": "Kept <text>", "publish_at": "2026-13-40T99:00"})
        assert answer.status_code == 422
        assert "Kept &lt;text&gt;</textarea>" in answer.text
        assert 'aria-invalid="true"' in answer.text

    def test_staff_who_look_as_a_student_see_it_in_nobodys_name(self, site, people, config, database):
        announce(database, people)
        tom = site.logged_in(people.tom, config)
        assert tom.post("/courses/gpu/preview", data={"student": people.alice.email, "at": ""}).status_code == 303
        page = tom.get(PATH).text
        assert "Room change" in page
        assert "New announcement" not in page
        with database.reading() as session:
            assert announcements.unseen(session, as_(session, people.alice)) == 1

    def test_another_page_can_begin_it(self, site, people, config):
        tom = site.logged_in(people.tom, config)
        page = tom.get(f"{PATH}/new", params={"title": "About <tails>", "text": "x" * 30_000}).text
        assert 'value="About &lt;tails&gt;"' in page
        assert f"{'x' * 20_000}</textarea>" in page
        assert "x" * 20_001 not in page

    def test_a_conflict_shows_what_stands_there_beside_what_was_typed(self, site, people, config, database):
        made = announce(database, people)
        tom, ines = site.logged_in(people.tom, config), site.logged_in(people.ines, config)
        mine = {"title": "Hers", "text": "What she wrote.", "revision": "1"}
        assert ines.post(f"{PATH}/{made}", data=mine).status_code == 303
        answer = tom.post(f"{PATH}/{made}", data={"title": "His", "text": "What he wrote.", "revision": "1"})
        assert answer.status_code == 409
        assert "What she wrote." in answer.text
        assert "What he wrote.</textarea>" in answer.text
        again = {"title": "His", "text": "What he wrote.", "revision": "2"}
        assert tom.post(f"{PATH}/{made}", data=again).status_code == 303
        page = tom.get(f"{PATH}/{made}").text
        assert "Earlier versions" in page
        assert "What she wrote." in page

    def test_a_time_is_on_the_courses_clock(self, site, people, config, database):
        with database.transaction() as session:
            courses.course_by_slug(session, "gpu").timezone = "America/Los_Angeles"
        tom = site.logged_in(people.tom, config)
        at = (datetime.now(UTC) + timedelta(days=20)).replace(hour=20, minute=0, second=0, microsecond=0)
        local = at - timedelta(hours=8)  # No change of the clocks lies between November and March.
        if local.month in range(3, 12):
            local = at - timedelta(hours=7)
        answer = tom.post(PATH, data={"title": "x", "text": "y", "publish_at": local.strftime("%Y-%m-%dT%H:%M")})
        assert answer.headers["location"] == f"{PATH}?done=planned"
        with database.reading() as session:
            assert session.scalars(select(Announcement.publish_at)).one() == at

    def test_the_bell_counts_and_the_list_leads_there(self, site, people, config, database):
        made = announce(database, people)
        alice, bob = site.logged_in(people.alice, config), site.logged_in(people.bob, config)
        page = alice.get("/notifications").text
        assert "Room change" in page
        number = re.search(r'href="/notifications/(\d+)"', page)[1]
        assert bob.get(f"/notifications/{number}").status_code == 404
        answer = alice.get(f"/notifications/{number}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{PATH}/{made}")
        assert "New: " not in alice.get("/notifications").text
        assert "New: " in bob.get("/notifications").text
        newest = re.search(r'name="newest" value="(\d+)"', bob.get("/notifications").text)[1]
        assert bob.post("/notifications/read", data={"newest": newest}).status_code == 303
        assert "New: " not in bob.get("/notifications").text

    def test_settings_are_kept_and_decide(self, site, people, config, database):
        alice = site.logged_in(people.alice, config)
        page = alice.get("/notifications/settings").text
        assert "New regrade requests" not in page
        assert "New regrade requests" in site.logged_in(people.tom, config).get("/notifications/settings").text
        fields = {"kind": ["announcement", "comment", "nonsense"], "announcement.app": "1", "comment.mail": "1"}
        assert alice.post("/notifications/settings", data=fields).status_code == 303
        with database.reading() as session:
            wanted = messages.wanted(session, people.alice.id)
        assert (wanted["announcement"].in_app, wanted["announcement"].by_mail) == (True, False)
        assert (wanted["comment"].in_app, wanted["comment"].by_mail) == (False, True)
        assert wanted["grades_published"].by_mail, "what the form did not have stays"
        announce(database, people)
        with database.reading() as session:
            assert "alice@example.org" not in set(session.scalars(select(Mail.to)))

    def test_an_empty_list_says_what_will_be_there(self, site, people, config):
        alice = site.logged_in(people.alice, config)
        assert "Nothing yet." in alice.get("/notifications").text
        assert "Nothing yet." in alice.get(PATH).text
