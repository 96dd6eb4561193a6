"""Comments on lines, on sections and on all of it: who sees which, what is kept, and where they go."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from sqlalchemy import select

from server.comments import carried, comments, rubrics, saved, sheets
from server.comments.comments import Place, read_lines
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.gradebook import queries as gradebook
from server.models import (
    Assignment,
    AuditEntry,
    Comment,
    CommentText,
    Course,
    Notification,
    NotificationKind,
    Role,
    RubricItem,
    SavedComment,
    Showing,
    Submission,
    User,
    WriteUp,
    WriteUpFormat,
)
from tests.doubles.meanwhile import meanwhile
from tests.doubles.world import START, World, passed

NASTY = "<script>alert(1)</script>"
LINES = "import torch\n\n\ndef vector_add(x, y, out, n):\n    out[:] = x + y\n"


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    with world.database.transaction() as session:
        world.enrol(session, "Tom", Role.ta)
        world.enrol(session, "Uma", Role.ta)
    yield world
    world.database.dispose()


@pytest.fixture
def act(world):
    """Do something as a member, in a transaction of its own."""

    def call(person, work, *, name="gpu"):
        with world.database.transaction() as session:
            user = session.scalars(select(User).where(User.name == person)).one()
            return work(session, courses.membership(session, user, name))

    return call


def find(session, public_id):
    return session.scalars(select(Submission).where(Submission.public_id == public_id)).one()


@pytest.fixture
def say(act):
    """Post a comment; its id."""

    def call(public_id, text="Use a mask.", lines="", showing=Showing.with_grades, person="Tom", **given):
        return act(
            person,
            lambda session, member: comments.post(
                session, member, find(session, public_id), read_lines(lines), text=text, showing=showing,
                now=START, **given,
            ).id,
        )  # fmt: skip

    return call


def publish(world):
    with world.database.transaction() as session:
        session.scalars(select(Assignment)).one().grades_published_at = START


def seen(world, public_id, *, staff=False):
    with world.database.reading() as session:
        row = find(session, public_id)
        published = comments.is_published(session, row.assignment_id, row.user_id)
        return [one.text for one in comments.of_work(session, row, staff=staff, published=published)]


# --- where -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [("", Place()), ("  ", Place()), ("3", Place(3, 3)), ("2-4", Place(2, 4)), (" 2 – 4 ", Place(2, 4))],
)
def test_lines_are_a_number_or_a_range(text, place):
    assert read_lines(text, most=5) == place


@pytest.mark.parametrize("text", ["0", "4-2", "6", "2-6", "a", "1,2", "-3", "1-", "99999999", "1;DROP", "²"])
def test_what_is_no_line_of_the_source_is_refused(text):
    with pytest.raises(InvalidInputError) as caught:
        read_lines(text, most=5)
    assert caught.value.field == "lines"


# --- who sees it -----------------------------------------------------------------------------------------------------


def test_a_comment_waits_for_the_grades_unless_it_is_shown_at_once(world, say):
    name = world.submit(source=LINES.encode())
    say(name, "later", "4")
    say(name, "now", "5", Showing.at_once)
    assert seen(world, name) == ["now"]
    assert seen(world, name, staff=True) == ["later", "now"]
    publish(world)
    assert seen(world, name) == ["later", "now"]


def test_its_student_is_told_once_when_they_can_see_it(world, say, act):
    name = world.submit()
    say(name)
    shown = say(name, showing=Showing.at_once)

    def told():
        with world.database.reading() as session:
            rows = session.scalars(select(Notification).where(Notification.kind == NotificationKind.comment)).all()
            return [(session.get_one(User, row.user_id).name, row.url) for row in rows]

    assert told() == [("Alice", f"/submissions/{name}/comments#comment-{shown}")]
    for revision, showing in ((1, Showing.with_grades), (2, Showing.at_once)):
        act("Tom", lambda session, member, revision=revision, showing=showing: comments.edit(
            session, member, shown, revision=revision, text="Use a mask.", showing=showing, now=START))  # fmt: skip
    assert len(told()) == 1


def test_a_student_writes_and_finds_none(world, say, act):
    name = world.submit()
    with pytest.raises(ForbiddenError):
        say(name, person="Alice")
    comment = say(name)
    with pytest.raises(ForbiddenError):
        act("Alice", lambda session, member: comments.find(session, member, comment))


def test_staff_of_another_course_find_none(world, say, act):
    comment = say(world.submit())
    with world.database.transaction() as session:
        session.add(Course(slug="other", title="Other", created_at=START))
        session.scalars(select(User).where(User.name == "Uma")).one().is_admin = True
    with pytest.raises(NotFoundError):
        act("Uma", lambda session, member: comments.withdraw(session, member, comment, revision=1, now=START),
            name="other")  # fmt: skip


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_every_text_is_kept_and_who_was_second_is_told(world, say, act):
    name = world.submit()
    comment = say(name, "one")

    def edit(session, member, revision=1, text="two"):
        return comments.edit(
            session, member, comment, revision=revision, text=text, showing=Showing.with_grades, now=START
        ).revision

    assert act("Tom", edit) == 2
    with pytest.raises(ConflictError, match="meanwhile"):
        act("Uma", edit)
    with world.database.reading() as session:
        texts = session.scalars(select(CommentText).order_by(CommentText.number)).all()
        assert [(row.number, row.text) for row in texts] == [(1, "one"), (2, "two")]
        trail = session.scalars(select(AuditEntry.action).where(AuditEntry.action.startswith("comment."))).all()
        assert trail == ["comment.posted", "comment.edited"]


def test_a_withdrawn_comment_is_staffs_alone_and_can_be_put_back(world, say, act):
    name = world.submit()
    comment = say(name, showing=Showing.at_once)
    act("Tom", lambda session, member: comments.withdraw(session, member, comment, revision=1, now=START))
    assert seen(world, name) == []
    assert seen(world, name, staff=True) == ["Use a mask."]
    with pytest.raises(ConflictError):
        act("Tom", lambda session, member: comments.withdraw(session, member, comment, revision=2, now=START))
    act("Tom", lambda session, member: comments.put_back(session, member, comment, revision=2))
    assert seen(world, name) == ["Use a mask."]


@pytest.mark.parametrize("text", ["", " \n ", "x" * 10_001])
def test_a_comment_has_a_text_that_somebody_will_read(world, say, text):
    with pytest.raises(InvalidInputError):
        say(world.submit(), text)


def test_frequent_comments_are_kept_once_and_the_most_used_come_first(world, say, act):
    name = world.submit()
    for text, save in (("rare", True), ("often", True), ("often", False), ("often", True), ("never kept", False)):
        say(name, text, save=save)
    kept = act("Uma", lambda session, member: [(row.text, row.uses) for row in saved.most_used(session, member)])
    assert kept == [("often", 3), ("rare", 1)]
    with world.database.reading() as session:
        first = session.scalars(select(SavedComment.id).where(SavedComment.text == "often")).one()
    act("Tom", lambda session, member: saved.forget(session, member, first))
    with pytest.raises(NotFoundError):
        act("Tom", lambda session, member: saved.forget(session, member, first))
    assert len(seen(world, name, staff=True)) == 5


# --- versions --------------------------------------------------------------------------------------------------------


def test_a_comment_goes_with_its_lines_to_the_next_version(world, say):
    first = world.submit(source=LINES.encode())
    say(first, "kept", "4")
    say(first, "gone", "5")
    say(first, "whole")
    source = "# a new first line\n" + LINES.replace("x + y", "y + x")
    second = world.submit(source=source.encode())
    with world.database.reading() as session:
        found = carried.from_earlier(session, find(session, second), source, staff=True, published=False)
        places = {one.comment.text: (one.version.number, one.place) for one in found}
        hidden = carried.from_earlier(session, find(session, second), source, staff=False, published=False)
    assert places == {"kept": (1, Place(5, 5)), "gone": (1, None), "whole": (1, None)}
    assert hidden == []


def test_long_sources_are_not_followed_and_cost_nothing():
    lines = [f"x = {number}" for number in range(carried.MOST_LINES + 1)]
    assert set(carried.follow(lines, lines)) == {None}


# --- the rubric ------------------------------------------------------------------------------------------------------


@pytest.fixture
def rubric(act):
    """Two items; their ids."""

    def add(session, member):
        assignment = session.scalars(select(Assignment)).one()
        items = [("Writing", "Clear", 3.0), ("Writing", "No units", -1.0)]
        return [rubrics.add_item(session, member, assignment, group=g, text=t, points=p).id for g, t, p in items]

    return act("Tom", add)


@pytest.fixture
def grade(act, world):
    """Apply items to Alice; the sheet's points and revision."""

    def call(items, revision=0, person="Tom", student="Alice"):
        def work(session, member):
            user = session.scalars(select(User).where(User.name == student)).one()
            assignment = session.scalars(select(Assignment)).one()
            sheet = rubrics.apply(
                session, member, assignment, user.id,
                item_ids=items, revision=revision, submission_id=None, now=world.now,
            )  # fmt: skip
            return sheet.points, sheet.revision

        return act(person, work)

    return call


