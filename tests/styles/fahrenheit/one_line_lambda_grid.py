import torch
import triton
import triton.language as tl

CELSIUS_PER_FAHRENHEIT = 5 / 9


@triton.jit
def c2f(src, dst, count, scale: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < count
    tl.store(dst + i, tl.load(src + i, inside) / scale + 32, inside)


def fahrenheit(x, out, n):
    c2f[lambda meta: (triton.cdiv(n, meta["B"]),)](x, out, n, scale=CELSIUS_PER_FAHRENHEIT, B=2048)
