"""What a sandbox starts.

python -m autograder.runner zygote LANGUAGE LANE [PURPOSE]                       its socket is standard input
python -m autograder.runner contained SOCKET LANGUAGE LANE PURPOSE [WITHOUT …]   the first process of a container
python -m autograder.runner profile FOLDER                                       one call, inside a runner that profiles
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from autograder.contract import Lane, Language
from autograder.sandbox import Promise, Purpose


def main(arguments: list[str]) -> None:
    """Be a zygote, or the first process of a container."""
    match arguments:
        case ["zygote", language, lane, *purpose]:
            from autograder.runner import zygote  # noqa: PLC0415

            wanted = Purpose((*purpose, Purpose.call)[0])
            zygote.main(Language(language), Lane(lane), socket.socket(fileno=0), wanted)
        case ["contained", path, language, lane, wanted, *without]:
            from autograder.runner import contained  # noqa: PLC0415

            contained.main(path, language, Lane(lane), Purpose(wanted), tuple(map(Promise, without)))
        case ["profile" | "sanitize" as how, folder]:
            from autograder.profiling import target  # noqa: PLC0415

            raise SystemExit(target.main(how, Path(folder)))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
