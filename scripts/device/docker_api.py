"""The little of Docker's API that has to work before any package is there: `ping`, and `image`, which makes the image.

python3 scripts/device/docker_api.py ping              exit status 0 if the daemon answers
python3 scripts/device/docker_api.py image [NAME]      its id

Standard library only.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import socket
import sys
import tarfile
import urllib.parse

SOCKET = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
NAME = "kernel-ladder/host"
FOLDERS = {"tmp": 0o1777, "dev": 0o755, "proc": 0o555, "sys": 0o555, "etc": 0o755, "run": 0o755}
LABELS = {"org.kernel-ladder.toolchain": "host"}


class Daemon(http.client.HTTPConnection):
    """HTTP over the daemon's socket."""

    def __init__(self) -> None:
        super().__init__("docker", timeout=60)

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


def ask(method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """One request; status and answer."""
    daemon = Daemon()
    daemon.request(method, path, body, {"Content-Type": "application/x-tar"})
    answer = daemon.getresponse()
    return answer.status, answer.read()


def empty_folders() -> bytes:
    """An archive of nothing but folders: all else is mounted."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, mode in FOLDERS.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
    return archive.getvalue()


def image_id(name: str) -> str:
    """The id of the image that is there, else `""`."""
    status, answer = ask("GET", f"/images/{name}/json")
    return json.loads(answer)["Id"] if status == http.client.OK else ""


def make_image(name: str) -> str:
    """Its id, made if it is not there."""
    if not image_id(name):
        changes = [("changes", f"LABEL {name}={value}") for name, value in LABELS.items()]
        query = urllib.parse.urlencode([("fromSrc", "-"), ("repo", name), ("tag", "latest"), *changes])
        status, answer = ask("POST", f"/images/create?{query}", empty_folders())
        if status != http.client.OK or not image_id(name):
            raise SystemExit(f"the image cannot be made: {answer.decode(errors='replace')}")
    return image_id(name)


def main(command: str, name: str = NAME) -> None:
    """Run one command."""
    if command == "ping":
        try:
            sys.exit(ask("GET", "/_ping")[0] != http.client.OK)
        except OSError as error:
            sys.exit(f"no daemon answers at {SOCKET}: {error}")
    print(make_image(name))


if __name__ == "__main__":
    main(*sys.argv[1:])
