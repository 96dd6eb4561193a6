"""Rows of a suite as in a table of parameters, a two-dimensional block of all of them at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def suite(x_ptr, n_ptr, y_ptr, tol_ptr, T, W, ROWS: tl.constexpr, COLS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, COLS)[None, :]
    kind = r % 9
    # A sine is uneven enough, and no value of it is one in half precision.
    wave = tl.sin((c * 7 + r * 3).to(tl.float32)) * 3.1
    x = wave + tl.where(kind == 0, 400.0, 0.0) - tl.where(kind == 1, 400.0, 0.0)
    x = tl.where(kind == 2, 0.3 * c, x)
    x = tl.where(kind == 3, 3.0 * c, x)
    x = tl.where(kind == 4, tl.where(c < W - 3, -float("inf"), wave), x)
    x = tl.where(kind == 5, -1.1, x)
    x = tl.where(kind == 6, wave * 5, x)
    x = tl.where((kind == 7) & (c == r % W), -1000.0, x)
    n = tl.where(kind == 4, W, tl.maximum(W - r // 9 % 3, 1))
    used = (c < n) & (r < T)
    top = tl.max(tl.where(used, x, -float("inf")), 1)[:, None]
    top = tl.where(r < T, top, 0.0)
    e = tl.where(used, tl.exp(x - top), 0.0)
    total = tl.where(r < T, tl.sum(e, 1)[:, None], 1.0)
    y = e / total
    inside = (r < T) & (c < W)
    tl.store(x_ptr + r * W + c, tl.where(used, x, 0.0), inside)
    tl.store(y_ptr + r * W + c, y, inside)
    tl.store(tol_ptr + r * W + c, 1e-4 * y + 1e-37, inside)
    tl.store(n_ptr + r, n, r < T)


def write_tests(x, length, right, allowed, tests, width):
    suite[(triton.cdiv(tests, 16),)](
        x, length, right, allowed, tests, width, ROWS=16, COLS=triton.next_power_of_2(width)
    )
