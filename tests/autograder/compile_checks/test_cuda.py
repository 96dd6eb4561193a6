"""CUDA C++ compiled by nvcc for devices that are not there: real runners, the real compiler, files that resist."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder import codec
from autograder.assignment import Assignment, Requirement, load_assignment
from autograder.compile_checks import child, cuda_compiler, cuda_session
from autograder.compile_checks.messages import (
    NO_COMPILER,
    NO_TARGET,
    OUT_OF_TIME,
    ClaimedKernel,
    Compile,
    Compiled,
    Fault,
    Part,
    Reading,
)
from autograder.contract import CaseResult, CompiledFor, GradeRequest, Lane, Language, Mode, Verdict
from autograder.judge import grade
from autograder.judge.compile import cross_compile, requirements
from autograder.listings import rows_of, unpack
from autograder.runner.languages import nvcc
from autograder.runner.report import SubmissionError
from autograder.sandbox.process import ProcessSandbox

ROOT = Path(__file__).parents[3]
VECTOR_ADD = load_assignment(ROOT / "assignments" / "vector_add")
ADD = """
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}
"""
ENTRY = "void vector_add(const float* x, const float* y, float* out, int64_t n, cudaStream_t stream) {\n"
LAUNCH = "  add<float><<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);\n"
HEAD = "#include <cstdint>\n"

needs_nvcc = pytest.mark.skipif(
    not any(shutil.which("nvcc", path=place) for place in (None, "/usr/local/cuda/bin", "/usr/local/bin")),
    reason="needs nvcc",
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    cross_compile.prewarm(made, Language.cuda)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is not how busy the machine is."""
    monkeypatch.setitem(cross_compile.BUDGET_S, Language.cuda, 120.0)  # type: ignore[arg-type] -- a dict behind a Mapping.
    monkeypatch.setattr(cross_compile, "DEADLINE_S", 200.0)


def one_case(*targets: str) -> Assignment:
    case = next(case for case in VECTOR_ADD.cases if case.name == "gpu_ranked")
    return dataclasses.replace(VECTOR_ADD, cases=(case,), compile_for=targets or ("sm_90a",))


def check(
    sandbox: ProcessSandbox, source: str, assignment: Assignment | None = None
) -> dict[str, cross_compile.TargetReport]:
    request = GradeRequest("vector_add", "", Language.cuda, Lane.cpu, Mode.run, source, "my file.cu")
    with cross_compile.Compilation(assignment or one_case(), request, sandbox) as compilation:
        return compilation.finish()


def shown(sandbox: ProcessSandbox, source: str) -> CompiledFor:
    return check(sandbox, source)["sm_90a"].shown


def line_of(source: str, text: str) -> int:
    (number,) = (number for number, line in enumerate(source.split("\n"), 1) if text in line)
    return number


@needs_nvcc
def test_kernels_are_shown_as_they_are_launched_with_their_lines(sandbox: ProcessSandbox) -> None:
    source = HEAD + ADD + ENTRY + LAUNCH + LAUNCH + "  add<float><<<1, dim3(32, 4), 512>>>(x, y, out, 1);\n}\n"
    checked = check(sandbox, source)["sm_90a"]
    first, second = checked.shown.kernels
    assert (checked.shown.message, checked.whole) == ("", True)
    assert (first.kernel, first.config) == ("add<float>", "block 256")
    assert first.arguments.startswith("float const*, float const*, float*, long")
    assert checked.uses == (((0, 0), (0, 1)), ((0, 2),))
    assert second.config == "block 32×4, 512 B dynamic"
    assert second.shared_bytes - first.shared_bytes == 512
    assert 8 <= first.registers <= 40
    assert (first.spills, first.stack_bytes, first.wgmma, first.tma) == (0, 0, 0, 0)
    store = line_of(source, "out[i] = ")
    for text, word in ((checked.listings.kernels[0].sass, "STG"), (checked.listings.kernels[0].ptx, "st.global")):
        assert {row.line for row in rows_of(text) if word in row.text} == {store}


