"""The judge: owns buffers, seeds, hidden cases and the clock, and never imports a submission."""

from __future__ import annotations
