"""`python -m autograder.runner zygote LANGUAGE LANE [PURPOSE]`: started by a sandbox, its socket is standard input."""

from __future__ import annotations

import socket
import sys

from autograder.contract import Lane, Language
from autograder.sandbox import Purpose


def main(arguments: list[str]) -> None:
    """Be a zygote."""
    if len(arguments) not in {3, 4} or arguments[0] != "zygote":
        raise SystemExit("usage: python -m autograder.runner zygote LANGUAGE LANE [PURPOSE]")
    from autograder.runner import zygote  # noqa: PLC0415

    purpose = Purpose((*arguments, Purpose.call)[3])
    zygote.main(Language(arguments[1]), Lane(arguments[2]), socket.socket(fileno=0), purpose)


if __name__ == "__main__":
    main(sys.argv[1:])
