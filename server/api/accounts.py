"""Tokens, and who one is."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session

from server.accounts import accounts, places, second_factor
from server.api.responses import errors
from server.api.schemas import MeRead, TokenCreate, TokenRead
from server.config import Config
from server.errors import InvalidInputError
from server.http.identity import Someone, place_of
from server.http.work import Settings, Work
from server.models import ApiToken, TokenScope, User

router = APIRouter(tags=["accounts"])


@router.post("/tokens", status_code=HTTPStatus.CREATED, responses=errors(401, 403, 422, 429), summary="Make a token")
def create_token(body: TokenCreate, request: Request, work: Work, config: Settings) -> TokenRead:
    """Exchange e-mail address and password for a token, to be sent as `Authorization: Bearer`.

    For the scope `staff`, whoever has a second factor sends its `code`, too; without one the answer is 403 with the
    error `SecondFactorError`.
    """
    place = place_of(request)
    user = accounts.authenticate(work, email=body.email, password=body.password, place=place, config=config)
    wants_staff = TokenScope.staff in body.scopes
    strong = second_factor.for_token(work, user, body.code, wants_staff=wants_staff, place=place, config=config)
    if strong or not second_factor.is_set(work, user):
        # To an account that asks for more a password alone must not make a place known.
        places.remember(work, user, place)
    return TokenRead.of(*_made(work, user, body, config, is_strong=strong))


def _made(work: Session, user: User, body: TokenCreate, config: Config, *, is_strong: bool) -> tuple[ApiToken, str]:
    ends = accounts.token_end(config, body.days)
    return accounts.create_token(work, user, name=body.name, expires_at=ends, scopes=body.scopes, is_strong=is_strong)


@router.delete(
    "/tokens/current", status_code=HTTPStatus.NO_CONTENT, responses=errors(401, 422), summary="Revoke this token"
)
def revoke_token(who: Someone, work: Work) -> None:
    """End the token that this request was made with."""
    if who.token is None:
        raise InvalidInputError("This request was made with a browser login, not with a token.")
    accounts.revoke_token(work, who.user, who.token.id)


@router.get("/me", responses=errors(401), summary="Who is asking")
def me(who: Someone) -> MeRead:
    """The account that the token or the login belongs to."""
    return MeRead.of(who.user)
