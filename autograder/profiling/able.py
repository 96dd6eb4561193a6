"""Whether this machine has the tools that look at a call; asked before anybody is told that it can.

The driver refuses counters to whoever has no CAP_SYS_ADMIN, unless its owner allows them to all users
(`NVreg_RestrictProfilingToAdminUsers=0`). Submissions never get that capability, so such a machine makes no profiles.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

PARAMETERS = Path("/proc/driver/nvidia/params")
PLACES = ("/usr/local/cuda/bin", "/usr/local/bin", "/usr/bin")
_PACKAGES = Path("/opt/nvidia/nsight-compute")
_RESTRICTED = re.compile(r"^RmProfilingAdminOnly:\s*(\d+)", re.MULTILINE)


def find_sanitizer(places: Sequence[str] = PLACES) -> str:
    """The path of Compute Sanitizer's command line; `""` where it is not installed."""
    return next((path for place in places if (path := shutil.which("compute-sanitizer", path=place))), "")


def why_no_sanitizer(tool: str) -> str:
    """Why nothing is sanitized here, in a sentence for students; `""` where it is.

    Args:
        tool: as `find_sanitizer` says.
    """
    return "" if tool else "Compute Sanitizer (compute-sanitizer) is not installed on this node."


def find_tool(places: Sequence[str] = PLACES, packages: Path = _PACKAGES) -> str:
    """The path of Nsight Compute's command line; `""` where it is not installed."""
    found = next((path for place in places if (path := shutil.which("ncu", path=place))), "")
    if not found and packages.is_dir():
        found = next((str(path) for path in sorted(packages.glob("*/ncu"), reverse=True)), "")
    return found


def why_not(tool: str, parameters: Path = PARAMETERS) -> str:
    """Why there are no profiles here, in a sentence for students; `""` where there are.

    Args:
        tool: as `find_tool` says.
    """
    if not tool:
        return "Nsight Compute (ncu) is not installed on this node."
    try:
        said = _RESTRICTED.search(parameters.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return "This node's driver does not say whether ordinary users may read counters."
    if said is None or said[1] != "0":
        return (
            "This node's driver lets administrators only read counters (NVreg_RestrictProfilingToAdminUsers), and "
            "submissions never run as one."
        )
    return ""