@needs_nvcc
def test_a_template_needs_no_header_for_types_that_it_does_not_name(sandbox: ProcessSandbox) -> None:
    ranked = tuple(case for case in VECTOR_ADD.cases if case.ranked and case.name.startswith("gpu_"))
    every = dataclasses.replace(one_case(), cases=ranked)
    launcher = "template <typename T>\n" + ENTRY.replace("float*", "T*") + LAUNCH.replace("<float>", "") + "}\n"
    found = check(sandbox, HEAD + ADD + launcher, every)["sm_90a"].shown
    assert found.message == ""
    assert {kernel.kernel for kernel in found.kernels} == {"add<float>", "add<__nv_bfloat16>"}
    assert not any(kernel.message for kernel in found.kernels)


@needs_nvcc
def test_host_code_sees_the_device_that_is_compiled_for(sandbox: ProcessSandbox) -> None:
    source = HEAD + ADD + ENTRY + (
        "  cudaDeviceProp is;\n"
        "  cudaGetDeviceProperties(&is, 0);\n"
        "  int optin = 0, blocks = 0;\n"
        "  cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);\n"
        "  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add<float>, 1024, 0);\n"
        "  float* scratch = nullptr;\n"
        "  if (cudaMallocAsync(&scratch, 1 << 20, stream) != cudaSuccess || !scratch || blocks != 2) return;\n"
        "  if (cudaFuncSetAttribute(add<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, optin)) return;\n"
        "  add<float><<<is.multiProcessorCount, is.major == 9 ? 64 : 128, optin, stream>>>(x, y, scratch, n);\n"
        "}\n"
    )  # fmt: skip
    checked = check(sandbox, source, one_case("sm_90a", "sm_100a"))
    configs = [[kernel.config for kernel in one.shown.kernels] for one in checked.values()]
    assert configs == [["block 64, 232448 B dynamic"], ["block 128, 232448 B dynamic"]]
    assert [one.shown.kernels[0].message for one in checked.values()] == ["", ""]


@needs_nvcc
def test_what_only_one_target_has_is_refused_for_the_other_at_its_line(sandbox: ProcessSandbox) -> None:
    fenced = ADD.replace("if (i < n)", 'asm volatile("wgmma.fence.sync.aligned;");\n  if (i < n)')
    source = HEAD + fenced + ENTRY + LAUNCH + "}\n"
    checked = check(sandbox, source, one_case("sm_100a", "sm_90a"))
    (blackwell,), (hopper,) = (one.shown.kernels for one in checked.values())
    line = line_of(source, "wgmma.fence")
    assert blackwell.message.startswith(f"Would not compile for sm_100a: line {line}: PTXASError: Instruction 'wgmma")
    assert blackwell.kernel == "add<float>"
    assert blackwell.error is not None
    assert blackwell.error.frames[-1].code.startswith("const int64_t") or "asm" in blackwell.error.frames[-1].code
    assert (hopper.message, hopper.config) == ("", "block 256")


@needs_nvcc
def test_launches_that_no_device_takes_are_refused(sandbox: ProcessSandbox) -> None:
    source = HEAD + ADD + ENTRY + (
        "  add<float><<<1, 2048>>>(x, y, out, n);\n"
        "  add<float><<<dim3(1, 70000), 32>>>(x, y, out, n);\n"
        "  add<float><<<1, 32, 60000>>>(x, y, out, n);\n"
        "  add<float><<<1, 32, 240000>>>(x, y, out, n);\n"
        "}\n"
    )  # fmt: skip
    found = shown(sandbox, source)
    assert found.message == ""
    threads, grid, allowed, most = (kernel.message for kernel in found.kernels)
    assert threads.startswith("Would not run for sm_90a: LaunchError: a block of 2048 x 1 x 1 threads; 1 to 1024 fit")
    assert grid.startswith("Would not run for sm_90a: LaunchError: a grid of 1 x 70000 x 1 blocks")
    assert allowed.startswith("Would not run for sm_90a: OutOfResources: 60000 bytes of dynamic shared memory")
    assert most.startswith("Would not run for sm_90a: OutOfResources: 240000 bytes of shared memory are")
    assert all(kernel.registers > 0 for kernel in found.kernels)


