"""Log-ins elsewhere: who is asked, and the threads in which somebody waits for their answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from server.accounts.oidc import Relying
from server.accounts.providers import Provider
from server.errors import NotFoundError

MAX_OUTSIDE = 16
"""So many log-ins wait for providers at once, in threads of their own: one that hangs keeps no other page waiting."""
T = TypeVar("T")


def parties_of(request: Request) -> Mapping[str, Relying]:
    """Us to each provider, by its slug."""
    parties: Mapping[str, Relying] = request.app.state.outside
    return parties


def providers_of(request: Request) -> tuple[Provider, ...]:
    """Who may be logged in with, in the order of the file."""
    return tuple(party.provider for party in parties_of(request).values())


def party_of(request: Request, slug: str) -> Relying:
    """Us to one provider.

    Raises:
        NotFoundError: there is none with this name.
    """
    party = parties_of(request).get(slug)
    if party is None:
        raise NotFoundError("This way to log in is not available here.")
    return party


async def asking(request: Request, work: Callable[[], T]) -> T:
    """Do `work` in one of the threads for this."""
    slots: CapacityLimiter = request.app.state.outside_slots
    return await to_thread.run_sync(work, limiter=slots)
