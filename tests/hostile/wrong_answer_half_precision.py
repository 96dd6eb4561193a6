"""Adds in half precision."""

def vector_add(x, y, out, n):
    out.copy_(x.half() + y.half())