def points_of(world, student="Alice"):
    with world.database.reading() as session:
        user = session.scalars(select(User).where(User.name == student)).one()
        assignment = session.scalars(select(Assignment)).one()
        row = gradebook.grade_of(session, user.id, assignment.id)
        return row.points if row else None, comments.rubric_points(session, assignment.id, user.id)


def test_what_applies_adds_up_and_is_a_part_of_the_grade(world, rubric, grade):
    world.grade(passed(1.0))
    before, _ = points_of(world)
    assert grade(rubric) == (2.0, 1)
    after, of_rubric = points_of(world)
    assert (of_rubric, after) == (2.0, (before or 0) + 2.0)
    assert grade(rubric[:1], revision=1) == (3.0, 2)
    assert points_of(world)[0] == (before or 0) + 3.0
    assert points_of(world, "Bob")[1] == 0


def test_who_grades_second_is_told(rubric, grade):
    grade(rubric)
    for revision in (0, 7):
        with pytest.raises(ConflictError):
            grade(rubric[:1], revision=revision, person="Uma")


def test_an_item_that_is_worth_something_else_changes_every_sheet_that_has_it(world, rubric, grade, act):
    grade(rubric)
    grade(rubric[1:], student="Bob")
    act("Tom", lambda session, member: rubrics.change_item(
        session, member, rubric[0], revision=1, group="Writing", text="Clear", points=5.0, position=1))  # fmt: skip
    assert (points_of(world)[1], points_of(world, "Bob")[1]) == (4.0, -1.0)
    with pytest.raises(ConflictError):
        grade(rubric, revision=1)
    with pytest.raises(ConflictError):
        act("Uma", lambda session, member: rubrics.change_item(
            session, member, rubric[0], revision=1, group="", text="Clear", points=1.0, position=1))  # fmt: skip


