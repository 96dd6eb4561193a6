"""The second factor of staff: codes of an app, recovery codes, and what opens without them."""

from __future__ import annotations

import dataclasses
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import httpx
import pyotp
import pytest
from sqlalchemy import func, select, update

from server.accounts import accounts, sealing, second_factor
from server.accounts.places import Place
from server.errors import ConflictError, ForbiddenError, InvalidInputError, TooManyError, UnauthenticatedError
from server.http.work import MAX_WRITERS
from server.models import (
    ApiToken,
    AuditEntry,
    LoginAttempt,
    LoginChallenge,
    LoginSession,
    Mail,
    RecoveryCode,
    SecondFactor,
    TokenScope,
    User,
)
from tests.server.conftest import COURSE, PASSWORD, Site, an_app, served

PAGE = "/account/second-factor"
HERE = Place("192.0.2.9")


def _secret(database, config, user) -> str:
    with database.reading() as session:
        row = session.get_one(SecondFactor, user.id)
        return sealing.unseal(config.second_factor_key, row.secret, owner=user.id)


def _code(secret: str, steps: int = 0) -> str:
    return pyotp.TOTP(secret).at(int(datetime.now(UTC).timestamp()) + 30 * steps)


def _fresh(database, user) -> None:
    """As if the last code that was taken were long ago: a test does not wait half a minute."""
    with database.transaction() as session:
        session.execute(update(SecondFactor).where(SecondFactor.user_id == user.id).values(last_step=0))


def _set_up(database, config, user) -> tuple[str, list[str]]:
    """A second factor of theirs: its secret and the recovery codes."""
    with database.transaction() as session:
        second_factor.begin(session, user, config=config)
    secret = _secret(database, config, user)
    with database.transaction() as session:
        mine = session.get_one(User, user.id)
        login, _text = accounts.start_login(session, mine, place=HERE, agent="", config=config)
        codes = second_factor.confirm(session, mine, _code(secret), login=login, place=HERE, config=config)
    _fresh(database, user)
    return secret, codes


def _check(database, config, user, code, place=HERE) -> None:
    with database.transaction() as session:
        second_factor.check(session, session.get_one(User, user.id), code, place=place, config=config)


@pytest.fixture
def strict(config):
    return dataclasses.replace(config, staff_second_factor="required")


@pytest.fixture
def strict_site(strict, database):
    with ExitStack() as stack:
        yield Site(stack.enter_context(served(an_app(strict))), stack, database)


# --- the code --------------------------------------------------------------------------------------------------------


def test_the_secret_is_not_in_the_database_and_its_key_is_the_servers_alone(database, config, people):
    secret, codes = _set_up(database, config, people.tom)
    assert stat.S_IMODE(config.second_factor_key.stat().st_mode) == 0o600
    with database.reading() as session:
        row = session.get_one(SecondFactor, people.tom.id)
        assert secret not in row.secret
        stored = set(session.scalars(select(RecoveryCode.code_hash)))
    assert len(codes) == len(stored) == 10
    assert not stored & {code.replace("-", "") for code in codes}


def test_a_secret_that_was_moved_to_another_account_or_sealed_by_another_key_opens_nothing(tmp_path):
    key = tmp_path / "one.key"
    sealed = sealing.seal(key, "text", owner=1)
    assert sealing.unseal(key, sealed, owner=1) == "text"
    with pytest.raises(sealing.SealedError):
        sealing.unseal(key, sealed, owner=2)
    with pytest.raises(sealing.SealedError):
        sealing.unseal(tmp_path / "two.key", sealed, owner=1)


def test_a_code_is_good_once_also_the_ones_beside_it(database, config, people):
    secret, _codes = _set_up(database, config, people.tom)
    now = _code(secret)
    _check(database, config, people.tom, f" {now[:3]} {now[3:]} ")
    for again in (now, _code(secret, -1)):
        with pytest.raises(InvalidInputError):
            _check(database, config, people.tom, again)
    # A phone whose clock is ahead; after that the present one is old.
    _check(database, config, people.tom, _code(secret, 1))
    with pytest.raises(InvalidInputError):
        _check(database, config, people.tom, _code(secret))


