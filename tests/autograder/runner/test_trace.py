"""What CUPTI tells of a call, from a library that fills its records as NVIDIA's header says."""

from __future__ import annotations

import ctypes
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from autograder.runner import trace
from autograder.runner.trace import Tracer, TracerError

LIBRARY = r"""
#include <string.h>
#include <cupti.h>
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static int enabled;
int refuses = 0, copies = 1;
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r, CUpti_BuffersCallbackCompleteFunc c) {
  request = r; complete = c;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { enabled |= 1 << kind; return refuses; }
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { enabled &= ~(1 << kind); return CUPTI_SUCCESS; }
int is_enabled() { return enabled; }
static void fill(char* at, CUpti_ActivityKind kind, uint64_t start, uint64_t end, const char* name) {
  memset(at, 0, 256);
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    CUpti_ActivityKernel9* kernel = (CUpti_ActivityKernel9*)at;
    kernel->kind = kind; kernel->start = start; kernel->end = end; kernel->name = name;
  } else if (kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    CUpti_ActivityMemcpy6* copy = (CUpti_ActivityMemcpy6*)at;
    copy->kind = kind; copy->start = start; copy->end = end; copy->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
  } else if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER) {
    CUpti_ActivityAPI* call = (CUpti_ActivityAPI*)at;
    call->kind = kind; call->start = start; call->end = end; call->threadId = 7;
    call->cbid = kind == CUPTI_ACTIVITY_KIND_RUNTIME ? 20 : 242;
  } else {
    CUpti_ActivityMemset4* set = (CUpti_ActivityMemset4*)at;
    set->kind = kind; set->start = start; set->end = end;
  }
}
CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  for (int i = 0; i < copies; ++i) {
    uint8_t* buffer; size_t size, most;
    request(&buffer, &size, &most);
    if (!buffer) continue;
    fill((char*)buffer, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1000, 4000, "add_kernel");
    fill((char*)buffer + 256, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 5000, 15000, "_Z4gemmPf");
    fill((char*)buffer + 512, CUPTI_ACTIVITY_KIND_MEMCPY, 20000, 20500, 0);
    fill((char*)buffer + 768, CUPTI_ACTIVITY_KIND_MEMSET, 30000, 30200, 0);
    fill((char*)buffer + 1024, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 40000, 41000, "add_kernel");
    fill((char*)buffer + 1280, CUPTI_ACTIVITY_KIND_RUNTIME, 3000, 9000, 0);
    fill((char*)buffer + 1536, CUPTI_ACTIVITY_KIND_DRIVER, 3500, 8000, 0);
    fill((char*)buffer + 1792, CUPTI_ACTIVITY_KIND_DRIVER, 42000, 45000, 0);
    complete(0, 0, buffer, size, 2048);
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t number, const char** name) {
  *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API && number == 20 ? "cudaMalloc_v3020" : "cuMemFree_v2";
  return domain == CUPTI_CB_DOMAIN_RUNTIME_API || number == 242 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  uint8_t* next = *record ? (uint8_t*)*record + 256 : buffer;
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity*)next;
  return CUPTI_SUCCESS;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A CUPTI that saw three kernels, a copy and a fill; its records are laid out by NVIDIA's own header."""
    spec = find_spec("triton")
    assert spec is not None
    assert spec.origin is not None
    include = Path(spec.origin).parent / "backends" / "nvidia" / "include"
    folder = tmp_path_factory.mktemp("cupti")
    (folder / "cupti.c").write_text(LIBRARY)
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-w",
        "-I",
        str(include),
        "-o",
        str(folder / "cupti.so"),
        str(folder / "cupti.c"),
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "cupti.so"))


@pytest.fixture
def tracer(library: Any, monkeypatch: pytest.MonkeyPatch) -> Tracer:
    monkeypatch.setattr(trace, "_library", lambda: library)
    for name, value in {"refuses": 0, "copies": 1}.items():
        ctypes.c_int.in_dll(library, name).value = value
    return Tracer()


