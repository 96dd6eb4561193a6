"""CUDA C++ in a runner: spoken to as the judge speaks to it, and the parts that need no compiler."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder import protocol
from autograder.assignment import load_assignment
from autograder.contract import Frame, Lane, Language, Launch
from autograder.runner.languages import cuda_entry, cuda_messages
from autograder.runner.languages.cuda_gpu import plain_name
from autograder.runner.report import SubmissionError
from autograder.sandbox import RunnerLimits
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.runner_talk import LIMITS, Talk, Tensor

ROOT = Path(__file__).resolve().parents[3]
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

FLOATS = ("input float32", "output float32", "integer")
HALVES = ("input float16", "output float16", "integer")
SCALED = ("input float32", "output float32", "scalar float32", "integer")
DOUBLE = """\
template <typename T>
__global__ void twice(const T* x, T* out, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + x[i];
}

template <typename T>
void run(const T* x, T* out, int64_t n, cudaStream_t stream) {
  twice<<<(n + 31) / 32, 32, 0, stream>>>(x, out, n);
}
"""
ROOMY = RunnerLimits(LIMITS.memory_bytes * 4, LIMITS.processes, LIMITS.output_bytes, 256 * 2**20)


@pytest.fixture
def talk(sandbox: ProcessSandbox) -> Iterator[Talk]:
    made = Talk(sandbox.start(ROOMY, Language.cuda))
    yield made
    made.close()


def load(talk: Talk, source: str, *signatures: tuple[str, ...], **more: object) -> object:
    names = ("x", "out", "factor", "n") if SCALED in signatures else ("x", "out", "n")
    return talk.load(source, "run", names, filename="mine.cu", signatures=signatures or (FLOATS, HALVES), **more)


def vectors(n: int, dtype: type = np.float32) -> tuple[Tensor, Tensor]:
    x = np.arange(1, n + 1).astype(dtype)
    return Tensor("x", x, writable=False), Tensor("out", np.full(n, np.nan, dtype), writable=True)


@needs_compiler
def test_a_template_is_called_for_every_type_and_its_launches_are_recorded(talk: Talk) -> None:
    assert set(talk.ready.versions) == {"torch", "g++"}
    loaded = load(talk, DOUBLE)
    assert loaded == protocol.Loaded("void run(const T* x, T* out, int64_t n, cudaStream_t stream)")
    for dtype in (np.float32, np.float16):
        x, out = vectors(77, dtype)
        answer = talk.call(x, out, n=77)
        assert answer.launches == (Launch("twice", (3, 1, 1), 1),)
        assert np.array_equal(out.view, 2 * x.values)
    assert talk.word()[0] == answer.nonce


@needs_compiler
def test_an_overload_that_is_missing_is_missed_when_it_is_needed(talk: Talk) -> None:
    source = DOUBLE.replace("template <typename T>\nvoid run(const T* x, T* out", "void run(const float* x, float* out")
    assert isinstance(load(talk, source), protocol.Loaded)
    assert isinstance(talk.call(*vectors(5), n=5), protocol.Returned)
    answer = talk.call(*vectors(5, np.float16), n=5)
    assert (answer.stage, answer.kind) == ("call", "MissingOverload")
    assert "tensors of __half" in answer.message


@needs_compiler
def test_a_number_is_passed_by_value(talk: Talk) -> None:
    source = """\
