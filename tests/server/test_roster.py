"""People come into a course by tables, links and one by one, and go out of it without losing anything."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import func, select, update

from server.accounts import accounts, links
from server.courses import courses
from server.db import now as clock_now
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError, TooManyError
from server.models import AuditEntry, CourseInvite, Enrolment, LinkRequest, Mail, PasswordLink, Role, RosterImport, User
from server.roster import imports, invites, people, roster
from server.roster.people import STAFF_ONLY_BY_INSTRUCTORS
from server.roster.plan import Step
from server.roster.roster import Filter, Wanted

COURSE = "gpu"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
PATH = f"/courses/{COURSE}/roster"
HEADER = "email,name,section,role,student id\n"


def _troubles(text: str | bytes) -> dict[int, str]:
    data = text.encode() if isinstance(text, str) else text
    return {trouble.line: trouble.message for trouble in people.read(data).troubles}


def test_each_line_that_cannot_be_meant_is_named_and_the_others_are_read():
    table = HEADER + (
        "dora@example.org,Dora,A,student,1\n"
        "not an address,Emil,A,student,2\n"
        "f@example.org,Fay,A,wizard,3\n"
        "DORA@example.org ,Dora,A,student,\n"
        "g@example.org,Gus,B,student,1\n"
        "h@example.org,Hal\u202e,B,student,5\n"
        f"i@example.org,Ida,{'x' * 61},student,6\n"
        "j@example.org,Jan,A,student,7,surplus\n"
    )
    found = people.read(table.encode())
    assert [person.email for person in found.lines] == ["dora@example.org"]
    troubles = _troubles(table)
    assert set(troubles) == {3, 4, 5, 6, 7, 8, 9}
    assert "not a role" in troubles[4]
    assert "is in line 2 already" in troubles[5]
    assert "has the student id 1 already" in troubles[6]


def test_a_person_in_two_sections_is_an_error_of_its_line():
    table = HEADER + "dora@example.org,Dora,A,,\ndora@example.org,Dora,B,,\n"
    assert "in section “A”. A person has one section" in _troubles(table)[3]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_spreadsheets_write_is_read(encoding):
    table = HEADER.replace(",", ";") + "zoë@example.org;Zoë Ångström;A;Student;0007\n"
    (person,) = people.read(table.encode(encoding)).lines
    assert (person.name, person.student_number, person.role) == ("Zoë Ångström", "0007", Role.student)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (HEADER.encode() + "j@example.org,Jürgen,,,\n".encode("latin-1"), "Line 2 is not UTF-8"),
        (b"name,section\nDora,A\n", "no column “email”"),
        (b"", "empty"),
        (b"email,email\na@b.c,d@e.f\n", "twice"),
        (b"PK\x03\x04\x00\x00", "zero bytes"),
        (b'email\n"a@b.c', "cannot be read as CSV"),
        (b"email\n" + b"a@example.org\n" * 2001, "2,001 people"),
        (b"x" * (3 * 2**20), "3.0 MiB"),
    ],
)
def test_what_is_no_table_of_people_is_refused_whole(data, why):
    with pytest.raises(InvalidInputError, match=why):
        people.read(data)


@pytest.fixture
def do(database, people):
    """Do something as a member of the course, in a transaction of its own."""

    def call(act, user=people.ines):
        with database.transaction() as session:
            return act(session, courses.membership(session, user, COURSE))

    return call


@pytest.fixture
def load(do, people):
    """Store a table; its public id and what it would do, by e-mail address."""

    def call(table, user=people.ines):
        def act(session, member):
            row = imports.store(session, member, table.encode(), filename="people.csv", now=NOW)
            shown = imports.look(session, member, row.public_id)
            return row.public_id, shown.plan

        return do(act, user)

    return call


TABLE = HEADER + (
    'dora@example.org,"=HYPERLINK(""http://x"") <b>Dora</b>",A,student,1\n'
    "stranger@example.org,Another Name,A,,2\n"
    "carol@example.org,Carol,B,,\n"
    "alice@example.org,Alice,B,,3\n"
    "bob@example.org,,,,\n"
    "nameless@example.org,,,,\n"
)


def test_a_table_says_what_it_would_do_and_does_just_that(load, do, database):
    public_id, plan = load(TABLE)
    steps = {line.person.email.split("@")[0]: line.step for line in plan.lines}
    assert steps == {
        "dora": Step.added, "stranger": Step.added, "carol": Step.returns, "alice": Step.changed,
        "bob": Step.unchanged, "nameless": Step.refused,
    }  # fmt: skip
    assert plan.missing == ()
    do(lambda session, member: imports.apply(session, member, public_id, digest=plan.digest, now=NOW))
    with database.reading() as session:
        found = {row.user.email.split("@")[0]: row for row in roster.everybody(session, courses.membership(
            session, accounts.user_by_email(session, "ines@example.org"), COURSE))}  # fmt: skip
        assert found["dora"].user.password_hash is None
        assert found["dora"].user.name == '=HYPERLINK("http://x") <b>Dora</b>'
        assert found["stranger"].user.name == "Stranger"
        assert (found["carol"].section, found["carol"].dropped_at) == ("B", None)
        assert (found["alice"].section, found["alice"].student_number) == ("B", "3")
        assert "nameless" not in found
        # Who is new to the course gets a mail, with an account or without.
        assert session.scalars(select(Mail.to)).all() == ["dora@example.org", "stranger@example.org"]
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "roster.imported")).one()
        assert entry.detail["added"] == 2
        assert session.scalars(select(RosterImport)).one().people == []


def test_a_table_is_applied_once_and_only_as_it_was_shown(load, do, people):
    public_id, plan = load(TABLE)
    do(lambda session, member: courses.enrol(session, course=member.course, user=people.stranger, role=Role.student))
    with pytest.raises(ConflictError, match="changed since"):
        do(lambda session, member: imports.apply(session, member, public_id, digest=plan.digest, now=NOW))
    with pytest.raises(NotFoundError):
        do(lambda session, _member: accounts.user_by_email(session, "dora@example.org"))
    digest = do(lambda session, member: imports.look(session, member, public_id).plan.digest)
    do(lambda session, member: imports.apply(session, member, public_id, digest=digest, now=NOW))
    with pytest.raises(ConflictError, match="imported already"):
        do(lambda session, member: imports.apply(session, member, public_id, digest=digest, now=NOW))


def test_the_same_table_again_changes_nothing(load, do):
    public_id, plan = load(HEADER + "dora@example.org,Dora,A,ta,1\n")
    do(lambda session, member: imports.apply(session, member, public_id, digest=plan.digest, now=NOW))
    _public_id, again = load(HEADER + "dora@example.org,Dora,A,ta,1\n")
    assert not again.changed


def test_a_student_id_is_one_persons(load, do):
    public_id, plan = load(HEADER + "alice@example.org,,,,77\n")
    do(lambda session, member: imports.apply(session, member, public_id, digest=plan.digest, now=NOW))
    _public_id, other = load(HEADER + "bob@example.org,,,,77\n")
    assert other.lines[0].step is Step.refused
    assert "student id 77" in other.lines[0].why


def test_a_ta_decides_about_students_alone(load, do, people):
    _public_id, plan = load(
        HEADER + "dora@example.org,Dora,,ta,\nines@example.org,,B,,\nalice@example.org,,B,,\n", people.tom
    )
    assert [line.step for line in plan.lines] == [Step.refused, Step.refused, Step.changed]
    assert {line.why for line in plan.lines[:2]} == {STAFF_ONLY_BY_INSTRUCTORS}
    with pytest.raises(ForbiddenError):
        load(TABLE, people.alice)
    for act in (_to(Role.ta), _drop):
        with pytest.raises(ForbiddenError, match=STAFF_ONLY_BY_INSTRUCTORS):
            do(lambda session, member, act=act: act(session, member, people.tom if act is _drop else people.alice),
               people.tom if act is not _drop else _another_ta(do, people))  # fmt: skip


def test_a_tas_page_of_staff_says_what_a_refusal_says(do, site, people, config):
    with pytest.raises(ForbiddenError, match="Only an instructor can add, change or remove staff"):
        do(lambda session, member: _to(Role.instructor, "B")(session, member, people.ines), people.tom)
    shown = site.logged_in(people.tom, config).get(f"{PATH}/people/{people.ines.id}").text
    assert STAFF_ONLY_BY_INSTRUCTORS in shown


def _another_ta(do, people):
    do(lambda session, member: courses.enrol(session, course=member.course, user=people.stranger, role=Role.ta))
    return people.stranger


def _to(role, section="", number=""):
    def act(session, member, user):
        seen = roster.seen(roster.find(session, member, user.id))
        return roster.change(session, member, user.id, Wanted(role, section, number), seen_as=seen)

    return act


def _drop(session, member, user):
    seen = roster.seen(roster.find(session, member, user.id))
    return roster.drop(session, member, user.id, seen_as=seen, reason="left", now=clock_now(session))


def _add(session, member, user):
    return roster.add_again(session, member, user.id, seen_as=roster.seen(roster.find(session, member, user.id)))


def test_a_course_keeps_an_instructor(do, people):
    with pytest.raises(ConflictError, match="only one left"):
        do(lambda session, member: _drop(session, member, people.ines), people.admin)
    with pytest.raises(ForbiddenError, match="your own role"):
        do(lambda session, member: _to(Role.ta)(session, member, people.ines))
    do(lambda session, member: _to(Role.instructor)(session, member, people.tom))
    do(lambda session, member: _drop(session, member, people.ines), people.admin)


def test_the_second_of_two_who_change_somebody_is_told(do, people):
    seen = do(lambda session, member: roster.seen(roster.find(session, member, people.alice.id)))
    do(lambda session, member: _to(Role.student, "A")(session, member, people.alice), people.tom)
    wanted = Wanted(Role.student, "B", "")
    with pytest.raises(ConflictError, match="Somebody else"):
        do(lambda session, member: roster.change(session, member, people.alice.id, wanted, seen_as=seen))


def test_who_is_dropped_is_out_at_once_and_comes_back_with_their_work(do, site, people, submit, config):
    made = submit(people.alice)
    browser, program = site.logged_in(people.alice, config), site.bearer(people.alice)
    own = f"/submissions/{made.public_id}"
    assert browser.get(own).status_code == 200
    do(lambda session, member: _drop(session, member, people.alice))
    assert browser.get(own).status_code == 404
    assert browser.get(f"/courses/{COURSE}").status_code == 404
    assert program.get(f"/api/v1/submissions/{made.public_id}").status_code == 404
    assert program.get(f"/api/v1/courses/{COURSE}/assignments").status_code == 404
    do(lambda session, member: _add(session, member, people.alice))
    assert browser.get(own).status_code == 200


def test_the_roster_is_searched_filtered_and_paged(do, database, people):
    def fill(session, member):
        for index in range(230):
            user = User(
                email=f"s{index}@example.org", name=f"Student 100%_{index:03}", handle=f"h{index}", created_at=NOW
            )
            session.add(user)
            session.flush()
            section = "ABC"[index % 3]
            session.add(
                Enrolment(
                    course_id=member.course.id, user_id=user.id, role=Role.student, section=section, created_at=NOW
                )
            )

    do(fill)

    def look(**which):
        with database.reading() as session:
            found = roster.roster(session, courses.membership(session, people.tom, COURSE), Filter(**which))
            return found.found, found.pages, len(found.rows), found.rows[0].user.name if found.rows else ""

    assert look() == (234, 3, 100, "Alice")
    assert look(page=99)[2] == 34
    assert look(search="100%_22")[0] == 10
    assert look(search="s22@")[0] == 1
    assert look(search="_____")[0] == 0
    assert look(section="A", role=Role.student)[0] == 77
    assert look(role=Role.ta) == (1, 1, 1, "Tom")
    assert look(dropped=True) == (1, 1, 1, "Carol")


@pytest.fixture
def invite(do, people):
    """A new link; its token."""

    def call(user=people.ines, **wanted):
        asked = {"role": Role.student, "section": "A", "days": 7, "most_uses": 1, "now": NOW, **wanted}
        path = do(lambda session, member: invites.create(session, member, **asked).path, user)
        return parse_qs(urlsplit(path).query)["token"][0]

    return call


def _accept(database, user, token, now=NOW):
    with database.transaction() as session:
        return invites.accept(session, session.get_one(User, user.id), token, now=now).role


def test_a_link_lets_people_in_until_it_is_used_up_over_or_taken_back(invite, database, people, do):
    token = invite()
    assert _accept(database, people.stranger, token) is Role.student
    # Who is in the course already uses nothing up; but this one is used up.
    with pytest.raises(NotFoundError, match="no longer valid"):
        _accept(database, people.admin, token)
    old = invite()
    with pytest.raises(NotFoundError, match="no longer valid"):
        _accept(database, people.admin, old, NOW + timedelta(days=7))
    with database.reading() as session:
        last = session.scalars(select(func.max(CourseInvite.id))).one()
        assert session.get_one(CourseInvite, last).token_hash != old
    do(lambda session, member: invites.revoke(session, member, last, now=NOW))
    with pytest.raises(NotFoundError):
        _accept(database, people.admin, old)
    with pytest.raises(NotFoundError):
        do(lambda session, member: invites.revoke(session, member, last, now=NOW))


def test_a_link_does_not_bring_back_who_was_taken_out_nor_change_who_is_in(invite, database, people):
    token = invite(role=Role.ta, most_uses=None)
    with pytest.raises(ForbiddenError, match="left this course"):
        _accept(database, people.carol, token)
    _accept(database, people.alice, token)
    with database.reading() as session:
        assert courses.membership(session, people.alice, COURSE).role is Role.student
        assert session.scalars(select(CourseInvite)).one().uses == 0


def test_only_an_instructor_invites_staff_and_nothing_odd_is_taken(invite, people):
    with pytest.raises(ForbiddenError):
        invite(people.tom, role=Role.ta)
    with pytest.raises(ForbiddenError):
        invite(people.alice)
    for wrong in ({"days": 0}, {"days": 366}, {"most_uses": 0}, {"section": "x" * 61}):
        with pytest.raises(InvalidInputError):
            invite(**wrong)


def _sign_up(database, token, email, name="Dora", address="192.0.2.7"):
    with database.transaction() as session:
        invites.sign_up(session, token, email=email, name=name, address=address, now=clock_now(session))


def test_a_stranger_gets_an_account_that_only_their_mailbox_opens(invite, database):
    token = invite(most_uses=2, now=datetime.now(UTC))
    _sign_up(database, token, "Dora@example.org")
    with database.reading() as session:
        dora = accounts.user_by_email(session, "dora@example.org")
        assert dora.password_hash is None
        assert courses.membership(session, dora, COURSE).enrolment.section == "A"
        assert session.scalars(select(PasswordLink.user_id)).all() == [dora.id]
    with pytest.raises(InvalidInputError):
        _sign_up(database, token, "dora")


def test_an_address_with_an_account_is_not_given_away_and_not_enrolled(invite, database, people):
    token = invite(now=datetime.now(UTC))
    _sign_up(database, token, "stranger@example.org", "Mallory")
    with database.reading() as session:
        with pytest.raises(NotFoundError):
            courses.membership(session, people.stranger, COURSE)
        assert session.scalars(select(Mail.subject)).one() == "Join GPU programming"
        assert session.get_one(User, people.stranger.id).name == "Stranger"


def test_one_address_cannot_ask_for_accounts_without_end(invite, database, monkeypatch):
    monkeypatch.setattr(invites, "_PER_ADDRESS", 2)
    token = invite(most_uses=None, now=datetime.now(UTC))
    for index in range(2):
        _sign_up(database, token, f"d{index}@example.org")
    with pytest.raises(TooManyError):
        _sign_up(database, token, "d3@example.org")
    _sign_up(database, token, "d4@example.org", address="192.0.2.8")


def test_a_link_keeps_nobody_from_a_new_password(invite, database, people):
    token = invite(most_uses=None, now=datetime.now(UTC))
    for index in range(links.PER_EMAIL):
        _sign_up(database, token, "stranger@example.org", address=f"192.0.2.{index}")
    with database.transaction() as session:
        links.request_reset(session, email="stranger@example.org", address="192.0.2.99")
        assert session.scalars(select(PasswordLink.user_id)).all() == [people.stranger.id]
        # Sign-ups still count for the network address that they came from.
        assert len(session.scalars(select(LinkRequest).where(LinkRequest.address == "192.0.2.1")).all()) == 1


def test_a_link_fills_nobodys_mailbox(invite, database, people):
    """However many links and network addresses: beyond some mails the answer is the same, and none is sent."""
    tokens = [invite(most_uses=None, now=datetime.now(UTC)) for _ in range(2)]
    with database.transaction() as session:
        links.request_reset(session, email="stranger@example.org", address="192.0.2.99")
    for index in range(8):
        _sign_up(database, tokens[index % 2], "stranger@example.org", address=f"192.0.2.{index}")
    _sign_up(database, tokens[0], "alice@example.org")
    assert _join_mails(database) == {"stranger@example.org": 3, "alice@example.org": 1}
    with database.transaction() as session:
        session.execute(update(Mail).values(created_at=datetime.now(UTC) - timedelta(minutes=61)))
    _sign_up(database, tokens[0], "stranger@example.org")
    assert _join_mails(database)["stranger@example.org"] == 4


def _join_mails(database):
    with database.reading() as session:
        return Counter(session.scalars(select(Mail.to).where(Mail.subject == "Join GPU programming")))


def test_the_pages_take_a_table_show_it_and_do_it(site, people, config, database):
    browser = site.logged_in(people.ines, config)
    refused = browser.post(f"{PATH}/import", data={"pasted": "name\n<b>x"})
    assert refused.status_code == 422
    assert "no column “email”" in refused.text
    assert "name\n&lt;b&gt;x" in refused.text
    stored = browser.post(f"{PATH}/import", files={"file": ("p.csv", TABLE.encode("utf-16"), "text/csv")})
    shown = browser.get(stored.headers["location"]).text
    assert "&lt;b&gt;Dora&lt;/b&gt;" in shown
    assert "<strong>1 line will be left out.</strong>" in shown
    assert "Import 4 people and send" in shown
    assert "will be sent at once" in shown
    broken = browser.get(f"{stored.headers['location']}/left-out.csv").text.splitlines()
    assert broken[0].endswith("line,why it was left out")
    assert len(broken) == 2
    digest = shown.split('name="digest" value="', 1)[1].split('"', 1)[0]
    done = browser.post(stored.headers["location"], data={"digest": digest})
    result = browser.get(done.headers["location"]).text
    assert "Import result" in result
    assert "Skipped: 1" in result
    assert "left-out.csv" in result
    assert browser.get(f"{stored.headers['location']}/left-out.csv").text.splitlines() == broken
    again = browser.post(stored.headers["location"], data={"digest": digest})
    assert (again.status_code, "imported already" in again.text) == (409, True)
    table = browser.get(f"{PATH}.csv").text
    assert "'=HYPERLINK" in table
    assert "stranger@example.org" in table


def test_fifty_megabytes_are_refused_before_they_are_read(site, people, config):
    browser = site.logged_in(people.ines, config)

    def endless():
        yield b'--b\r\ncontent-disposition: form-data; name="file"; filename="people.csv"\r\n\r\n'
        for _ in range(50):
            yield b"x" * 2**20

    head = {"content-type": "multipart/form-data; boundary=b"}
    declared = browser.post(f"{PATH}/import", content=b"x" * (8 * 2**20), headers=head)
    assert declared.status_code == 413
    streamed = browser.post(f"{PATH}/import", content=endless(), headers=head)
    assert streamed.status_code == 413
    assert "too large" in streamed.text.lower()


def test_the_pages_add_change_and_drop_a_person(site, people, config, database):
    browser = site.logged_in(people.ines, config)
    page = browser.post(f"{PATH}/add", data={"email": "nobody", "name": "<i>N", "role": "student"})
    assert page.status_code == 422
    assert 'value="&lt;i&gt;N"' in page.text
    assert "“nobody” is not an e-mail address." in page.text
    assert browser.post(f"{PATH}/add", data={"email": "dora@example.org", "name": "Dora"}).status_code == 303
    one = f"{PATH}/people/{people.alice.id}"
    seen = browser.get(one).text.split('name="seen" value="', 1)[1].split('"', 1)[0]
    changed = browser.post(one, data={"seen": seen, "role": "student", "section": "C 7", "student_number": "9"})
    assert "Saved." in browser.get(changed.headers["location"]).text
    assert browser.post(one, data={"seen": seen, "role": "student", "section": "D"}).status_code == 409
    assert "Alice" in browser.get(f"{PATH}?search=ali&section=C+7").text
    assert browser.get(f"{PATH}/people/{people.stranger.id}").status_code == 404


def test_a_link_on_the_pages(site, people, config, database):
    browser = site.logged_in(people.ines, config)
    bad = browser.post(f"{PATH}/invites", data={"days": "many"})
    assert (bad.status_code, "lasts 1 to 365 days" in bad.text) == (422, True)
    made = browser.post(f"{PATH}/invites", data={"days": "7", "most_uses": "5", "section": "A"})
    assert made.status_code == 201
    path = made.text.split('<code id="link">', 1)[1].split("</code>")[0].split("/join", 1)[1]
    token = parse_qs(urlsplit(path).query)["token"][0]
    stranger = site.browser()
    page = stranger.get("/join", params={"token": token})
    assert "Join GPU programming" in page.text
    csrf = page.text.split('name="csrf_token" value="', 1)[1].split('"', 1)[0]
    sent = stranger.post(
        "/join/account", data={"token": token, "email": "x@example.org", "name": "X", "csrf_token": csrf}
    )
    assert "x@example.org" in sent.text
    other = site.logged_in(people.stranger, config)
    assert other.post("/join", data={"token": token}).headers["location"] == f"/courses/{COURSE}"
    assert other.get(f"/courses/{COURSE}").status_code == 200
    assert other.get("/join", params={"token": "wrong"}).status_code == 404
    with database.reading() as session:
        assert links.opened is not None
        assert session.scalars(select(CourseInvite)).one().uses == 2


def _at_once(*acts):
    """Do all of it at the same time; what each said, or the error it ended with."""

    def tried(act):
        try:
            return act()
        except (ConflictError, NotFoundError) as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(tried, acts))


def test_a_link_for_one_lets_in_one_however_many_come_at_once(invite, database, people):
    token = invite()
    with database.transaction() as session:
        others = []
        for index in range(5):
            user = User(email=f"s{index}@example.org", name="S", handle=f"h{index}", created_at=NOW)
            session.add(user)
            others.append(user)
        session.flush()
    found = _at_once(*(lambda user=user: _accept(database, user, token) for user in others))
    assert sorted(str(one) for one in found if one is Role.student) == ["student"]
    with database.reading() as session:
        assert session.scalars(select(CourseInvite)).one().uses == 1


def test_two_who_apply_tables_at_once_make_each_person_once(load, do, database):
    loaded = [load(HEADER + "dora@example.org,Dora,A,,1\n") for _ in range(2)]

    def apply(public_id, digest):
        return do(lambda session, member: imports.apply(session, member, public_id, digest=digest, now=NOW).public_id)

    found = _at_once(*(lambda one=one: apply(one[0], one[1].digest) for one in loaded))
    assert sum(isinstance(one, ConflictError) for one in found) == 1
    with database.reading() as session:
        query = select(func.count()).select_from(User).where(User.email == "dora@example.org")
        assert session.scalars(query).one() == 1


def test_a_course_is_not_left_by_both_of_its_instructors_at_once(do, people, database):
    do(lambda session, member: _to(Role.instructor)(session, member, people.tom))
    found = _at_once(
        lambda: do(lambda session, member: _drop(session, member, people.tom).id, people.ines),
        lambda: do(lambda session, member: _drop(session, member, people.ines).id, people.tom),
    )
    assert any(isinstance(one, ConflictError | NotFoundError) for one in found)
    with database.reading() as session:
        query = select(func.count()).where(Enrolment.role == Role.instructor, Enrolment.dropped_at.is_(None))
        assert session.scalars(query.where(Enrolment.course_id == people.course.id)).one() == 1


def test_an_answer_does_not_say_who_has_an_account(site, people, config, database):
    """What a TA reads is the same for an address that nobody has and for an admin's; its owner is told by mail."""
    browser = site.logged_in(people.tom, config)
    said = []
    for email in ("nobody@example.org", people.admin.email):
        nameless = browser.post(f"/courses/{COURSE}/roster/add", data={"email": email})
        added = browser.post(f"/courses/{COURSE}/roster/add", data={"email": email, "name": "Some Body"})
        said.append((nameless.status_code, "needs a name" in nameless.text, added.headers["location"]))
    assert said[0] == said[1]
    assert said[0][:2] == (422, True)
    with database.reading() as session:
        mails = session.scalars(select(Mail)).all()
        assert {mail.to for mail in mails} == {"nobody@example.org", people.admin.email}
