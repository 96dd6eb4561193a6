"""The table is normative: it and the folder say the same, and every row says enough."""

from __future__ import annotations

import ast

import pytest

from tests.hostile.corpus import REFUSED, Attack, attacks, files

from autograder.contract import FindingKind, Verdict
from autograder.judge.defences import Defences
from autograder.sandbox import Promise

ALL = attacks()
pytestmark = pytest.mark.quick
SUCCEEDS = {*Verdict, "loot", "alive", "left", "dies", "hangs", "no_time", "claims", "early"}


def test_every_file_stands_in_the_table_and_every_row_is_a_file() -> None:
    assert {attack.name for attack in ALL if not attack.made} == files()


def test_a_row_is_named_for_its_verdict_and_says_why_there_are_several() -> None:
    for attack in ALL:
        name = attack.name
        assert name.startswith((attack.verdicts[0] + "_", "nondeterministic_")), name
        assert set(attack.verdicts) <= {*Verdict, REFUSED}, name
        assert bool(attack.because) == (len(attack.verdicts) > 1), name
        assert attack.meets, name
        assert set(attack.needs) <= {promise.value for promise in Promise}, name
        assert set(attack.findings) <= {kind.value for kind in FindingKind}, name


def test_a_row_says_how_its_defence_is_switched_off() -> None:
    for attack in ALL:
        bite, name = attack.bite, attack.name
        assert bite.succeeds in SUCCEEDS, name
        ways = (bite.judge, bite.sandbox, bite.limits, bite.mend, bite.naive, bite.edge, bite.mode, bite.inherits)
        assert any(ways), name
        assert set(bite.judge) <= set(Defences.__dataclass_fields__), name
        attack.mended()


def test_a_file_says_in_its_docstring_what_it_tries() -> None:
    for attack in ALL:
        if not attack.made:
            assert _says_what_it_tries(attack), attack.name


def _says_what_it_tries(attack: Attack) -> bool:
    try:
        return bool(ast.get_docstring(ast.parse(attack.source())))
    except SyntaxError:
        return attack.source().startswith('"""')
