"""Tokens, and who one is."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session

from server.accounts import places
from server.accounts import service as accounts
from server.api.responses import errors
from server.api.schemas import MeRead, TokenCreate, TokenRead
from server.config import Config
from server.errors import InvalidInputError
from server.http.identity import Someone, place_of
from server.http.work import Settings, Work
from server.models import ApiToken, User

router = APIRouter(tags=["accounts"])


@router.post("/tokens", status_code=HTTPStatus.CREATED, responses=errors(401, 422, 429), summary="Make a token")
def create_token(body: TokenCreate, request: Request, work: Work, config: Settings) -> TokenRead:
    """Exchange e-mail address and password for a token, to be sent as `Authorization: Bearer`."""
    place = place_of(request)
    user = accounts.authenticate(work, email=body.email, password=body.password, place=place, config=config)
    places.remember(work, user, place)
    return TokenRead.of(*_made(work, user, body, config))


def _made(work: Session, user: User, body: TokenCreate, config: Config) -> tuple[ApiToken, str]:
    ends = accounts.token_end(config, body.days)
    return accounts.create_token(work, user, name=body.name, expires_at=ends, scopes=body.scopes)


@router.delete(
    "/tokens/current", status_code=HTTPStatus.NO_CONTENT, responses=errors(401, 422), summary="Revoke this token"
)
def revoke_token(who: Someone, work: Work) -> None:
    """End the token that this request was made with."""
    if who.token is None:
        raise InvalidInputError("This request was made with a login, not with a token.")
    accounts.revoke_token(work, who.user, who.token.id)


@router.get("/me", responses=errors(401), summary="Who is asking")
def me(who: Someone) -> MeRead:
    """The account that the token or the login belongs to."""
    return MeRead.of(who.user)
