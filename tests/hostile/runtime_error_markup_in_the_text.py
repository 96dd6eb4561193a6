"""Markup, terminal codes, direction marks, a null and half a surrogate pair in everything that is shown."""

import os

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


TEXT = "<script>alert(1)</script>\x1b[2J\x1b]0;owned\x07\u202eevil\u2066\x00\ud800{{ 7 * 7 }}</pre>&lt;"
Markup = type("<img src=x onerror=alert(1)>\x1b", (Exception,), {})


def vector_add(x, y, out, n):
    print(TEXT.encode("utf-8", "surrogatepass"))
    os.write(1, b"\xff\xfe\x00<script>alert(2)</script>\x1b[2J\n")
    raise Markup(TEXT)  # <script>alert(3)</script>
