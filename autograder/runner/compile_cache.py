"""What compilers made of a source in one runner, for the next runner of the same source.

It lies in a piece of memory of the judge's, who passes it on and never looks into it: a length, then a zip. Whoever
packs it runs the submission, so it holds what the submission wants; whoever unpacks it runs the same submission.
"""

from __future__ import annotations

import io
import os
import shutil
import struct
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

_LENGTH = struct.Struct("<Q")


def pack(folder: Path, descriptor: int, without: Collection[Path] = ()) -> None:
    """Put a folder's files into the memory behind a descriptor; nothing, if there are none or they do not fit.

    Args:
        without: those that whoever gets this has in another pack.
    """
    files = [path for path in folder.rglob("*") if path not in without and path.is_file()]
    if not files:
        return
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", strict_timestamps=False) as packed:
        for path in files:
            packed.write(path, arcname=str(path.relative_to(folder)))
    data = made.getvalue()
    if _LENGTH.size + len(data) > os.fstat(descriptor).st_size:
        return
    written = 0
    while written < len(data):
        written += os.pwrite(descriptor, data[written:], _LENGTH.size + written)
    os.pwrite(descriptor, _LENGTH.pack(len(data)), 0)


def unpack(descriptor: int, folder: Path) -> None:
    """Have the files of a pack in a folder, beside those of others, which stay as they are.

    Raises:
        Exception: of many kinds; the folder may have half a file then.
    """
    length = int(_LENGTH.unpack(os.pread(descriptor, _LENGTH.size, 0))[0])
    if not length:
        return
    data = os.pread(descriptor, min(length, os.fstat(descriptor).st_size), _LENGTH.size)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        # A name that leads out of the folder is taken as one within.
        packed.extractall(folder, [name for name in packed.namelist() if not (folder / name).exists()])


def unpack_all(descriptors: Iterable[int], folder: Path) -> set[Path]:
    """Have the files of all packs, or where anything goes wrong none: half a file must not be taken for a whole one.

    Returns:
        What is in the folder now.
    """
    try:
        for descriptor in descriptors:
            unpack(descriptor, folder)
    except Exception:  # noqa: BLE001 -- whatever a pack is; then everything is compiled again.
        shutil.rmtree(folder, ignore_errors=True)
    return set(folder.rglob("*"))
