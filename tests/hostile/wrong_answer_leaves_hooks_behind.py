"""Leaves behind everything the interpreter lets one hang up: trace and profile functions, audit and display hooks, import
hooks, thread hooks, exit hooks, a tiny recursion limit, replaced streams, a patched `builtins`; then answers wrong."""

import atexit
import builtins
import gc
import io
import os
import sys
import threading
import warnings


def _nothing(*args, **kwargs):
    return None


sys.settrace(_nothing)
sys.setprofile(_nothing)
threading.settrace(_nothing)
threading.setprofile(_nothing)
sys.addaudithook(_nothing)
sys.excepthook = sys.unraisablehook = sys.displayhook = threading.excepthook = _nothing
sys.breakpointhook = _nothing
sys.meta_path.insert(0, type("Finder", (), {"find_spec": staticmethod(_nothing)}))
sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = io.StringIO()
sys.exit = os._exit = _nothing
builtins.print = builtins.open = builtins.exec = builtins.compile = _nothing
atexit.register(lambda: print("LOOT"))
gc.disable()
warnings.simplefilter("error")


def vector_add(x, y, out, n):
    out.copy_(x - y)