@pytest.mark.parametrize(
    "code", ["", "000000", "123", "".join(chr(0xFF10 + digit) for digit in range(6)), "x" * 5000, "\ud800", "-" * 50]
)
def test_what_is_no_code_is_refused_and_counted(database, config, people, code):
    _set_up(database, config, people.tom)
    with pytest.raises(InvalidInputError):
        _check(database, config, people.tom, code)
    with database.reading() as session:
        assert session.scalars(select(LoginAttempt.email)).all() == [people.tom.email]


def test_a_code_of_long_ago_or_long_to_come_is_refused(database, config, people):
    secret, _codes = _set_up(database, config, people.tom)
    for steps in (-3, 3, 20):
        with pytest.raises(InvalidInputError):
            _check(database, config, people.tom, _code(secret, steps))


def test_after_some_wrong_codes_there_is_a_wait_that_the_right_one_does_not_shorten(database, config, people):
    secret, codes = _set_up(database, config, people.tom)
    for _ in range(config.login_quota_per_hour):
        with pytest.raises(InvalidInputError):
            _check(database, config, people.tom, "000000")
    for right in (_code(secret), codes[0]):
        with pytest.raises(TooManyError) as caught:
            _check(database, config, people.tom, right)
        assert 0 < caught.value.retry_after_s <= 15


def test_a_recovery_code_is_good_once_and_its_owner_is_told(database, config, people):
    _secret_text, codes = _set_up(database, config, people.tom)
    _check(database, config, people.tom, codes[0].upper().replace("-", " "))
    with pytest.raises(InvalidInputError):
        _check(database, config, people.tom, codes[0])
    with database.reading() as session:
        assert second_factor.standing(session, people.tom).codes_left == 9
        assert "A recovery code was used" in session.scalars(select(Mail.subject)).all()


def test_somebody_elses_recovery_code_opens_nothing(database, config, people):
    _set_up(database, config, people.tom)
    _other, codes = _set_up(database, config, people.ines)
    with pytest.raises(InvalidInputError):
        _check(database, config, people.tom, codes[0])


def test_with_a_lost_key_a_recovery_code_still_opens(database, config, people):
    secret, codes = _set_up(database, config, people.tom)
    config.second_factor_key.unlink()
    with pytest.raises(sealing.SealedError):
        _check(database, config, people.tom, _code(secret))
    _check(database, config, people.tom, codes[0])


def test_it_is_for_staff_and_nobody_sets_up_a_second_one(database, config, people):
    for student in (people.alice, people.carol):
        with database.transaction() as session, pytest.raises(ForbiddenError):
            second_factor.begin(session, student, config=config)
    _set_up(database, config, people.admin)
    with database.transaction() as session, pytest.raises(ConflictError):
        second_factor.begin(session, people.admin, config=config)


def test_what_was_begun_long_ago_is_not_confirmed(database, config, people):
    with database.transaction() as session:
        second_factor.begin(session, people.tom, config=config)
        session.get_one(SecondFactor, people.tom.id).created_at = datetime.now(UTC) - timedelta(hours=2)
    code = _code(_secret(database, config, people.tom))
    with database.transaction() as session:
        login, _ = accounts.start_login(session, people.tom, place=HERE, agent="", config=config)
    with database.transaction() as session, pytest.raises(ConflictError):
        second_factor.confirm(session, people.tom, code, login=login, place=HERE, config=config)


# --- logging in ------------------------------------------------------------------------------------------------------


def _form(client: httpx.Client, path: str, **fields: str) -> httpx.Response:
    page = client.get(path).text
    token = re.search(r'name="csrf_token" value="([^"]+)"', page)[1]
    return client.post(path, data={"csrf_token": token, **fields})


def _by_password(client, email="tom@example.org"):
    return _form(client, "/login", email=email, password=PASSWORD, next=f"/courses/{COURSE}")


def test_the_password_alone_logs_nobody_in_who_has_a_second_factor(site, database, config, people):
    secret, _codes = _set_up(database, config, people.tom)
    client = site.browser()
    answer = _by_password(client)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/second-factor?next=/courses/{COURSE}")
    assert "ladder_login" not in client.cookies
    assert client.get(f"/courses/{COURSE}").status_code == 303
    wrong = _form(client, "/second-factor", code="000000")
    assert (wrong.status_code, "wrong, has expired" in wrong.text) == (422, True)
    right = _form(client, "/second-factor", code=_code(secret), next=f"/courses/{COURSE}")
    assert (right.status_code, right.headers["location"]) == (303, f"/courses/{COURSE}")
    assert client.get(f"/courses/{COURSE}/gradebook").status_code == 200
    with database.reading() as session:
        assert session.scalars(select(LoginChallenge)).all() == []
        newest = session.scalars(select(LoginSession).order_by(LoginSession.id.desc())).first()
        assert newest.is_strong