def worth(session, member, item_id, points):
    return rubrics.change_item(
        session, member, item_id, revision=1, group="Writing", text="Clear", points=points, position=1
    )


def adds_up(world, student="Alice"):
    """Whether the sheet comes to what its items are worth."""
    with world.database.reading() as session:
        user = session.scalars(select(User).where(User.name == student)).one()
        sheet = rubrics.sheet_of(session, 1, user.id)
        return sheet.points == sum(session.get_one(RubricItem, mark.item_id).points for mark in sheet.marks)


def test_an_item_is_applied_for_what_it_is_worth_when_two_work_at_once(world, rubric, grade):
    with ExitStack() as later, world.database.transaction() as session:
        tom = session.scalars(select(User).where(User.name == "Tom")).one()
        worth(session, courses.membership(session, tom, "gpu"), rubric[0], 5.0)
        session.flush()
        # Left when the transaction is over.
        later.enter_context(meanwhile(lambda: grade(rubric, person="Uma")))
    assert adds_up(world)
    assert points_of(world)[1] == 4.0


def test_a_sheet_that_is_changed_while_an_item_is_keeps_what_it_has_then(world, rubric, grade, act):
    grade(rubric)
    with ExitStack() as later, world.database.transaction() as session:
        uma, alice = (session.scalars(select(User).where(User.name == one)).one() for one in ("Uma", "Alice"))
        rubrics.apply(
            session, courses.membership(session, uma, "gpu"), session.get_one(Assignment, 1), alice.id,
            item_ids=rubric[1:], revision=1, submission_id=None, now=world.now,
        )  # fmt: skip
        session.flush()
        changed = lambda: act("Tom", lambda other, member: worth(other, member, rubric[0], 5.0).id)  # noqa: E731
        later.enter_context(meanwhile(changed))
    assert adds_up(world)
    assert points_of(world)[1] == -1.0


