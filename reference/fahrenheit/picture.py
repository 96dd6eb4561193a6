"""Print the handout's roofline: `python reference/fahrenheit/picture.py`. Staff only."""

from __future__ import annotations

import math
import sys

PEAK_TFLOPS, BANDWIDTH_TB_S = 67.0, 4.8
"""Of an H200 in float32, by its data sheet."""
OURS = 2 / 8
"""FLOP for each byte of Celsius to Fahrenheit."""
LEFT, RIGHT = -4, 7
"""FLOP per byte at both ends, as powers of two."""
PER_DOUBLING = 4
"""Columns."""


def reachable(intensity: float) -> float:
    """TFLOP/s that the roofs allow at so many FLOP per byte."""
    return min(PEAK_TFLOPS, BANDWIDTH_TB_S * intensity)


def picture() -> str:
    """Both roofs on logarithmic axes, one row for a factor of two, with the kernel on the slope."""
    columns = [2 ** (LEFT + column / PER_DOUBLING) for column in range((RIGHT - LEFT) * PER_DOUBLING + 1)]
    heights = [round(math.log2(reachable(each))) for each in columns]
    ours = round((math.log2(OURS) - LEFT) * PER_DOUBLING)
    lines = ["TFLOP/s"]
    for row in range(max(heights), min(heights) - 1, -1):
        drawn = ["·" if height == row else " " for height in heights]
        label, note = "", ""
        if row == max(heights):
            label, note = f"{PEAK_TFLOPS:.0f}", "arithmetic"
        elif row == heights[ours]:
            drawn[ours], label, note = "●", f"{reachable(OURS):.1f}", "this kernel"
        elif row == (heights[ours] + max(heights)) // 2:
            note = f"memory, {BANDWIDTH_TB_S} TB/s"
        line = "".join(drawn).rstrip()
        lines.append(f"{label:>6} |{line}{f'  {note}' if note else ''}".rstrip())
    marks = {OURS: "0.25", 1.0: "1", PEAK_TFLOPS / BANDWIDTH_TB_S: f"{PEAK_TFLOPS / BANDWIDTH_TB_S:.0f}", 64.0: "64"}
    axis = [" "] * len(columns)
    for value, text in marks.items():
        at = round((math.log2(value) - LEFT) * PER_DOUBLING)
        axis[at : at + len(text)] = text
    return "\n".join([*lines, " " * 7 + "+" + "-" * len(columns), " " * 8 + "".join(axis) + "  FLOP per byte"])


if __name__ == "__main__":
    sys.stdout.write(f"{picture()}\n")
