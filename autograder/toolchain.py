"""What of the machine's files a runner may read: Python, its packages, system libraries, the harness. Nothing else."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

PACKAGE = Path(__file__).parent
"""The harness itself: no secret is in it."""

_SYSTEM = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/nix/store",
    "/opt/nvidia/nsight-compute",
)


def readable() -> tuple[str, ...]:
    """Files and folders, those above before those below."""
    paths: set[str | Path] = {
        *sysconfig.get_paths().values(),
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        sys.base_exec_prefix,
    }
    found = {str(path) for path in {*paths, PACKAGE} if path and Path(path).is_absolute() and Path(path).exists()}
    return tuple(sorted({*found, *_SYSTEM} - {"/"}, key=lambda path: (path.count("/"), path)))


def shown_by(path: Path) -> str:
    """The file or folder by which every runner may read this path; `""` if none shows it.

    The path need not be there yet. Links are followed on both sides.
    """
    whole = path.resolve()
    return next((folder for folder in readable() if whole.is_relative_to(Path(folder).resolve())), "")


def shown_sentence(what: str, path: Path) -> str:
    """That every submission could read something of the staff's, with what to do; `""` where none could."""
    folder = shown_by(path)
    return f"{what} {path} lies below {folder}, which every submission may read. Move it elsewhere." if folder else ""
