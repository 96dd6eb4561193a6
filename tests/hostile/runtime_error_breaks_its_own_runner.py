"""Breaks the interpreter that it runs in: `isinstance` says yes to everything, and no class can be made.

It breaks nobody's process but its own.
"""

import builtins

builtins.isinstance = lambda item, kind: True
builtins.__build_class__ = None
builtins.len = builtins.getattr = builtins.int = None


def vector_add(x, y, out, n):
    out.copy_(x + y)
