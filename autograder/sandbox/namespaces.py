"""Namespaces of a runner: its own processes, file system, network without an interface, IPC and host name."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from autograder.sandbox import kernel

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
TMP = "/tmp"  # noqa: S108 -- inside the runner's own root, where nobody else is.
_ROOT_BYTES = 1 << 20
_INODES = 65_536
_READ_ONLY = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID


def become_user_namespace() -> None:
    """Enter a new user namespace in which this process is the same user and has every capability."""
    uid, gid = os.getuid(), os.getgid()
    # The files to write belong to root while this process is not dumpable.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    kernel.unshare(kernel.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)


def enter_new_root(folder: str, readable: Iterable[str], devices: Iterable[str], uid: int, tmp_bytes: int) -> None:
    """Replace the file system by one with the toolchain to read, a few devices, this namespace's processes and `/tmp`.

    Args:
        folder: an empty folder to build it in.
        devices: nodes to have beside `DEVICES`.
        uid: who owns `/tmp`.
        tmp_bytes: how much it holds.
    """
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("runner", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"size={_ROOT_BYTES},mode=755")
    tmp = folder + TMP
    os.mkdir(tmp)  # noqa: PTH102 -- paths here are text, as the kernel wants them.
    options = f"size={tmp_bytes},nr_inodes={_INODES},mode=700,uid={uid}"
    # Before what is readable: a checkout or a toolchain may lie below the machine's own /tmp.
    kernel.mount("runner", tmp, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for path in readable:
        _show(path, folder, _READ_ONLY | kernel.MOUNT_ATTR_NODEV)
    for path in (*DEVICES, *devices):
        _show(path, folder, _READ_ONLY)
    _mount_processes(f"{folder}/proc")
    _swap_root(folder)


def _swap_root(folder: str) -> None:
    os.chdir(folder)
    kernel.pivot_root(".", ".")
    # The old root is now mounted over the new one: detach it, and the new one is left.
    kernel.unmount(".")
    os.chdir("/")
    kernel.mount("none", "/", flags=kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY)


def _show(path: str, folder: str, attributes: int) -> None:
    """Have `path` in the new root: a link as a link, all else bound read-only."""
    target = folder + path
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(path), target)  # noqa: PTH115, PTH211
        return
    if stat.S_ISDIR(mode):
        os.mkdir(target)  # noqa: PTH102
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
    kernel.mount(path, target, flags=kernel.MS_BIND | kernel.MS_REC)
    kernel.restrict_mount(target, attributes)


def _mount_processes(target: str) -> None:
    """Mount `/proc` of this process namespace: only processes where the kernel can, nothing where it may not."""
    os.mkdir(target)  # noqa: PTH102
    for options in ("subset=pid,hidepid=invisible", ""):
        with suppress(OSError):
            kernel.mount("proc", target, "proc", kernel.MS_NOSUID | kernel.MS_NODEV, options)
            return
