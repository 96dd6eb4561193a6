"""The runner, spoken to as the judge speaks to it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import numpy as np
import pytest

from autograder import protocol, wire_format
from autograder.contract import Frame, Language, Launch
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.runner_talk import Talk, Tensor, memory, talking


@pytest.fixture
def talk(sandbox: ProcessSandbox) -> Iterator[Talk]:
    with talking(sandbox) as talk:
        yield talk


ADD = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double(value):
    return value + value


@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, MODE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    if MODE == 1:
        x = nowhere(x)
    if MODE == 2:
        x = double(x.to(tl.bfloat16)).to(tl.float32)
    if MODE == 3:
        x = tl.sum(x.to(tl.bfloat16), axis=0).to(tl.float32)
    if MODE == 4:
        x = x.to(tl.float8e4nv).to(tl.float32)
    if MODE == 5:
        x = x.to(tl.bfloat16).to(tl.float32)
    if MODE == 6:
        tl.store(x_ptr + offsets, x + 1, mask=mask)
    if MODE == 7:
        x = tl.where(mask, x.to(tl.bfloat16), 0.0).to(tl.float32)
    tl.store(out_ptr + offsets, double(x), mask=mask)


def add(x, out, n, mode):
    if mode == 100:
        torch.add(x, x, out=out)
    else:
        add_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128, MODE=mode)
    return torch.zeros(3)
"""
N = 300
BFLOAT16_HALFWAY = 1.0 + 3 / 256


def tensors() -> tuple[Tensor, Tensor]:
    x = np.linspace(-3, 3, N, dtype="f4")
    x[0] = BFLOAT16_HALFWAY
    return Tensor("x", x, writable=False), Tensor("out", np.full(N, np.nan, "f4"), writable=True)


def load_add(talk: Talk, **more: bool) -> None:
    loaded = talk.load(ADD, "add", ("x", "out", "n", "mode"), **more)
    assert loaded == protocol.Loaded("(x, out, n, mode)")


def call_add(talk: Talk, mode: int, *, record: bool = True) -> tuple[object, Tensor]:
    x, out = tensors()
    return talk.call(x, out, record=record, n=N, mode=mode), out


def line(text: str) -> int:
    return next(number for number, code in enumerate(ADD.splitlines(), 1) if code.strip() == text)


# --- calls -----------------------------------------------------------------------------------------------------------


def test_a_call_writes_into_the_judges_memory_and_what_it_returns_is_ignored(talk: Talk) -> None:
    load_add(talk)
    x, out = tensors()
    nonce = talk.send_call(x, out, n=N, mode=0)
    launches = (Launch("add_kernel", (3, 1, 1), 1),)
    assert talk.receive() == protocol.Returned(nonce, launches, {"aten.zeros": 1})
    np.testing.assert_array_equal(out.view, 2 * x.values)


def test_the_word_carries_the_nonce_and_a_time(talk: Talk) -> None:
    load_add(talk)
    x, out = tensors()
    nonce = talk.send_call(x, out, n=N, mode=0, record=False)
    assert talk.receive() == protocol.Returned(nonce)
    assert talk.word()[0] == nonce
    assert talk.word()[1] > 0


def test_strides_and_offsets_are_followed(talk: Talk) -> None:
    talk.load("def run(x, out):\n    out.copy_(x)\n", "run", ("x", "out"))
    wide = np.arange(24, dtype="i4").reshape(4, 6)
    x = Tensor("x", wide, writable=False)
    out = Tensor("out", np.zeros((6, 4), "i4"), writable=True)
    transposed = protocol.TensorSpec("x", "int32", (6, 4), (1, 6), x.spec.offset, x.bytes, writable=False)
    type(x).spec, before = property(lambda tensor: transposed if tensor is x else before.fget(tensor)), type(x).spec
    try:
        assert isinstance(talk.call(x, out), protocol.Returned)
    finally:
        type(x).spec = before
    np.testing.assert_array_equal(out.view, wide.T)


def test_a_written_input_is_named_and_stays_as_the_judge_has_it(talk: Talk) -> None:
    load_add(talk)
    x, out = tensors()
    returned = talk.call(x, out, n=N, mode=6)
    assert returned.written == ("x",)
    np.testing.assert_array_equal(x.view, x.values)


def test_an_unsealed_input_is_shared(talk: Talk) -> None:
    talk.load("def run(x):\n    x += 1\n", "run", ("x",))
    x = Tensor("x", np.zeros(4, "f4"), writable=False, sealed=False)
    talk.call(x)
    np.testing.assert_array_equal(x.view, np.ones(4))


