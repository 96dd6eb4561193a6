"""Logging in by an identity provider: a real one on loopback, honest, and wrong in every way that is known."""

from __future__ import annotations

import dataclasses
import re
import time
from contextlib import ExitStack

import httpx
import pytest
from sqlalchemy import select, update

from server.accounts import oidc
from server.accounts.providers import load_providers
from server.app import create_app
from server.models import ApiToken, LoginSession, OutsideIdentity, OutsideLogin
from tests.doubles import identity_provider
from tests.doubles.identity_provider import CLIENT, SECRET
from tests.server.conftest import NO_TLS, Site, served


@pytest.fixture
def database_url(sqlite_url):
    """What is asked of the database here, the tests of its services ask of both."""
    return sqlite_url


@pytest.fixture
def provider():
    with identity_provider.served() as running:
        yield running


@pytest.fixture
def policy():
    """What the file says besides; tests change it."""
    return {}


@pytest.fixture
def config(config, provider, policy, tmp_path):
    (tmp_path / "university.secret").write_text(SECRET + "\n")
    lines = [
        "[[provider]]", 'slug = "university"', 'name = "State University"', f'issuer = "{provider.url}"',
        f'client_id = "{CLIENT}"', 'client_secret_file = "university.secret"',
        *(f"{key} = {value}" for key, value in policy.items()),
    ]  # fmt: skip
    (tmp_path / "oidc.toml").write_text("\n".join(lines))
    return dataclasses.replace(config, oidc=tmp_path / "oidc.toml")


@pytest.fixture
def site(app, database, config, people):
    """The application with its own address known to it, as the provider sends browsers there."""
    with ExitStack() as stack:
        url = stack.enter_context(served(app))
        own = f"{url}/login/university/callback"
        app.state.outside["university"]._redirect_uri = own
        yield Site(url, stack, database)


def leave(client, path="/login/university", **params):
    """Where the provider is asked to send the browser back to."""
    answer = client.get(path, params=params)
    assert answer.status_code == 303, answer.text
    return at_provider(answer.headers["location"])


def at_provider(address):
    with httpx.Client(verify=NO_TLS, timeout=60) as browser:
        return browser.get(address).headers["location"]


def log_in(client):
    return client.get(leave(client))


def linked(database, user, provider, subject="u-1"):
    with database.transaction() as session:
        row = OutsideIdentity(
            user_id=user.id, issuer=provider.url, subject=subject, created_at=user.created_at, email="a@b.example"
        )
        session.add(row)
        session.flush()
        return row.id


def count(database, model):
    with database.reading() as session:
        return len(session.scalars(select(model)).all())


def test_the_log_in_page_offers_it_and_keeps_where_one_wanted_to(site):
    page = site.browser().get("/login", params={"next": "/courses/gpu"}).text
    assert '<a class="button login__provider" href="/login/university?next=/courses/gpu">State University</a>' in page


