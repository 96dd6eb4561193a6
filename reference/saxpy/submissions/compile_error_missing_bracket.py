"""Does not compile: a bracket is missing."""

import torch


def saxpy(a, x, y, out, n:
    out.copy_(a * x + y)