def test_library_operations_are_counted_and_the_interpreters_own_are_not(talk: Talk) -> None:
    load_add(talk)
    assert call_add(talk, 100)[0].operations["aten.add"] == 1
    assert "aten.add" not in call_add(talk, 0)[0].operations


def test_a_timed_call_records_nothing(talk: Talk) -> None:
    load_add(talk)
    returned, _ = call_add(talk, 100, record=False)
    assert (returned.launches, returned.operations) == ((), {})


def test_the_record_is_capped(talk: Talk) -> None:
    kernels = [f"kernel{number}{'x' * 300}" for number in range(70)]
    lines = ["import triton, triton.language as tl"]
    lines += [f"@triton.jit\ndef {name}(n):\n    pass" for name in kernels]
    lines += ["def run():", *(f"    {name}[(1,)](1)" for name in kernels)]
    talk.load("\n".join(lines))
    returned = talk.call()
    assert len(returned.launches) == 64
    assert all(len(launch.kernel) <= 200 for launch in returned.launches)


def test_a_ghost_does_nothing_while_host_code_runs(talk: Talk) -> None:
    load_add(talk, ghost=True)
    returned, out = call_add(talk, 0)
    assert returned.launches == (Launch("add_kernel", (3, 1, 1), 1),)
    assert np.isnan(out.view).all()
    _, out = call_add(talk, 100)
    assert not np.isnan(out.view).any()


# --- a kernel's text -------------------------------------------------------------------------------------------------


OWN = """\
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, 2 * x, mask=offsets < n)
"""
HIDDEN = "def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr): tl.store(out_ptr + tl.arange(0, BLOCK), 7.0)"
AROUND = f"""\
# COMMENT
import inspect
import triton
import triton.language as tl

{OWN}
def run(x, out, mode):
    if mode:
        raise ValueError(inspect.getsource(kernel.fn))
    n = x.numel()
    kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128)
"""


