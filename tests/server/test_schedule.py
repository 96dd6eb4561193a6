"""The schedule is edited in the app: what cannot be is refused beside its field, and nobody overwrites anybody."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import select

from server.courses import clock, courses, quotas
from server.errors import ForbiddenError, InvalidInputError, NotFoundError, TooManyError
from server.models import Assignment, AuditEntry, Lane, Mode, State, Submission, Verdict
from server.schedule import schedule, typed
from server.schedule.schedule import Edit, ScheduleRefusedError

COURSE, RUNG, BERLIN = "gpu", "add_one", "Europe/Berlin"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PATH = f"/courses/{COURSE}/schedule"
CLOSES = {"due_at": "2026-12-01T10:00", "late_until": "2026-12-02T10:00"}


@pytest.fixture
def shown(database, people):
    """The rung's row as a member of the staff sees it."""

    def call(user=people.tom):
        with database.reading() as session:
            found = schedule.rows(session, courses.membership(session, user, COURSE))[0]
            session.expunge_all()
            return found

    return call


@pytest.fixture
def change(database, people, shown):
    """Type something into the rung's fields and save, as who had looked at `of` (now, where it is not given)."""

    def call(user=people.tom, of=None, **texts):
        of = of or shown()
        edit = Edit(RUNG, of.row.revision, of.seen, {**of.texts, **texts})
        with database.transaction() as session:
            return [row.slug for row in schedule.change(session, courses.membership(session, user, COURSE), [edit])]

    return call


@pytest.fixture
def zone(database, people):
    """Move the course to a time zone."""
    with database.transaction() as session:
        courses.course_by_slug(session, COURSE).timezone = BERLIN


def _row(database):
    with database.reading() as session:
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        session.expunge(row)
        return row


def _read(zone="UTC", **texts):
    """What a rung's fields would mean, without a database."""
    row = Assignment(slug=RUNG, published=True, weight=1.0, group_size=1)
    lanes = (Lane.h200, Lane.cpu)
    return typed.read({**typed.texts_of(row, zone, lanes), **texts}, row, zone, lanes)


def test_times_are_on_the_courses_clock(change, zone, database):
    assert change(open_at="2026-07-01T08:00", due_at="2026-11-29T23:59", late_until="2026-12-02T23:59") == [RUNG]
    row = _row(database)
    assert row.open_at == datetime(2026, 7, 1, 6, 0, tzinfo=UTC)
    assert row.due_at == datetime(2026, 11, 29, 22, 59, tzinfo=UTC)
    assert change(late_until="") == [RUNG]
    assert _row(database).late_until is None


@pytest.mark.parametrize(
    ("typed_text", "why"),
    [
        ("2027-03-28T02:30", "skipped"),
        ("2027-10-31T02:30", "twice"),
        ("29.11.2026", "not a date and time"),
        ("0026-11-29T23:59", "between 2000 and 2100"),
        ("2026-02-30T10:00", "not a date and time"),
        ("2026-11-29T25:00", "not a date and time"),
    ],
)
def test_a_time_that_is_not_there_is_refused(typed_text, why):
    decided, problems = _read(BERLIN, due_at=typed_text)
    assert decided is None
    assert why in problems["due_at"]


def test_what_stands_in_an_hour_that_comes_twice_is_kept_by_a_form_that_did_not_touch_it(change, zone, database):
    twice = datetime(2027, 10, 31, 1, 30, 17, tzinfo=UTC)
    with database.transaction() as session:
        session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one().due_at = twice
    assert change(weight="2") == [RUNG]
    assert _row(database).due_at == twice


