"""`ladder admin …` for nodes: who they are, what they may grade, and who may use the broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click
from redis import RedisError

from autograder.contract import Lane
from broker.identity import Identity
from server.console import work
from server.db import now
from server.nodes import access, nodes
from server.operations import fleet


class _Lanes(click.ParamType[frozenset[Lane]]):
    """Lanes by commas, or `all`."""

    name = "lanes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[Lane]:
        """What was typed, as lanes."""
        if isinstance(value, frozenset):
            return value
        if value == "all":
            return frozenset(Lane)
        try:
            return frozenset(Lane(word.strip()) for word in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is not some of {', '.join(Lane)}, or all", param, ctx)


_lanes = click.option(
    "--lanes", type=_Lanes(), required=True, help="Lanes that it may grade, separated by commas, or `all`."
)
_courses = click.option(
    "--course", "courses", multiple=True, metavar="SLUG", help="Only work of this course; may be repeated."
)


@click.command("create-node")
@click.argument("name")
@click.option(
    "--identity", "file", type=click.File(), required=True, help="What `ladder node key` printed there; - for stdin."
)
@_lanes
@_courses
def create_node(name: str, file: Any, lanes: frozenset[Lane], courses: tuple[str, ...]) -> None:
    """Register a node whose key is known; doing it again changes the key and what it may grade."""
    identity = _identity(file.read())
    with work() as (session, config):
        grant = nodes.make_grant(session, lanes, courses or None)
        fleet.register(session, config, name=name, identity=identity, grant=grant, actor=None, now=now(session))
        click.echo(f"{name} is registered.")


def _identity(text: str) -> Identity:
    try:
        found = json.loads(text)
        return Identity(str(found["public_key"]), str(found["broker_hash"]))
    except (ValueError, KeyError, TypeError):
        raise click.ClickException("This is not the output of `ladder node key`.") from None


@click.command("invite-node")
@click.argument("name")
@_lanes
@_courses
def invite_node(name: str, lanes: frozenset[Lane], courses: tuple[str, ...]) -> None:
    """Make a code with which one machine can join as node NAME, valid for a day."""
    with work() as (session, config):
        grant = nodes.make_grant(session, lanes, courses or None)
        code = fleet.invite(session, name=name, grant=grant, actor=None, now=now(session))
        click.echo("On that machine, as root, within a day:", err=True)
        click.echo(f"    {fleet.join_command(config, name, code)}")


@click.command("grant-node")
@click.argument("name")
@_lanes
@_courses
def grant_node(name: str, lanes: frozenset[Lane], courses: tuple[str, ...]) -> None:
    """Set which lanes, and which courses if not all, node NAME may grade from now on."""
    with work() as (session, _config):
        fleet.give(session, name=name, grant=nodes.make_grant(session, lanes, courses or None), actor=None)
        click.echo(f"{name} may grade {', '.join(sorted(lanes))} of {', '.join(courses) or 'every course'}.")


@click.command("revoke-node")
@click.argument("name")
@click.option("--since", type=click.DateTime(), help="In UTC; what it measured since then is measured again.")
def revoke_node(name: str, since: datetime | None) -> None:
    """Revoke node NAME's key at once. What it works on is graded again; it has to join again."""
    with work() as (session, config):
        at = since.replace(tzinfo=UTC) if since is not None else None
        fleet.revoke(session, config, name=name, actor=None, now=now(session), since=at)
        click.echo(f"{name} is revoked: nothing that it signs is accepted any more.")


@click.command("sync-broker-acl")
def sync_broker() -> None:
    """Send the list of nodes to the broker again; a broker that lost its list admits no node."""
    with work() as (session, config):
        try:
            names = access.sync(session, config.broker_url)
        except RedisError as error:
            raise click.ClickException(f"The broker refused the list: {error}") from None
    click.echo(f"The broker admits: {', '.join(names) or 'no node'}.")


COMMANDS = (create_node, invite_node, grant_node, revoke_node, sync_broker)
