"""What the devices of a lane can do by their data sheets: the lines that no time of theirs crosses.

The judge holds what is faster; the server draws the lines. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.contract import Lane


@dataclass(frozen=True)
class Facts:
    """A device by its data sheet: dense rates without sparsity.

    Attributes:
        memory_tb_s: memory bandwidth, 1e12 bytes per second.
        l2_bytes: size of the L2 cache.
        tflops: the fastest way there is to multiply numbers of a dtype, 1e12 operations per second; for float32 that is
            TF32 on the tensor cores, which no exercise has to allow.
    """

    memory_tb_s: float
    l2_bytes: int
    tflops: Mapping[str, float]


_HOPPER = {"float16": 989.4, "bfloat16": 989.4, "float32": 494.7, "float64": 66.9, "int8": 1978.9}

FACTS: Mapping[Lane, Facts] = {
    # NVIDIA H100 Tensor Core GPU data sheet, SXM5; "H100 architecture" white paper, table 3 (L2: 50 MB).
    Lane.h100: Facts(3.35, 50 * 10**6, _HOPPER),
    # NVIDIA H200 Tensor Core GPU data sheet, SXM; computes as an H100.
    Lane.h200: Facts(4.8, 50 * 10**6, _HOPPER),
    # NVIDIA HGX B200 data sheet, an eighth of the board's figures; L2 as the driver reports it on a B200, 126 MB.
    Lane.b200: Facts(
        8.0, 126 * 10**6, {"float16": 2250.0, "bfloat16": 2250.0, "float32": 1125.0, "float64": 40.0, "int8": 4500.0}
    ),
}
