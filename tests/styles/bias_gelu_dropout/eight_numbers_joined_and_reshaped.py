"""The eight numbers of a counter are put side by side with join and reshape, so that a flat block needs no picking."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit(do_not_specialize=["seed"])
def _joined_kernel(x_ptr, bias_ptr, out_ptr, mask_ptr, size, cols, p, seed, PACKS: tl.constexpr):
    first_pack = tl.program_id(0) * PACKS
    w0, w1, w2, w3 = tl.randint4x(seed, first_pack + tl.arange(0, PACKS))

    # Joined along a new last axis: (PACKS, half), then (PACKS, half, word pair), and so on. The order of a pack is
    # low half of word 0, high half of word 0, low half of word 1, ... so halves have to run fastest.
    h0 = tl.join(w0 & 0xFFFF, (w0 >> 16) & 0xFFFF)
    h1 = tl.join(w1 & 0xFFFF, (w1 >> 16) & 0xFFFF)
    h2 = tl.join(w2 & 0xFFFF, (w2 >> 16) & 0xFFFF)
    h3 = tl.join(w3 & 0xFFFF, (w3 >> 16) & 0xFFFF)
    low = tl.reshape(tl.permute(tl.join(h0, h1), (0, 2, 1)), (PACKS, 4))
    high = tl.reshape(tl.permute(tl.join(h2, h3), (0, 2, 1)), (PACKS, 4))
    numbers = tl.reshape(tl.permute(tl.join(low, high), (0, 2, 1)), (PACKS * 8,))

    element = first_pack.to(tl.int64) * 8 + tl.arange(0, PACKS * 8)
    inside = element < size
    keep = numbers.to(tl.float32) >= p * 65536.0

    x = tl.load(x_ptr + element, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias_ptr + element % cols, mask=inside, other=0.0).to(tl.float32)
    v = x + b
    gelu = v * (0.5 + 0.5 * libdevice.erf(v * 0.7071067811865476))
    # Where everything is dropped there is nothing to divide.
    scale = 1.0 / tl.where(p < 1.0, 1.0 - p, 1.0)
    result = tl.where(keep, gelu * scale, 0.0)
    tl.store(out_ptr + element, result.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(mask_ptr + element, keep.to(tl.uint8), mask=inside)


def bias_gelu_dropout(x, bias, out, mask, rows, cols, p, seed):
    size = rows * cols
    packs = 128
    grid = (triton.cdiv(size, packs * 8),)
    _joined_kernel[grid](x, bias, out, mask, size, cols, p, seed, PACKS=packs, num_warps=4)