def test_who_is_linked_logs_in_and_goes_where_they_wanted_to(site, database, people, provider):
    linked(database, people.alice, provider)
    client = site.browser()
    answer = client.get(leave(client, next="/courses/gpu"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/courses/gpu")
    assert "Alice" in client.get("/account").text
    assert count(database, OutsideLogin) == 0
    with database.reading() as session:
        assert session.scalars(select(OutsideIdentity)).one().last_used_at is not None


def test_staff_who_come_by_it_are_asked_for_no_code_of_ours(site, app, database, people, provider):
    app.state.config = dataclasses.replace(app.state.config, staff_second_factor="required")
    by_password = site.logged_in(people.tom, app.state.config)
    assert by_password.get("/courses/gpu/gradebook").headers["location"] == "/account/second-factor"
    assert "or log in with State University" in by_password.get("/account/second-factor").text
    linked(database, people.tom, provider)
    client = site.browser()
    assert log_in(client).status_code == 303
    assert client.get("/courses/gpu/gradebook").status_code == 200
    made = client.post(
        "/account/tokens",
        data={"name": "x", "scope": ["staff"], "csrf_token": _form_token(client)},
    )
    assert made.status_code == 201
    with database.reading() as session:
        assert session.scalars(select(ApiToken.is_strong)).all() == [True]


def _form_token(client):
    return re.search(r'name="csrf_token" value="([^"]+)"', client.get("/account").text)[1]


def test_it_is_the_subject_that_counts_not_the_address(site, database, people, provider):
    linked(database, people.bob, provider)
    client = site.browser()
    assert log_in(client).status_code == 303
    assert "bob@example.org" in client.get("/account").text


WRONG = {
    "another nonce": {"claims": {"nonce": "somebody else's"}},
    "no nonce": {"claims": {"nonce": None}},
    "for another audience": {"claims": {"aud": "another-client"}},
    "for two, by another": {"claims": {"aud": [CLIENT, "another-client"], "azp": "another-client"}},
    "of another issuer": {"claims": {"iss": "https://evil.example"}},
    "over": {"claims": {"exp": int(time.time()) - 3600}},
    "without an end": {"claims": {"exp": None}},
    "of nobody": {"claims": {"sub": None}},
    "of somebody who is a number": {"claims": {"sub": 7}},
    "unsigned": {"signing": "none"},
    "signed with our own secret": {"signing": "HS256"},
    "signed by somebody else": {"signing": "other key"},
    "an error": {"token_status": 500},
    "from another issuer, says the browser": {"iss": "https://evil.example"},
}


@pytest.mark.full("slow")
@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_an_answer_that_is_wrong_logs_nobody_in(site, database, people, provider, wrong):
    linked(database, people.alice, provider)
    for name, value in WRONG[wrong].items():
        setattr(provider, name, value)
    client = site.browser()
    answer = log_in(client)
    assert answer.status_code in {401, 502}
    assert "Log in" in answer.text
    assert "evil" not in answer.text
    assert "ladder_login" not in client.cookies
    assert count(database, LoginSession) == 0


def test_the_honest_answer_beside_these_logs_in(site, database, people, provider):
    """What the wrong ones are compared with: nothing else is different."""
    linked(database, people.alice, provider)
    provider.iss = provider.url
    assert log_in(site.browser()).status_code == 303


def test_an_answer_is_taken_once(site, database, people, provider):
    linked(database, people.alice, provider)
    client = site.browser()
    back = leave(client)
    cookie = client.cookies["ladder_outside"]
    assert client.get(back).status_code == 303
    assert "ladder_outside" not in client.cookies
    again = site.browser(cookies={"ladder_outside": cookie}).get(back)
    assert again.status_code == 401
    assert provider.asked.count("/token") == 1


def test_an_answer_belongs_to_the_browser_that_asked(site, database, people, provider):
    """Or somebody could be logged in, without knowing, to an account that is not theirs."""
    linked(database, people.alice, provider)
    back = leave(site.browser())
    other = site.browser()
    leave(other)
    assert other.get(back).status_code == 401
    assert site.browser().get(back).status_code == 401


@pytest.mark.parametrize("query", ["", "?state=none&code=none", "?error=access_denied&state=none", "?code=x"])
def test_an_answer_to_no_question_is_refused(site, query):
    assert site.browser().get(f"/login/university/callback{query}").status_code == 401


def test_who_says_no_there_is_told_so(site, provider):
    client = site.browser()
    state = leave(client).partition("state=")[2].partition("&")[0]
    answer = client.get(f"/login/university/callback?error=access_denied&state={state}")
    assert answer.status_code == 401
    assert "State University did not log you in." in answer.text


def test_an_answer_that_comes_too_late_is_refused(site, database, people, provider):
    linked(database, people.alice, provider)
    client = site.browser()
    back = leave(client)
    with database.transaction() as session:
        session.execute(update(OutsideLogin).values(expires_at=people.alice.created_at))
    assert client.get(back).status_code == 401


def test_nobody_is_sent_to_another_site_after_it(site, database, people, provider):
    linked(database, people.alice, provider)
    client = site.browser()
    answer = client.get(leave(client, next="https://evil.example/"))
    assert answer.headers["location"] == "/"


def test_a_provider_that_is_away_is_said_and_keeps_nobody_from_a_password(site, config, app, people):
    app.state.outside["university"]._known = None
    object.__setattr__(app.state.outside["university"].provider, "issuer", "http://127.0.0.1:1")
    answer = site.browser().get("/login/university")
    assert answer.status_code == 502
    assert "State University did not give a valid answer" in answer.text
    assert 'name="password"' in answer.text


def test_one_that_hangs_is_left_after_a_while(site, database, people, provider, monkeypatch):
    monkeypatch.setattr(oidc, "TIMEOUT_S", 0.2)
    provider.slow_s = 4.0
    began = time.monotonic()
    assert log_in(site.browser()).status_code == 502
    assert time.monotonic() - began < 3.5


@pytest.mark.parametrize(
    "description",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "ftp://evil.example/keys"},
        {"authorization_endpoint": None},
    ],
    ids=str,
)
def test_a_provider_that_describes_itself_wrongly_is_not_asked(site, provider, description):
    provider.description = description
    assert site.browser().get("/login/university").status_code == 502


