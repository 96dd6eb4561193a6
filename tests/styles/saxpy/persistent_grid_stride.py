# A persistent kernel: a few programs for each multiprocessor stride over the vector in a masked loop.
import torch
import triton
import triton.language as tl


@triton.jit
def saxpy_persistent(a, x_ptr, y_ptr, out_ptr, n, NUM_PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0)
    num_blocks = tl.cdiv(n, BLOCK)
    for block in tl.range(start, num_blocks, NUM_PROGRAMS, num_stages=3):
        offs = tl.cast(block, tl.int64) * BLOCK + tl.arange(0, BLOCK)
        mask = offs < n
        x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + offs, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + offs, tl.fma(x, a + tl.zeros_like(x), y).to(out_ptr.dtype.element_ty), mask=mask)


def _num_sms(t: torch.Tensor) -> int:
    return torch.cuda.get_device_properties(t.device).multi_processor_count if t.is_cuda else 2


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    programs = 4 * _num_sms(x)
    saxpy_persistent[(programs,)](a, x, y, out, n, NUM_PROGRAMS=programs, BLOCK=4096, num_warps=8)