def refused(sandbox: ProcessSandbox, source: str) -> tuple[str, ...]:
    return tuple(one.message for one in check(sandbox, source)["sm_90a"].refused)


@needs_nvcc
def test_what_only_the_devices_compiler_refuses_is_refused_but_not_what_this_node_lacks(
    sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = HEAD + ADD + ENTRY + "  undeclared(x);\n" + LAUNCH + "}\n"
    (why,) = refused(sandbox, source)
    line = line_of(source, "undeclared")
    assert why.startswith(f"`vector_add`: Would not compile for sm_90a: line {line}: CompileError: identifier")
    assert refused(sandbox, HEAD + ADD + ENTRY + LAUNCH + "}\n") == ()
    assert refused(sandbox, "#include <cub/absent.cuh>\n" + HEAD + ADD + ENTRY + LAUNCH + "}\n") == ()
    monkeypatch.setitem(cross_compile.BUDGET_S, Language.cuda, 0.1)  # type: ignore[arg-type] -- a dict behind a Mapping.
    assert refused(sandbox, source) == ()


@needs_nvcc
def test_a_launch_that_no_device_takes_is_told_and_refuses_nothing(sandbox: ProcessSandbox) -> None:
    """It follows from what the stand-in says of a device: here from zeros behind an address that has no memory."""
    count = "  unsigned blocks = 0;\n  cudaMemcpy(&blocks, x, sizeof blocks, cudaMemcpyDeviceToHost);\n"
    source = HEAD + ADD + ENTRY + count + "  add<float><<<blocks, 256, 0, stream>>>(x, y, out, n);\n}\n"
    found = check(sandbox, source)["sm_90a"]
    assert "a grid of 0 x 1 x 1 blocks" in found.shown.kernels[0].message
    assert found.refused == ()


def test_of_the_compilers_errors_only_those_at_a_line_or_a_kernel_are_the_files() -> None:
    assert cuda_compiler.Made(error=SubmissionError("load", "CompileError", "identifier", 3)).is_refused
    assert not cuda_compiler.Made(error=SubmissionError("load", "CompileError", "not enough memory")).is_refused
    assert cuda_compiler.Made(refusals=(cuda_compiler.Refusal("too much shared data", function="_Z3addv"),)).is_refused
    assert not cuda_compiler.Made(refusals=(cuda_compiler.Refusal("Memory allocation failure"),)).is_refused
    assert not cuda_compiler.Made(stopped=True).is_refused


@needs_nvcc
def test_too_many_registers_for_a_block_and_spills_are_seen(sandbox: ProcessSandbox) -> None:
    body = "float a[160];\n" + "".join(
        f"#pragma unroll\n  for (int k = 0; k < 160; ++k) a[k] {sign}= x[(k * 7 + {step}) % 512];\n"
        for step, sign in enumerate("+*-+*")
    )
    every = "#pragma unroll\n  for (int k = 0; k < 160; ++k)"
    hungry = f"  float s = 0;\n{every} s += a[k] * a[(k * 13) % 160];\n  *out = s;\n"
    body = body.replace("float a[160];", "float a[160];\n#pragma unroll\n  for (int k = 0; k < 160; ++k) a[k] = x[k];")
    source = HEAD + (
        f"__global__ void wide(const float* x, float* out) {{ {body}{hungry}}}\n"
        f"__global__ void __maxnreg__(32) tight(const float* x, float* out) {{ {body}{hungry}}}\n"
    ) + ENTRY + "  wide<<<1, 1024>>>(x, out);\n  tight<<<1, 64>>>(x, out);\n}\n"  # fmt: skip
    wide, tight = shown(sandbox, source).kernels
    assert wide.registers > 64
    assert wide.message.startswith(f"Would not run for sm_90a: OutOfResources: 1024 threads with {wide.registers} regi")
    assert tight.registers == 32
    assert tight.spills > 0 < tight.stack_bytes
    assert tight.message == ""


@needs_nvcc
def test_what_is_no_c_plus_plus_is_told_at_its_line_and_no_launcher_too(sandbox: ProcessSandbox) -> None:
    (kernel,) = shown(sandbox, HEAD + ADD + ENTRY + "  undeclared(x);\n}\n").kernels
    line = line_of(HEAD + ADD + ENTRY + "  undeclared(x);\n}\n", "undeclared")
    assert kernel.message.startswith(f"Would not compile for sm_90a: line {line}: CompileError: identifier")
    found = shown(sandbox, HEAD + ADD + "void other() {}\n")
    assert "MissingEntry: The file defines no launcher" in found.message


@pytest.mark.full("slow")
@needs_nvcc
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("  if (x[5] > 0) return;", "SIGSEGV: it accessed memory that is not on the host; tensors are on the device."),
        ("  float a; cudaMemcpy(&a, x, 4, cudaMemcpyDeviceToHost);", "NotFollowed: it copies values from the device"),
        ("  cudaGraph_t g; cudaGraphCreate(&g, 0);", "NotFollowed: the host code needs cudaGraphCreate"),
        ("  exit(3);", "NotFollowed: it ended the process with exit status 3."),
        ("  while (n) ;", "NotFollowed: it did not end within 10 s."),
    ],
)
def test_host_code_that_cannot_be_followed_is_told_of_and_kernels_are_shown(
    sandbox: ProcessSandbox, line: str, message: str
) -> None:
    found = shown(sandbox, HEAD + "#include <cstdlib>\n" + ADD + ENTRY + f"{line}\n" + LAUNCH + "}\n")
    assert found.message.startswith("The host code could not be followed without a device, in")
    assert message in found.message
    (kernel,) = found.kernels
    assert kernel.kernel == "add<float>"
    assert kernel.registers > 0
    assert kernel.config in {"block 256", "no launch was seen"}


