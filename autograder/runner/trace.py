"""What ran on a GPU during one call, as torch's profiler tells it: kernels and copies by name, as CUPTI saw them.

It works within the submission's process, which can keep things from it: a claim, and one look among several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile

from autograder.runner.report import cut

MOST = 64
_MOST_NAME = 200


def traced(call: Callable[[], int], ran: list[dict[str, Any]]) -> int:
    """Make a call and add to `ran` what it ran, most of the time first, as `protocol.Ran`; what the call gives."""
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        result = call()
    found = [one for one in seen.key_averages() if one.device_type.name == "CUDA"]
    found.sort(key=lambda one: -one.self_device_time_total)
    ran += [
        {"name": cut(one.key, _MOST_NAME), "calls": int(one.count), "ns": int(1000 * one.self_device_time_total)}
        for one in found[:MOST]
    ]
    return result
