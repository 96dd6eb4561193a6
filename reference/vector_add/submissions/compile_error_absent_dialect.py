# It imports a part of the package that there is none of.
from tvm.script import tensors as T


def vector_add(x, y, out, n):
    return T.add(x, y, out)
