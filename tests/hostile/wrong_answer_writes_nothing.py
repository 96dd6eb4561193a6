"""Does nothing at all."""

def vector_add(x, y, out, n):
    pass
