"""Bite tests: each attack fails as things are, and succeeds with the one defence it meets switched off."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from autograder.contract import Mode, Verdict
from autograder.judge import ALL_ON
from tests.autograder.grading_bench import GOOD, Bench, body, kernel

OVERFLOW = kernel(after="torch.as_strided(out, (1,), (1,), out.storage_offset() + m * out.stride(0) + 1).fill_(5)")
SKIPS_ZEROS = body(
    "for row in range(m):\n"
    "    out[row][a[row] != 0] = 2 * a[row][a[row] != 0]\n"
    "    negative[row] = (a[row] < 0).sum()\n"
)  # fmt: skip
ZEROS_INPUTS = body(
    "for number in range(4, 32):\n"
    "    try:\n"
    "        memory = mmap.mmap(number, os.fstat(number).st_size)\n"
    "    except (OSError, ValueError):\n"
    "        continue\n"
    "    floats = torch.frombuffer(memory, dtype=torch.float32)\n"
    "    theirs = floats[(16384 + a.data_ptr() % 4096) // 4:]\n"
    "    theirs = theirs.as_strided(a.shape, a.stride(), theirs.storage_offset()) if len(theirs) > m * n else a\n"
    "    if theirs is not a and torch.equal(theirs, a): theirs.zero_()\n"
    "out.zero_()\n"
    "negative.zero_()\n"
)
WRITES_LATE = body(
    "def later():\n"
    "    time.sleep(0.05)\n"
    "    for row in range(m):\n"
    "        out[row] = a[row] * 2\n"
    "        negative[row] = (a[row] < 0).sum()\n"
    "threading.Thread(target=later).start()\n"
)
REPLAYS = kernel(
    before="if (m, n) in seen:\n    out.copy_(seen[m, n][0])\n    negative.copy_(seen[m, n][1])\n    return",
    after="seen[m, n] = (out.clone(), negative.clone())",
    top="seen = {}",
)
SLOW_ONCE = kernel(before="if not calls: calls.append(1); time.sleep(2.5)", top="calls = []")
WOBBLES = kernel(
    after="calls.append(1)\nout[0, 0] = out[0, 0] * (1 + 1.2e-7 * (len(calls) % 2))",
    top="calls = []",
)
KNOWS_SIZES = kernel(before="if n not in (5, 33, 128): return")
FORGES = kernel(before="os.write(3, b'{}')")
REMEMBERS = kernel(
    before="if (m, n) in ((3, 5), (32, 33), (64, 128)): sizes.add(n)\nelif not sizes: return", top="sizes = set()"
)


@dataclass(frozen=True)
class Attack:
    """A source, the defence it meets, and the verdicts it may get while that is on."""

    defence: str
    source: str
    verdicts: tuple[Verdict, ...]

    @property
    def off(self) -> dict[str, bool]:
        return {self.defence: False}


ATTACKS = [
    Attack("guard_bands", OVERFLOW, (Verdict.illegal_access,)),
    Attack("poison", SKIPS_ZEROS, (Verdict.wrong_answer,)),
    Attack("private_inputs", ZEROS_INPUTS, (Verdict.wrong_answer,)),
    Attack("snapshot", WRITES_LATE, (Verdict.wrong_answer,)),
    Attack("fresh_inputs", REPLAYS, (Verdict.wrong_answer,)),
    Attack("deadlines", SLOW_ONCE, (Verdict.time_limit,)),
    Attack("hidden_cases", KNOWS_SIZES, (Verdict.wrong_answer,)),
    Attack("packets", FORGES, (Verdict.rule_violation,)),
    Attack("fresh_runner", REMEMBERS, (Verdict.wrong_answer,)),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.defence)
def test_an_attack_meets_its_defence(bench: Bench, attack: Attack) -> None:
    assert bench.grade(attack.source).verdict in attack.verdicts


@pytest.mark.full("slow")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.defence)
def test_an_attack_succeeds_without_its_defence(bench: Bench, attack: Attack) -> None:
    off = dataclasses.replace(ALL_ON, **attack.off)
    assert bench.grade(attack.source, defences=off).verdict is Verdict.passed


def test_without_a_second_call_nondeterminism_is_not_seen(bench: Bench) -> None:
    off = dataclasses.replace(ALL_ON, second_call=False)
    assert bench.grade(WOBBLES, mode=Mode.run).verdict is Verdict.nondeterministic
    assert bench.grade(WOBBLES, mode=Mode.run, defences=off).verdict is Verdict.passed


@pytest.mark.full("slow")
@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(ALL_ON) if field.type == "bool"])
def test_an_honest_submission_passes_with_any_one_defence_off(bench: Bench, name: str) -> None:
    quick = dataclasses.replace(ALL_ON, **{name: False}, late_read_s=0.0, early_reveal_s=0.0)
    assert bench.grade(GOOD, defences=quick).verdict is Verdict.passed


def test_all_defences_are_on_by_default() -> None:
    assert all(getattr(ALL_ON, field.name) is True for field in dataclasses.fields(ALL_ON) if field.type == "bool")
