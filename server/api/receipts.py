"""Receipts of grades, and the keys that they are checked with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from autograder.receipts import Copy
from autograder.signing import ALGORITHM, key_id
from server.api.responses import errors
from server.api.schemas import Read
from server.grading import receipt_keys
from server.http.identity import Someone
from server.http.signed_receipts import receipt_for
from server.http.work import Work
from server.models import ReceiptKey

router = APIRouter(tags=["receipts"])


class ReceiptKeyRead(Read):
    """A key that signs receipts, or did."""

    id: Annotated[str, Field(description="16 hex digits of the key's SHA-256, for people to compare.")]
    algorithm: str
    public: Annotated[str, Field(description="Base64 of its 32 bytes.")]
    created_at: datetime
    retired_at: Annotated[datetime | None, Field(description="Since then another key signs.")]

    @classmethod
    def of(cls, key: ReceiptKey) -> ReceiptKeyRead:
        """The row with the key's name."""
        return cls(
            id=key_id(key.public),
            algorithm=ALGORITHM,
            public=key.public,
            created_at=key.created_at,
            retired_at=key.retired_at,
        )


@router.get("/receipts/keys", summary="The keys that receipts are signed with")
def list_keys(work: Work) -> list[ReceiptKeyRead]:
    """Every one that ever signed, the newest first: old receipts stay checkable."""
    return [ReceiptKeyRead.of(key) for key in receipt_keys.all_keys(work)]


@router.get(
    "/submissions/{public_id}/receipt",
    responses={
        200: {"content": {"application/json": {}}, "description": "The receipt with its signature."},
        **errors(401, 403, 404, 409, 422),
    },
    summary="The signed receipt of a grade",
)
def read_receipt(
    public_id: str,
    request: Request,
    who: Someone,
    copy: Annotated[
        Copy | None, Query(description="Staff get the full receipt unless they ask for the student's copy.")
    ] = None,
) -> dict[str, Any]:
    """Everything that the grade follows from; `ladder receipt verify` checks it and works the grade out again."""
    return receipt_for(request, who.user, public_id, copy)
