"""`python -m autograder.runner zygote LANGUAGE LANE`: started by a sandbox, with its socket as standard input."""

from __future__ import annotations

import socket
import sys

from autograder.contract import Lane, Language


def main(arguments: list[str]) -> None:
    """Be a zygote."""
    if len(arguments) != 3 or arguments[0] != "zygote":  # noqa: PLR2004
        raise SystemExit("usage: python -m autograder.runner zygote LANGUAGE LANE")
    from autograder.runner import zygote  # noqa: PLC0415

    zygote.main(Language(arguments[1]), Lane(arguments[2]), socket.socket(fileno=0))


if __name__ == "__main__":
    main(sys.argv[1:])
