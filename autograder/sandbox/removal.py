"""Removing a folder whose contents were made to be hard to remove."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


def remove(folder: str) -> None:
    """Remove `folder` and everything in it: any depth, any mode, links never followed.

    Folders below the first level are moved up to it instead of being walked into, so depth costs no stack and no
    descriptors.
    """
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        _empty(root)
    finally:
        os.close(root)
    with suppress(OSError):
        os.rmdir(folder)  # noqa: PTH106 -- text throughout: what is in it was named by the submission.


def _empty(root: int) -> None:
    while names := os.listdir(root):
        for name in names:
            if not _is_folder(name, root):
                os.unlink(name, dir_fd=root)
                continue
            os.chmod(name, stat.S_IRWXU, dir_fd=root)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
            for below in os.listdir(inner):  # noqa: PTH208 -- by descriptor.
                if _is_folder(below, inner):
                    os.chmod(below, stat.S_IRWXU, dir_fd=inner)
                    # A name that cannot be foreseen: one that is taken already would end the removal.
                    os.rename(below, f".moved-{os.urandom(8).hex()}", src_dir_fd=inner, dst_dir_fd=root)
                else:
                    os.unlink(below, dir_fd=inner)
            os.close(inner)
            os.rmdir(name, dir_fd=root)


def _is_folder(name: str, where: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=where, follow_symlinks=False).st_mode)