def test_two_who_grade_one_group_do_not_wait_in_a_circle(world, rubric, grade, monkeypatch):
    with world.database.reading() as session:
        ids = {user.name: user.id for user in session.scalars(select(User))}
    pair = tuple(sorted((ids["Alice"], ids["Bob"])))
    monkeypatch.setattr(rubrics.groups, "together", lambda _session, _assignment_id, _user_id: pair)
    grade(rubric)
    both, real = threading.Barrier(2), rubrics.groups.together

    def together(session, assignment_id, user_id):
        with suppress(threading.BrokenBarrierError):  # On SQLite one waits for the other from the start.
            both.wait(0.5)
        return real(session, assignment_id, user_id)

    monkeypatch.setattr(rubrics.groups, "together", together)

    def graded(person, student):
        try:
            return grade(rubric[:1], revision=1, person=person, student=student)
        except ConflictError:
            return "told"

    with ThreadPoolExecutor(2) as pool:
        said = [pool.submit(graded, *one) for one in (("Tom", "Alice"), ("Uma", "Bob"))]
    assert sorted(map(str, (one.result() for one in said))) == ["(3.0, 2)", "told"]


def test_a_retired_item_stays_where_it_was_applied(world, rubric, grade, act):
    grade(rubric)
    act("Tom", lambda session, member: rubrics.retire_item(
        session, member, rubric[1], revision=1, retired=True, now=START))  # fmt: skip
    with world.database.reading() as session:
        assert [item.id for item in rubrics.items_of(session, 1)] == rubric[:1]
    assert points_of(world)[1] == 2.0


@pytest.mark.parametrize(
    ("text", "points"), [("", 1.0), ("x" * 501, 1.0), ("fine", float("nan")), ("fine", 1e9), ("fine", float("inf"))]
)
def test_an_item_has_a_text_and_points_that_can_be_added(act, text, points):
    with pytest.raises(InvalidInputError):
        act(
            "Tom",
            lambda session, member: rubrics.add_item(
                session, member, session.scalars(select(Assignment)).one(), group="", text=text, points=points
            ),
        )


def test_only_students_of_the_course_are_graded_and_only_by_its_own_items(rubric, grade):
    with pytest.raises(NotFoundError):
        grade(rubric, student="Tom")
    with pytest.raises(InvalidInputError):
        grade([*rubric, 999])


def test_everybody_grades_in_the_same_order_of_chance(world, rubric, grade, act):
    with world.database.transaction() as session:
        for number in range(30):
            world.enrol(session, f"Student{number}")
    for person in ("Alice", "Bob", "Student7"):
        world.submit(person)

    def order(session, _member):
        return sheets.turns(session, session.scalars(select(Assignment)).one())

    found = act("Tom", order)
    assert len(found) == 32
    assert [turn.name for turn in found] != sorted(turn.name for turn in found)
    assert [turn.name for turn in act("Uma", order)] == [turn.name for turn in found]
    to_do = [turn for turn in found if turn.has_work]
    following = [sheets.next_turn(found, turn.user_id) for turn in to_do]
    assert [turn.user_id for turn in following] == [turn.user_id for turn in (*to_do[1:], to_do[0])]
    grade(rubric, student=to_do[1].name)
    assert sheets.next_turn(act("Tom", order), to_do[0].user_id).user_id == to_do[2].user_id


# --- pages -----------------------------------------------------------------------------------------------------------


