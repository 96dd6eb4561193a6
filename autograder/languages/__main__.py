"""What languages need, for scripts that make images: `python -m autograder.languages packages|distributions|system`.

Left out is what may be in no image.

packages        what pip installs, with versions
distributions   the same without versions
system          packages of Debian's
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from autograder import languages

_IN_IMAGES = [record for record in languages.ALL if record.in_images]
ASKED: Mapping[str, tuple[str, ...]] = {
    "packages": tuple(dict.fromkeys(package for record in _IN_IMAGES for package in record.all_packages)),
    "distributions": languages.distributions(_IN_IMAGES),
    "system": tuple(dict.fromkeys(package for record in _IN_IMAGES for package in record.system)),
}


def main(arguments: list[str]) -> int:
    """Print one a line."""
    if len(arguments) != 1 or arguments[0] not in ASKED:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    sys.stdout.write("".join(f"{name}\n" for name in ASKED[arguments[0]]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
