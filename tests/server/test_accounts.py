"""Accounts, logins and tokens."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime, timedelta

import pytest
from argon2 import PasswordHasher
from sqlalchemy import func, select

from server import ids
from server.accounts import accounts, links, places, second_factor
from server.accounts.places import Place
from server.errors import ConflictError, InvalidInputError, NotFoundError, TooManyError, UnauthenticatedError
from server.models import AuditEntry, KnownPlace, LoginAttempt, LoginSession, User

PASSWORD = "a long enough password"


def _log_in(database, config, *, email="alice@example.org", password=PASSWORD, address="192.0.2.1", device=""):
    place = Place(address, device)
    with database.transaction() as session:
        return second_factor.log_in(
            session, email=email, password=password, place=place, agent="a browser", config=config
        )


def test_an_account_gets_a_pseudonym_and_an_argon2id_hash_and_a_trail(database, people):
    assert re.fullmatch(r"[a-z]+-[a-z]+-\d+", people.alice.handle)
    assert people.alice.password_hash.startswith("$argon2id$")
    with database.reading() as session:
        query = select(AuditEntry).where(AuditEntry.subject == f"user:{people.alice.id}")
        assert session.scalars(query).one().action == "user.created"


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("email", {"email": "no at sign"}),
        ("email", {"email": "a@" + "b" * 300}),
        ("email", {"email": "a@b\nBcc: c@d"}),
        ("name", {"name": "  "}),
        ("name", {"name": "x" * 121}),
        ("name", {"name": "a\x07bell"}),
        ("password", {"password": "short"}),
        ("password", {"password": "x" * 201}),
    ],
)
def test_what_cannot_be_an_account_is_refused_by_field(database, people, field, changes):
    values = {"email": "new@example.org", "name": "New", "password": PASSWORD, **changes}
    with database.transaction() as session, pytest.raises(InvalidInputError) as caught:
        accounts.create_user(session, **values)
    assert caught.value.field == field


def test_an_email_address_has_one_account_whatever_its_case(database, people):
    with database.transaction() as session:
        with pytest.raises(ConflictError):
            accounts.create_user(session, email=" Alice@Example.ORG ", name="Other", password=PASSWORD)
        # The conflict undid itself only: the transaction goes on.
        accounts.create_user(session, email="new@example.org", name="New", password=PASSWORD)
    with database.reading() as session:
        assert session.scalar(select(func.count()).where(User.email == "new@example.org")) == 1


def test_a_login_is_found_by_its_token_of_which_only_the_hash_is_stored(database, config, people):
    login, token = _log_in(database, config)
    with database.reading() as session:
        found = accounts.session_of(session, token)
        assert found.id == login.id
        assert found.user.email == "alice@example.org"
        assert found.token_hash == ids.token_hash(token) != token
        assert accounts.session_of(session, token + "x") is None


def test_a_login_ends_by_logging_out_by_time_and_with_the_account(database, config, people):
    tokens = []
    for _ in range(3):
        login, token = _log_in(database, config)
        tokens.append((login, token))
    with database.transaction() as session:
        accounts.log_out(session, tokens[0][0])
        session.get(LoginSession, tokens[1][0].id).expires_at = datetime.now(UTC) - timedelta(seconds=1)
    with database.reading() as session:
        assert [accounts.session_of(session, token) is not None for _, token in tokens] == [False, False, True]
    with database.transaction() as session:
        session.get(User, people.alice.id).disabled_at = datetime.now(UTC)
    with database.reading() as session:
        assert accounts.session_of(session, tokens[2][1]) is None
    with pytest.raises(UnauthenticatedError):
        _log_in(database, config)


def test_a_person_ends_their_own_logins_only(database, config, people):
    login, token = _log_in(database, config)
    with database.transaction() as session:
        with pytest.raises(NotFoundError):
            accounts.revoke_session(session, people.bob, login.id)
        assert [item.id for item in accounts.sessions_of(session, people.alice)] == [login.id]
        accounts.revoke_session(session, people.alice, login.id)
    with database.reading() as session:
        assert accounts.session_of(session, token) is None


@pytest.mark.parametrize("email", ["alice@example.org", "nobody@example.org"])
def test_a_failed_login_is_written_down_although_its_transaction_is_undone(database, config, people, email):
    with pytest.raises(UnauthenticatedError, match="No account has this e-mail address and password"):
        _log_in(database, config, email=email, password="wrong password")
    with database.reading() as session:
        row = session.scalars(select(LoginAttempt)).one()
        assert (row.email, row.address) == (email, "192.0.2.1")


def test_too_many_failures_of_one_person_from_one_address_stop_even_the_right_password(database, config, people):
    strict = dataclasses.replace(config, login_quota_per_hour=2)
    for _ in range(2):
        with pytest.raises(UnauthenticatedError):
            _log_in(database, strict, password="wrong password")
    with pytest.raises(TooManyError) as caught:
        _log_in(database, strict)
    assert 0 < caught.value.retry_after_s <= 15
    _log_in(database, strict, address="192.0.2.2")


def test_people_behind_one_address_do_not_stop_each_other_before_its_own_limit(database, config, people):
    strict = dataclasses.replace(config, login_quota_per_hour=1)
    for number in range(10):
        with pytest.raises(UnauthenticatedError):
            _log_in(database, strict, email=f"student{number}@example.org", password="wrong password")
    with pytest.raises(TooManyError):
        _log_in(database, strict)
    _log_in(database, strict, address="192.0.2.2")


def _fail(database, config, count, **where):
    """Failures of strangers, all as long ago as each other."""
    with database.transaction() as session:
        for number in range(count):
            address = where.get("address", f"198.51.100.{number}")
            mark = Place(address).network
            session.add(LoginAttempt(address=mark, email="alice@example.org", at=datetime.now(UTC) + AHEAD))


AHEAD = timedelta(seconds=30)
"""So that no test depends on how long it takes."""


def test_strangers_lock_nobody_out_of_a_network_or_a_browser_that_logged_in_before(database, config, people):
    _log_in(database, config, address="2001:db8:1:2::5")
    _log_in(database, config, address="203.0.113.7", device="alices laptop")
    _fail(database, config, 200)
    # From a place that nobody knows she has to wait, with the right password too.
    with pytest.raises(TooManyError) as caught:
        _log_in(database, config, address="192.0.2.77")
    assert caught.value.retry_after_s > 600
    # The same /64, the same network, the same browser elsewhere: never because of others.
    _log_in(database, config, address="2001:db8:1:2:ffff::9")
    _log_in(database, config, address="203.0.113.7")
    _log_in(database, config, address="192.0.2.78", device="alices laptop")
    # A browser is known to its own account alone.
    with pytest.raises(TooManyError):
        _log_in(database, config, address="192.0.2.79", device="alices laptop of another kind")
    _fail(database, config, 200, address="192.0.2.80")
    with pytest.raises(TooManyError):
        _log_in(database, config, email="bob@example.org", address="192.0.2.80", device="alices laptop")


def test_who_fails_from_a_known_place_waits_there_too(database, config, people):
    _log_in(database, config, device="alices laptop")
    mark = Place("", "alices laptop").browser
    with database.transaction() as session:
        for _ in range(config.login_quota_per_hour):
            session.add(LoginAttempt(address=mark, email="alice@example.org", at=datetime.now(UTC) + AHEAD))
    with pytest.raises(TooManyError):
        _log_in(database, config, device="alices laptop")


def test_each_failure_doubles_the_wait_up_to_a_bound(database, config, people):
    waits = []
    for count in (config.login_quota_per_hour, 1, 1, 20):
        _fail(database, config, count, address="192.0.2.1")
        with pytest.raises(TooManyError) as caught:
            _log_in(database, config)
        waits.append(round((caught.value.retry_after_s - AHEAD.total_seconds()) / 15))
    assert waits == [1, 2, 4, 60]


def test_a_whole_subnet_of_ipv6_is_one_network_to_every_quota(database, config, people):
    assert len({Place(f"2001:db8::{number:x}").network for number in range(9)}) == 1
    assert Place("::ffff:192.0.2.1").network == Place("192.0.2.1").network == "192.0.2.1"
    assert Place("2001:db8:0:1::1").network != Place("2001:db8:0:2::1").network
    strict = dataclasses.replace(config, login_quota_per_hour=1)
    for number in range(10):
        with pytest.raises(UnauthenticatedError):
            _log_in(database, strict, email=f"s{number}@example.org", password="wrong", address=f"2001:db8::{number}")
    with pytest.raises(TooManyError):
        _log_in(database, strict, address="2001:db8::aaaa")
    with database.transaction() as session:
        for number in range(links.PER_ADDRESS):
            links.request_reset(session, email=f"s{number}@example.org", address=f"2001:db8:9::{number:x}")
        with pytest.raises(TooManyError):
            links.request_reset(session, email="new@example.org", address="2001:db8:9::ffff")


def test_a_link_from_the_mailbox_opens_the_door_that_strangers_closed(database, config, people):
    _fail(database, config, 200)
    place = Place("192.0.2.90", "a new browser")
    with database.transaction() as session:
        link = links.invite(session, people.alice).partition("token=")[2]
        links.set_password(session, link, "another long password", place=place)
    _log_in(database, config, password="another long password", address=place.address)


def test_too_many_failures_for_one_person_stop_every_address(database, config, people):
    strict = dataclasses.replace(config, login_quota_per_hour=1)
    for number in range(3):
        with pytest.raises(UnauthenticatedError):
            _log_in(database, strict, password="wrong password", address=f"192.0.2.{number}")
    with pytest.raises(TooManyError):
        _log_in(database, strict, address="192.0.2.9")
    _log_in(database, strict, email="bob@example.org", address="192.0.2.9")


def test_failures_older_than_the_window_count_no_more_and_are_swept(database, config, people):
    strict = dataclasses.replace(config, login_quota_per_hour=1)
    with database.transaction() as session:
        for age in (timedelta(minutes=2), timedelta(hours=2)):
            session.add(LoginAttempt(address="192.0.2.1", email="alice@example.org", at=datetime.now(UTC) - age))
    _log_in(database, strict)
    with pytest.raises(UnauthenticatedError):
        _log_in(database, strict, password="wrong password")
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(LoginAttempt)) == 2


def test_a_hash_with_other_parameters_is_renewed_at_the_next_login(database, config, people):
    with database.transaction() as session:
        session.get(User, people.alice.id).password_hash = PasswordHasher(1, 8, 1).hash(PASSWORD)
    _log_in(database, config)
    with database.reading() as session:
        assert "m=19456,t=2,p=1" in session.get(User, people.alice.id).password_hash
    _log_in(database, config)


def test_an_account_without_a_password_takes_none(database, config, people):
    with database.transaction() as session:
        session.get(User, people.alice.id).password_hash = None
    for password in ("", "nobody has this password", PASSWORD):
        with pytest.raises(UnauthenticatedError):
            _log_in(database, config, password=password)


def test_a_token_works_until_it_is_revoked_or_expires(database, config, people):
    with database.transaction() as session:
        token, text = accounts.create_token(session, people.alice, name="laptop")
        late, late_text = accounts.create_token(
            session, people.alice, name="old", expires_at=datetime.now(UTC) + timedelta(days=1)
        )
        assert accounts.user_of_token(session, late_text).id == people.alice.id
        late.expires_at = datetime.now(UTC) - timedelta(seconds=1)
        assert text.startswith(token.start)
        assert len(token.start) < len(text) / 4
        assert accounts.user_of_token(session, text).id == people.alice.id
        assert accounts.user_of_token(session, late_text) is None
        with pytest.raises(NotFoundError):
            accounts.revoke_token(session, people.bob, token.id)
        accounts.revoke_token(session, people.alice, token.id)
        assert accounts.user_of_token(session, text) is None
        assert [item.name for item in accounts.tokens_of(session, people.alice)] == ["old"]


def test_public_ids_are_short_sortable_and_never_alike():
    made = [ids.public_id() for _ in range(2000)]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{26}", item) for item in made)
    assert [item[:10] for item in made] == sorted(item[:10] for item in made)


def test_places_of_one_account_are_bounded_and_the_oldest_goes_first(database, config, people):
    with database.transaction() as session:
        alice, bob = session.get_one(User, people.alice.id), session.get_one(User, people.bob.id)
        places.remember(session, bob, Place("192.0.2.1", "bob's"))
        for number in range(places.MOST + 20):
            places.remember(session, alice, Place(f"198.51.100.{number}", "hers"))
        marks = set(session.scalars(select(KnownPlace.mark).where(KnownPlace.user_id == alice.id)))
        assert len(marks) == places.MOST
        # Her browser was there every time.
        assert places.known(session, alice, Place("203.0.113.1", "hers"))
        assert "198.51.100.0" not in marks
        assert f"198.51.100.{places.MOST + 19}" in marks
        assert places.known(session, bob, Place("192.0.2.1", "bob's"))