def test_the_page_of_a_submission(world, visit, rubric):
    name = world.grade(passed(1.0), source=LINES.encode())
    path = f"/submissions/{name}/comments"
    assert visit("Alice", path, {"text": "mine"})[0] == 403
    assert visit("Bob", path)[0] == 404
    status, text = visit("Tom", path, {"text": "kept text", "lines": "99"})[:2]
    assert status == 422
    assert "The source ends on line 5." in text
    assert "kept text" in text
    given = {"text": f"{NASTY} **bold** ![](http://evil/x.png)", "lines": "4-5", "showing": "at_once", "save": "true"}
    assert visit("Tom", path, given)[0] == 303
    for person in ("Tom", "Alice"):
        status, text = visit(person, path)[:2]
        assert status == 200
        assert NASTY in text
        assert "Lines 4–5" in text
        assert "bold" in text
    assert "Withdraw" not in text
    assert "No units" not in text
    item = rubric[0]
    student = 1
    applied = f"/courses/gpu/assignments/vector_add/rubric/students/{student}"
    assert visit("Tom", applied, {"revision": "0", "item": str(item), "back": path})[0] == 303
    assert visit("Tom", applied, {"revision": "0", "item": str(item), "back": path})[0] == 409
    assert "Clear" not in visit("Alice", path)[1]
    publish(world)
    text = visit("Alice", path)[1]
    assert "Clear" in text
    assert "No units" not in text


def ticks(text):
    """The items that are ticked in the form of a page."""
    boxes = re.findall(r'<input type="checkbox" name="item" value="(\d+)"[^>]*>', text)
    return {int(box) for box in boxes if re.search(rf'name="item" value="{box}"[^>]* checked', text)}


def revision_of(text):
    """The revision that the rubric's form was made for."""
    return re.findall(r'data-rubric>.*?name="revision" value="(\d+)"', text, re.DOTALL)[0]


@pytest.mark.parametrize("kind", ["submission", "writeup"])
def test_a_conflict_in_the_rubric_keeps_the_ticks_and_says_what_changed(*, world, visit, rubric, act, upload, kind):
    name = world.submit(source=LINES.encode())
    if kind == "writeup":
        name = upload(b"# Why\n", WriteUpFormat.markdown)
    path, apply = f"/{kind}s/{name}/comments", "/courses/gpu/assignments/vector_add/rubric/students/1"
    third = act("Tom", lambda session, member: rubrics.add_item(
        session, member, session.get_one(Assignment, 1), group="", text="Measured", points=2.0).id)  # fmt: skip
    back = {"back": path, kind: name}
    assert visit("Tom", apply, {**back, "revision": "0", "item": [str(rubric[0])]})[0] == 303
    seen = {"revision": "1", "seen": str(rubric[0])}
    assert visit("Uma", apply, {**back, **seen, "item": [str(rubric[1])]})[0] == 303
    status, said, html = visit("Tom", apply, {**back, **seen, "item": [str(rubric[0]), str(third)]})
    assert status == 409
    assert ticks(html) == {rubric[0], third}
    assert "Somebody else graded this student meanwhile" in said
    assert "Uma ticked “No units” (\u22121)" in said
    assert "unticked “Clear” (+3)" in said
    assert "ticked “Measured”" not in said
    assert "Rubric: +5" in said
    # Saved again, now that it was seen, they stand.
    assert revision_of(html) == "2"
    assert visit("Tom", apply, {**back, "revision": "2", "item": [str(rubric[0]), str(third)]})[0] == 303
    assert ticks(visit("Tom", path)[2]) == {rubric[0], third}


def test_a_conflict_over_the_same_ticks_says_what_they_are_worth_now(world, visit, rubric, act):
    name = world.submit(source=LINES.encode())
    path, apply = f"/submissions/{name}/comments", "/courses/gpu/assignments/vector_add/rubric/students/1"
    given = {"back": path, "submission": name, "item": str(rubric[0]), "seen": str(rubric[0])}
    assert visit("Tom", apply, {**given, "revision": "0"})[0] == 303
    act("Uma", lambda session, member: worth(session, member, rubric[0], 5.0).id)
    status, text = visit("Tom", apply, {**given, "revision": "1"})[:2]
    assert status == 409
    assert "The same items are ticked, but their sum is now +5." in text


def test_a_conflict_in_the_rubric_shows_no_work_of_somebody_else(world, visit, rubric):
    mine, other = world.submit(source=LINES.encode()), world.submit("Bob", source=b"# of Bob\n")
    apply = "/courses/gpu/assignments/vector_add/rubric/students/1"
    for shown in (other, "01NOTHING", mine + "x"):
        status, text = visit("Tom", apply, {"revision": "7", "item": str(rubric[0]), "submission": shown})[:2]
        assert status == 409
        assert "of Bob" not in text
        assert "Somebody else graded this student meanwhile" in text