def test_a_challenge_is_answered_once_soon_and_by_its_own_browser(site, database, config, people):
    secret, codes = _set_up(database, config, people.tom)
    first, second = site.browser(), site.browser()
    _by_password(first)
    assert second.get("/second-factor").headers["location"].startswith("/login")
    kept = first.cookies["ladder_challenge"]
    assert _form(first, "/second-factor", code=_code(secret)).status_code == 303
    for token in (kept, "", "x" * 3000):
        with database.transaction() as session, pytest.raises(UnauthenticatedError):
            second_factor.answer(session, token, codes[0], place=HERE, agent="", config=config)
    third = site.browser()
    _by_password(third)
    with database.transaction() as session:
        session.execute(update(LoginChallenge).values(expires_at=datetime.now(UTC)))
    assert third.get("/second-factor").headers["location"].startswith("/login")


def test_five_wrong_codes_end_the_log_in_and_the_mailbox_is_told(site, database, config, people):
    secret, _codes = _set_up(database, config, people.tom)
    client = site.browser()
    _by_password(client)
    token = re.search(r'name="csrf_token" value="([^"]+)"', client.get("/second-factor").text)[1]
    for _ in range(5):
        assert client.post("/second-factor", data={"csrf_token": token, "code": "000000"}).status_code == 422
    answer = client.post("/second-factor", data={"csrf_token": token, "code": _code(secret)})
    assert (answer.status_code, "Log in again" in answer.text) == (401, True)
    with database.reading() as session:
        assert "Somebody knows your password" in session.scalars(select(Mail.subject)).all()


def test_a_new_password_ends_a_log_in_that_waits_for_its_code(database, config, people):
    """Whoever knew the old password must not come in with a code that they see later."""
    secret, _codes = _set_up(database, config, people.tom)
    with database.transaction() as session:
        login, token = second_factor.log_in(
            session, email=people.tom.email, password=PASSWORD, place=HERE, agent="", config=config
        )
        assert login is None
    with database.transaction() as session:
        accounts.set_password(session, session.get_one(User, people.tom.id), "another long password")
    with database.transaction() as session, pytest.raises(UnauthenticatedError):
        second_factor.answer(session, token, _code(secret), place=HERE, agent="", config=config)


def test_many_codes_at_once_are_not_many_more_guesses(site, database, config, people):
    _set_up(database, config, people.tom)
    client = site.browser()
    _by_password(client)
    form = {"csrf_token": re.search(r'name="csrf_token" value="([^"]+)"', client.get("/second-factor").text)[1]}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: client.post("/second-factor", data={**form, "code": f"{n:06}"}), range(60)))
    assert {answer.status_code for answer in answers} <= {401, 422, 429}
    with database.reading() as session:
        tried = session.scalar(select(func.count(LoginAttempt.id)))
    assert second_factor.MOST_FAILURES <= tried <= second_factor.MOST_FAILURES + MAX_WRITERS


def test_a_new_password_ends_no_second_factor(site, database, config, people):
    _set_up(database, config, people.tom)
    with database.transaction() as session:
        accounts.set_password(session, session.get_one(User, people.tom.id), "another long password")
        assert second_factor.is_set(session, people.tom)


# --- the page --------------------------------------------------------------------------------------------------------


