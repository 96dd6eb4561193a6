"""What a node asks for with its token: bundles, whether an attempt is still wanted, to keep files. No person may."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Query, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from server.api.responses import errors
from server.api.schemas import AttemptRead, NodeJoin, NodeJoined
from server.db import after_commit, now
from server.errors import ConflictError, UnauthenticatedError
from server.grading import service as grading
from server.http.work import Settings, Work
from server.models import Node
from server.nodes import access, invites
from server.nodes import service as nodes

router = APIRouter(tags=["nodes"])

_bearer = HTTPBearer(scheme_name="node token", description="The token of a node, not of a person.", auto_error=False)
BUNDLE_TYPE = "application/x-tar"


def require_node(work: Work, token: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> Node:
    """The node that is asking; raises `UnauthenticatedError` for anybody else."""
    if token is None:
        raise UnauthenticatedError("A node's token is needed.")
    return nodes.node_of_token(work, token.credentials)


@router.post("/nodes/join", status_code=HTTPStatus.CREATED, responses=errors(401, 409, 422), summary="Become a node")
def join(body: NodeJoin, work: Work, config: Settings) -> NodeJoined:
    """Exchange a code that staff made for a node's token and for where its queue is. The code is used up."""
    if not config.nodes_broker_url:
        raise ConflictError("This installation takes no nodes from elsewhere: LADDER_NODES_BROKER_URL is not set.")
    node, token = invites.join(work, name=body.name, code=body.code, now=now(work))
    # Whoever had its old token has nothing of it left to finish.
    grading.fence_off(work, node.id, "the node's token was replaced", now=now(work), config=config)
    after_commit(work, partial(access.grant, config.broker_url, [(node.name, node.key)]))
    return NodeJoined(name=node.name, token=token, broker_url=access.url_for(config.nodes_broker_url, node.name))


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


AttemptId = Annotated[str, Path(pattern=r"^[0-9A-Z]{26}$")]
Fence = Annotated[int, Query(ge=1, le=2**31 - 1, description="Which attempt of its submission it is.")]
FileName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$")]
Asking = Annotated[Node, Depends(require_node)]


@router.get("/attempts/{attempt}", responses=errors(401, 422), summary="Whether an attempt is still wanted")
def read_attempt(attempt: AttemptId, fence: Fence, work: Work, node: Asking) -> AttemptRead:
    """Live while the asking node has it and no result of it is recorded; anything else is not."""
    return AttemptRead(live=grading.is_live(work, node, attempt, fence))


@router.put(
    "/attempts/{attempt}/artefacts/{name}",
    status_code=HTTPStatus.NO_CONTENT,
    responses=errors(401, 404, 409, 413, 422, 429),
    summary="Keep a file that an attempt left",
)
def keep_artefact(
    *,
    attempt: AttemptId,
    name: FileName,
    fence: Fence,
    work: Work,
    node: Asking,
    data: Annotated[bytes, Body(media_type="application/octet-stream")],
) -> None:
    """At most 1 MiB each and 8 of one attempt; the same again changes nothing."""
    grading.store_artefact(work, node, attempt=attempt, fence=fence, name=name, data=data, now=now(work))