def test_a_comment_is_changed_by_the_page_and_a_conflict_keeps_what_was_typed(world, visit, say):
    name = world.submit()
    comment = say(name)
    path = f"/courses/gpu/comments/{comment}"
    assert visit("Tom", path, {"action": "edit", "revision": "1", "text": "better"})[0] == 303
    status, text = visit("Uma", path, {"action": "edit", "revision": "1", "text": "mine was better"})[:2]
    assert status == 409
    assert "mine was better" in text
    assert "Somebody else changed this comment meanwhile" in text
    assert visit("Alice", path, {"action": "withdraw", "revision": "2"})[0] == 403
    assert visit("Tom", path, {"action": "burn", "revision": "2"})[0] == 422
    assert visit("Tom", path, {"action": "withdraw", "revision": "2"})[0] == 303
    assert visit("Tom", "/courses/gpu/comments/99", {"action": "withdraw", "revision": "1"})[0] == 404


@pytest.mark.parametrize(
    "source", [b"x = 1 # \xe2\x80\xae\n", b"y" * 200_000, b"a\n" * 9_000, "⟨\u200b⟩\r\nz".encode()]
)
def test_strange_sources_are_shown(world, visit, source):
    name = world.submit(source=source)
    status, text = visit("Tom", f"/submissions/{name}/comments?lines=<b>")[:2]
    assert status == 200
    assert "\u202e" not in text


@pytest.fixture
def upload(world):
    """A write-up by who handed in first; its public id."""
    counted = count(1)

    def call(data, kind):
        number = next(counted)
        with world.database.transaction() as session:
            row = session.scalars(select(Submission)).first()
            made = WriteUp(
                public_id=f"01WRITEUP{number:017d}", number=number, course_id=row.course_id,
                assignment_id=row.assignment_id, user_id=row.user_id, format=kind, filename="w", data=data,
                size=len(data), sha256="0" * 64, trace="0" * 32, uploaded_at=START,
            )  # fmt: skip
            session.add(made)
            return made.public_id

    return call


def test_a_write_up_is_commented_by_section(world, visit, upload):
    world.submit()
    name = upload(f"# Why\n{NASTY}\n## How fast\n".encode(), WriteUpFormat.markdown)
    path = f"/writeups/{name}/comments"
    upload(b"%PDF-1.7", WriteUpFormat.pdf)
    assert visit("Tom", path, {"text": "Say how you measured.", "section": "How fast", "showing": "at_once"})[0] == 303
    status, text = visit("Alice", path)[:2]
    assert status == 200
    assert "“How fast”" in text
    assert "Say how you measured." in text
    assert visit("Bob", path)[0] == 404
    assert "This write-up is a PDF" in visit("Tom", path.replace("1/c", "2/c"))[1]


def test_the_rubrics_page(world, visit):
    path = "/courses/gpu/assignments/vector_add/rubric"
    assert visit("Alice", path)[0] == 403
    status, text = visit("Tom", path, {"text": f"{NASTY}", "points": "two"})[:2]
    assert status == 422
    assert "Points are a number" in text
    assert visit("Tom", path, {"text": NASTY, "points": "\u22121,5", "group": "A"})[0] == 303
    text = visit("Tom", path)[1]
    assert "Alice" in text
    assert "not graded" in text
    item = f"{path}/items/1"
    assert visit("Tom", item, {"action": "change", "revision": "1", "text": "b", "points": "2"})[0] == 303
    assert visit("Uma", item, {"action": "change", "revision": "1", "text": "c", "points": "3"})[0] == 409
    assert visit("Tom", item, {"action": "retire", "revision": "2"})[0] == 303
    assert "retired" in visit("Tom", path)[1]


def test_a_comment_is_of_the_one_who_wrote_it(world, say):
    say(world.submit(), person="Uma")
    with world.database.reading() as session:
        row = session.scalars(select(Comment)).one()
        assert session.get_one(User, row.author_id).name == "Uma"
        assert row.created_at == datetime(2026, 11, 21, 12, tzinfo=UTC)
        assert row.edited_at is None
        assert START + timedelta() == row.created_at
