"""What asks for a GPU on the CPU lane is answered, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.sandbox.process import ProcessSandbox
from tests.autograder.kernel_talk import HEAD, RUN, elementwise, numbers, output, problem

DEVICE = f"""\
{HEAD}
DEVICE = triton.runtime.driver.active.get_active_torch_device()


def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == "cuda"


def processors():
    properties = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
    assert properties["max_shared_mem"] == 232448 and properties["warpSize"] == 32
    return properties["multiprocessor_count"]


CONFIGS = [triton.Config({{"N": 64}}, num_warps=4)] if is_cuda() else []


@triton.autotune(configs=CONFIGS, key=["programs"])
@triton.jit
def kernel(x_ptr, out_ptr, programs, N: tl.constexpr):
    for block in tl.range(tl.program_id(0), 1, programs, num_stages=2):
        at = block.to(tl.int64) * N + tl.arange(0, N)
        tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.num_programs(0))


def run(x, out):
    assert x.device == DEVICE
    count = torch.cuda.get_device_properties("cuda").multi_processor_count
    assert count == processors() and torch.cuda.get_device_capability()[0] == 9
    with torch.cuda.device(x.device):
        kernel[lambda meta: (min(count, triton.cdiv(640, meta["N"])),)](x, out, 10)
    torch.cuda.synchronize()
"""


def test_the_driver_and_torch_tell_of_the_device(sandbox: ProcessSandbox) -> None:
    np.testing.assert_array_equal(output(sandbox, DEVICE), numbers() + 10)


WARMED = f"""\
{HEAD}

@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), 1.0)


def run(x, out):
    if MODE == "launched":
        kernel.warmup(x, out, 64, grid=(1,))[(1,)](x, out, 64)
    compiled = kernel.warmup(x, out, 64, grid=(1,)) if MODE == "warmup" else kernel[(1,)](x, out, 64)
    if MODE == "registers":
        compiled.n_regs
    if MODE != "launched":
        compiled.asm["ptx"]
"""
ASSEMBLY = 'tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)'
GLUON = (
    """\
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def kernel(x_ptr, out_ptr, N: gl.constexpr):
    at = gl.arange(0, N, layout=gl.BlockedLayout([1], [32], [4], [0]))
    gl.store(out_ptr + at, gl.load(x_ptr + at))

"""
    + RUN
)
HOST = "import torch\n\ndef run(x, out):\n    {}\n"


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (elementwise(ASSEMBLY), "Inline assembly"),
        (elementwise("x + tl.extra.cuda.smid()"), "tl.extra.cuda.smid"),
        (elementwise("x + tl.extra.cuda.num_warps()"), "tl.extra.cuda.num_warps"),
        (WARMED.replace("MODE", "'warmup'"), "`asm`"),
        (WARMED.replace("MODE", "'registers'"), "`n_regs`"),
        (WARMED.replace("MODE", "kernel.device_caches"), "`device_caches`"),
        (HOST.format("torch.zeros(3, device='cuda')"), "x.device"),
        (HOST.format("x.cuda()"), "x.device"),
        (HOST.format("x.cuda(0)"), "x.device"),
        (HOST.format("torch.Generator(device='cuda')"), "x.device"),
        (HOST.format("torch.cuda.get_rng_state()"), "x.device"),
        ("import torch\nscratch = torch.zeros(3).pin_memory()\n\ndef run(x, out):\n    pass\n", "x.device"),
        (HOST.format("torch.cuda.Event(enable_timing=True)"), "torch.cuda.Event"),
        (HOST.format("torch.cuda.Stream()"), "torch.cuda.Stream"),
        (HOST.format("import triton; triton.testing.do_bench(print)"), "do_bench"),
        (GLUON, "Gluon"),
        (HOST.format("torch.cuda.current_stream().cuda_stream"), "torch.cuda.current_stream"),
        ("from torch.utils.cpp_extension import load_inline\nload_inline('a', [''], [''])\n", ".cu file"),
    ],
)
def test_what_only_a_gpu_has_is_refused_by_name(sandbox: ProcessSandbox, source: str, named: str) -> None:
    raised = problem(sandbox, source)
    assert raised.kind == "GpuOnly"
    assert named in raised.message
    assert "cannot run on the CPU lane" in raised.message
    assert raised.frames


BEHIND_A_FLAG = f"""\
{HEAD}
from torch.utils.cpp_extension import load_inline

@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr, ON_GPU: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    if ON_GPU:
        x = {ASSEMBLY}
    else:
        tl.extra.cuda.gdc_wait()
    tl.store(out_ptr + at, x)


def run(x, out):
    assert not torch.cuda.is_available()
    kernel[(1,)](x, out, 64, ON_GPU=x.is_cuda)
"""


@pytest.mark.parametrize("source", [BEHIND_A_FLAG, WARMED.replace("MODE", "'launched'")])
def test_what_is_not_reached_is_not_refused(sandbox: ProcessSandbox, source: str) -> None:
    assert np.isfinite(output(sandbox, source)).all()