@pytest.mark.parametrize("end", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_a_kernels_text_is_its_own_and_not_a_comments(talk: Talk, end: str) -> None:
    """Triton and `inspect` take it by its line's number, which counts only what ends a line to Python."""
    begin = AROUND[: AROUND.index(OWN)].count("\n")
    # Were these ends of lines, the comment's kernel would stand where the real one does.
    source = AROUND.replace("COMMENT", end * begin + HIDDEN)
    loaded = talk.load(source, "run", ("x", "out", "mode"))
    assert loaded == protocol.Loaded("(x, out, mode)")
    x, out = tensors()
    assert isinstance(talk.call(x, out, mode=0), protocol.Returned)
    np.testing.assert_array_equal(out.view, 2 * x.values)
    raised = talk.call(x, out, mode=1)
    assert raised.message == OWN
    # The report shows the line that `linecache` gives.
    assert raised.frames[-1].code == "raise ValueError(inspect.getsource(kernel.fn))"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_kernels_text_is_found_whatever_ends_lines(talk: Talk, end: str) -> None:
    assert isinstance(talk.load(AROUND.replace("\n", end), "run", ("x", "out", "mode")), protocol.Loaded)
    x, out = tensors()
    assert isinstance(talk.call(x, out, mode=0), protocol.Returned)
    np.testing.assert_array_equal(out.view, 2 * x.values)
    assert talk.call(x, out, mode=1).frames[-1].code == "raise ValueError(inspect.getsource(kernel.fn))"


# --- what the interpreter would compute wrongly ----------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "kind"), [(2, "raw bfloat16"), (3, "raw bfloat16"), (4, "float8")])
def test_what_would_be_silently_wrong_is_refused(talk: Talk, mode: int, kind: str) -> None:
    load_add(talk)
    raised, _ = call_add(talk, mode)
    assert raised.kind == "NotOnTheCpuError"
    assert kind in raised.message
    assert raised.frames[0].function == "add"


def test_bfloat16_that_is_only_moved_is_allowed(talk: Talk) -> None:
    load_add(talk)
    assert isinstance(call_add(talk, 7)[0], protocol.Returned)


def test_conversion_to_bfloat16_rounds_to_nearest_even_as_a_gpu_does(talk: Talk) -> None:
    load_add(talk)
    _, out = call_add(talk, 5)
    assert out.view[0] == 2 * (1.0 + 4 / 256)


TILES = """\
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def move_kernel(x_matrix, out_matrix):
    out_matrix.store([0, 0], x_matrix.load([0, 0]))


def move(x, out, n):
    loaded, stored = (-n, 16) if n < 0 else (16, n)
    move_kernel[(1,)](
        TensorDescriptor(x, [2, loaded], [16, 1], [4, 16]), TensorDescriptor(out, [2, stored], [16, 1], [4, 16])
    )
"""


@pytest.mark.parametrize(
    ("dtype", "n", "stored"),
    [("f2", 5, 8), ("f2", 8, 8), ("f2", 9, 16), ("f4", 5, 8), ("f4", 4, 4), ("i1", 3, 16), ("f2", 2**31 - 1, 16)],
)
def test_a_descriptor_stores_whole_16_bytes_as_hardware_does(talk: Talk, dtype: str, n: int, stored: int) -> None:
    """Seen on an H200, and in https://github.com/triton-lang/triton/issues/11583."""
    talk.load(TILES, "move", ("x", "out", "n"))
    x, out = Tensor("x", np.ones((4, 16), dtype), False), Tensor("out", np.zeros((4, 16), dtype), True)
    assert isinstance(talk.call(x, out, n=n), protocol.Returned)
    expected = np.zeros((4, 16), dtype)
    expected[:2, :stored] = 1
    np.testing.assert_array_equal(out.view, expected)


def test_a_descriptor_loads_no_more_than_there_is(talk: Talk) -> None:
    talk.load(TILES, "move", ("x", "out", "n"))
    x, out = Tensor("x", np.ones((4, 16), "f2"), False), Tensor("out", np.full((4, 16), 7, "f2"), True)
    assert isinstance(talk.call(x, out, n=-5), protocol.Returned)
    expected = np.full((4, 16), 7, "f2")
    expected[:2] = [1] * 5 + [0] * 11
    np.testing.assert_array_equal(out.view, expected)


# --- errors ----------------------------------------------------------------------------------------------------------


def test_an_error_in_a_kernel_shows_the_students_lines_and_no_others(talk: Talk) -> None:
    load_add(talk)
    raised, _ = call_add(talk, 1)
    assert (raised.stage, raised.kind) == ("call", "NameError")
    assert [(frame.line, frame.function) for frame in raised.frames] == [
        (line("add_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128, MODE=mode)"), "add"),
        (line("x = nowhere(x)"), "add_kernel"),
    ]


def test_an_error_in_a_helper_shows_the_whole_way(talk: Talk) -> None:
    load_add(talk)
    raised, _ = call_add(talk, 2)
    assert [frame.function for frame in raised.frames] == ["add", "add_kernel", "double"]
    assert raised.frames[-1].code == "return value + value"


def test_a_runner_goes_on_after_an_error(talk: Talk) -> None:
    load_add(talk)
    call_add(talk, 1)
    assert isinstance(call_add(talk, 0)[0], protocol.Returned)


@pytest.mark.parametrize(
    ("source", "kind", "stage", "frames"),
    [
        ("def run(:\n", "SyntaxError", "load", (Frame(1, "<module>", "def run(:"),)),
        ("x = 1\n  y = 2\n", "IndentationError", "load", (Frame(2, "<module>", "y = 2"),)),
        (
            "import nothing_like_this\n",
            "ModuleNotFoundError",
            "load",
            (Frame(1, "<module>", "import nothing_like_this"),),
        ),
        ("1 / 0\n", "ZeroDivisionError", "load", (Frame(1, "<module>", "1 / 0"),)),
        ("raise SystemExit(0)\n", "SystemExit", "load", (Frame(1, "<module>", "raise SystemExit(0)"),)),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt", "load", (Frame(1, "<module>", "raise KeyboardInterrupt"),)),
        ("", "MissingEntry", "entry", ()),
        ("def walk(): pass\n", "MissingEntry", "entry", ()),
        ("run = 3\n", "MissingEntry", "entry", ()),
        ("def run(y): pass\n", "WrongSignature", "entry", ()),
        ("def run(x, y): pass\n", "WrongSignature", "entry", ()),
        ("def run(x, *, y): pass\n", "WrongSignature", "entry", ()),
        ("def run(): pass\n", "WrongSignature", "entry", ()),
    ],
)
def test_a_source_that_does_not_load_is_explained(
    talk: Talk, source: str, kind: str, stage: str, frames: tuple[Frame, ...]
) -> None:
    raised = talk.load(source, "run", ("x",))
    assert (raised.nonce, raised.kind, raised.stage, raised.frames) == (0, kind, stage, frames)
    if stage == "entry":
        assert "run" in raised.message


@pytest.mark.parametrize(
    "source", ["def run(x): pass", "def run(x, tile=128): pass", "def run(*args): pass", "run = lambda x: None"]
)
def test_an_entry_that_can_be_called_is_accepted(talk: Talk, source: str) -> None:
    assert isinstance(talk.load(source, "run", ("x",)), protocol.Loaded)


def test_a_kernel_in_place_of_the_entry_is_refused(talk: Talk) -> None:
    raised = talk.load("import triton\n@triton.jit\ndef run(x):\n    pass\n", "run", ("x",))
    assert (raised.stage, raised.kind) == ("entry", "WrongSignature")


RESISTING = """
class Error(Exception):
    def __str__(self):
        {body}
def run():
    raise Error("x")
"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError", "(its text cannot be shown: making it failed)"),
        ("raise SystemExit", "(its text cannot be shown: making it failed)"),
        ("return 3", "(its text cannot be shown: making it failed)"),
        ("return 'ab\\ud800'", "ab?"),
        ("return '<b>ünïcode</b>'", "<b>ünïcode</b>"),
    ],
)
def test_an_exception_that_resists_being_shown_is_shown_as_far_as_it_goes(talk: Talk, body: str, message: str) -> None:
    talk.load(RESISTING.format(body=body))
    raised = talk.call()
    assert (raised.kind, raised.message) == ("Error", message)
    assert raised.frames[-1].function == "run"


def test_a_megabyte_of_message_is_cut(talk: Talk) -> None:
    talk.load("def run():\n    raise ValueError('x' * 2**20)\n")
    assert len(talk.call().message) == 4_000


def test_endless_recursion_is_an_error_with_few_frames(talk: Talk) -> None:
    talk.load("def run():\n    run()\n")
    raised = talk.call()
    assert raised.kind == "RecursionError"
    assert len(raised.frames) <= 32


@pytest.mark.parametrize("what", ["SystemExit(3)", "KeyboardInterrupt()", "GeneratorExit()", "BaseException('x')"])
def test_no_exception_gets_past_the_runner(talk: Talk, what: str) -> None:
    talk.load(f"def run():\n    raise {what}\n")
    assert talk.call().kind == what.partition("(")[0]


def test_a_class_that_lies_about_itself_is_survived(talk: Talk) -> None:
    talk.load("""
class Liar(Exception):
    @property
    def __class__(self):
        raise RuntimeError
    @property
    def __cause__(self):
        raise RuntimeError
def run():
    raise Liar
""")
    assert isinstance(talk.call(), protocol.Raised)


# --- patches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "patch",
    [
        "import json; json.dumps = json.loads = None; json.JSONEncoder = json.JSONDecoder = None",
        "import socket; socket.socket = None; socket.recv_fds = None",
        "import time; time.perf_counter_ns = lambda: 0; time.sleep = None",
        "import torch; torch.frombuffer = torch.as_strided = torch.equal = None",
        "import os, mmap; os.close = mmap.mmap = None",
        "import sys; sys.stdout = sys.stderr = None",
        "import traceback, linecache; traceback.walk_tb = linecache.getline = None",
        "import atexit, time; atexit.register(time.sleep, 600)",
    ],
)
def test_patched_libraries_do_not_break_the_runners_replies(talk: Talk, patch: str) -> None:
    talk.load(f"{patch}\ndef run(x, out):\n    out[0] = 7\n", "run", ("x", "out"))
    x, out = tensors()
    nonce = talk.send_call(x, out)
    returned = talk.receive()
    assert isinstance(returned, protocol.Returned)
    assert talk.word()[0] == nonce
    assert talk.word()[1] > 0
    assert out.view[0] == 7


TUNED = """\
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 2}), triton.Config({"BLOCK": 16}, num_warps=8)], key=["n"])
@triton.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)

