# .to(float32) first, then scans of blocks; their sums, in torch.empty scratch, are scanned by a recursive call.
import torch
import triton
import triton.language as tl


@triton.jit
def _plus(a, b):
    return a + b


@triton.jit
def scan_blocks(x_ptr, out_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, tl.associative_scan(x, 0, _plus), mask=offs < n)
    tl.store(sums_ptr + pid, tl.sum(x, axis=0))


@triton.jit
def add_before(scanned_ptr, before_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(before_ptr + pid - 1, mask=pid > 0, other=0.0)
    scanned = tl.load(scanned_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, (scanned + before).to(out_ptr.dtype.element_ty), mask=offs < n)


@triton.jit
def histogram_kernel(keys_ptr, counts_ptr, m, BLOCK: tl.constexpr):
    counts = tl.zeros((256,), dtype=tl.int32)
    for block in range(tl.program_id(0), tl.cdiv(m, BLOCK), tl.num_programs(0)):
        offs = tl.cast(block, tl.int64) * BLOCK + tl.arange(0, BLOCK)
        keys = tl.load(keys_ptr + offs, mask=offs < m, other=0).to(tl.int32)
        counts += tl.histogram(keys, 256, mask=offs < m)
    tl.atomic_add(counts_ptr + tl.arange(0, 256), counts)


def _scan(x: torch.Tensor, out: torch.Tensor, n: int) -> None:
    block = 2048 if x.is_cuda else 16384
    blocks = triton.cdiv(n, block)
    scanned = torch.empty(n, dtype=torch.float32, device=x.device)
    sums = torch.empty(blocks, dtype=torch.float32, device=x.device)
    scan_blocks[(blocks,)](x, scanned, sums, n, BLOCK=block, num_warps=4)
    if blocks > 1:
        before = torch.empty_like(sums)
        _scan(sums, before, blocks)
    else:
        before = sums
    add_before[(blocks,)](scanned, before, out, n, BLOCK=block, num_warps=4)


def scan_histogram(
    x: torch.Tensor, keys: torch.Tensor, prefix: torch.Tensor, counts: torch.Tensor, n: int, m: int
) -> None:
    _scan(x.to(torch.float32), prefix, n)
    counts.zero_()
    block = 8192 if x.is_cuda else 16384
    programs = min(1056 if x.is_cuda else 4, triton.cdiv(m, block))
    histogram_kernel[(programs,)](keys, counts, m, BLOCK=block, num_warps=4)
