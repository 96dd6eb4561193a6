"""Programs of a launch that race, and addresses outside of every tensor, are found on the CPU lane."""

from __future__ import annotations

import numpy as np
import pytest

from autograder import protocol
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.kernel_talk import HEAD, numbers
from tests.autograder.runner_talk import Tensor, talking


def said(sandbox: ProcessSandbox, source: str, x: Tensor | None = None) -> object:
    """What becomes of a call that is compared, with 64 numbers in and out."""
    out = Tensor("out", np.zeros(64, "f4"), writable=True)
    with talking(sandbox) as talk:
        loaded = talk.load(source, "run", ("x", "out"))
        assert isinstance(loaded, protocol.Loaded), loaded
        return talk.call(x or Tensor("x", numbers(), writable=False), out, record=True)


def kernel(body: str, launch: str = "kernel[(4,)](x, out, 64)") -> str:
    """A kernel of four programs with these lines, and a host function."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    head = f"{HEAD}\n\n@triton.jit\ndef kernel(x_ptr, out_ptr, N: tl.constexpr):\n"
    return f"{head}{lines}\n\n\ndef run(x, out):\n    {launch}\n"


RACES = {
    "a sum without an atomic": (
        """\
total = tl.load(out_ptr) + tl.sum(tl.load(x_ptr + tl.arange(0, N)), axis=0)
tl.store(out_ptr, total)""",
        "program (1,0,0) of kernel reads element 0 of out_ptr, which program (0,0,0) writes too",
    ),
    "all write their own number to one place": (
        "tl.store(out_ptr + 3, tl.program_id(0).to(tl.float32))",
        "program (1,0,0) of kernel writes element 3 of out_ptr, which program (0,0,0) touches too",
    ),
    "one clears what others add to": (
        """\
if tl.program_id(0) == 1:
    tl.store(out_ptr, 0.0)
tl.atomic_add(out_ptr, 1.0)""",
        "element 0 of out_ptr",
    ),
    "one reads what the next one writes": (
        """\
me = tl.program_id(0)
tl.store(out_ptr + me, tl.load(out_ptr + me + 1) + 1.0)""",
        "program (1,0,0) of kernel writes element 1 of out_ptr, which program (0,0,0) touches too",
    ),
    "a histogram by stores": (
        """\
at = tl.arange(0, N)
tl.store(out_ptr + at % 7, at.to(tl.float32))""",
        "two elements of one store of program (0,0,0) of kernel go to element 0 of out_ptr, with different values",
    ),
}


@pytest.mark.parametrize(("body", "words"), RACES.values(), ids=RACES)
def test_a_race_is_found(sandbox: ProcessSandbox, body: str, words: str) -> None:
    raised = said(sandbox, kernel(body))
    assert isinstance(raised, protocol.Raised), raised
    assert raised.kind == "DataRace"
    assert words in raised.message
    assert raised.frames[-1].function == "kernel"


HONEST = {
    "each its own part": "at = tl.program_id(0) * 16 + tl.arange(0, 16)\ntl.store(out_ptr + at, tl.load(x_ptr + at))",
    "all write the same": "at = tl.arange(0, N)\ntl.store(out_ptr + at, tl.load(x_ptr + at))",
    "elements of one store that agree": "tl.store(out_ptr + tl.arange(0, N) % 7, 2.0)",
    "a sum by atomics": "tl.atomic_add(out_ptr + tl.arange(0, N) % 7, tl.load(x_ptr + tl.arange(0, N)))",
    "the last one adds up": """\
me = tl.program_id(0)
tl.store(out_ptr + me, 1.0)
if tl.atomic_add(out_ptr + 9, 1.0) == 3:
    tl.store(out_ptr + 10, tl.sum(tl.load(out_ptr + tl.arange(0, 4)), axis=0))""",
    "a lock": """\
while tl.atomic_cas(x_ptr, 0, 1) == 1:
    pass
tl.store(out_ptr, tl.load(out_ptr) + 1.0)
tl.atomic_xchg(x_ptr, 0)""",
    "a hint before an atomic": """\
me = tl.program_id(0) % 2
if me > tl.load(out_ptr):
    tl.atomic_add(out_ptr, me.to(tl.float32))""",
    "bytes of one number": """\
at = x_ptr.to(tl.pointer_type(tl.int8)) + tl.program_id(0)
tl.store(at, tl.program_id(0).to(tl.int8))""",
    "its own scratch, read back": """\
at = tl.program_id(0) * 16 + tl.arange(0, 16)
tl.store(out_ptr + at, 1.0)
tl.store(out_ptr + at, tl.load(out_ptr + at) + 1.0)""",
    "what a mask leaves out": """\
at = tl.arange(0, 128)
tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < N), mask=at < N)""",
}


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_who_does_not_race_is_not_accused(sandbox: ProcessSandbox, body: str) -> None:
    own = "torch.zeros(1, dtype=torch.int32)" if "cas" in body or "int8" in body else "x"
    launch = f"kernel[(4,)]({own}, out, 64)"
    assert isinstance(answer := said(sandbox, kernel(body, launch)), protocol.Returned), answer


def test_one_launch_comes_after_the_other(sandbox: ProcessSandbox) -> None:
    body = "me = tl.program_id(0)\ntl.store(out_ptr + me, tl.load(out_ptr + (me + 1) % 1) + 1.0)"
    two = "kernel[(1,)](x, out, 64)\n    kernel[(1,)](x, out, 64)"
    assert isinstance(said(sandbox, kernel(body, two)), protocol.Returned)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, 128)), axis=0))",
            "reads element 64 of x_ptr, which has 64 elements (0 to 63)",
        ),
        ("tl.store(out_ptr, tl.load(x_ptr - 1))", "reads element -1 of x_ptr, which has 64 elements (0 to 63)"),
        ("tl.store(out_ptr + 64, 1.0)", "writes element 64 of out_ptr, which has 64"),
    ],
)
def test_an_address_outside_of_every_tensor_is_told_with_its_line(
    sandbox: ProcessSandbox, body: str, words: str
) -> None:
    raised = said(sandbox, kernel(body))
    assert isinstance(raised, protocol.Raised), raised
    assert (raised.kind, raised.frames[-1].code) == ("IllegalAccess", body)
    assert words in raised.message


def test_memory_of_the_files_own_may_be_touched_as_a_whole(sandbox: ProcessSandbox) -> None:
    source = kernel("tl.store(out_ptr, tl.load(x_ptr - 1))", "own = torch.zeros(8)\n    kernel[(1,)](own[3:], out, 64)")
    assert isinstance(answer := said(sandbox, source), protocol.Returned), answer


def test_a_pointer_that_is_read_from_memory_leads_where_it_leads(sandbox: ProcessSandbox) -> None:
    body = "at = tl.load(x_ptr).to(tl.pointer_type(tl.float32))\ntl.store(out_ptr, tl.load(at))"
    launch = "own = torch.ones(1)\n    kernel[(1,)](torch.tensor([own.data_ptr()]), out, 64)"
    assert isinstance(answer := said(sandbox, kernel(body, launch)), protocol.Returned), answer
