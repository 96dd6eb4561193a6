"""Assigns an answer of another type, through the tensor object."""

def vector_add(x, y, out, n):
    out.data = (x.double() + y.double()).reshape(1, -1)
