"""`ladder node …`: make this machine a node, try it, run it, and let it go."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import ssl
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
import httpx

from autograder.errors import HarnessError
from autograder.signing import SignatureError, key_id
from client.commands.node_accept import accept, verify_report
from client.commands.staff import load
from client.errors import NoAnswerError, OursError, ReachError, UsageError, writing
from client.local.home import write_private

FOLDER = Path("/etc/kernel-ladder")
STATE = Path("/var/lib/kernel-ladder")
UNIT = Path("/etc/systemd/system/kernel-ladder-node.service")
TIMEOUT_S = 30.0
USUAL = {"LADDER_SELF_TEST": "1", "LADDER_CANARY_EVERY_S": "900", "LADDER_CANARY_EVERY_JOBS": "100"}
"""How a node looks after itself where nothing else was said."""

_folder = click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), default=FOLDER, show_default=True,
    help="Folder of this node's settings and key.",
)  # fmt: skip
_accept = click.option(
    "--accept-missing", "accepted", multiple=True, metavar="PROMISE",
    help="Serve although the sandbox lacks this guarantee here; may be repeated.",
)  # fmt: skip


@click.group()
def node() -> None:
    """Run this machine as a grading node."""


node.add_command(accept)
node.add_command(verify_report)


@node.command()
@click.argument("server")
@click.option("--name", required=True, help="The name that staff chose when they made the code.")
@click.option("--code", required=True, help="From `ladder admin invite-node`; valid once, within a day.")
@click.option(
    "--lanes", default="cpu", show_default=True, help="The lanes it grades, separated by commas; `auto`: by its GPU."
)
@click.option("--gpu", default="", help="UUID of its GPU; needed if the machine has several.")
@click.option("--sandbox", type=click.Choice(["process", "docker"]), default="process", show_default=True)
@click.option("--untrusted", is_flag=True, help="It takes untrusted code; needs the Docker sandbox.")
@click.option("--ca", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Trust this certificate.")
@click.option(
    "--home", type=click.Path(path_type=Path), default=STATE, show_default=True, help="The node's working folder."
)
@click.option("--write-unit", is_flag=True, help=f"Install {UNIT}.")
@click.option(
    "--unit",
    default=UNIT.stem,
    show_default=True,
    help="Name of the systemd unit; a second node on a machine needs another one.",
)
@_folder
def join(
    *, server: str, name: str, code: str, lanes: str, ca: Path | None, home: Path, write_unit: bool, folder: Path,
    gpu: str, sandbox: str, untrusted: bool, unit: str,
) -> None:  # fmt: skip
    """Make a key for this node, register it with a code from staff, and test the node."""
    if untrusted and sandbox == "process":
        raise UsageError("the process sandbox does not run untrusted code: pass --sandbox docker.")
    trusted = ca.resolve() if ca else None
    _make_private(folder)
    _require_free(folder, name)
    key = load("broker.identity", "worker").NodeKey.generate()
    joined = _exchange(server.rstrip("/"), name, code, trusted, key)
    _keep_key(folder / "key", key)
    settings = {
        "LADDER_NODE_NAME": name,
        "LADDER_NODE_KEY_FILE": str((folder / "key").resolve()),
        "LADDER_SERVER_URL": server.rstrip("/"),
        "LADDER_BROKER_URL": _with_certificate(joined["broker_url"], trusted),
        "LADDER_LANES": lanes,
        "LADDER_SANDBOX": sandbox,
        **({"LADDER_GPU": gpu} if gpu else {}),
        **({"LADDER_UNTRUSTED": "1"} if untrusted else {}),
        "LADDER_HOME": str(home.resolve()),
        **({"SSL_CERT_FILE": str(trusted)} if trusted else {}),
    }
    write_private(folder / "node.env", "".join(f"{key}={value}\n" for key, value in settings.items()))
    click.echo(f"{name} has joined; its settings are in {folder / 'node.env'}.")
    if write_unit:
        _write_unit(folder, UNIT.with_name(f"{unit}.service"))
    _say_problems(_read(folder))


@node.command()
@_folder
@_accept
def check(*, folder: Path, accepted: tuple[str, ...]) -> None:
    """Check that the sandbox gives its guarantees and that server and broker can be reached. Exit status: 0 if so."""
    settings = _read(folder)
    _require_promises(accepted, settings)
    _say_problems(settings)


@node.command()
@_folder
@_accept
def run(*, folder: Path, accepted: tuple[str, ...]) -> None:
    """Grade until SIGTERM. Refuses to start where the sandbox lacks a guarantee."""
    settings = _read(folder)
    _require_promises(accepted, settings)
    # What it joined with counts, not what happens to be set here: SSL_CERT_FILE, for one, often is.
    os.environ.update(settings)
    for variable, usual in USUAL.items():
        os.environ.setdefault(variable, usual)
    if accepted:
        os.environ["LADDER_SANDBOX_WAIVE"] = ",".join(accepted)
    sys.exit(load("worker.main", "worker").main() or 0)


@node.command("key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def key(*, file: Path) -> None:
    """Print the identity of the node with the key in FILE, for `ladder admin create-node`; make a missing key."""
    identity = load("broker.identity", "worker")
    try:
        if not file.exists():
            identity.NodeKey.generate().save(file)
        found = identity.NodeKey.load(file)
    except (OSError, SignatureError) as error:
        raise UsageError(f"{file} cannot be used: {error}") from None
    click.echo(json.dumps(dataclasses.asdict(found.identity)))


@node.command("rotate-key")
@_folder
def rotate_key(*, folder: Path) -> None:
    """Replace this node's key with a new one. Stop its worker first."""
    settings = _read(folder)
    os.environ.update(settings)
    config = _config()
    rekey, errors = load("worker.rekey", "worker"), load("worker.node_errors", "worker")
    path = Path(settings.get("LADDER_NODE_KEY_FILE", folder / "key"))
    try:
        rekey.replace_key(config, path)
    except errors.FolderTakenError:
        raise UsageError(f"{config.name} is running. Stop it first: systemctl stop {UNIT.stem}") from None
    except errors.RefusedError as error:
        raise ReachError(str(error)) from None
    except httpx.HTTPError as error:
        raise NoAnswerError(f"{config.server_url} did not answer: {error}. Try again.") from None
    new = load("broker.identity", "worker").NodeKey.load(path)
    click.echo(f"{config.name} has a new key: {key_id(new.identity.public_key)}.")