@pytest.mark.full("slow")
@needs_nvcc
def test_a_requirement_is_held_against_what_nvcc_made(sandbox: ProcessSandbox) -> None:
    wanted = (
        Requirement("lean", "few registers", "sm_90a", "gpu_ranked", registers="<= 40", spills="== 0", group="sizes"),
        Requirement("tensor cores", "wgmma", "sm_90a", "gpu_ranked", wgmma="> 0", group="sizes"),
    )
    asks = dataclasses.replace(one_case(), requirements=wanted)
    results = requirements.evaluate(asks, check(sandbox, HEAD + ADD + ENTRY + LAUNCH + "}\n", asks))
    assert [result.met for result in results] == [True, False]
    refused = requirements.evaluate(asks, check(sandbox, HEAD + ADD + ENTRY + "  undeclared(x);\n}\n", asks))
    assert [case.verdict for case in requirements.as_cases(asks, refused)] == [Verdict.compile_error] * 2


@pytest.mark.full("a minute of nvcc: CuTe, two types, two targets")
@pytest.mark.turns(8)
@needs_nvcc
def test_cute_is_compiled_with_its_own_instructions_for_each_target(sandbox: ProcessSandbox) -> None:
    source = (ROOT / "reference" / "gemm_tensor_core" / "submissions" / "passed_cute_wgmma.cu").read_text()
    rung = load_assignment(ROOT / "assignments" / "gemm_tensor_core")
    assignment = dataclasses.replace(rung, cases=tuple(case for case in rung.cases if case.name == "gpu_ranked"))
    request = GradeRequest(rung.slug, "", Language.cuda, Lane.cpu, Mode.run, source, "cute.cu")
    with cross_compile.Compilation(assignment, request, sandbox) as compilation:
        checked = compilation.finish()
    hopper, blackwell = (checked[target].shown.kernels for target in ("sm_90a", "sm_100a"))
    assert hopper
    assert all(kernel.wgmma > 0 and kernel.spills == 0 for kernel in hopper)
    assert blackwell
    assert all(kernel.wgmma == 0 and kernel.registers > 0 for kernel in blackwell)
    assert all(result.met for result in requirements.evaluate(assignment, checked))


# --- files that resist -----------------------------------------------------------------------------------------------


