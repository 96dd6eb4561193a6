"""CuTe on the CPU lane: its algebra and tensors run, its instructions and the rest of CUTLASS are refused by name."""

from __future__ import annotations

import shutil

import pytest
import torch

from autograder.emulator.build import build
from autograder.emulator.translate import UnsupportedError
from autograder.languages.cuda import headers
from autograder.runner.languages import cuda_messages

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

CUTE = "#include <cute/tensor.hpp>\nusing namespace cute;\n"
KERNEL = """__global__ void k(float* out, int n, int what) {
  const auto tensor = make_tensor(make_gmem_ptr(out), make_layout(make_shape(n, _2{})));
  if (what == 0) tensor(n - 1, 1) = static_cast<float>(crd2idx(make_coord(3, 1), shape(tensor), stride(tensor)));
  if (what == 1) tensor(n, 1) = 0.0f;
  float d[4] = {};
  if (what == 2) SM80_16x8x8_F32F16F16F32_TN::fma(d[0], d[1], d[2], d[3], 0u, 0u, 0u, d[0], d[1], d[2], d[3]);
}
extern "C" void go(float* out, int n, int what) { k<<<1, 1>>>(out, n, what); }
"""


def test_tensors_are_watched_and_instructions_of_a_gpu_are_named_with_their_line(kernel) -> None:
    source = CUTE + KERNEL
    run, out = kernel(source), torch.zeros(10)
    assert run(out, 5, 0) == ""
    assert out[9] == 8.0
    assert "writes element 10 of a, which has 10 elements" in run(out, 5, 1)
    assert (run.kind, source.split("\n")[run.line - 1].strip()[:14]) == ("IllegalAccess", "if (what == 1)")
    assert run(out, 5, 2).startswith("`SM80_16x8x8_F32F16F16F32_TN` (CuTe) cannot run on the CPU lane. It can on a GPU")
    assert (run.kind, source.split("\n")[run.line - 1].strip()[:14]) == ("GpuOnly", "if (what == 2)")


def test_the_rest_of_cutlass_is_refused_by_the_header_that_needs_it(tmp_path, prepared) -> None:
    source = CUTE + "#include <cutlass/gemm/device/gemm_universal_adapter.h>\n"
    with pytest.raises(UnsupportedError, match=r"line 3: CUTLASS \(<cutlass/.*>\) cannot run on the CPU lane"):
        build(source, tmp_path, prepared)
    # What is not used may be there for a GPU.
    build("#ifndef CUDA_EMULATOR\n" + source + "#endif\n", tmp_path, prepared)


def test_a_node_without_the_headers_says_so(tmp_path, prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "folder", lambda: "")
    assert headers.flags("-isystem") == ()
    with pytest.raises(UnsupportedError, match=r"line 2: `cute` \(CuTe; CUTLASS's headers are not installed"):
        build(CUTE, tmp_path, prepared)
    said = 'mine.cu(1): fatal error: cannot open source file "cute/tensor.hpp"\n'
    assert headers.ABSENT in cuda_messages.from_compiler(said, "mine.cu", CUTE).message
    monkeypatch.undo()
    assert headers.ABSENT not in cuda_messages.from_compiler(said, "mine.cu", CUTE).message