@pytest.mark.parametrize(
    ("texts", "field"),
    [
        ({"open_at": "2026-12-01T10:00", "due_at": "2026-11-01T10:00"}, "due_at"),
        ({"due_at": "2026-12-01T10:00", "late_until": "2026-11-30T10:00"}, "late_until"),
        ({"late_until": "2026-11-30T10:00"}, "late_until"),
        ({"leaderboard_freeze_at": "2026-11-30T10:00"}, "leaderboard_freeze_at"),
        ({"due_at": "2026-12-01T10:00", "leaderboard_freeze_at": "2026-12-01T10:00"}, "leaderboard_freeze_at"),
        ({"due_at": "2026-12-01T10:00", "solutions_released_at": "2026-11-30T10:00"}, "solutions_released_at"),
        ({"due_at": "2026-12-01T10:00", "solutions_released_at": "2026-12-02T10:00"}, "solutions_released_at"),
        (
            {**CLOSES, "late_until": "2026-12-03T10:00", "solutions_released_at": "2026-12-02T10:00"},
            "solutions_released_at",
        ),
        ({"weight": "-1"}, "weight"),
        ({"weight": "nan"}, "weight"),
        ({"weight": "1e9"}, "weight"),
        ({"submissions_per_day": "0"}, "submissions_per_day"),
        ({"submissions_per_day": "²"}, "submissions_per_day"),
        ({"runs_per_hour": "many"}, "runs_per_hour"),
        ({"group_size": "99"}, "group_size"),
        ({"lanes": ""}, "lanes"),
        ({"lanes": "cpu b300"}, "lanes"),
    ],
)
def test_what_cannot_be_is_refused_beside_its_field(texts, field):
    decided, problems = _read(**texts)
    assert decided is None
    assert set(problems) == {field}


def test_solutions_are_released_where_submissions_are_over_some_day():
    released = {"solutions_released_at": "2026-12-02T10:00"}
    assert "Late until" in _read(due_at="2026-12-01T10:00", **released)[1]["solutions_released_at"]
    for texts in ({}, CLOSES):
        decided, problems = _read(**texts, **released)
        assert not problems
        assert decided.solutions_released_at == datetime(2026, 12, 2, 10, tzinfo=UTC)


def test_where_one_field_is_refused_nothing_is_saved(change, database):
    with pytest.raises(ScheduleRefusedError) as caught:
        change(published="", weight="-1")
    assert set(caught.value.problems[RUNG]) == {"weight"}
    row = _row(database)
    assert (row.published, row.revision) == (True, 0)


def test_the_second_of_two_is_told_and_overwrites_nothing(change, shown, database, people):
    seen = shown()
    change(of=seen, weight="2")
    with pytest.raises(ScheduleRefusedError) as caught:
        change(user=people.ines, of=seen, weight="3")
    assert "Somebody else" in caught.value.problems[RUNG][""]
    assert _row(database).weight == 2.0
    # A form that did not touch the rung is no conflict: it may have been about another one.
    assert change(user=people.ines, of=seen) == []


def test_a_change_leaves_a_trail_with_what_was_before(change, database, people):
    change(weight="0.5", submissions_per_day="5")
    with database.reading() as session:
        (entry,) = session.scalars(select(AuditEntry).where(AuditEntry.action == "assignment.scheduled"))
        assert entry.actor_id == people.tom.id
        assert entry.detail["changed"] == {"weight": [1.0, 0.5], "submissions_per_day": [None, 5]}


def test_only_staff_and_only_of_this_course(database, people, shown):
    one = shown()
    edit = Edit(RUNG, 0, one.seen, {**one.texts, "weight": "2"})
    with database.transaction() as session, pytest.raises(ForbiddenError):
        schedule.change(session, courses.membership(session, people.alice, COURSE), [edit])
    other = [Edit("softmax", 0, "", edit.texts)]
    with database.transaction() as session, pytest.raises(NotFoundError):
        schedule.change(session, courses.membership(session, people.tom, COURSE), other)


def test_a_rung_is_offered_on_the_lanes_that_staff_leave(change, database, people, submit):
    decided, _problems = _read(lanes="h200")
    assert decided.lanes == ["h200"]
    assert _read(lanes="cpu h200")[0].lanes is None
    with database.transaction() as session:
        session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one().lanes = [Lane.h200.value]
    with pytest.raises(InvalidInputError, match="not graded on cpu"):
        submit(people.alice)


def test_days_begin_at_midnight_on_the_courses_clock_also_when_it_is_changed():
    begins, ends = clock.midnights(datetime(2027, 3, 28, 12, tzinfo=UTC), BERLIN)
    assert begins == datetime(2027, 3, 27, 23, tzinfo=UTC)
    assert ends - begins == timedelta(hours=23)
    moved = clock.shifted(datetime(2026, 10, 20, 21, 59, tzinfo=UTC), BERLIN, weeks=1)
    assert moved == datetime(2026, 10, 27, 22, 59, tzinfo=UTC)


