"""`ladder login` and `ladder logout`."""

from __future__ import annotations

import contextlib
import ipaddress
import platform
import sys
from urllib.parse import urlsplit

import click

from client import options
from client.account import Account, address_of, credentials_path, forget_account, load_account, save_account
from client.api import Api, Json
from client.errors import ClientError, CodeNeededError, UsageError


@click.command()
@click.argument("server", envvar="LADDER_SERVER")
@click.option("--email", help="Your account's e-mail address.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
@click.option("--staff", is_flag=True, help="Allow the token to do what course staff may do.")
@click.option("--code", default="", help="Second-factor code, for --staff; prompted for if needed.")
@click.option(
    "--days", type=click.IntRange(min=1), help="Days until the token expires; default: as the server sets it."
)
@options.as_json
def login(
    *, server: str, email: str | None, password_stdin: bool, staff: bool, code: str, days: int | None, as_json: bool
) -> None:
    """Log in to SERVER and save a token that only you can read."""
    if not email and password_stdin:
        raise UsageError("--password-stdin needs --email.")
    address = address_of(server)
    if _is_readable_by_others(address):
        click.echo(f"{address} is not encrypted: anyone on the network in between can read your password.", err=True)
    email = email or click.prompt("E-mail")
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else click.prompt("Password", hide_input=True)
    with Api(Account(address, "")) as api:
        made = _token(api, str(email), str(password), staff=staff, days=days, code=code)
    token = made["token"]
    account = Account(address, token)
    with Api(account) as api:
        me = api.me()
    path = save_account(account)
    if as_json:
        known = {"server": account.server, "email": me["email"], "name": me["name"]}
        options.print_json({**known, "expires_at": made["expires_at"]})
    else:
        click.echo(f"Logged in to {account.server} as {me['name']} <{me['email']}>; the token is in {path}.")
        click.echo(f"It expires on {str(made['expires_at'])[:10]}; `ladder login` makes a new one.")


def _token(api: Api, email: str, password: str, *, staff: bool, days: int | None, code: str) -> Json:
    """A new token; whoever sits at a terminal is asked for the code of a second factor."""
    name = f"ladder on {platform.node() or 'a machine'}"[:80]
    try:
        return api.create_token(email, password, name, staff=staff, days=days, code=code)
    except CodeNeededError:
        if not sys.stdin.isatty():
            raise
    code = click.prompt("Code of your second factor")
    return api.create_token(email, password, name, staff=staff, days=days, code=code)


def _is_readable_by_others(address: str) -> bool:
    """Is what is sent there in clear, and not to this machine itself? What is no address is told by who connects."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return False
    with contextlib.suppress(ValueError):
        return parts.scheme == "http" and not ipaddress.ip_address(host).is_loopback
    return parts.scheme == "http" and host != "localhost" and not host.endswith(".localhost")


@click.command()
@options.as_json
def logout(as_json: bool) -> None:
    """Revoke the token and delete it here."""
    revoked = False
    if credentials_path().is_file():
        # A server that is gone must not keep anybody from forgetting its token.
        with contextlib.suppress(ClientError), Api(load_account({})) as api:
            api.revoke_token()
            revoked = True
    existed = forget_account()
    if as_json:
        options.print_json({"logged_out": existed, "revoked": revoked})
    elif existed:
        click.echo(
            "Logged out." if revoked else "Deleted here, but the server could not be reached to revoke the token."
        )
    else:
        click.echo("You were not logged in.")