def test_it_is_set_up_on_the_page_with_the_password_a_picture_and_a_code(site, database, config, people):
    browser, other = site.logged_in(people.tom, config), site.logged_in(people.tom, config)
    program = site.bearer(people.tom)
    assert "Set one up" in browser.get("/account").text
    wrong = browser.post(f"{PAGE}/begin", data={"password": "not this one"})
    assert (wrong.status_code, "not your password" in wrong.text) == (422, True)
    assert browser.post(f"{PAGE}/begin", data={"password": PASSWORD}).status_code == 303
    page = browser.get(PAGE).text
    secret = _secret(database, config, people.tom)
    assert "<svg" in page
    assert secret in re.search(r'id="totp-secret">([^<]+)<', page)[1].replace(" ", "")
    # It counts only once a code of it was shown.
    with database.reading() as session:
        assert not second_factor.is_set(session, people.tom)
    assert browser.post(f"{PAGE}/confirm", data={"code": "000000"}).status_code == 422
    shown = browser.post(f"{PAGE}/confirm", data={"code": _code(secret)})
    codes = re.findall(r"<li><code>([a-z2-9-]{19})</code>", shown.text)
    assert len(codes) == 10
    assert not set(codes) & set(re.findall(r"[a-z2-9-]{19}", browser.get(PAGE).text))
    assert secret not in browser.get(PAGE).text
    assert other.get("/account").status_code == 303
    assert program.get("/api/v1/me").status_code == 401
    assert browser.get(f"/courses/{COURSE}/gradebook").status_code == 200
    again = browser.post(f"{PAGE}/codes", data={"code": codes[0]})
    assert again.status_code == 200
    newer = re.findall(r"<li><code>([a-z2-9-]{19})</code>", again.text)
    assert browser.post(f"{PAGE}/remove", data={"code": codes[1]}).status_code == 422
    assert browser.post(f"{PAGE}/remove", data={"code": newer[0]}).status_code == 303
    with database.reading() as session:
        assert not second_factor.is_set(session, people.tom)
        actions = session.scalars(select(AuditEntry.action)).all()
    assert {"user.second_factor_set", "user.recovery_codes_made", "user.second_factor_removed"} <= set(actions)


def test_a_student_sees_nothing_of_it(site, config, people):
    browser = site.logged_in(people.alice, config)
    assert "Second factor" not in browser.get("/account").text
    assert "for the staff of a course" in browser.get(PAGE).text
    assert browser.post(f"{PAGE}/begin", data={"password": PASSWORD}).status_code == 403


# --- where staff need one --------------------------------------------------------------------------------------------


def test_staff_without_one_are_led_to_set_it_up_and_do_nothing_else(strict_site, strict, people):
    for user in (people.tom, people.ines, people.admin):
        browser = strict_site.logged_in(user, strict)
        for path in ("/", f"/courses/{COURSE}", f"/courses/{COURSE}/gradebook", "/operations", "/notifications"):
            answer = browser.get(path)
            assert (answer.status_code, answer.headers["location"]) == (303, PAGE), path
        assert browser.post(f"/courses/{COURSE}/announcements", data={}).status_code == 403
        answer = browser.get(f"/api/v1/courses/{COURSE}/gradebook")
        assert (answer.status_code, answer.json()["error"]) == (403, "SecondFactorError")
        for path in ("/account", "/help", PAGE):
            assert browser.get(path).status_code == 200
        refused = browser.post("/account/tokens", data={"name": "x", "scope": ["staff"]})
        assert (refused.status_code, "need a second factor" in refused.text) == (422, True)
        assert browser.post("/logout").status_code == 303


def test_a_preview_that_was_begun_before_does_not_get_around_it(strict_site, strict, config, database, people):
    browser = strict_site.logged_in(people.tom, strict)
    with database.transaction() as session:
        login = session.scalars(select(LoginSession).order_by(LoginSession.id.desc())).first()
        login.is_strong = True
    page = browser.post(f"/courses/{COURSE}/preview", data={"student": people.alice.email})
    assert page.status_code == 303
    with database.transaction() as session:
        session.execute(update(LoginSession).values(is_strong=False))
    assert browser.get(f"/courses/{COURSE}").headers["location"] == PAGE


def test_students_notice_nothing_of_the_rule(strict_site, strict, people):
    browser = strict_site.logged_in(people.alice, strict)
    assert browser.get(f"/courses/{COURSE}").status_code == 200
    assert strict_site.bearer(people.alice).get(f"/api/v1/courses/{COURSE}/assignments").status_code == 200


def test_who_becomes_staff_needs_one_at_once(strict_site, strict, database, people):
    browser = strict_site.logged_in(people.alice, strict)
    assert browser.get("/notifications").status_code == 200
    with database.transaction() as session:
        session.get_one(User, people.alice.id).is_admin = True
    assert browser.get("/notifications").headers["location"] == PAGE