def test_kernels_copies_and_fills_are_listed_by_what_they_took(tracer: Tracer, library: Any) -> None:
    ran: list[dict[str, Any]] = []
    assert tracer.traced(lambda: 17, ran) == 17
    assert ran == [
        {"name": "gemm(float*)", "calls": 1, "ns": 10000},
        {"name": "add_kernel", "calls": 2, "ns": 4000},
        {"name": "Memcpy DtoD", "calls": 1, "ns": 500},
        {"name": "Memset", "calls": 1, "ns": 200},
    ]
    assert library.is_enabled() == 0
    assert tracer.busy_ns() == 14700


def test_calls_of_cuda_are_named_in_which_the_device_rested(tracer: Tracer) -> None:
    """What the runtime calls of the driver is not counted again, nor what ran beside a kernel."""
    tracer.traced(lambda: 17, [])
    assert tracer.waited_for() == [
        {"name": "cuMemFree", "calls": 1, "ns": 3000},
        {"name": "cudaMalloc", "calls": 1, "ns": 1000},
    ]


@pytest.mark.parametrize(
    ("host", "spans", "rests"),
    [
        ([(5, 1, 1, 0, 100)], [], [100]),
        ([(5, 1, 1, 0, 100)], [(0, 100)], [0]),
        ([(5, 1, 1, 0, 100)], [(10, 20), (15, 30), (90, 200)], [70]),
        ([(5, 1, 1, 0, 100), (4, 2, 1, 10, 20), (4, 2, 2, 10, 20)], [], [100, 10]),  # Another thread's own.
        ([(5, 1, 1, 40, 60)], [(0, 45), (50, 52), (58, 59), (70, 80)], [12]),
    ],
)
def test_the_rest_of_a_call_is_what_no_work_covers(
    host: list[trace.HostCall], spans: list[tuple[int, int]], rests: list[int]
) -> None:
    assert [ns for _, _, ns in trace.resting(host, spans)] == rests


@pytest.mark.parametrize(
    ("spans", "busy_ns"),
    [
        ([], 0),
        ([(10, 20), (15, 25)], 15),  # Side by side on two streams.
        ([(30, 40), (10, 20)], 20),  # Told in the order in which they ended.
        ([(10, 50), (20, 30), (40, 60)], 50),
        ([(20, 10)], 0),
    ],
)
def test_what_ran_side_by_side_counts_once(tracer: Tracer, spans: list[tuple[int, int]], busy_ns: int) -> None:
    tracer._spans += spans
    assert tracer.busy_ns() == busy_ns


def test_a_second_call_is_told_alone_and_buffers_are_given_back(tracer: Tracer) -> None:
    for _ in range(40):
        ran: list[dict[str, Any]] = []
        tracer.traced(lambda: 0, ran)
        assert [one["calls"] for one in ran] == [1, 2, 1, 1]
        assert tracer.busy_ns() == 14700


def test_nothing_is_traced_after_a_call_that_raises(tracer: Tracer, library: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        tracer.traced(lambda: 1 // 0, [])
    assert library.is_enabled() == 0


def test_a_call_that_runs_no_end_of_kernels_takes_no_end_of_memory(tracer: Tracer, library: Any) -> None:
    """Room is refused while so many buffers are out; here none comes back before the next is asked for."""
    kept = tracer._buffers
    for number in range(trace._MOST_BUFFERS):
        kept[-number] = b""
    ran: list[dict[str, Any]] = []
    assert tracer.traced(lambda: 3, ran) == 3
    assert ran == []


def test_without_cupti_a_traced_call_says_so(tracer: Tracer, library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ctypes.c_int.in_dll(library, "refuses").value = 15
    with pytest.raises(TracerError, match="15"):
        tracer.traced(lambda: 0, [])
    monkeypatch.setattr(trace, "_library", lambda: None)
    with pytest.raises(TracerError, match="no CUPTI"):
        Tracer().traced(lambda: 0, [])


def test_only_names_of_cpp_are_made_readable() -> None:
    """`f` and `Pf` are how C++ writes types; a kernel may be called so."""
    demangled = trace._demangler()
    names = ["f", "Pf", "add_kernel", "_Z4gemmPf", "_Znonsense"]
    assert [demangled(name) for name in names] == ["f", "Pf", "add_kernel", "gemm(float*)", "_Znonsense"]


def test_without_cuda_there_is_no_cupti(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.version.cuda", None)
    assert trace._library() is None
    monkeypatch.setattr("torch.version.cuda", "99.9")
    assert trace._library() is None
