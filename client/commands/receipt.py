"""`ladder receipt …`: fetch the signed receipt of a grade, check it, and work the grade out again without a GPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from autograder.errors import ContractError
from autograder.receipts import Receipt, SignatureError, read, recompute
from autograder.signing import key_id
from client import options
from client.errors import NOT_PASSED, UsageError, clean, writing

MAX_BYTES = 32 * 2**20
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def receipt() -> None:
    """Receipts of grades: the evidence for a grade, signed by the server."""


@receipt.command()
@click.argument("submission")
@click.option("--output", type=_FILE, help="The file to write; default: receipt-SUBMISSION.json.")
@click.option("--student", is_flag=True, help="The student's copy; staff get the whole one by default.")
def get(submission: str, output: Path | None, *, student: bool) -> None:
    """Fetch the receipt of SUBMISSION, a receipt number."""
    with options.connect() as api:
        document = api.receipt(submission, "student" if student else None)
    path = output or Path(f"receipt-{submission}.json")
    if path.exists():
        raise UsageError(f"{path} exists already; pass --output.")
    with writing(path):
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    click.echo(f"{path} is the {document['copy']}'s copy, signed by the key {key_id(document['signature']['key'])}.")


@receipt.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--key", metavar="KEY", help="The public key to trust; default: ask the server that you are logged in to."
)
@options.as_json
def verify(file: Path, key: str | None, as_json: bool) -> None:
    """Check the signature of the receipt FILE and compute its score again from its raw samples.

    Exit status: 0 if all of it is right, 1 otherwise.
    """
    document = _document(file)
    try:
        found, signed_by = read(document, key)
        trusted = key is not None or _is_the_servers(signed_by)
        differences = recompute(found)
    except (SignatureError, ContractError) as error:
        _say(as_json, {"holds": False, "reason": str(error)}, f"{file} is not valid: {error}.")
        sys.exit(NOT_PASSED)
    if not trusted:
        differences = [f"the key {key_id(signed_by)} that signed it is not one of the server's", *differences]
    facts = {"holds": not differences, "key": signed_by, "differences": differences, **_facts(found)}
    _say(as_json, facts, _sentence(file, found, signed_by, differences))
    sys.exit(NOT_PASSED if differences else 0)


def _document(file: Path) -> dict[str, Any]:
    if file.stat().st_size > MAX_BYTES:
        raise UsageError(f"{file} is too large for a receipt.")
    try:
        document = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise UsageError(f"{file} is not a receipt.")
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which nothing is said twice: the last was signed, and people and programs may read the first.

    Raises:
        ValueError: something is.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("it has a key twice")
    return found


def _is_the_servers(public: str) -> bool:
    """Whether the server that the user is logged in to says that it signed with this key."""
    with options.connect() as api:
        return any(key["public"] == public for key in api.receipt_keys())


def _facts(found: Receipt) -> dict[str, Any]:
    grade = found.grade
    return {
        "number": found.number,
        "copy": found.copy.value,
        "verdict": grade.verdict.value,
        "points": grade.points,
        "ratio": grade.speed.ratio if grade.speed else None,
        "attempts": len({item.attempt for item in found.samples}),
        "pairs": sum(len(item.measurement.pairs) for item in found.samples),
    }


def _sentence(file: Path, found: Receipt, signed_by: str, differences: list[str]) -> str:
    if differences:
        return "\n".join([f"{file} is not valid:", *(f"  {line}" for line in differences)])
    facts = _facts(found)
    speed = f", {facts['ratio']:.4f} × the reference" if facts["ratio"] is not None else ""
    points = "no points" if facts["points"] is None else f"{facts['points']:g} points"
    return (
        f"OK: signed by {key_id(signed_by)}. {found.assignment}, submission {found.submission} on {found.lane}: "
        f"{found.grade.verdict}, {points}{speed}, computed again from {facts['pairs']} pairs of {facts['attempts']} "
        "attempts."
    )


def _say(as_json: bool, facts: dict[str, Any], sentence: str) -> None:
    if as_json:
        options.print_json(facts)
    else:
        # The file may be a stranger's, signed by their own key.
        click.echo(clean(sentence))