__global__ void scale(const float* x, float* out, float factor, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = factor * x[threadIdx.x];
}
void run(const float* x, float* out, float factor, int n, cudaStream_t) { scale<<<1, 32>>>(x, out, factor, n); }
"""
    assert isinstance(load(talk, source, SCALED), protocol.Loaded)
    x, out = vectors(9)
    assert isinstance(talk.call(x, out, factor=-0.75, n=9), protocol.Returned)
    assert np.array_equal(out.view, np.float32(-0.75) * x.values)


@needs_compiler
def test_kernels_of_a_ghost_are_recorded_and_do_nothing(talk: Talk) -> None:
    assert isinstance(load(talk, DOUBLE, ghost=True), protocol.Loaded)
    x, out = vectors(40)
    assert talk.call(x, out, n=40).launches == (Launch("twice", (2, 1, 1), 1),)
    assert np.isnan(out.view).all()


@needs_compiler
def test_the_compiler_speaks_of_the_students_own_lines(talk: Talk) -> None:
    answer = load(talk, DOUBLE.replace("out[i] = x[i]", "out[i] = y[i]"))
    assert (answer.stage, answer.kind) == ("load", "CompileError")
    assert answer.message.startswith("'y' was not declared in this scope")
    assert answer.frames == (Frame(4, "", ""),)
    assert "mine.cu:4:" in talk.runner.log()


@needs_compiler
def test_a_name_that_there_is_not_is_said_to_be_so_in_a_template_too(talk: Talk) -> None:
    body = "{\n  __syncthread();\n  out[0] = x[0];\n}\n"
    kernel = f"template <typename T>\n__global__ void k(const T* x, T* out) {body}"
    source = kernel + "void run(const float* x, float* out, int64_t, cudaStream_t s) { k<<<1, 32, 0, s>>>(x, out); }\n"
    answer = load(talk, source)
    assert answer.message.startswith("'__syncthread' was not declared in this scope")
    assert answer.frames == (Frame(3, "", ""),)


@needs_compiler
@pytest.mark.parametrize("headers", ["cuda_runtime.h", "cuda_fp16.h cuda_runtime.h", "cuda.h cuda_runtime_api.h"])
def test_a_file_may_include_the_headers_of_cuda_itself(talk: Talk, headers: str) -> None:
    source = "".join(f"#include <{name}>\n" for name in headers.split()) + DOUBLE
    assert isinstance(load(talk, source), protocol.Loaded)


@needs_compiler
@pytest.mark.parametrize(
    ("source", "kind", "says", "line"),
    [
        ("int other() { return 1; }", "MissingEntry", "defines no launcher `void run(const T* x", 0),
        (DOUBLE.replace(", cudaStream_t stream", "").replace(", stream", ""), "WrongSignature", "No function `run`", 0),
        (DOUBLE + "void f() {\n  cudaGraph_t a;\n}\n", "GpuOnly", "lane: put it between #ifndef CUDA_EMULATOR", 12),
        (DOUBLE + "void late();\nvoid g() { late(); }\n", "CompileError", "`late()` is declared and used, but", 12),
        (DOUBLE + "void g() {\n", "CompileError", "at end of input", 11),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_told(talk: Talk, source: str, kind: str, says: str, line: int) -> None:
    answer = load(talk, source)
    assert answer.kind == kind
    assert says in answer.message
    assert [frame.line for frame in answer.frames] == [line] * bool(line)


@needs_compiler
def test_what_goes_wrong_in_a_call_is_told_with_its_line_and_the_next_call_is_made(talk: Talk) -> None:
    assert isinstance(load(talk, DOUBLE.replace("if (i < n) out", "if (n != 32 || i > 0) out")), protocol.Loaded)
    answer = talk.call(*vectors(33), n=33)
    assert (answer.stage, answer.kind) == ("call", "IllegalAccess")
    assert (
        "thread (1,0,0) of block (1,0,0) of twice reads element 33 of x, which has 33 elements (0 to 32)"
        in answer.message
    )
    assert answer.frames == (Frame(4, "", ""),)
    assert isinstance(talk.call(*vectors(64), n=64), protocol.Returned)


@needs_compiler
def test_the_host_may_not_touch_what_is_the_devices(talk: Talk) -> None:
    loop = "  for (int i = 0; i < n; ++i)\n    out[i] = x[i];"
    source = f"void run(const float* x, float* out, int64_t n, cudaStream_t) {{\n{loop}\n}}\n"
    assert isinstance(load(talk, source), protocol.Loaded)
    answer = talk.call(*vectors(8), n=8)
    assert "the host's code reads element 0 of x: that is device memory" in answer.message
    assert answer.frames == (Frame(3, "", ""),)


@needs_compiler
def test_an_exception_of_the_launcher_is_told(talk: Talk) -> None:
    source = "#include <stdexcept>\n" + DOUBLE.replace(
        "  twice<<<", '  if (n == 3) throw std::runtime_error("three");\n  twice<<<'
    )
    assert isinstance(load(talk, source), protocol.Loaded)
    answer = talk.call(*vectors(3), n=3)
    assert (answer.kind, answer.message) == ("LauncherError", "an exception left the launcher: three")


@needs_compiler
def test_threads_take_turns_in_another_order_from_call_to_call(talk: Talk) -> None:
    source = DOUBLE.replace(
        "if (i < n) out[i] = x[i] + x[i];", 'if (i < n) { atomicExch(&out[0], (float)i); printf("%d\\n", (int)i); }'
    )
    assert isinstance(load(talk, source), protocol.Loaded)
    last = []
    for _ in range(3):
        x, out = vectors(32)
        talk.call(x, out, n=32)
        last.append(int(out.view[0]))
    assert last[:2] == [31, 0]
    printed = talk.runner.log().split()
    assert sorted(printed[64:96], key=int) == [str(i) for i in range(32)]
    assert printed[64:96] not in (printed[:32], printed[32:64])


def entry(*signatures: tuple[str, ...], arguments: tuple[str, ...] = ("x", "out", "n")) -> protocol.Load:
    return protocol.Load("", "mine.cu", Language.cuda, "run", arguments, signatures=signatures)


def test_a_declaration_names_what_varies_from_case_to_case() -> None:
    assert cuda_entry.declaration(entry(FLOATS, HALVES)) == (
        "void run(const T* x, T* out, int64_t n, cudaStream_t stream)"
    )
    mixed = ("input float32", "output int64", "integer"), ("input float16", "output int64", "integer")
    assert "const T* x, int64_t* out, int64_t n" in cuda_entry.declaration(entry(*mixed))


def test_words_are_addresses_integers_and_doubles() -> None:
    load_ = entry(HALVES, SCALED, arguments=("x", "out", "factor", "n"))
    words = cuda_entry.Words(load_, (1,))
    x, out = torch.zeros(2), torch.zeros(2)
    made = words.of([x, out, 0.5, 7])
    assert made == [1, x.data_ptr(), out.data_ptr(), struct.unpack("<q", struct.pack("<d", 0.5))[0], 7]
    with pytest.raises(SubmissionError, match="tensors of __half"):
        words.of([x.half(), out.half(), 0.5, 7])


def test_an_assignments_cases_say_which_types_there_are() -> None:
    signatures = load_assignment(ROOT / "assignments" / "vector_add").signatures(Lane.cpu)
    one = ("input float32", "input float32", "output float32", "integer")
    assert signatures == (one, tuple(word.replace("float32", "float16") for word in one))


SAID = """\
mine.cu: In instantiation of 'void twice(const T*, T*, int64_t) [with T = float]':
mine.cu:10:27:   required from 'void run(const T*, T*, int64_t, cudaStream_t) [with T = float]'
<entry>:33:73:   required from here
/somewhere/cuda_emulator/math.h:12:3: error: no match for 'operator+'
mine.cu:4:9: error: 'y' was not declared in this scope
mine.cu:4:9: error: 'y' was not declared in this scope
"""


@pytest.mark.parametrize(
    ("output", "line", "message"),
    [
        (SAID, 10, "no match for 'operator+'\nline 4: 'y' was not declared in this scope"),
        ('mine.cu(7): error: identifier "y" is undefined\n', 7, 'identifier "y" is undefined'),
        ("mine.cu(8): error #20: something\n", 8, "something"),
        ("<entry>:9:1: error: expected '}' at end of input\n", 10, "expected '}' at end of input"),
        ("mine.cu:999:1: error: far away\n", 10, "far away"),
        ("ptxas error   : too much\n", 0, "The compiler failed: ptxas error   : too much"),
        ("", 0, "The compiler failed: it said nothing"),
        ("cc1plus: out of memory allocating 65536 bytes\n", 0, "not enough memory to compile the file."),
    ],
)
def test_a_compilers_words_become_a_students(output: str, line: int, message: str) -> None:
    error = cuda_messages.from_compiler(output, "mine.cu", DOUBLE)
    assert (error.stage, error.kind, error.line) == ("load", "CompileError", line)
    assert error.message.startswith(message)


def test_lines_are_counted_as_the_compiler_counts_them() -> None:
    """A form feed ends none, and what ends the last one begins no other."""
    source = "int a;\fint b;\nint c;\u2028int d;\n"
    error = cuda_messages.from_compiler("mine.cu:999:1: error: far away\n", "mine.cu", source)
    assert error.line == 2


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_Z9add_packsIfEvPKT_S2_PS0_l", "add_packs"),
        ("_Z6kernelv", "kernel"),
        ("_ZN12_GLOBAL__N_16kernelEv", "kernel"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_a_mangled_name_is_read(mangled: str, name: str) -> None:
    assert plain_name(mangled) == name