@pytest.fixture
def quota(change, submit, people, database, zone):
    """Two submissions a day and two runs an hour, and what is left of them."""
    change(submissions_per_day="2", runs_per_hour="2")

    def left(now):
        with database.reading() as session:
            row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
            return quotas.left(session, row, people.alice.id, now)

    return SimpleNamespace(left=left, hand_in=lambda at, **more: submit(people.alice, now=at, **more))


def test_a_day_has_so_many_submissions_and_begins_anew_at_midnight(quota, people, submit):
    evening = datetime(2026, 11, 21, 22, 50, tzinfo=UTC)  # 23:50 in Berlin
    for minutes in (0, 3):
        quota.hand_in(evening + timedelta(minutes=minutes))
    left = quota.left(evening + timedelta(minutes=5))
    assert (left.submissions, left.submissions_per_day) == (0, 2)
    assert left.resets_at == datetime(2026, 11, 21, 23, tzinfo=UTC)
    with pytest.raises(TooManyError, match="You have used all 2 submissions of today") as caught:
        quota.hand_in(evening + timedelta(minutes=5))
    assert caught.value.retry_after_s == 300
    assert quota.hand_in(evening + timedelta(minutes=5), mode=Mode.run).number == 1
    submit(people.bob, now=evening)
    assert quota.hand_in(evening + timedelta(minutes=11)).number == 3


def test_an_hour_has_so_many_runs(quota):
    for minutes in (0, 20):
        quota.hand_in(NOW + timedelta(minutes=minutes), mode=Mode.run)
    at = NOW + timedelta(minutes=30)
    assert quota.left(at).run_at == NOW + timedelta(minutes=60)
    with pytest.raises(TooManyError, match="possible in 30 min"):
        quota.hand_in(at, mode=Mode.run)
    quota.hand_in(NOW + timedelta(minutes=61), mode=Mode.run)
    assert quota.left(NOW + timedelta(minutes=61)).runs == 0


def test_what_failed_and_was_ours_or_was_cancelled_is_not_counted(quota, database):
    first, second = quota.hand_in(NOW), quota.hand_in(NOW + timedelta(minutes=2))
    assert quota.left(NOW + timedelta(minutes=3)).submissions == 0
    with database.transaction() as session:
        session.get_one(Submission, first.id).state = State.failed
        ours = session.get_one(Submission, second.id)
        ours.state, ours.verdict = State.done, Verdict.grader_error
    assert quota.left(NOW + timedelta(minutes=3)).submissions == 2


def test_two_at_once_are_not_both_the_last(quota):
    quota.hand_in(NOW)

    def again(seconds):
        try:
            return quota.hand_in(NOW + timedelta(minutes=3, seconds=seconds)).number
        except TooManyError as error:
            return error

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(again, range(3)))
    assert sorted(isinstance(one, TooManyError) for one in found) == [False, True, True]


def test_two_forms_that_are_sent_at_once_do_not_both_win(change, shown, people, database):
    seen = shown()

    def save(weight):
        try:
            return change(of=seen, weight=weight)
        except ScheduleRefusedError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(save, ("2", "3")))
    assert sum(isinstance(one, ScheduleRefusedError) for one in found) == 1
    assert _row(database).revision == 1


def test_staff_have_no_quota(quota, submit, people):
    for minutes in range(4):
        submit(people.tom, now=NOW + timedelta(minutes=minutes))


def _form(page: str) -> dict[str, list[str]]:
    """The fields of the schedule's form as a browser would send them."""
    import re  # noqa: PLC0415  # for this reader alone

    fields: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", page.split('id="schedule"', 1)[1].split("</form>", 1)[0]):
        given = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
        if "name" in given and (given.get("type") != "checkbox" or " checked" in tag):
            fields.setdefault(given["name"], []).append(given.get("value", ""))
    return fields


