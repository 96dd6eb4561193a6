"""Which images of an installation are behind: `make pins`; `python -m scripts.pins --write` moves them.

An image is behind when its registry has a later patch of the same line (`7.2.15` of `7.2`, with the same ending), or
another digest under the tag: it was built anew, with later packages of its distribution. A new line is a decision, and
nothing that this looks for.

Exit status: 0 everything is current, 1 something is behind or has no digest, 2 a registry did not answer.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[1]
HUB = "https://registry-1.docker.io"
TIMEOUT_S = 20.0
MOST_PAGES = 50
_FILES = ("docker-compose.yml", "deploy/up.sh", "deploy/Dockerfile.server", "deploy/Dockerfile.worker")
_PIN = re.compile(
    r"(?P<name>\b(?:redis|postgres|nginx|python)):(?P<version>\d+(?:\.\d+)+)-(?P<ending>[a-z][a-z-]*)"
    r"(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_ACCEPT = (
    "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/json"
)


class NoRegistryError(Exception):
    """It does not answer, or answers with something else."""


@dataclass(frozen=True)
class Pin:
    """An image by exact tag, and by digest where it has one."""

    name: str
    version: tuple[int, ...]
    ending: str
    digest: str = ""

    @property
    def tag(self) -> str:
        """As a registry calls it."""
        return f"{'.'.join(map(str, self.version))}-{self.ending}"

    def __str__(self) -> str:
        """As a file names it."""
        return f"{self.name}:{self.tag}{'@' if self.digest else ''}{self.digest}"


def pins_in(text: str) -> Iterator[Pin]:
    """The images that a file names."""
    for found in _PIN.finditer(text):
        yield Pin(found["name"], tuple(map(int, found["version"].split("."))), found["ending"], found["digest"] or "")


def newest(pin: Pin, tags: Iterable[str]) -> tuple[int, ...]:
    """The latest patch of the pin's line among these tags; its own where there is none."""
    found = [pin.version]
    for tag in tags:
        version, _, ending = tag.partition("-")
        numbers = tuple(map(int, version.split("."))) if re.fullmatch(r"\d+(\.\d+)+", version) else ()
        if ending == pin.ending and len(numbers) == len(pin.version) and numbers[:-1] == pin.version[:-1]:
            found.append(numbers)
    return max(found)


class Registry:
    """What a registry says of official images, by its API of version 2."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=TIMEOUT_S, follow_redirects=True)

    def tags(self, name: str) -> list[str]:
        """All tags of an image."""
        tags: list[str] = []
        path: str | None = f"/v2/library/{name}/tags/list?n=1000"
        for _ in range(MOST_PAGES):
            if path is None:
                return tags
            answer = self._ask("GET", path, name)
            try:
                tags += [str(tag) for tag in answer.json()["tags"]]
            except (ValueError, KeyError, TypeError):
                raise NoRegistryError(f"it answers something else about the tags of {name}") from None
            path = answer.links.get("next", {}).get("url")
        raise NoRegistryError(f"the tags of {name} have no end")

    def digest(self, pin: Pin) -> str:
        """The digest that its tag stands for now."""
        answer = self._ask("HEAD", f"/v2/library/{pin.name}/manifests/{pin.tag}", pin.name)
        digest = str(answer.headers.get("docker-content-digest", ""))
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
            raise NoRegistryError(f"it says no digest of {pin.name}:{pin.tag}")
        return digest

    def _ask(self, method: str, path: str, name: str) -> httpx.Response:
        headers = {"Accept": _ACCEPT}
        try:
            answer = self._client.request(method, path, headers=headers)
            if answer.status_code == httpx.codes.UNAUTHORIZED:
                headers["Authorization"] = f"Bearer {self._token(answer, name)}"
                answer = self._client.request(method, path, headers=headers)
        except httpx.HTTPError as error:
            raise NoRegistryError(str(error) or type(error).__name__) from None
        if not answer.is_success:
            raise NoRegistryError(f"status {answer.status_code} for {path}")
        return answer

    def _token(self, answer: httpx.Response, name: str) -> str:
        """What it lets anybody read with; it says itself where that is had."""
        said = dict(re.findall(r'(\w+)="([^"]*)"', answer.headers.get("www-authenticate", "")))
        if "realm" not in said:
            raise NoRegistryError("it asks for a log-in and does not say where")
        asked = {"service": said.get("service", ""), "scope": f"repository:library/{name}:pull"}
        given = self._client.get(said["realm"], params=asked)
        try:
            return str(given.json()["token"])
        except (ValueError, KeyError, TypeError):
            raise NoRegistryError("it gives nobody a token") from None


def current(pin: Pin, registry: Registry) -> Pin:
    """What the pin would be today."""
    later = Pin(pin.name, newest(pin, registry.tags(pin.name)), pin.ending)
    return Pin(later.name, later.version, later.ending, registry.digest(later))


def verdict(pin: Pin, now: Pin) -> str:
    """In words; empty if it is current."""
    if now.version != pin.version:
        return f"behind: {now.tag} is out"
    if not pin.digest:
        return "has no digest"
    return "" if now.digest == pin.digest else "behind: the tag was built anew"


def main(arguments: Sequence[str] | None = None) -> int:
    """Look, say, and write if asked; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--registry", default=HUB)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    parser.add_argument("--write", action="store_true", help="write the current tags and digests into the files")
    options = parser.parse_args(arguments)
    texts = {options.root / name: (options.root / name).read_text(encoding="utf-8") for name in _FILES}
    registry, moved, worst = Registry(options.registry), dict[str, str](), 0
    for pin in sorted({pin for text in texts.values() for pin in pins_in(text)}, key=str):
        try:
            now = current(pin, registry)
        except NoRegistryError as error:
            print(f"{pin.name}:{pin.tag}  not known: {options.registry} {error}")
            worst = 2
            continue
        said = verdict(pin, now)
        print(f"{pin.name}:{pin.tag}  {said or 'current'}")
        worst = max(worst, 1 if said else 0)
        moved[str(pin)] = str(now)
    if options.write:
        for path, text in texts.items():
            path.write_text(_PIN.sub(lambda found: moved.get(found[0], found[0]), text), encoding="utf-8")
        print("Written. Run `make compose-test` before you commit it.")
    return worst


if __name__ == "__main__":
    sys.exit(main())