@pytest.mark.full("slow")
@needs_nvcc
def test_a_library_that_forges_its_launches_forges_names_and_no_numbers(sandbox: ProcessSandbox) -> None:
    """Host code runs beside the stand-in and can call it: what it says is cut to size, numbers come from the reader."""
    source = HEAD + ADD + ENTRY + LAUNCH + (
        "}\n"
        'extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,'
        " dim3*, int*);\n"
        "static const int forged = [] {\n"
        "  static char name[9000];\n"
        "  for (char& letter : name) letter = 27;\n"
        "  name[8999] = 0;\n"
        "  __cudaRegisterFunction(nullptr, name, nullptr, name, 0, nullptr, nullptr, nullptr, nullptr, nullptr);\n"
        "  for (int i = 0; i < 3; ++i) cudaLaunchKernel(name, 1, i + 1, nullptr, 0, nullptr);\n"
        "  return 0;\n"
        "}();\n"
    )  # fmt: skip
    kernels = shown(sandbox, source).kernels
    assert [kernel.kernel for kernel in kernels if kernel.registers] == ["add<float>"]
    assert all("\x1b" not in kernel.kernel and len(kernel.kernel) < 400 for kernel in kernels)


@pytest.mark.full("slow")
@needs_nvcc
def test_rubbish_on_every_descriptor_is_an_end_and_no_more(sandbox: ProcessSandbox) -> None:
    source = HEAD + "#include <unistd.h>\n" + ADD + ENTRY + (
        '  for (int fd = 3; fd < 64; ++fd) if (write(fd, "{\\"launches\\": 5}\\n[]\\n\\xff\\n", 22)) {}\n'
    ) + LAUNCH + "}\n"  # fmt: skip
    found = shown(sandbox, source)
    assert found.message
    assert all(kernel.registers < 256 for kernel in found.kernels)


def test_who_hangs_up_and_stays_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def stays(_say: object) -> None:
        os.closerange(3, 1024)
        time.sleep(60)

    monkeypatch.setattr(cuda_session, "FOLLOW_S", 0.3)
    began = time.monotonic()
    said, fault = cuda_session._in_a_child(stays)
    assert time.monotonic() - began < 10
    assert (said, fault) == ([], {"kind": "NotFollowed", "message": "it did not end within 0.3 s", "frames": []})


def spins(say: Callable[[dict[str, Any]], None]) -> None:
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    say({"spun": True})


@pytest.mark.parametrize(("pace", "seconds", "in_time"), [(1, 5.0, True), (8, 1.0, True), (1, 0.05, False)])
def test_a_child_is_ended_by_its_own_time_and_not_by_its_neighbours(
    monkeypatch: pytest.MonkeyPatch, pace: int, seconds: float, in_time: bool
) -> None:
    """The wall's clock goes `pace` times as fast, as it does for whoever shares the processor."""
    monotonic = time.monotonic
    monkeypatch.setattr(child.time, "monotonic", lambda: pace * monotonic())
    monkeypatch.setattr(child, "SCHEDSTAT", "/nothing/{pid}")
    monkeypatch.setattr(child, "BACKSTOP", 1e6)
    told = child.Child(spins).work(seconds)
    assert told.in_time is in_time
    assert told.said == [{"spun": True}] * in_time


def test_a_signal_without_a_name_is_told_of() -> None:
    _, fault = cuda_session._in_a_child(lambda _: os.kill(os.getpid(), signal.SIGRTMIN + 1))
    assert fault is not None
    assert fault["message"] == f"it was ended by signal {signal.SIGRTMIN + 1}"


# --- parts -----------------------------------------------------------------------------------------------------------


def test_a_node_without_nvcc_says_that_nothing_was_checked(tmp_path: Path) -> None:
    part = Part("sm_90a", ())
    ask = Compile(0, "mine.cu", "vector_add", (), (part,), 1.0)
    with (tmp_path / "code").open("w+b") as code:
        said = cuda_session._prepared(ask, "", cuda_session.Toolchain())(part, code.fileno())
    assert said["fault"]["kind"] == NO_COMPILER
    for kind, words in ((NO_COMPILER, "There is no nvcc on this node"), (OUT_OF_TIME, "The compiler did not end")):
        text = cross_compile._incomplete(Compiled("sm_90a", (), fault=Fault(kind, "")), (), "")
        assert text.startswith(words)
        assert text.endswith("nothing was checked.")


