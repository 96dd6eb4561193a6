"""Drafts: kept by the server, never overwritten unseen."""

from __future__ import annotations

import json
import re
import threading

import pytest

from autograder.contract import Language
from server import db, drafts
from server.courses import courses
from server.errors import ConflictError, InvalidInputError, TooLargeError

API = "/api/v1/courses/gpu/assignments/add_one/drafts"
PAGE = "/courses/gpu/assignments/add_one"


@pytest.fixture
def save(database):
    def call(user, text, revision=0, language=Language.triton):
        with database.transaction() as session:
            member = courses.membership(session, user, "gpu")
            detail = courses.assignment_of(session, member, "add_one")
            row = drafts.save(
                session, member, detail, language=language, text=text, revision=revision, now=db.now(session)
            )
            return row.revision

    return call


def stored(database, user):
    with database.reading() as session:
        member = courses.membership(session, user, "gpu")
        detail = courses.assignment_of(session, member, "add_one")
        return {language: row.text for language, row in drafts.drafts_of(session, user, detail).items()}


def test_every_save_is_a_revision_and_the_same_text_is_none(save, people, database):
    assert [save(people.alice, "one"), save(people.alice, "two", 1), save(people.alice, "two", 0)] == [1, 2, 2]
    assert stored(database, people.alice) == {Language.triton: "two"}


@pytest.mark.parametrize("behind", [0, 1, 7])
def test_a_window_that_is_behind_overwrites_nothing(save, people, database, behind):
    save(people.alice, "one")
    save(people.alice, "two", 1)
    with pytest.raises(ConflictError, match="newer draft"):
        save(people.alice, "mine", behind)
    assert stored(database, people.alice) == {Language.triton: "two"}


def test_of_two_windows_that_save_at_once_one_is_told(save, people, database):
    save(people.alice, "one")
    said = []

    def go(text):
        try:
            said.append(save(people.alice, text, 1))
        except ConflictError:
            said.append("told")

    threads = [threading.Thread(target=go, args=(text,)) for text in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, said)) == ["2", "told"]


def test_of_two_first_drafts_at_once_one_is_told(save, people):
    said = []

    def go(text):
        try:
            said.append(save(people.alice, text))
        except ConflictError:
            said.append("told")

    threads = [threading.Thread(target=go, args=(text,)) for text in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, said)) == ["1", "told"]


def test_what_cannot_be_a_source_is_refused(save, people):
    with pytest.raises(TooLargeError):
        save(people.alice, "é" * 2**19 + "x")
    with pytest.raises(InvalidInputError, match="zero"):
        save(people.alice, "a\0b")
    with pytest.raises(InvalidInputError, match="surrogate"):
        save(people.alice, "a\ud800")
    with pytest.raises(InvalidInputError, match="does not accept cuda"):
        save(people.alice, "x", language=Language.cuda)


def test_a_draft_is_its_writers_alone(save, people, site):
    save(people.alice, "mine")
    assert site.bearer(people.bob).get(API).json() == []
    assert site.bearer(people.tom).get(API).json() == []
    assert [(one["text"], one["revision"]) for one in site.bearer(people.alice).get(API).json()] == [("mine", 1)]


def test_the_api_says_409_and_leaves_what_is_there(site, people, config):
    client = site.logged_in(people.alice, config)
    assert client.put(f"{API}/triton", json={"text": "one"}).json()["revision"] == 1
    assert client.put(f"{API}/triton", json={"text": "two", "revision": 1}).json()["revision"] == 2
    refused = client.put(f"{API}/triton", json={"text": "mine", "revision": 1})
    assert (refused.status_code, refused.json()["error"]) == (409, "ConflictError")
    assert [one["text"] for one in client.get(API).json()] == ["two"]
    del client.headers["x-csrf-token"]
    assert client.put(f"{API}/triton", json={"text": "forged", "revision": 2}).status_code == 403
    assert client.put(f"{API}/moon", json={"text": "x"}).status_code in {403, 422}


def texts(page):
    return json.loads(re.search(r'<script type="application/json" id="texts">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_begins_with_the_newer_of_draft_and_submission(site, people, config, save, submit):
    client = site.logged_in(people.alice, config)
    assert texts(client.get(PAGE).text)["stored"] == {}
    save(people.alice, "# a draft with </script> in it\n")
    page = client.get(PAGE).text
    assert "# a draft with &lt;/script&gt; in it" in page
    assert "from your draft" in page
    assert texts(page)["stored"]["triton"]["text"] == "# a draft with </script> in it\n"
    submit(people.alice, b"# handed in later\n")
    page = client.get(PAGE).text
    assert "from submission 1" in page
    assert texts(page)["begun"]["text"] == "# handed in later\n"


def test_what_was_refused_stands_where_it_was_whatever_the_draft(site, people, config, save):
    client = site.logged_in(people.alice, config)
    save(people.alice, "# a draft\n")
    form = {"mode": "submission", "language": "triton", "lane": "moon", "source": "# sent\n"}
    page = client.post(f"{PAGE}/submissions", data=form).text
    assert re.search(r'<textarea id="source"[^>]*>\s*# sent', page)
