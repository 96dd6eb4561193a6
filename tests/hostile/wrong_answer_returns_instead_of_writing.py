"""Returns the sum and writes nothing."""

def vector_add(x, y, out, n):
    return x + y
