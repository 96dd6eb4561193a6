# ruff: noqa: RUF001  # letters that are taken for others are what this is about
"""Names that look alike: what somebody calls themselves must not pass for one of the staff.

Two names are alike if their skeletons are the same. A skeleton is the name without case, accents and gaps, letters of
other scripts written as the Latin ones they look like, and what one stroke makes written as one letter (after Unicode's
technical standard 39, for the letters that its tables give names written in Latin).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_ALIKE = {
    # Cyrillic
    "а": "a", "в": "b", "с": "c", "ԁ": "d", "е": "e", "ғ": "f", "һ": "h", "н": "h", "і": "i", "ј": "j", "к": "k",
    "ӏ": "i", "м": "m", "п": "n", "о": "o", "р": "p", "ԛ": "q", "г": "r", "ѕ": "s", "т": "t", "у": "y", "ү": "y",
    "ѵ": "v", "ԝ": "w", "х": "x", "ь": "b", "є": "e",
    # Greek
    "α": "a", "β": "b", "ϲ": "c", "δ": "d", "ε": "e", "η": "n", "ι": "i", "κ": "k", "μ": "u", "ν": "v", "ο": "o",
    "ρ": "p", "σ": "o", "τ": "t", "υ": "u", "χ": "x", "γ": "y", "ω": "w", "ζ": "z",
    # Armenian, Cherokee, Hebrew and others
    "օ": "o", "ո": "n", "ս": "u", "ց": "g", "հ": "h", "ա": "w", "ס": "o", "ו": "i", "ן": "i",
    # Latin letters of other alphabets, which have no accent to take away
    "ı": "i", "ɩ": "i", "ɑ": "a", "ɡ": "g", "ø": "o", "ł": "i", "đ": "d", "ħ": "h", "ŧ": "t", "ƅ": "b", "ʋ": "v",
    "ꞑ": "n", "ɴ": "n", "ʀ": "r", "ꜱ": "s", "ᴀ": "a", "ᴄ": "c", "ᴇ": "e", "ᴏ": "o", "ᴜ": "u", "ᴠ": "v", "ᴡ": "w",
    "æ": "ae", "œ": "oe", "ß": "ss",
    # Digits and signs
    "0": "o", "1": "i", "|": "i", "!": "i", "l": "i", "5": "s", "8": "b", "$": "s", "@": "a",
}  # fmt: skip
_JOINED = (("rn", "m"), ("vv", "w"), ("ci", "d"))


def skeleton(name: str) -> str:
    """What is left of a name that a reader sees; `""` where there is nothing."""
    # Twice: a capital of another script is small only after the first.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold()).casefold()
    letters = "".join(_ALIKE.get(letter, letter) for letter in plain)
    for two, one in _JOINED:
        letters = letters.replace(two, one)
    return "".join(letter for letter in letters if letter.isalnum())


def alike(name: str, others: Iterable[str]) -> str:
    """The first of these that the name could pass for, `""` for none."""
    mine = skeleton(name)
    return next((other for other in others if mine and skeleton(other) == mine), "")
