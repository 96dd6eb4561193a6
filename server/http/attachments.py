"""Answers that a browser saves as a file."""

from __future__ import annotations

import re

_UNSAFE = re.compile(r'[^ -~]|["\\/?]')


def attachment(name: str) -> dict[str, str]:
    """The header by which an answer is saved under this name, and never shown in place.

    Args:
        name: anybody's; what a header or a file's name cannot have becomes `_`.
    """
    return {"content-disposition": f'attachment; filename="{_UNSAFE.sub("_", name)}"'}