OLD_NVCC = """\
#!/bin/sh
case "$*" in *sm_100a*)
  echo "nvcc fatal   : Unsupported gpu architecture 'compute_100a'" >&2
  exit 1
esac
exec {real} "$@"
"""
"""nvcc before 12.8, as far as its targets go."""


def told_by(toolchain: cuda_session.Toolchain, source: str, target: str, tmp_path: Path) -> Compiled:
    """What a runner with this toolchain says of a target, as the judge reads it."""
    assignment = one_case(target)
    part = Part(target, tuple(cross_compile.dry_case(case, assignment) for case in assignment.cases))
    arguments = tuple(argument.name for argument in assignment.arguments)
    ask = Compile(len(source), "mine.cu", "vector_add", arguments, (part,), 60.0)
    with (tmp_path / target).open("w+b") as code:
        said = cuda_session._prepared(ask, source, toolchain)(part, code.fileno())
    return codec.from_json(Compiled, said)


@pytest.fixture
def old_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a runner, whose `PATH` begins with an nvcc that does not know Blackwell."""
    fake = tmp_path / "bin" / "nvcc"
    fake.parent.mkdir()
    real = next((path for place in (None, *nvcc._PLACES) if (path := shutil.which("nvcc", path=place))), "true")
    fake.write_text(OLD_NVCC.format(real=real), encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_toolchain_is_asked_once_which_targets_it_knows(old_nvcc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_session, "build", lambda *_: b"")
    assert cuda_session.warm() == cuda_session.Toolchain(str(old_nvcc / "bin" / "nvcc"), b"", frozenset({"sm_90a"}))


def test_an_nvcc_that_does_not_know_the_nodes_own_gpu_is_the_nodes(old_nvcc: Path) -> None:
    """Before anything of a submission's is compiled: a runner that does not begin is an error of ours."""
    path = str(old_nvcc / "bin" / "nvcc")
    assert nvcc.architecture(path, (9, 0)) == "sm_90a"
    with pytest.raises(RuntimeError, match="sm_100a"):
        nvcc.architecture(path, (10, 0))


@pytest.mark.full("slow")
@needs_nvcc
def test_an_nvcc_that_does_not_know_a_target_is_no_error_of_the_file(old_nvcc: Path) -> None:
    toolchain = cuda_session.warm()
    right = HEAD + ADD + ENTRY + LAUNCH + "}\n"
    found = {}
    for target in ("sm_100a", "sm_90a"):
        found[target] = told_by(toolchain, right, target, old_nvcc)
        shutil.rmtree(old_nvcc / "nvcc", ignore_errors=True)
    assert found["sm_100a"] == Compiled("sm_100a", (), fault=Fault(NO_TARGET, ""))
    (kernel,) = found["sm_90a"].kernels
    assert (found["sm_90a"].fault, kernel.fault, kernel.kernel) == (None, None, "add<float>")


@pytest.mark.parametrize(("kind", "language", "counted"), [
    (NO_TARGET, Language.cuda, False), (NO_COMPILER, Language.cuda, False), (OUT_OF_TIME, Language.cuda, True),
    # A process that has loaded a Triton submission may say anything, and this node always has Triton's compiler.
    (NO_TARGET, Language.triton, True),
])  # fmt: skip
def test_what_a_node_cannot_compile_counts_for_nobody(kind: str, language: Language, *, counted: bool) -> None:
    cases = cases_of_a_requirement(Compiled("sm_100a", (), fault=Fault(kind, "")), language)
    assert [case.verdict for case in cases] == [None] * counted
    assert all(case.message for case in cases)


def test_host_code_that_says_its_node_lacks_a_target_is_not_believed() -> None:
    """It can write to the pipe by which its launches are told, and it runs only where the file was compiled."""
    kernel = ClaimedKernel("add<float>", (), "no launch was seen", "")
    said = Compiled("sm_100a", (kernel,), fault=Fault(NO_TARGET, ""))
    assert [case.verdict for case in cases_of_a_requirement(said)] == [None]
    assert len(cases_of_a_requirement(dataclasses.replace(said, kernels=(), left_out=1))) == 1


