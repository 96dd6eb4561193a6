"""The GPU's table is normative too: it and its folder say the same, and every row says enough."""

from __future__ import annotations

import ast

import pytest

from autograder.contract import FindingKind, Verdict
from tests.gpu.hostile.corpus import Attack, attacks, files, first_verdict

ALL = attacks()


def test_every_file_stands_in_the_table_and_every_row_is_a_file() -> None:
    assert {attack.name for attack in ALL} == files()


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.name)
def test_a_row_is_named_for_its_verdict_and_says_why_there_are_several(attack: Attack) -> None:
    assert first_verdict(attack.name) in attack.verdicts
    assert set(attack.verdicts) <= set(Verdict)
    assert bool(attack.because) == (len(attack.verdicts) > 1)
    assert attack.meets
    assert attack.held in {"yes", "no", "harmless", "either"}
    assert attack.work in {"all", "check", "measure"}
    assert set(attack.findings) <= {kind.value for kind in FindingKind}


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.name)
def test_a_row_says_what_its_time_is_worth(attack: Attack) -> None:
    if attack.name.startswith("held_"):
        assert attack.held in {"yes", "harmless"}
    if attack.held in {"yes", "harmless"}:
        assert attack.work == "measure"
        assert attack.least_ratio > 0
    if attack.honest:
        assert attack.held == "no"
        assert not attack.findings


@pytest.mark.parametrize("attack", [attack for attack in ALL if not attack.honest], ids=lambda attack: attack.name)
def test_an_attack_says_how_its_defence_is_switched_off_or_why_it_cannot_be(attack: Attack) -> None:
    bite = attack.bite
    assert (bool(bite.judge) or bool(bite.claim)) + bite.naive + bool(bite.mend) + bool(bite.none) == 1
    assert bool(bite.succeeds) == (bool(bite.judge) or bite.naive or bool(bite.mend))
    assert (attack.mended() != attack.source()) == bool(bite.mend)


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.name)
def test_a_file_says_in_its_docstring_what_it_tries_and_of_which_class_it_is(attack: Attack) -> None:
    text = ast.get_docstring(ast.parse(attack.source())) or ""
    assert text
    if not attack.honest:
        assert attack.threat in text