@node.command()
@_folder
def leave(*, folder: Path) -> None:
    """Delete this machine's key and settings. Staff remove the node itself on the operations page."""
    with writing(folder):
        found = [path for path in (folder / "key", folder / "node.env") if path.exists()]
        for path in found:
            path.unlink()
    click.echo("This machine is no longer a node." if found else f"There is no node in {folder}.")
    if UNIT.exists():
        click.echo(f"Its service is still installed: systemctl disable --now {UNIT.stem}")


def _exchange(server: str, name: str, code: str, ca: Path | None, key: Any) -> Any:
    if not server.startswith("https://"):
        raise UsageError("a node joins over https only, because it sends its code.")
    try:
        context = ssl.create_default_context(cafile=str(ca) if ca else None)
    except OSError as error:
        raise UsageError(f"{ca} cannot be trusted: {error.strerror or error}.") from None
    body = {"name": name, "code": code, **dataclasses.asdict(key.identity)}
    signature = load("worker.server", "worker").Signature(name, key)
    try:
        answer = httpx.post(f"{server}/api/v1/nodes/join", json=body, auth=signature, verify=context, timeout=TIMEOUT_S)
    except httpx.InvalidURL as error:
        raise UsageError(f"{server} is not an address: {error}") from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ReachError(f"{server} cannot be reached: {error}") from None
    except httpx.HTTPError as error:
        doubt = "If the code is refused next time, it has been used: ask staff for a new one."
        raise NoAnswerError(f"{server} did not answer: {str(error) or type(error).__name__}. {doubt}") from None
    if answer.status_code != httpx.codes.CREATED:
        raise ReachError(f"{server} refused the node: {_message(answer)}")
    return answer.json()


