"""Pairs and groups: who comes in, who goes, what counts for whom, and that nobody comes in twice."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import select

from server import db
from server.comments import comments
from server.comments.comments import Place
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError, TooManyError
from server.gradebook import queries as gradebook
from server.groups import forming, groups, staffing, views
from server.models import (
    Assignment,
    AuditEntry,
    Enrolment,
    Group,
    GroupMember,
    Mode,
    Notification,
    Showing,
    State,
    Submission,
    User,
    Verdict,
)
from server.submissions import submissions

PATH = "/courses/gpu/assignments/add_one/group"


@pytest.fixture
def dora(database, people):
    """Carol comes back, as a third student."""
    with database.transaction() as session:
        session.scalars(select(Enrolment).where(Enrolment.user_id == people.carol.id)).one().dropped_at = None
    return people.carol


@pytest.fixture(autouse=True)
def pairs(database, people):
    with database.transaction() as session:
        session.scalars(select(Assignment)).one().group_size = 2


@pytest.fixture
def do(database):
    """Call a service function as somebody, in a transaction of its own."""

    def call(user, function, **values):
        with database.transaction() as session:
            member = courses.membership(session, user, "gpu")
            detail = courses.assignment_of(session, member, "add_one")
            if function not in {forming.leave, forming.take_back, forming.decline}:
                values.setdefault("now", db.now(session))
            if function is forming.decline:
                return function(session, member, **values)
            return function(session, member, detail, **values)

    return call


@pytest.fixture
def mine(database):
    def call(user):
        with database.reading() as session:
            member = courses.membership(session, user, "gpu")
            found = views.view(session, courses.assignment_of(session, member, "add_one"), user)
            session.expunge_all()
            return found

    return call


def members(view):
    return [user.name for user in view.members]


def test_somebody_is_invited_is_told_and_comes_in(do, mine, people, database):
    made = do(people.alice, forming.invite, who=" Bob@Example.org ")
    assert (members(made), [user.name for user in made.invited], made.room) == (["Alice"], ["Bob"], 0)
    with database.reading() as session:
        told = session.scalars(select(Notification).where(Notification.user_id == people.bob.id)).one()
        assert (told.title, told.url) == ("Alice invites you to their group for Add one", PATH)
    do(people.bob, forming.accept, group_id=made.id)
    assert members(mine(people.bob)) == ["Alice", "Bob"]
    assert mine(people.alice).invited == ()


def test_a_code_lets_somebody_in_as_they_type_it(do, mine, people):
    code = do(people.alice, forming.start).code
    do(people.bob, forming.join, code=f" {code[:4].lower()} {code[4:]} ")
    assert members(mine(people.alice)) == ["Alice", "Bob"]
    with pytest.raises(InvalidInputError, match="No group"):
        do(people.bob, forming.join, code="nothing\0")


def test_a_handle_of_a_board_leads_to_nobody(do, people, site, config):
    """Else whoever offers a place to each handle of a board reads the names behind them, one after the other."""
    with pytest.raises(InvalidInputError, match="e-mail address"):
        do(people.alice, forming.invite, who=people.bob.handle)
    alice = site.logged_in(people.alice, config)
    answer = alice.post(f"{PATH}/invite", data={"person": people.bob.handle})
    assert answer.status_code == 422
    assert "Bob" not in answer.text
    assert alice.post(f"{PATH}/invite", data={"person": "bob@example.org"}).status_code == 303
    page = alice.get(PATH).text
    assert '<span class="soft">Bob</span>' in page
    assert people.bob.handle not in page


def test_partners_learn_names_and_no_handles(do, people, site, config):
    """A handle stands on the boards instead of a name, on those of other assignments too."""
    made = do(people.alice, forming.start)
    do(people.bob, forming.join, code=made.code)
    page = site.logged_in(people.alice, config).get(PATH).text
    assert people.bob.name in page
    assert people.bob.handle not in page


def test_whoever_is_in_another_group_is_not_named(do, people):
    do(people.bob, forming.start)
    with pytest.raises(ConflictError, match=r"^They already have a group for this assignment\.$"):
        do(people.alice, forming.invite, who="bob@example.org")
    with pytest.raises(ConflictError, match=r"^You already have a group for this assignment\.$"):
        do(people.bob, forming.join, code=do(people.alice, forming.start).code)


@pytest.mark.parametrize(
    "who", ["", "nobody@example.org", "tom@example.org", "stranger@example.org", "carol@example.org", "%"]
)
def test_only_students_of_the_course_are_invited(do, people, who):
    with pytest.raises(InvalidInputError, match="No student of this course"):
        do(people.alice, forming.invite, who=who)


def test_a_group_has_no_more_members_than_it_may(do, dora, people):
    made = do(people.alice, forming.invite, who="bob@example.org")
    with pytest.raises(ConflictError, match="full"):
        do(people.alice, forming.invite, who="carol@example.org")
    # A place that is offered is taken.
    with pytest.raises(ConflictError, match="full"):
        do(dora, forming.join, code=made.code)
    do(people.alice, forming.take_back, user_id=people.bob.id)
    with pytest.raises(NotFoundError):
        do(people.bob, forming.accept, group_id=made.id)
    do(dora, forming.join, code=made.code)
    with pytest.raises(ConflictError, match="full"):
        do(people.bob, forming.join, code=made.code)


def test_nobody_is_in_two_groups(do, dora, people):
    first, second = do(people.alice, forming.start), do(people.bob, forming.start)
    do(dora, forming.join, code=first.code)
    with pytest.raises(ConflictError, match="already have a group"):
        do(dora, forming.join, code=second.code)
    with pytest.raises(ConflictError, match="already have a group"):
        do(people.bob, forming.invite, who="alice@example.org")


def test_a_place_can_be_declined_and_a_group_left_by_all_is_gone(do, mine, people, database):
    made = do(people.alice, forming.invite, who="bob@example.org")
    do(people.bob, forming.decline, group_id=made.id)
    assert mine(people.alice).room == 1
    do(people.alice, forming.leave)
    assert mine(people.alice) is None
    with database.reading() as session:
        assert session.scalars(select(Group)).all() == []


def test_once_something_is_handed_in_students_change_nothing(do, dora, people, submit):
    made = do(people.alice, forming.start)
    do(people.bob, forming.join, code=made.code)
    submit(people.bob, mode=Mode.run)
    do(people.bob, forming.leave)
    do(people.bob, forming.join, code=made.code)
    submit(people.bob)
    with pytest.raises(ConflictError, match="Only staff"):
        do(people.alice, forming.leave)
    submit(dora)
    with pytest.raises(ConflictError, match="Only staff"):
        do(dora, forming.start)


def test_a_run_is_nobodys_but_its_own_students(do, people, submit, site, config):
    """Not its page, not its source, and not as the version before what was handed in for the group."""
    do(people.bob, forming.join, code=do(people.alice, forming.start).code)
    run = submit(people.alice, source=b"# only tried\n", mode=Mode.run)
    shared = submit(people.alice, source=b"# handed in\n")
    bob, api = site.logged_in(people.bob, config), site.bearer(people.bob)
    for path in ("", "/source", "/diff", "/machine-code", "/live", "/receipt"):
        assert bob.get(f"/submissions/{run.public_id}{path}").status_code == 404, path
    for path in ("", "/source", "/events", "/receipt"):
        assert api.get(f"/api/v1/submissions/{run.public_id}{path}").status_code == 404, path
    assert api.get(f"/api/v1/submissions/{shared.public_id}/source").text == "# handed in\n"
    beside = bob.get(f"/submissions/{shared.public_id}/diff")
    assert beside.status_code == 200
    assert "only tried" not in beside.text
    assert run.public_id not in beside.text
    assert bob.get(f"/submissions/{shared.public_id}/diff?from={run.public_id}").status_code == 404
    for user in (people.alice, people.tom):
        assert "only tried" in site.logged_in(user, config).get(f"/submissions/{shared.public_id}/diff").text


def test_what_staff_say_of_a_run_is_read_by_its_own_student(*, do, people, submit, site, config, database):
    do(people.bob, forming.join, code=do(people.alice, forming.start).code)
    source = b"x = 1\n"
    run, shared = submit(people.alice, source=source, mode=Mode.run), submit(people.alice, source=source)
    with database.transaction() as session:
        tom = courses.membership(session, session.get_one(User, people.tom.id), "gpu")
        for row, said in ((run, "of the run"), (shared, "of what was handed in")):
            found = submissions.find(session, tom.user, row.public_id)
            comments.post(
                session, tom, found, Place(1, 1), text=said, showing=Showing.at_once, save=False, now=db.now(session)
            )
    for user, reads in ((people.alice, True), (people.tom, True), (people.bob, False)):
        page = site.logged_in(user, config).get(f"/submissions/{shared.public_id}/comments").text
        assert "of what was handed in" in page
        assert ("of the run" in page) is reads, user.name


def test_where_it_is_done_alone_there_are_no_groups_and_staff_are_in_none(do, people, database):
    with pytest.raises(InvalidInputError, match="Staff"):
        do(people.tom, forming.start)
    with database.transaction() as session:
        session.scalars(select(Assignment)).one().group_size = 1
    with pytest.raises(InvalidInputError, match="individual"):
        do(people.alice, forming.start)


def _graded(database, row, points=60.0):
    with database.transaction() as session:
        stored = session.get_one(Submission, row.id)
        stored.state, stored.verdict, stored.points = State.done, Verdict.passed, points
        for user_id in groups.together(session, stored.assignment_id, stored.user_id):
            gradebook.refresh(session, stored.course_id, user_id)


def test_a_submission_counts_for_everybody_in_the_group_and_they_see_it(*, do, people, submit, database, site, config):
    made = do(people.alice, forming.start)
    do(people.bob, forming.join, code=made.code)
    row = submit(people.bob)
    _graded(database, row)
    with database.reading() as session:
        assert gradebook.grade_of(session, people.alice.id, row.assignment_id).submission_id == row.id
    client = site.logged_in(people.alice, config)
    assert client.get(f"/submissions/{row.public_id}").status_code == 200
    history = client.get("/courses/gpu/assignments/add_one/submissions").text
    assert row.public_id in history
    assert "What one of you submits counts for all" in history
    run = submit(people.bob, mode=Mode.run)
    assert run.public_id not in client.get("/courses/gpu/assignments/add_one/submissions").text
    # To cancel it stays the business of who handed it in.
    assert client.post(f"/submissions/{row.public_id}/cancel").status_code == 403
    own = submit(people.alice)
    assert client.get(f"/submissions/{own.public_id}/diff?from={row.public_id}").status_code == 200


def test_a_group_has_the_submissions_of_one_student_and_runs_are_everybodys_own(
    *, do, dora, people, submit, database, site, config
):
    with database.transaction() as session:
        row = session.scalars(select(Assignment)).one()
        row.submissions_per_day, row.runs_per_hour = 2, 1
    made = do(people.alice, forming.start)
    do(people.bob, forming.join, code=made.code)
    submit(people.alice)
    submit(people.bob)
    for user in (people.alice, people.bob):
        with pytest.raises(TooManyError, match="Your group has used all 2 submissions of today"):
            submit(user)
        submit(user, mode=Mode.run)
        with pytest.raises(TooManyError, match="practice runs"):
            submit(user, mode=Mode.run)
    assert "0 of 2 submissions left today" in " ".join(
        site.logged_in(people.alice, config).get("/courses/gpu/assignments/add_one").text.split()
    )
    # Who is in no group has their own.
    submit(dora)


def test_what_a_stranger_to_the_group_handed_in_stays_unseen(*, do, dora, people, submit, site, config):
    do(people.alice, forming.start)
    row = submit(people.bob)
    assert site.logged_in(people.alice, config).get(f"/submissions/{row.public_id}").status_code == 404


def test_staff_change_a_group_with_a_reason_and_grades_follow(do, dora, people, submit, database):
    made = do(people.alice, forming.start)
    do(people.bob, forming.join, code=made.code)
    row = submit(people.bob)
    _graded(database, row)
    with pytest.raises(InvalidInputError, match="reason"):
        do(people.tom, staffing.change, group_id=made.id, who=["alice@example.org"], was=made.was, reason=" ")
    with pytest.raises(ForbiddenError):
        do(people.alice, staffing.change, group_id=made.id, who=[], was=made.was, reason="x")
    was = f"{people.alice.id},{people.bob.id}"
    change = {"group_id": made.id, "was": was, "reason": "Alice has left the course"}
    do(people.tom, staffing.change, who=["bob@example.org", dora.handle], **change)
    with database.reading() as session:
        grades = {
            user.name: gradebook.grade_of(session, user.id, row.assignment_id).submission_id
            for user in (people.alice, people.bob, dora)
        }
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "group.changed")).one()
        session.expunge(entry)
        told = set(session.scalars(select(Notification.user_id).where(Notification.title.like("Staff changed%"))))
    assert grades == {"Alice": None, "Bob": row.id, "Carol": row.id}
    assert (entry.actor_id, entry.reason, entry.subject) == (
        people.tom.id,
        change["reason"],
        f"assignment:{row.assignment_id}",
    )
    assert entry.detail["before"] == [people.alice.id, people.bob.id]
    assert told == {people.alice.id, people.bob.id, dora.id}
    # Two at once: the second one looked at what is no longer so.
    with pytest.raises(ConflictError, match="Somebody else"):
        do(people.ines, staffing.change, who=[], **change)


def test_staff_put_together_who_has_no_group_and_not_who_has(do, people, mine):
    do(people.tom, staffing.change, group_id=None, who=["alice@example.org", "bob@example.org"], was="", reason="late")
    assert members(mine(people.alice)) == ["Alice", "Bob"]
    with pytest.raises(ConflictError, match="another group"):
        do(people.tom, staffing.change, group_id=None, who=["alice@example.org"], was="", reason="again")
    with pytest.raises(InvalidInputError, match="Name the students"):
        do(people.tom, staffing.change, group_id=None, who=[], was="", reason="nobody")


def test_of_two_who_take_the_last_place_at_once_one_gets_it(do, dora, people, mine):
    code = do(people.alice, forming.start).code
    said = []

    def take(user):
        try:
            do(user, forming.join, code=code)
            said.append("in")
        except ConflictError:
            said.append("full")

    threads = [threading.Thread(target=take, args=(user,)) for user in (people.bob, dora)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["full", "in"]
    assert len(mine(people.alice).members) == 2


def test_two_who_invite_each_other_at_once_end_in_no_deadlock(do, people, database):
    said = []

    def ask(user, other):
        try:
            do(user, forming.invite, who=other)
            said.append("asked")
        except ConflictError:
            said.append("refused")

    threads = [
        threading.Thread(target=ask, args=(people.alice, "bob@example.org")),
        threading.Thread(target=ask, args=(people.bob, "alice@example.org")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["asked", "refused"]
    with database.reading() as session:
        assert len(session.scalars(select(GroupMember)).all()) == 1


def test_the_page_says_what_was_refused_beside_what_was_typed(site, people, config):
    client = site.logged_in(people.alice, config)
    answer = client.post(f"{PATH}/invite", data={"person": "<b>nobody</b>"})
    assert answer.status_code == 422
    assert "No student of this course has the e-mail address" in answer.text
    assert "<b>nobody" not in answer.text
    assert 'value="&lt;b&gt;nobody' in answer.text


def test_the_page_goes_the_whole_way_without_a_script(site, people, config):
    alice, bob, tom = (site.logged_in(user, config) for user in (people.alice, people.bob, people.tom))
    assert "Join with a code" in alice.get(PATH).text
    assert alice.post(f"{PATH}/invite", data={"person": "bob@example.org"}).status_code == 303
    page = bob.get(PATH).text
    assert "<strong>Alice</strong> invites you" in page
    group_id = page.split('name="group_id" value="')[1].split('"')[0]
    assert bob.post(f"{PATH}/accept", data={"group_id": group_id}).status_code == 303
    assert "Together with Alice" in bob.get("/courses/gpu/assignments/add_one").text
    shown = tom.get(PATH).text
    assert "Alice, Bob" in shown
    assert (
        tom.post(f"{PATH}/change", data={"group_id": group_id, "people": "", "was": "1", "reason": "x"}).status_code
        == 409
    )


def test_groups_are_read_in_bulk_by_member_and_assignment(do, people, database):
    code = do(people.alice, forming.start).code
    do(people.bob, forming.join, code=code)
    with database.reading() as session:
        row = session.scalars(select(Assignment)).one()
        found = groups.groups_in(session, people.course.id)
        assert set(found) == {(people.alice.id, row.id), (people.bob.id, row.id)}
        assert found[people.bob.id, row.id].member_ids == (people.alice.id, people.bob.id)
        assert groups.groups_in(session, people.course.id, [people.tom.id]) == {}
        assert groups.together(session, row.id, people.tom.id) == (people.tom.id,)