def cases_of_a_requirement(said: Compiled, language: Language = Language.cuda) -> tuple[CaseResult, ...]:
    """What a requirement with a group comes to when this is all that was said of its target."""
    wanted = Requirement("tcgen05", "about", "sm_100a", "gpu_ranked", tcgen05="> 0", group="structure")
    asks = dataclasses.replace(one_case("sm_100a"), requirements=(wanted,))
    job = cross_compile._Job("sm_100a", asks)
    job.hear(said)
    job.readings = tuple(Reading(readable=True) for _ in said.kernels)
    request = GradeRequest("vector_add", "", language, Lane.cpu, Mode.run, "", "mine.cu")
    checked = job.checked(request, 0.1, job.code)
    os.close(job.code)
    (result,) = results = requirements.evaluate(asks, {"sm_100a": checked})
    assert result.met is None
    return requirements.as_cases(asks, results)


def test_a_target_that_a_node_does_not_know_is_named() -> None:
    text = cross_compile._incomplete(Compiled("sm_100a", (), fault=Fault(NO_TARGET, "")), (), "")
    assert text == (
        "The nvcc on this node does not know sm_100a: nothing was compiled for it, and nothing was checked. "
        "This is not your fault."
    )


@pytest.mark.parametrize(
    ("plain", "name", "arguments"),
    [
        ("void add<float, 8>(float const*, long)", "add<float, 8>", "float const*, long"),
        ("void f<&(g(int))>(void (*)(int))", "f<&(g(int))>", "void (*)(int)"),
        ("_Z3", "_Z3", ""),
        ("named", "named", ""),
    ],
)
def test_a_kernels_name_is_parted_from_what_it_takes(plain: str, name: str, arguments: str) -> None:
    assert cuda_session._name_of(plain) == (name, arguments)


def test_the_assemblers_errors_are_laid_to_kernels_and_lines() -> None:
    inlined = "\t.loc\t2 5 1, function_name $L, inlined_at 1 40 7\n"
    ptx = f".visible .entry _Z1kPf(\n)\n{{\n\t.loc\t1 12 3\n\tbad;\n{inlined}\tworse;\n}}\n"
    said = (
        "ptxas k.ptx, line 5; error   : Instruction 'bad' not supported\n"
        "ptxas k.ptx, line 7; error   : worse\n"
        "ptxas error   : Entry function '_Z1gv' uses too much shared data (0x20000 bytes, 0xc000 max)\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )
    found = [(one.function, one.line, one.text[:11]) for one in cuda_compiler._refusals(said, ptx)]
    assert found == [("_Z1kPf", 12, "Instruction"), ("_Z1kPf", 40, "worse"), ("_Z1gv", 0, "Entry funct")]
    assert cuda_compiler.of_entry('\t.file 1 "a.cu"\n' + ptx, "_Z1kPf").count("worse;") == 1
    assert cuda_compiler.of_entry(ptx, "_Z1k") == ""


# --- a whole run -----------------------------------------------------------------------------------------------------


@pytest.mark.full("slow")
@needs_nvcc
def test_a_run_shows_it_beside_the_cases(sandbox: ProcessSandbox) -> None:
    source = (ROOT / "reference" / "vector_add" / "solutions" / "cuda.cu").read_text(encoding="utf-8")
    files: dict[str, bytes] = {}
    result = grade(
        GradeRequest("vector_add", "", Language.cuda, Lane.cpu, Mode.run, source, "mine.cu"),
        assignment_folder=ROOT / "assignments" / "vector_add", reference_folder=None, sandbox=sandbox,
        keep=files.__setitem__,
    )  # fmt: skip
    assert result.verdict is Verdict.passed, result.explanation
    assert [found.target for found in result.compiled] == ["sm_90a", "sm_100a"]
    assert all(found.kernels and not found.message for found in result.compiled)
    assert set(files) == {"machine-code.sm_90a", "machine-code.sm_100a"}
    assert all(kernel.sass and kernel.ptx for data in files.values() for kernel in unpack(data).kernels)
