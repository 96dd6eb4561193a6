"""Where the staff kernels' polynomials come from: log2 of 2·Φ(-t) for t ≥ 0, fitted so that the error of Φ is level.

    python reference/bias_gelu_dropout/fit.py

Least squares, reweighted until the largest errors are alike (Lawson). What counts is not the logarithm's error but what
it does to Φ(-t): absolutely for float32, and for 16 bits beside what the output's own rounding leaves room for.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt
import torch

Values = npt.NDArray[np.float64]

EPS32 = float(torch.finfo(torch.float32).eps)
ROUNDS = 600
# Beyond 6.5 there is nothing left in float32, but the polynomial has to stay small there.
T: Values = np.concatenate([np.linspace(0, 6.5, 6500), np.linspace(6.5, 14, 800)])
PHI: Values = torch.special.ndtr(torch.from_numpy(-T)).numpy()
TARGET: Values = torch.special.log_ndtr(torch.from_numpy(-T)).numpy() / math.log(2) + 1


def fitted(degree: int, importance: Values) -> Values:
    """Coefficients, lowest first, whose largest error times `importance` is the least found."""
    powers = np.stack([T**power for power in range(degree + 1)], axis=1)
    weight, best, least = importance + 1e-30, np.zeros(degree + 1), math.inf
    for _ in range(ROUNDS):
        weighted = powers * weight[:, None]
        size = np.abs(weighted).max(axis=0)
        found = np.linalg.lstsq(weighted / size, TARGET * weight, rcond=None)[0] / size
        error = np.abs((powers @ found - TARGET) * importance)
        if error.max() < least:
            least, best = float(error.max()), found
        weight *= (1e-4 + error / error.max()) ** 0.1
        weight = np.maximum(weight / weight.max(), 1e-30)
    return best


def in_float32(coefficients: Values, t: npt.NDArray[np.float32]) -> Values:
    """Φ(-t) as a kernel computes it, but for the exponential, which is exact here."""
    value = np.full_like(t, coefficients[-1])
    for coefficient in coefficients[-2::-1].astype(np.float32):
        value = value * t + coefficient
    return np.exp2(value.astype(np.float64) - 1)


def main() -> None:
    """Fit for float32 and for 16 bits, and say how far off Φ is."""
    room = 2.0**-7 / 4 * PHI + 3 * EPS32
    t = np.linspace(0, 14, 200001, dtype=np.float32)
    exact = torch.special.ndtr(-torch.from_numpy(t.astype(np.float64))).numpy()
    for name, degree, importance in (("float32", 8, PHI), ("16 bits", 5, PHI / room)):
        found = fitted(degree, math.log(2) * importance)
        error = np.abs(in_float32(found, t) - exact)
        share = (error / (2.0**-7 / 4 * exact + 3 * EPS32)).max()
        numbers = ", ".join(repr(float(np.float32(one))) for one in found)
        sys.stdout.write(f"{name}: {error.max() / EPS32:.2f} eps32, {share:.3f} of the room in bfloat16: {numbers}\n")


if __name__ == "__main__":
    main()
