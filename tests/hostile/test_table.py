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


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.name)
def test_a_row_is_named_for_its_verdict_and_says_why_there_are_several(attack: Attack) -> None:
    assert attack.name.startswith(attack.verdicts[0] + "_") or attack.name.startswith("nondeterministic_")
    assert set(attack.verdicts) <= {*Verdict, REFUSED}
    assert bool(attack.because) == (len(attack.verdicts) > 1)
    assert attack.meets
    assert set(attack.needs) <= {promise.value for promise in Promise}
    assert set(attack.findings) <= {kind.value for kind in FindingKind}


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.name)
def test_a_row_says_how_its_defence_is_switched_off(attack: Attack) -> None:
    bite = attack.bite
    assert bite.succeeds in SUCCEEDS
    assert bite.judge or bite.sandbox or bite.limits or bite.mend or bite.naive or bite.edge or bite.mode or bite.inherits
    assert set(bite.judge) <= set(Defences.__dataclass_fields__)
    attack.mended()


@pytest.mark.parametrize("attack", [attack for attack in ALL if not attack.made], ids=lambda attack: attack.name)
def test_a_file_says_in_its_docstring_what_it_tries(attack: Attack) -> None:
    try:
        tree = ast.parse(attack.source())
    except SyntaxError:
        assert attack.source().startswith('"""')
    else:
        assert ast.get_docstring(tree)