def run(x, out):
    n = x.numel()
    doubled[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
"""


def test_an_autotuner_chooses_on_the_cpu_too(talk: Talk) -> None:
    assert isinstance(talk.load(TUNED, "run", ("x", "out")), protocol.Loaded)
    for _ in range(2):
        x, out = tensors()
        answer = talk.call(x, out)
        assert isinstance(answer, protocol.Returned)
        assert {launch.kernel for launch in answer.launches} == {"doubled"}
        assert (out.view == 2 * x.values).all()


def test_what_was_printed_before_a_crash_is_in_the_log(talk: Talk) -> None:
    talk.load("import ctypes\ndef run():\n    print('before')\n    ctypes.string_at(0)\n")
    talk.call()
    assert talk.runner.log() == "before\n"


def test_a_long_source_travels_in_a_descriptor(sandbox: ProcessSandbox) -> None:
    source = ("def run(): pass\n" + "# a comment\n" * 30_000).encode()
    with talking(sandbox) as talk:
        descriptor, view = memory(len(source))
        view[:] = source
        load = protocol.Load("", "mine.py", Language.triton, "run", (), source_bytes=len(source))
        words = [talk._judges, talk._runners, descriptor]
        socket.send_fds(talk.runner.channel, [wire_format.encode(load)], words)
        assert isinstance(talk.receive(), protocol.Loaded)
