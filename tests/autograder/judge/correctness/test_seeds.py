"""Seeds fill the whole generator."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.judge.correctness import seeds

words = st.integers(min_value=0, max_value=2**64 - 1)


@given(words)
def test_a_seed_reproduces_its_inputs(seed: int) -> None:
    one, other = (torch.rand(700, generator=seeds.generator(seed)) for _ in range(2))
    assert torch.equal(one, other)


@given(words, st.integers(min_value=0, max_value=63))
def test_every_bit_of_a_seed_matters(seed: int, bit: int) -> None:
    one = torch.rand(64, generator=seeds.generator(seed))
    other = torch.rand(64, generator=seeds.generator(seed ^ (1 << bit)))
    assert not torch.equal(one, other)


def test_torchs_own_seeding_keeps_32_bits_and_ours_does_not() -> None:
    one, other = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5 + 2**32)
    assert torch.equal(torch.rand(64, generator=one), torch.rand(64, generator=other))
    ours = [torch.rand(64, generator=seeds.generator(seed)) for seed in (5, 5 + 2**32)]
    assert not torch.equal(*ours)


def test_draws_look_uniform_and_normal() -> None:
    generator = seeds.generator(7)
    uniform = torch.rand(100_000, generator=generator)
    normal = torch.randn(100_001, generator=generator)
    assert 0.49 < uniform.mean() < 0.51
    assert 0.99 < normal.std() < 1.01
    assert abs(normal.mean()) < 0.02


def test_fresh_seeds_differ() -> None:
    assert len({seeds.fresh_seed() for _ in range(1000)}) == 1000
