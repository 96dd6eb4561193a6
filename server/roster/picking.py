"""Whom somebody means who typed a name, an e-mail address or a student id, or pasted a list of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from server.errors import InvalidInputError
from server.models import Enrolment

NAMED = 3
"""So many of those who match, or of the words that nobody matches, are named."""
_ADDRESS = re.compile(r"<([^<>\s]+@[^<>\s]+)>")
"""The address in `Ada Lovelace <ada@example.org>`, as mail programs write it."""
_NOT_OF_A_NAME = re.compile(r"[@\d]")
"""What a word before such an address has that is an address or a student id of its own."""


def one(people: Sequence[Enrolment], text: str, *, field: str) -> int:
    """The id of the one person that `text` means: an address, a student id, a name, or a part of one person's name.

    Whose whole name it is comes before those whose name only contains it. What has an `@` is an address and no name.

    Raises:
        InvalidInputError: nobody is meant, or more than one.
    """
    text = " ".join(text.split()).casefold()
    if not text:
        raise InvalidInputError("Choose a student.", field=field)
    known = _known(people)
    if (found := known.get(_word(text))) is not None:
        return found
    matching = [] if "@" in text else _by_name(people, text)
    if len(matching) == 1:
        return matching[0].user_id
    if not matching:
        raise InvalidInputError(f"No student of this course matches “{text[:60]}”.", field=field)
    named = ", ".join(f"{row.user.name} ({row.user.email})" for row in matching[:NAMED])
    more = f" and {len(matching) - NAMED} more" if len(matching) > NAMED else ""
    raise InvalidInputError(
        f"{len(matching)} students match “{text[:60]}”: {named}{more}. Type the e-mail address of one.", field=field
    )


def several(people: Sequence[Enrolment], text: str, *, field: str) -> set[int]:
    """The ids of those in a pasted list of addresses and student ids.

    They are separated by spaces, commas, semicolons or newlines; a student id that has a space in it is found as well.
    Only the name in `Ada Lovelace <ada@example.org>` is passed over.

    Raises:
        InvalidInputError: some are nobody's.
    """
    known = _known(people)
    words = [word for part in re.split(r"[,;\n\r]+", text) for word in _words(part.strip().casefold(), known)]
    unknown = [word for word in words if word not in known]
    if unknown:
        more = f", and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        named = ", ".join(f"“{word[:60]}”" for word in unknown[:NAMED])
        raise InvalidInputError(f"No student of this course has this address or id: {named}{more}.", field=field)
    return {known[word] for word in words}


def _by_name(people: Sequence[Enrolment], text: str) -> list[Enrolment]:
    whole = [row for row in people if row.user.name.casefold() == text]
    return whole or [row for row in people if text in row.user.name.casefold()]


def _known(people: Sequence[Enrolment]) -> dict[str, int]:
    known = {row.student_number.casefold(): row.user_id for row in people if row.student_number}
    return known | {row.user.email: row.user_id for row in people}


def _word(text: str) -> str:
    found = _ADDRESS.search(text)
    return found[1] if found else text


def _words(part: str, known: Mapping[str, int]) -> list[str]:
    """The addresses and ids in a part, known or not."""
    if part in known:
        return [part]
    # Every second piece is an address; what stands before one ends in the name of whoever has it.
    *pieces, rest = _ADDRESS.split(part)
    names, addresses = pieces[::2], pieces[1::2]
    stray = [word for name in names for word in name.split() if word in known or _NOT_OF_A_NAME.search(word)]
    return [*addresses, *stray, *rest.split()]