def _keep_key(path: Path, key: Any) -> None:
    """In place of one that it had before."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    key.save(new)
    new.replace(path)


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"status {answer.status_code}"


def _with_certificate(url: str, ca: Path | None) -> str:
    """The broker's certificate is checked always, against ours where there is one."""
    if not url.startswith("rediss://"):
        return url
    options = {"ssl_cert_reqs": "required", **({"ssl_ca_certs": str(ca)} if ca else {})}
    return f"{url}?{urlencode(options, safe='/')}"


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except PermissionError:
        raise UsageError(f"{folder} cannot be written: run as root, or pass --folder.") from None


def _require_free(folder: Path, name: str) -> None:
    """Another node's key lies nowhere else: it is not written over."""
    there = _read(folder).get("LADDER_NODE_NAME", name)
    if there != name:
        raise UsageError(
            f"{folder} belongs to the node {there}. Pass another --folder (and --home, --unit) for a second node on "
            f"this machine, or `ladder node leave --folder {folder}` first."
        )


def _read(folder: Path) -> dict[str, str]:
    """The settings of this node; none where it was configured otherwise, as in a container."""
    try:
        lines = (folder / "node.env").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except PermissionError:
        raise UsageError(f"{folder / 'node.env'} is readable by root only.") from None
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _require_promises(accepted: tuple[str, ...], settings: Mapping[str, str]) -> None:
    os.environ.update(settings)
    sandbox = load("autograder.sandbox", "harness")
    unknown = set(accepted) - set(sandbox.Promise)
    if unknown:
        raise UsageError(f"no such guarantee: {', '.join(sorted(unknown))}. There are {', '.join(sandbox.Promise)}.")
    try:
        tried = _driver(settings.get("LADDER_SANDBOX") or os.environ.get("LADDER_SANDBOX", "process"))
    except (HarnessError, OSError) as error:
        raise OursError(f"the sandbox cannot start here: {error}") from None
    missing = sorted(set(sandbox.Promise) - tried.promises)
    tried.close()
    click.echo(f"guarantees that the sandbox lacks here: {', '.join(missing) or 'none'}", err=True)
    refused = [promise for promise in missing if promise not in accepted]
    if refused:
        raise OursError(
            f"this machine must not serve: its sandbox does not guarantee {', '.join(refused)} (docs/threats.md). Run "
            "as root, or pass --accept-missing for each that you accept."
        )


def _driver(name: str) -> Any:
    dotted = load("worker.settings", "worker").SANDBOXES.get(name)
    if dotted is None:
        raise UsageError(f"there is no sandbox named {name!r}.")
    module, _, driver = dotted.partition(":")
    return getattr(load(module, "harness"), driver)()


def _say_problems(settings: Mapping[str, str]) -> None:
    # What this process verifies certificates with is read from its environment.
    os.environ.update(settings)
    problems = load("worker.reach", "worker").problems(_config())
    if problems:
        raise ReachError(" ".join(problems))
    click.echo("Server and broker can be reached.")


def _config() -> Any:
    try:
        return load("worker.config", "worker").load_config({**os.environ})
    except (ValueError, load("worker.node_errors", "worker").WorkerError) as error:
        raise UsageError(str(error)) from None


def _write_unit(folder: Path, unit: Path) -> None:
    text = _template().read_text(encoding="utf-8")
    program = shlex.join([str(Path(sys.argv[0]).resolve()), "node", "run", "--folder", str(folder.resolve())])
    text = text.replace("/opt/kernel-ladder/bin/ladder node run", program)
    text = text.replace(f"{FOLDER}/node.env", str((folder / "node.env").resolve()))
    try:
        unit.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{unit} cannot be written: {error.strerror}") from None
    click.echo(f"Wrote {unit}: systemctl daemon-reload && systemctl enable --now {unit.stem}")


def _template() -> Path:
    checkout = Path(__file__).resolve().parents[2] / "deploy" / UNIT.name
    return checkout if checkout.is_file() else Path(sysconfig.get_path("data")) / "share/kernel-ladder" / UNIT.name
