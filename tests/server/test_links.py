"""A forgotten password and an invitation: one link, once, for an hour; and nobody learns who has an account."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, func, select, update

from server.accounts import accounts, links
from server.accounts.places import Place
from server.courses import courses
from server.errors import InvalidInputError, NotFoundError, TooManyError, UnauthenticatedError
from server.models import (
    AuditEntry,
    LinkPurpose,
    LinkRequest,
    LoginSession,
    Mail,
    PasswordLink,
    Role,
    User,
)
from tests.server.conftest import PASSWORD

NEW = "another long password"


def ask(database, email="alice@example.org", address="192.0.2.1"):
    with database.transaction() as session:
        links.request_reset(session, email=email, address=address)


def newest(database):
    """The token in the newest mail with a link."""
    with database.reading() as session:
        url = session.scalars(select(Mail.url).where(Mail.url.contains("token=")).order_by(Mail.id.desc())).first()
    return url.partition("token=")[2]


def count(database, model):
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(model))


def use(database, token, password=NEW):
    with database.transaction() as session:
        return links.set_password(session, token, password)


def logs_in(database, config, password, email="alice@example.org"):
    try:
        with database.transaction() as session:
            accounts.authenticate(session, email=email, password=password, place=Place("a"), config=config)
    except UnauthenticatedError:
        return False
    return True


def test_the_link_sets_a_password_ends_every_login_and_says_so(database, people, config):
    with database.transaction() as session:
        accounts.start_login(session, session.merge(people.alice, load=False), place=Place(""), agent="", config=config)
        accounts.start_login(session, session.merge(people.bob, load=False), place=Place(""), agent="", config=config)
    ask(database, " Alice@Example.org ")
    use(database, newest(database))
    assert logs_in(database, config, NEW)
    assert not logs_in(database, config, PASSWORD)
    with database.reading() as session:
        assert [login.user_id for login in session.scalars(select(LoginSession))] == [people.bob.id]
        subjects = session.scalars(select(Mail.subject).order_by(Mail.id)).all()
        assert subjects == ["Set a new password", "Your password was set"]
        assert {"user.reset_asked", "user.password_set"} <= set(session.scalars(select(AuditEntry.action)))


def test_the_table_holds_no_link(database, people):
    ask(database)
    with database.reading() as session:
        row = session.scalars(select(PasswordLink)).one()
        assert newest(database) not in (row.token_hash, str(row.id))
        assert len(row.token_hash) == 64


def test_a_link_is_good_once(database, people):
    ask(database)
    token = newest(database)
    use(database, token)
    with pytest.raises(NotFoundError, match="has been used"):
        use(database, token)


def test_of_two_who_use_it_at_once_one_does(database, people):
    ask(database)
    token, done, begin = newest(database), [], threading.Barrier(3)

    def work(number):
        begin.wait()
        try:
            use(database, token, f"a long password {number}")
            done.append(number)
        except NotFoundError:
            pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1


def test_a_refused_password_does_not_use_it_up(database, people):
    ask(database)
    with pytest.raises(InvalidInputError, match="at least"):
        use(database, newest(database), "short")
    use(database, newest(database))


def test_a_link_is_good_for_an_hour(database, people):
    ask(database)
    with database.transaction() as session:
        session.execute(update(PasswordLink).values(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    with pytest.raises(NotFoundError), database.reading() as session:
        links.opened(session, newest(database))
    with pytest.raises(NotFoundError):
        use(database, newest(database))


def test_a_newer_link_ends_the_older(database, people):
    ask(database)
    first = newest(database)
    ask(database)
    with pytest.raises(NotFoundError):
        use(database, first)
    use(database, newest(database))


def test_another_way_to_a_new_password_ends_the_link_too(database, people):
    ask(database)
    with database.transaction() as session:
        accounts.set_password(session, session.get_one(User, people.alice.id), NEW)
    with pytest.raises(NotFoundError):
        use(database, newest(database))


@pytest.mark.parametrize("email", ["nobody@example.org", "", "a\0b@c", "\ud800@x", "x" * 10_000])
def test_who_is_nobody_gets_the_same_answer_and_no_mail(database, people, email):
    ask(database, email)
    assert count(database, Mail) == 0
    assert count(database, LinkRequest) == 1


def test_a_closed_account_gets_none_and_a_link_of_before_is_over(database, people):
    ask(database)
    with database.transaction() as session:
        session.get_one(User, people.alice.id).disabled_at = datetime.now(UTC)
    with pytest.raises(NotFoundError):
        use(database, newest(database))
    ask(database)
    assert count(database, Mail) == 1


@pytest.mark.parametrize("email", ["alice@example.org", "nobody@example.org"])
def test_asking_too_often_is_stopped_the_same_for_everybody(database, people, email):
    for number in range(links.PER_EMAIL):
        ask(database, email, f"192.0.2.{number}")
    with pytest.raises(TooManyError) as error:
        ask(database, email, "192.0.2.99")
    assert 0 < error.value.retry_after_s <= 3600
    ask(database, "bob@example.org")


def test_one_network_address_cannot_ask_for_everybody(database, people):
    for number in range(links.PER_ADDRESS):
        ask(database, f"s{number}@example.org")
    with pytest.raises(TooManyError):
        ask(database, "alice@example.org")
    ask(database, "alice@example.org", "192.0.2.2")


def test_an_invitation_is_the_first_password(database, people, config):
    with database.transaction() as session:
        user = accounts.create_user(session, email="new@example.org", name="New", password=None)
        url = links.invite(session, user, to="GPU programming", actor=people.tom)
    assert url == f"/password?token={newest(database)}"
    with database.reading() as session:
        assert links.opened(session, newest(database)).purpose is LinkPurpose.invitation
        assert session.scalars(select(Mail.subject)).one() == "Your account for GPU programming"
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "user.invited")).one()
        assert (entry.actor_id, newest(database) in str(entry.detail)) == (people.tom.id, False)
    use(database, newest(database))
    assert logs_in(database, config, NEW, "new@example.org")


def test_what_is_over_is_swept(database, people):
    ask(database)
    with database.transaction() as session:
        links.forget_old(session, now=datetime.now(UTC) + timedelta(hours=2))
    assert (count(database, PasswordLink), count(database, LinkRequest)) == (0, 1)
    with database.transaction() as session:
        links.forget_old(session, now=datetime.now(UTC) + timedelta(days=2))
    assert count(database, LinkRequest) == 0


@pytest.fixture
def form(site):
    """A stranger's browser that has loaded a form, and the form's token."""
    client = site.browser()
    token = re.search('name="csrf_token" value="([^"]+)"', client.get("/password/forgotten").text)[1]
    return lambda path, **fields: client.post(path, data={"csrf_token": token, **fields})


def test_the_pages_from_a_forgotten_password_to_a_new_one(database, people, site, form):
    known, unknown = (form("/password/forgotten", email=email) for email in ("alice@example.org", "no@example.org"))
    assert [(answer.status_code, answer.headers["location"]) for answer in (known, unknown)] == [
        (303, "/password/sent")
    ] * 2
    token = newest(database)
    page = site.browser().get("/password", params={"token": token})
    assert page.status_code == 200
    assert "alice@example.org" in page.text
    answer = form("/password", token=token, password=NEW, again="something else")
    assert answer.status_code == 422
    assert "two passwords differ" in answer.text
    assert NEW not in answer.text
    answer = form("/password", token=token, password="short", again="short")
    assert (answer.status_code, "at least 10" in answer.text) == (422, True)
    answer = form("/password", token=token, password=NEW, again=NEW)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?set=1")
    assert "Your password is set" in site.browser().get("/login?set=1").text
    gone = form("/password", token=token, password=NEW, again=NEW)
    assert gone.status_code == 404
    assert "Ask for a new link" in gone.text
    assert form("/login", email="alice@example.org", password=NEW).status_code == 303


def test_asking_too_often_says_when_to_come_back(site, people, form):
    for _ in range(links.PER_EMAIL):
        form("/password/forgotten", email="alice@example.org")
    answer = form("/password/forgotten", email="alice@example.org")
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 3600


def test_no_other_site_asks_for_it(site, people):
    answer = site.browser().post("/password/forgotten", data={"email": "alice@example.org"})
    assert answer.status_code == 403


def test_the_link_stands_in_no_log(site, people, database, caplog):
    ask(database)
    with caplog.at_level("DEBUG"):
        site.browser().get("/password", params={"token": newest(database)})
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("server")]
    assert any("GET /password 200" in line for line in ours)
    assert not any(newest(database) in line for line in ours)


@pytest.fixture
def account(site, people, config):
    """Alice's browser on her account's page."""
    client = site.logged_in(people.alice, config)
    change = {"current": PASSWORD, "password": NEW, "again": NEW}
    return client, lambda **fields: client.post("/account/password", data={**change, **fields})


def test_changing_ones_password_keeps_this_browser_and_ends_the_others(site, people, config, database, account):
    client, change = account
    other = site.logged_in(people.alice, config)
    bob = site.logged_in(people.bob, config)
    assert change(current="wrong").status_code == 422
    assert "not your current password" in change(current="wrong").text
    assert change(again="else").status_code == 422
    assert change(password="short", again="short").status_code == 422
    assert client.get("/account").status_code == 200
    assert change().headers["location"] == "/account?done=password#password"
    assert [browser.get("/account").status_code for browser in (client, other, bob)] == [200, 303, 200]
    assert logs_in(database, config, NEW)
    with database.reading() as session:
        assert session.scalars(select(Mail.subject)).all() == ["Your password was changed"]


def test_guessing_the_current_password_is_limited(account, config):
    _client, change = account
    answers = [change(current=f"wrong {number}") for number in range(config.login_quota_per_hour + 1)]
    assert [answer.status_code for answer in answers] == [422] * config.login_quota_per_hour + [429]
    assert 0 < int(answers[-1].headers["retry-after"]) <= 60


def test_logging_out_everywhere_else(site, people, config, account):
    client, _change = account
    other, bob = site.logged_in(people.alice, config), site.logged_in(people.bob, config)
    assert "Log out everywhere else" in client.get("/account").text
    assert client.post("/account/sessions/revoke-others").status_code == 303
    assert [browser.get("/account").status_code for browser in (client, other, bob)] == [200, 303, 200]
    assert "Log out everywhere else" not in client.get("/account").text


def test_a_token_ends_when_it_was_said(account, database, people):
    client, _change = account
    assert client.post("/account/tokens", data={"name": "short", "days": "30"}).status_code == 201
    assert client.post("/account/tokens", data={"name": "usual"}).status_code == 201
    refused = client.post("/account/tokens", data={"name": "odd", "days": "31"})
    assert (refused.status_code, "Choose how long" in refused.text) == (422, True)
    with database.reading() as session:
        ends = {token.name: token.expires_at for token in accounts.tokens_of(session, people.alice)}
    assert timedelta(days=89) < ends["usual"] - datetime.now(UTC) <= timedelta(days=90)
    assert timedelta(days=29) < ends["short"] - datetime.now(UTC) <= timedelta(days=30)
    assert "in 29 days" in client.get("/account").text


def test_a_course_still_finds_whoever_has_no_password(database, people):
    with database.transaction() as session:
        user = accounts.create_user(session, email="new@example.org", name="New", password=None)
        courses.enrol(session, course=people.course, user=user, role=Role.student)
        session.execute(delete(LinkRequest))
        assert courses.membership(session, user, "gpu").role is Role.student