def test_setting_it_up_opens_everything_again(strict_site, strict, database, people):
    browser = strict_site.logged_in(people.tom, strict)
    browser.post(f"{PAGE}/begin", data={"password": PASSWORD})
    browser.post(f"{PAGE}/confirm", data={"code": _code(_secret(database, strict, people.tom))})
    assert browser.get(f"/courses/{COURSE}/gradebook").status_code == 200
    made = browser.post("/account/tokens", data={"name": "x", "scope": ["staff"]})
    assert made.status_code == 201
    with database.reading() as session:
        assert session.scalars(select(ApiToken.is_strong).where(ApiToken.name == "x")).all() == [True]


def test_single_sign_on_is_enough(strict_site, strict, database, people):
    browser = strict_site.logged_in(people.tom, strict)
    with database.transaction() as session:
        # As `server.pages.login` begins a login of who comes back from a provider.
        session.execute(update(LoginSession).values(is_strong=True))
    assert browser.get(f"/courses/{COURSE}/gradebook").status_code == 200


# --- tokens ----------------------------------------------------------------------------------------------------------


def _make_token(client, *scopes: str, code: str = "", email: str = "tom@example.org") -> httpx.Response:
    body = {"email": email, "password": PASSWORD, "scopes": list(scopes)}
    return client.post("/api/v1/tokens", json={**body, **({"code": code} if code else {})})


def test_a_token_of_the_staffs_scope_needs_the_code_when_it_is_made_and_never_again(site, database, config, people):
    secret, _codes = _set_up(database, config, people.tom)
    client = site.browser()
    assert _make_token(client, "read").status_code == 201
    refused = _make_token(client, "staff")
    assert (refused.status_code, refused.json()["error"]) == (403, "SecondFactorError")
    assert _make_token(client, "staff", code="000000").json()["field"] == "code"
    made = _make_token(client, "staff", code=_code(secret))
    assert made.status_code == 201
    headers = {"authorization": f"Bearer {made.json()['token']}"}
    for _ in range(3):
        assert client.get(f"/api/v1/courses/{COURSE}/gradebook", headers=headers).status_code == 200


def test_the_password_alone_makes_no_place_known_to_who_has_a_second_factor(site, database, config, people):
    _set_up(database, config, people.tom)
    with database.transaction() as session:
        known = set(session.scalars(select(accounts.places.KnownPlace.mark)))
    assert _make_token(site.browser(), "read").status_code == 201
    with database.reading() as session:
        assert set(session.scalars(select(accounts.places.KnownPlace.mark))) == known


def test_where_staff_need_one_a_token_from_a_password_alone_is_a_students(strict_site, strict, database, people):
    old = strict_site.bearer(people.tom, token_scopes=tuple(TokenScope))
    refused = old.get(f"/api/v1/courses/{COURSE}/gradebook")
    assert (refused.status_code, "without a second factor" in refused.json()["message"]) == (403, True)
    assert old.get(f"/api/v1/courses/{COURSE}/assignments").status_code == 200
    client = strict_site.browser()
    answer = _make_token(client, "staff")
    assert (answer.status_code, "Set up a second factor on your account page" in answer.json()["message"]) == (
        403,
        True,
    )
    assert _make_token(client, "read", "submit").status_code == 201
    secret, _codes = _set_up(database, strict, people.tom)
    made = _make_token(client, "staff", code=_code(secret)).json()
    headers = {"authorization": f"Bearer {made['token']}"}
    assert client.get(f"/api/v1/courses/{COURSE}/gradebook", headers=headers).status_code == 200


# --- an admin takes it away ------------------------------------------------------------------------------------------


def test_a_reset_ends_logins_and_tokens_and_is_written_down(database, config, people):
    _set_up(database, config, people.tom)
    with database.transaction() as session:
        second_factor.reset(session, session.get_one(User, people.tom.id), reason="lost phone, seen in person")
    with database.transaction() as session:
        assert second_factor.standing(session, people.tom) == second_factor.Standing(None, 0)
        assert session.scalars(select(RecoveryCode)).all() == []
        assert session.scalars(select(LoginSession)).all() == []
        entry = session.scalars(select(AuditEntry).order_by(AuditEntry.id.desc())).first()
        assert (entry.action, entry.reason) == ("user.second_factor_reset", "lost phone, seen in person")
        with pytest.raises(ConflictError):
            second_factor.reset(session, people.tom)
