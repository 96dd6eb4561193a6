"""What is worked out from counters, and what of a source says that a person looks before they give points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autograder import languages
from autograder.assignment import load_assignment
from autograder.contract import Counted
from autograder.counters import COUNTERS, FIGURES, MOST, capped, figures_of, told
from autograder.judge.probes.counting import evaluate
from autograder.runner.languages.kernel_races import Watch

PYTHON = "import torch\nimport triton\nimport triton.language as tl\n"


def test_figures_are_totals_beside_the_least() -> None:
    assert figures_of({"launches": 2, "load_sectors": 3, "store_sectors": 1}, 128) == {"launches": 2, "traffic": 100}
    names = {name: 1 for name in COUNTERS if name not in FIGURES}
    # Sectors of loads, stores and atomics of both that count, and one byte that the host copied.
    assert figures_of(names, 161) == {"launches": 0, "traffic": 100, "bank_conflicts": 2}
    assert figures_of({"copied_bytes": 1}, 1000)["traffic"] == 1
    assert {title for title, _, _ in told(Counted("a", "emulator", names))} <= {one.title for one in COUNTERS.values()}


def test_a_runner_may_claim_any_number_and_leave_counters_out() -> None:
    counters = capped({"launches": 10**400, "load_sectors": -1})
    assert counters == {"launches": MOST, "load_sectors": 0}
    assignment = load_assignment(Path(__file__).parents[2] / "assignments" / "transpose")
    wanted = [one for one in assignment.requirements if one.bank_conflicts]
    (told_of,) = evaluate(wanted, [Counted(wanted[0].case, "emulator", counters, figures_of(counters, 1.0))])
    assert (told_of.met, told_of.message) == (None, "Nothing was counted.")


def test_a_program_is_counted_in_bytes_and_distinct_sectors() -> None:
    watch = Watch()
    watch.has_loaded_pointers = True  # They are in no tensor.
    watch.count(on=True)
    addresses = np.arange(4096, 4096 + 4 * 16, 4, dtype=np.uint64)
    watch.load(addresses, None, 4, volatile=False)
    watch.load(addresses * 8, addresses < 4096 + 16, 4, volatile=False)
    watch.load(np.full(16, 4096 + 30, np.uint64), None, 4, volatile=False)
    found = watch.count(on=False)
    assert (found["load_bytes"], found["load_sectors"]) == (64 + 16 + 64, 2 + 4 + 2)
    assert not watch.count(on=False)


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("triton", f"{PYTHON}import gc\n"),
        ("triton", f"{PYTHON}tl.load = 1\n"),
        ("triton", f"{PYTHON}setattr(tl, 'load', 1)\n"),
        ("triton", f"{PYTHON}from triton.runtime import interpreter\n"),
        ("triton", f"{PYTHON}try:\n  x = 1\nexcept ValueError:\n  pass\n"),
        ("cuda", "#include <dlfcn.h>\n"),
        ("cuda", 'extern "C" void cuda_emulator_count(int);'),
        ("cuda", "void f(float* x) { memcpy(x, x, 4); }"),
        ("cuda", "void f(float* x) { std::copy(x, x + 4, x); }"),
        ("cuda", "using namespace std; void f(float* x) { copy(x, x + 4, x); }"),
        ("cuda", "#define JOIN(a, b) a ## b\n"),
    ],
)
def test_a_source_that_could_reach_what_counts_is_in_doubt(language: str, source: str) -> None:
    assert languages.of(language).reaches(source)


def test_kernels_as_they_are_written_are_in_no_doubt() -> None:
    assert not languages.of("triton").reaches(f"{PYTHON}@triton.jit\ndef f(x):\n  y = tl.load(x)\n")
    source = (
        "#include <cuda_fp16.h>\n#include <cstdint>\n// memcpy\ntemplate <typename T> __global__ void copy(T* x) {}\n"
    )
    assert not languages.of("cuda").reaches(source)
