"""The web tier's processes: one, or several behind one port.

Each of several has a socket of its own on that port (`SO_REUSEPORT`) and the kernel spreads connections over them. With
one socket for all, whoever wakes first takes every connection that waits: a proxy's connections, which live long, and
all streams after a restart would hang on one process while another has nothing to do.
"""

from __future__ import annotations

import gc
import multiprocessing.process
import os
import signal
import socket
import sys
import threading
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from broker import logs
from server.app import create_app
from server.config import load_config
from server.http import metrics
from server.http.protocol import Protocol

GRACE_S = 5
"""How long open streams may take to end when the server stops, seconds."""
APP = f"{__name__}:configured"
THRESHOLDS = (50_000, 10, 100)
"""Of the garbage collector's three generations; Python's own are 700, 10 and 10. A page leaves next to no cycles behind
(`server.http.templates` sees to it), so that there is little to find, and what it shows needs no looking at."""
SETTINGS: dict[str, Any] = {
    "factory": True,
    "http": Protocol,
    "timeout_graceful_shutdown": GRACE_S,
    # A process that is started imports everything before it answers; on a busy machine that takes a while, and uvicorn
    # would end it after five seconds and start it anew, for ever.
    "timeout_worker_healthcheck": 60,
    "server_header": False,
    # `server.http.edge` writes a line for every request, with its id; uvicorn's own lines go where ours go.
    "access_log": False,
    "log_config": None,
}


def serve(host: str, port: int, workers: int) -> None:
    """Serve until SIGTERM.

    Raises:
        SystemExit: the port cannot be had.
        ValueError: the environment cannot be read.
    """
    # Read here too: what is wrong is said once, not by every process that is started again for it.
    settings = load_config()
    logs.configure(settings.log_format)
    if workers == 1:
        uvicorn.run(APP, host=host, port=port, **SETTINGS)
        return
    try:
        own = OwnSocket(host, port)
    except OSError as error:
        sys.exit(f"Port {port} of {host} is not available: {error.strerror}.")
    # Before any of them is started: they inherit where to measure.
    metrics.share(settings.home / "metrics" / str(own.getsockname()[1]))
    config = uvicorn.Config(APP, host=host, port=own.getsockname()[1], workers=workers, **SETTINGS)
    Multiprocess(config, sockets=[own]).run()


def configured() -> FastAPI:
    """The web tier as the environment configures it: what each process makes.

    One of several ends with the process that started it, or it would keep the port after a SIGKILL of that one.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), name="parent", daemon=True).start()
    config = load_config()
    logs.configure(config.log_format)
    app = create_app(config)
    _collect_seldom()
    return app


def _collect_seldom() -> None:
    """Keep the garbage collector from stopping the process in the middle of somebody's page.

    A whole collection looks at every object. Modules, models, templates, compiled queries are a quarter of a million:
    that takes 0.2 s, again and again, and they are never garbage. What stands here now is left out for good; of what
    follows, only cycles wait for a collection, so it may come seldom.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def _end_after(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


class OwnSocket(socket.socket):
    """Bound to the port, without listening; a process that it is sent to gets another of its own."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.bind((host, port))

    def __reduce__(self) -> tuple[type[OwnSocket], tuple[Any, ...]]:
        """Not this one is sent, but where it is bound."""
        return OwnSocket, self.getsockname()[:2]
