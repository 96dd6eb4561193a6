"""Hypothesis must not judge by the clock: the machine may be busy."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("ladder", deadline=None)
settings.load_profile("ladder")
