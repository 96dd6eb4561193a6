"""The GPU's table is normative too: it and its folder say the same, and every row says enough."""

from __future__ import annotations

import ast

from autograder.contract import FindingKind, Verdict
from tests.gpu.hostile.corpus import attacks, files, first_verdict

ALL = attacks()


def test_every_file_stands_in_the_table_and_every_row_is_a_file() -> None:
    assert {attack.name for attack in ALL} == files()


def test_a_row_is_named_for_its_verdict_and_says_why_there_are_several() -> None:
    for attack in ALL:
        name = attack.name
        assert first_verdict(name) in attack.verdicts, name
        assert set(attack.verdicts) <= set(Verdict), name
        assert bool(attack.because) == (len(attack.verdicts) > 1), name
        assert attack.meets, name
        assert attack.held in {"no", "harmless", "either"}, name
        assert attack.work in {"all", "check", "measure"}, name
        assert set(attack.findings) <= {kind.value for kind in FindingKind}, name


def test_a_row_says_what_its_time_is_worth() -> None:
    for attack in ALL:
        name = attack.name
        if name.startswith("held_"):
            assert attack.held == "harmless", name
        if attack.held == "harmless":
            assert attack.work == "measure", name
            assert attack.least_ratio > 0, name
        if attack.honest:
            assert attack.held == "no", name
            assert not attack.findings, name


def test_an_attack_says_how_its_defence_is_switched_off_or_why_it_cannot_be() -> None:
    for attack in ALL:
        if attack.honest:
            continue
        bite, name = attack.bite, attack.name
        assert (bool(bite.judge) or bool(bite.claim)) + bite.naive + bool(bite.mend) + bool(bite.none) == 1, name
        assert bool(bite.succeeds) == (bool(bite.judge) or bite.naive or bool(bite.mend)), name
        assert (attack.mended() != attack.source()) == bool(bite.mend), name


def test_a_file_says_in_its_docstring_what_it_tries_and_of_which_class_it_is() -> None:
    for attack in ALL:
        text = ast.get_docstring(ast.parse(attack.source())) or ""
        assert text, attack.name
        if not attack.honest:
            assert attack.threat in text, attack.name
