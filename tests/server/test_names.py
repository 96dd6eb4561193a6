"""Names that could pass for one of the staff."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from server.accounts import names
from server.courses import courses
from server.db import now
from server.errors import InvalidInputError
from server.models import Enrolment, Role, User
from server.roster import invites
from tests.server.conftest import COURSE

INSTRUCTOR = "Ines Iglesias"


@pytest.mark.parametrize(
    "name",
    [
        "Ines Iglesias", "INES IGLESIAS", "Inés Iglesias", "lnes lglesias", "1nes Ig1esias", "InesIglesias",
        "Ines-Iglesias", "Ines Ig\u200blesias", "\uff29\uff4e\uff45\uff53 Iglesias", "\u0406nes Igl\u0435sias",
        "Ines Igl\u0435s\u0456\u0430s", "Ines \u026agle\u0455ias".replace("\u026a", "I"), "Ine\u0455 Iglesias.",
    ],
)  # fmt: skip
def test_names_that_a_reader_takes_for_the_same_are_alike(name):
    assert names.alike(name, ["Tom Turner", INSTRUCTOR]) == INSTRUCTOR


@pytest.mark.parametrize("name", ["Ines", "Iglesias Ines", "Ines Iglesia", "Inez Iglesias", "田中", "", "..."])
def test_other_names_are_not(name):
    assert names.alike(name, [INSTRUCTOR, "…"]) == ""


def test_one_stroke_that_looks_like_two_letters():
    assert names.alike("Torn Tumer", ["Tom Turner"]) == "Tom Turner"


def _link(database, people, role=Role.student) -> str:
    with database.transaction() as session:
        session.get_one(User, people.ines.id).name = INSTRUCTOR
        member = courses.membership(session, people.ines, COURSE)
        made = invites.create(session, member, role=role, section="", days=1, most_uses=None, now=now(session))
        return made.path.partition("token=")[2]


def _sign_up(database, token, name, email="new@example.org"):
    with database.transaction() as session:
        invites.sign_up(session, token, email=email, name=name, address="192.0.2.1", now=now(session))


@pytest.mark.parametrize("email", ["new@example.org", "alice@example.org"])
def test_a_stranger_cannot_join_by_the_name_of_the_staff_or_an_admin(database, people, email):
    token = _link(database, people)
    for name in ("Ines Igl\u0435sias", "Tom", "Adrnin"):
        with pytest.raises(InvalidInputError) as caught:
            _sign_up(database, token, name, email)
        assert caught.value.field == "name"
    _sign_up(database, token, "Ines M. Iglesias", email)


def test_who_is_invited_as_staff_may_have_their_own_name(database, people):
    _sign_up(database, _link(database, people, Role.instructor), "Tom")


def test_a_name_of_the_staffs_does_not_stand_on_leaderboards(database, people):
    with database.transaction() as session:
        session.get_one(User, people.alice.id).name = "T0m"
        member = courses.membership(session, session.get_one(User, people.alice.id), COURSE)
        with pytest.raises(InvalidInputError):
            courses.set_show_name(session, member, show=True)
        courses.set_show_name(session, member, show=False)


def test_the_roster_marks_students_who_have_the_name_of_the_staff(site, database, people, config):
    with database.transaction() as session:
        session.get_one(User, people.alice.id).name = "T\u043em"
    page = site.logged_in(people.ines, config).get(f"/courses/{COURSE}/roster").text
    assert len(re.findall("looks like Tom", page)) == 1
    with database.reading() as session:
        assert session.scalars(select(Enrolment)).all()
