"""`uploaded_at` is when the last byte was here, by the database's clock: never later, earlier by what asking takes."""

from __future__ import annotations

import json
import socket
import threading
import time
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select

from server.db import now
from server.models import Submission, User

PATH = "/api/v1/courses/gpu/assignments/add_one/submissions"
BODY = {"language": "triton", "source": "def add_one(x, out, n): ...\n", "mode": "submission", "lane": "cpu"}


def clock(database):
    with database.reading() as session:
        return now(session)


def uploaded(database):
    with database.reading() as session:
        return session.scalars(select(Submission.uploaded_at)).one()


def test_a_request_that_is_opened_early_and_sent_late_is_late(site, people, database):
    client = site.bearer(people.alice)
    data = json.dumps({**BODY, "filename": "kernel.py"}).encode()
    url = urlsplit(site.url)
    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        f"Authorization: {client.headers['authorization']}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection((url.hostname, url.port)) as wire:
        wire.sendall(head.encode() + data[:10])
        time.sleep(0.5)  # The deadline would be here.
        deadline = clock(database)
        wire.sendall(data[10:])
        answer = b"".join(iter(lambda: wire.recv(65_536), b""))
    assert b" 201 " in answer.split(b"\r\n")[0]
    # Earlier by what the database's answer took on its way at most (3 ms were seen), and not by the wait before.
    assert uploaded(database) >= deadline - timedelta(seconds=0.25)


@pytest.mark.parametrize("front", ["api", "page"])
def test_what_a_request_waits_for_here_does_not_make_it_late(  # noqa: PLR0917 - fixtures
    site, app, people, database, config, front, monkeypatch
):
    answers, came, begin = [], threading.Event(), database.transaction

    def transaction():
        came.set()
        return begin()

    client = site.bearer(people.alice) if front == "api" else site.logged_in(people.alice, config)

    def send():
        if front == "api":
            answers.append(client.post(PATH, json={**BODY, "filename": "kernel.py"}).status_code)
        else:
            form = {**BODY, "csrf_token": client.headers["x-csrf-token"]}
            answers.append(client.post("/courses/gpu/assignments/add_one/submissions", data=form).status_code)

    thread = threading.Thread(target=send)
    with begin() as session:
        # Nobody else writes on SQLite; on PostgreSQL, nobody submits for her.
        session.execute(select(User.id).where(User.id == people.alice.id).with_for_update())
        monkeypatch.setattr(app.state.database, "transaction", transaction)
        thread.start()
        assert came.wait(30)
        time.sleep(0.2)
        released = now(session)
    thread.join()
    assert answers == [201 if front == "api" else 303]
    assert uploaded(database) < released
