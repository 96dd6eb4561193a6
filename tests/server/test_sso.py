"""Whose account it is that an identity provider names, by the policy that its file states."""

from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import func, select

from server.accounts import accounts, sso
from server.accounts.oidc import Person
from server.accounts.places import Place
from server.accounts.providers import Provider
from server.errors import ConflictError, NotFoundError, TooManyError, UnauthenticatedError
from server.models import AuditEntry, Mail, OutsideIdentity, OutsideLogin, User

ISSUER = "https://login.example.edu"
GIVEN = Provider("university", "State University", ISSUER, "kernel-ladder")


def count(database, model):
    with database.reading() as session:
        return session.scalar(select(func.count()).select_from(model))


def linked(database, user, subject="u-1"):
    with database.transaction() as session:
        row = OutsideIdentity(user_id=user.id, issuer=ISSUER, subject=subject, created_at=user.created_at)
        session.add(row)
        session.flush()
        return row.id


@pytest.fixture
def alice_there():
    return Person(ISSUER, "u-1", "alice@example.org", "Alice")


def account(database, provider, person):
    with database.transaction() as session:
        return sso.account_of(session, provider, person)


def test_a_known_address_alone_lets_nobody_in(database, people, alice_there):
    with pytest.raises(UnauthenticatedError, match="not linked to it"):
        account(database, GIVEN, alice_there)
    assert count(database, OutsideIdentity) == 0


def test_it_does_where_the_policy_says_so_and_the_owner_is_told(database, people, alice_there):
    trusted = dataclasses.replace(GIVEN, links_by_email=True)
    assert account(database, trusted, alice_there).id == people.alice.id
    assert account(database, GIVEN, alice_there).id == people.alice.id, "from now on it is linked"
    with database.reading() as session:
        assert [mail.to for mail in session.scalars(select(Mail))] == ["alice@example.org"]
        assert "user.identity_linked" in set(session.scalars(select(AuditEntry.action)))


def test_an_address_that_is_not_verified_is_none(database, people):
    trusted = dataclasses.replace(GIVEN, links_by_email=True, makes_accounts=True)
    with pytest.raises(UnauthenticatedError, match="no verified e-mail address"):
        account(database, trusted, Person(ISSUER, "u-1", "", "Alice"))


def test_an_admin_is_linked_by_hand_only(database, people):
    trusted = dataclasses.replace(GIVEN, links_by_email=True)
    with pytest.raises(UnauthenticatedError, match="not linked to it"):
        account(database, trusted, Person(ISSUER, "u-1", "admin@example.org", ""))


def test_a_domain_that_is_not_its_own_is_not_taken(database, people):
    trusted = dataclasses.replace(GIVEN, links_by_email=True, makes_accounts=True, domains=("example.edu",))
    for email in ("alice@example.org", "alice@evil-example.edu", "alice@example.edu.evil.example"):
        with pytest.raises(UnauthenticatedError, match="no verified e-mail address that is accepted"):
            account(database, trusted, Person(ISSUER, email, email, ""))


def test_who_has_no_account_gets_one_where_the_policy_says_so(database, people):
    new = Person(ISSUER, "u-9", "new@example.edu", "  Nora\r\nNew\u202e ")
    with pytest.raises(UnauthenticatedError, match="Ask the staff"):
        account(database, GIVEN, new)
    made = account(database, dataclasses.replace(GIVEN, makes_accounts=True), new)
    assert (made.email, made.name, made.password_hash) == ("new@example.edu", "Nora New", None)


def test_an_account_without_a_password_lets_in_nobody_by_password(database, people, config):
    allowed = dataclasses.replace(GIVEN, makes_accounts=True)
    account(database, allowed, Person(ISSUER, "u-9", "new@example.edu", "Nora"))
    for password in ("", "None", "nobody has this password"):
        with pytest.raises(UnauthenticatedError), database.transaction() as session:
            accounts.authenticate(session, email="new@example.edu", password=password, place=Place("x"), config=config)


def test_a_closed_account_stays_closed(database, people, alice_there):
    linked(database, people.alice)
    with database.transaction() as session:
        session.get_one(User, people.alice.id).disabled_at = people.alice.created_at
    with pytest.raises(UnauthenticatedError, match="closed"):
        account(database, dataclasses.replace(GIVEN, links_by_email=True), alice_there)


def test_one_identity_has_one_account(database, people, alice_there):
    linked(database, people.bob)
    with pytest.raises(ConflictError, match="another account"), database.transaction() as session:
        sso.link(session, GIVEN, alice_there, session.get_one(User, people.alice.id))


def test_the_last_way_in_is_not_unlinked(database, people):
    first, second = linked(database, people.alice), linked(database, people.alice, "u-2")
    with database.transaction() as session:
        session.get_one(User, people.alice.id).password_hash = None
    with database.transaction() as session:
        sso.unlink(session, people.alice, first)
    with pytest.raises(ConflictError, match="only way into"), database.transaction() as session:
        sso.unlink(session, people.alice, second)
    with pytest.raises(NotFoundError), database.transaction() as session:
        sso.unlink(session, people.bob, second)


def test_too_many_on_their_way_from_one_address_are_stopped(database, people, monkeypatch):
    monkeypatch.setattr(sso, "PER_ADDRESS", 3)

    def leave(address):
        with database.transaction() as session:
            return sso.depart(session, GIVEN, target="/", address=address)

    gone = [leave("192.0.2.1") for _ in range(3)]
    with pytest.raises(TooManyError) as error:
        leave("192.0.2.1")
    assert error.value.retry_after_s > 0
    leave("192.0.2.2")
    with database.transaction() as session:
        sso.arrive(session, GIVEN, state=gone[0].state, browser=gone[0].browser)
    leave("192.0.2.1")
    assert count(database, OutsideLogin) == 4