def test_the_page_saves_by_one_form_and_shows_a_refusal_where_it_was_typed(site, people, config, database):
    browser = site.logged_in(people.tom, config)
    fields = _form(browser.get(PATH).text)
    fields[f"due_at.{RUNG}"] = ["2026-11-29T23:59"]
    fields[f"late_until.{RUNG}"] = ["2026-11-20T23:59"]
    refused = browser.post(PATH, data=fields)
    assert refused.status_code == 422
    assert "It would close before it is due." in refused.text
    assert 'value="2026-11-20T23:59"' in refused.text
    again = _form(refused.text)
    again[f"late_until.{RUNG}"] = [""]
    saved = browser.post(PATH, data=again)
    assert saved.status_code == 303
    assert _row(database).due_at == datetime(2026, 11, 29, 23, 59, tzinfo=UTC)
    page = browser.get(saved.headers["location"]).text
    assert "Saved. Assignments changed: 1." in page
    assert "students ×" in page
    stale = browser.post(PATH, data=again)
    assert stale.status_code == 422
    assert "Somebody else changed this assignment" in stale.text


def test_all_dates_move_by_days_once_they_are_saved(site, people, config, database, zone):
    """Over the change to winter time the hour on the course's clock stays."""
    at = datetime(2090, 10, 27, 21, 59, tzinfo=UTC)
    with database.transaction() as session:
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        row.open_at, row.due_at = datetime(2020, 1, 1, tzinfo=UTC), at
    browser = site.logged_in(people.tom, config)
    shown = browser.get(PATH, params={"days": "7", "which": "ahead"}).text
    assert "Not saved yet." in shown
    assert _row(database).due_at == at
    assert browser.post(PATH, data=_form(shown)).status_code == 303
    assert _row(database).due_at == at + timedelta(days=7, hours=1)
    assert _row(database).open_at == datetime(2020, 1, 1, tzinfo=UTC)
    back = browser.get(PATH, params={"days": "\N{MINUS SIGN}7", "which": "all"}).text
    assert browser.post(PATH, data=_form(back)).status_code == 303
    assert (_row(database).due_at, _row(database).open_at) == (at, datetime(2019, 12, 25, tzinfo=UTC))
    for days in ("0", "soon", "400", "000010", "+-5", "--5", "-", "\N{MINUS SIGN}+5"):
        refused = browser.get(PATH, params={"days": days})
        assert (refused.status_code, "Type a whole number of days" in refused.text) == (422, True)


def test_a_form_with_as_many_fields_as_forty_rungs_is_read(site, people, config):
    browser = site.logged_in(people.tom, config)
    fields = _form(browser.get(PATH).text) | {f"weight.none_{index}": ["1"] for index in range(600)}
    assert browser.post(PATH, data=fields).headers["location"].endswith("done=unchanged&count=0")


def test_dates_keep_their_seconds_when_they_move(site, people, config, database, zone):
    open_at, due_at = datetime(2020, 1, 1, 22, 0, 7, tzinfo=UTC), datetime(2090, 10, 20, 21, 59, 59, tzinfo=UTC)
    with database.transaction() as session:
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        row.open_at, row.due_at = open_at, due_at
    browser = site.logged_in(people.tom, config)
    moved = _form(browser.get(PATH, params={"days": "1", "which": "ahead"}).text)
    assert moved[f"due_at.{RUNG}"] == ["2090-10-21T23:59:59"]
    assert browser.post(PATH, data=moved).status_code == 303
    assert (_row(database).open_at, _row(database).due_at) == (open_at, due_at + timedelta(days=1))


def test_dates_whose_hour_the_clock_skips_are_named(site, people, config, database, zone):
    """In Berlin the clock goes from 2 to 3 on 26 March 2090."""
    with database.transaction() as session:
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        row.open_at = datetime(2090, 3, 24, 1, 15, tzinfo=UTC)
        row.due_at = datetime(2090, 3, 25, 1, 30, tzinfo=UTC)
        title = row.title
    browser = site.logged_in(people.tom, config)
    shown = browser.get(PATH, params={"days": "1", "which": "all"}).text
    assert f"<li>{title}, due: 2090-03-26 03:30 instead of 02:30</li>" in shown
    assert f"{title}, opens:" not in shown
    assert "The clocks skip" not in browser.get(PATH, params={"days": "3", "which": "all"}).text