def test_its_description_is_read_once_and_a_new_key_is_looked_for(site, database, people, provider, monkeypatch):
    linked(database, people.alice, provider)
    for _ in range(2):
        assert log_in(site.browser()).status_code == 303
    assert provider.asked.count("/jwks") == 1
    provider.rotate()
    monkeypatch.setattr(oidc, "LOOK_AGAIN_S", 0.0)
    assert log_in(site.browser()).status_code == 303
    assert provider.asked.count("/jwks") == 2


def test_keys_that_nobody_has_do_not_make_us_ask_for_each(site, database, people, provider):
    linked(database, people.alice, provider)
    log_in(site.browser())
    provider.rotate()
    for _ in range(3):
        assert log_in(site.browser()).status_code == 502
    assert provider.asked.count("/jwks") == 1


def test_linking_goes_by_a_form_and_comes_back_to_the_account(site, database, people, config, provider):
    client = site.logged_in(people.alice, config)
    page = client.post("/account/identities/university")
    assert page.status_code == 200
    address = page.text.partition(f'href="{provider.url}')[2].partition('"')[0].replace("&amp;", "&")
    answer = client.get(at_provider(provider.url + address))
    assert (answer.status_code, answer.headers["location"]) == (303, "/account?done=linked#identities")
    assert "State University" in client.get("/account?done=linked").text
    with database.reading() as session:
        row = session.scalars(select(OutsideIdentity)).one()
        identity = row.id
        assert (row.user_id, row.subject) == (people.alice.id, "u-1")
    other = site.browser()
    assert log_in(other).status_code == 303
    assert client.post(f"/account/identities/{identity}/unlink").status_code == 303
    assert log_in(site.browser()).status_code == 401


def test_linking_without_our_own_page_is_refused(site, people, config):
    client = site.logged_in(people.alice, config)
    del client.headers["x-csrf-token"]
    assert client.post("/account/identities/university").status_code == 403


def test_linking_ends_where_somebody_else_is_logged_in_meanwhile(site, database, people, config, provider):
    client = site.logged_in(people.alice, config)
    page = client.post("/account/identities/university").text
    address = page.partition(f'href="{provider.url}')[2].partition('"')[0].replace("&amp;", "&")
    back = at_provider(provider.url + address)
    bob = site.logged_in(people.bob, config)
    bob.cookies.set("ladder_outside", client.cookies["ladder_outside"])
    assert bob.get(back).status_code == 403
    assert count(database, OutsideIdentity) == 0


FILES = {
    "not TOML": ("[[provider", "is not TOML"),
    "another table": ("[other]\nx = 1", "one kind of table"),
    "without an issuer": ('[[provider]]\nslug = "a"\nname = "A"\nclient_id = "x"', "issuer has to be there"),
    "an issuer that anybody can be": (
        '[[provider]]\nslug = "a"\nname = "A"\nclient_id = "x"\nissuer = "http://example.edu"',
        "reached by https",
    ),
    "a key that nobody knows": (
        '[[provider]]\nslug = "a"\nname = "A"\nclient_id = "x"\nissuer = "https://a.edu"\nlinks_by_mail = true',
        "links_by_mail cannot be taken",
    ),
    "a secret that is not there": (
        '[[provider]]\nslug = "a"\nname = "A"\nclient_id = "x"\nissuer = "https://a.edu"\nclient_secret_file = "no"',
        "no cannot be read",
    ),
    "twice": (
        '[[provider]]\nslug = "a"\nname = "A"\nclient_id = "x"\nissuer = "https://a.edu"\n' * 2,
        "the same slug twice",
    ),
}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_file_that_cannot_be_meant_stops_the_server_with_the_reason(tmp_path, file, config):
    text, reason = FILES[file]
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ValueError, match=reason):
        create_app(dataclasses.replace(config, oidc=tmp_path / "bad.toml"))


def test_the_secret_is_not_in_what_is_printed(config):
    assert SECRET not in repr(load_providers(config.oidc))
