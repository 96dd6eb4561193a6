"""What a node asks for: bundles, by content hash and with its own token. No person may."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from server.api.responses import errors
from server.errors import UnauthenticatedError
from server.http.work import Work
from server.models import Node
from server.nodes import service as nodes

router = APIRouter(tags=["nodes"])

_bearer = HTTPBearer(scheme_name="node token", description="The token of a node, not of a person.", auto_error=False)
BUNDLE_TYPE = "application/x-tar"


def require_node(work: Work, token: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> Node:
    """The node that is asking; raises `UnauthenticatedError` for anybody else."""
    if token is None:
        raise UnauthenticatedError("A node's token is needed.")
    return nodes.node_of_token(work, token.credentials)


@router.get(
    "/bundles/{bundle_hash}",
    response_class=Response,
    responses={200: {"content": {BUNDLE_TYPE: {}}, "description": "The files as one tar."}, **errors(401, 404)},
    summary="An assignment's files",
)
def read_bundle(bundle_hash: str, work: Work, _node: Annotated[Node, Depends(require_node)]) -> Response:
    """The assignment with its hidden part: what a node needs to grade it."""
    data = nodes.bundle_bytes(work, bundle_hash)
    # The name is the content: it never changes. Only the node itself may keep it.
    headers = {"Cache-Control": "private, immutable, max-age=31536000"}
    return Response(data, media_type=BUNDLE_TYPE, headers=headers)
