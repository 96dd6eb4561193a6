"""What a node asks for, signed by its key: to join, its assignments' files, whether an attempt is still wanted."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials
from fastapi.security.http import HTTPBase
from sqlalchemy import select

from autograder.errors import ContractError
from broker.identity import SCHEME, Credentials, ForgedError, Identity, check_consent
from server.api.responses import errors
from server.api.schemas import AttemptRead, NodeJoin, NodeJoined, NodeKeyReplace, NodeOwnRead
from server.db import after_commit, now
from server.errors import ConflictError, UnauthenticatedError
from server.grading import interface as grading
from server.http.work import Settings, Work, database_of
from server.models import Course, Node
from server.nodes import access, invites, nodes

router = APIRouter(tags=["nodes"])

_signed = HTTPBase(
    scheme=SCHEME,
    scheme_name="node signature",
    description="Of this request, by the key of a node (`broker.identity`), not by a person.",
    auto_error=False,
)
BUNDLE_TYPE = "application/x-tar"


async def _content(request: Request) -> bytes:
    return await request.body()


Content = Annotated[bytes, Depends(_content)]
Signed = Annotated[HTTPAuthorizationCredentials | None, Depends(_signed)]


def _credentials(signed: HTTPAuthorizationCredentials | None) -> Credentials:
    if signed is None or signed.scheme.lower() != SCHEME.lower():
        raise UnauthenticatedError("A node's signature is required.")
    try:
        return Credentials.parse(signed.credentials)
    except ContractError as error:
        raise UnauthenticatedError(f"This is not a valid node signature: {error}.") from None


def _target(request: Request) -> str:
    """Path and query as they were sent."""
    query: bytes = request.scope["query_string"]
    path: bytes = request.scope["raw_path"]
    return (path + (b"?" + query if query else b"")).decode("latin-1")


def require_node(request: Request, signed: Signed, content: Content) -> Node:
    """The node that is asking; raises `UnauthenticatedError` for anybody else.

    In a transaction of its own: a request is used up, whatever comes of it.
    """
    credentials, target = _credentials(signed), _target(request)
    with database_of(request).transaction() as session:
        node = nodes.node_of_request(
            session, credentials, method=request.method, target=target, content=content, now=now(session)
        )
        session.expunge(node)
    return node


Asking = Annotated[Node, Depends(require_node)]


@router.post("/nodes/join", status_code=HTTPStatus.CREATED, responses=errors(401, 409, 422), summary="Become a node")
def join(
    *, body: NodeJoin, request: Request, work: Work, config: Settings, signed: Signed, content: Content
) -> NodeJoined:
    """Exchange a code that staff made for a place among the nodes, under the key that signs this request.

    The code is used up. Nothing that comes back is secret.
    """
    identity = Identity(body.public_key, body.broker_hash)
    if not config.nodes_broker_url:
        raise ConflictError("This installation accepts no remote nodes: LADDER_NODES_BROKER_URL is not set.")
    _check_signed_by(identity, _credentials(signed), request, content)
    node = invites.join(work, name=body.name, code=body.code, identity=identity, now=now(work))
    # Whoever had its old key has nothing of it left to finish.
    grading.fence_off(work, node.id, "the node joined again", now=now(work), config=config)
    after_commit(work, partial(access.grant, config.broker_url, [(node.name, node.broker_hash)]))
    return NodeJoined(name=node.name, broker_url=access.url_for(config.nodes_broker_url, node.name))


def _check_signed_by(identity: Identity, credentials: Credentials, request: Request, content: bytes) -> None:
    try:
        credentials.check(identity.public_key, request.method, _target(request), content)
    except ForgedError:
        raise UnauthenticatedError("This request is not signed by the key that it names.") from None


@router.get("/nodes/own", responses=errors(401), summary="What a node may grade")
def read_own(work: Work, node: Asking) -> NodeOwnRead:
    """What staff granted the node that is asking."""
    grant = nodes.grant_of(node)
    slugs = None
    if grant.courses is not None:
        slugs = list(work.scalars(select(Course.slug).where(Course.id.in_(grant.courses)).order_by(Course.slug)))
    return NodeOwnRead(name=node.name, lanes=sorted(grant.lanes), courses=slugs)


@router.put(
    "/nodes/own/key", status_code=HTTPStatus.NO_CONTENT, responses=errors(401, 422), summary="Replace a node's key"
)
def replace_key(body: NodeKeyReplace, work: Work, config: Settings, node: Asking) -> None:
    """Signed by the old key, with the new one's consent; from now on the new one signs.

    What the node works on is graded again, at no cost.
    """
    identity = Identity(body.public_key, body.broker_hash)
    try:
        check_consent(identity.public_key, body.consent, node.name, str(node.public_key))
    except ForgedError:
        raise UnauthenticatedError("The new key did not sign the request.") from None
    row = nodes.find_node(work, name=node.name)
    nodes.set_identity(row, identity)
    grading.fence_off(work, node.id, "the node's key was replaced", now=now(work), config=config)
    after_commit(work, partial(access.grant, config.broker_url, [(row.name, row.broker_hash)]))


AttemptId = Annotated[str, Path(pattern=r"^[0-9A-Z]{26}$")]
Fence = Annotated[int, Query(ge=1, le=2**31 - 1, description="Which attempt of its submission it is.")]
FileName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$")]


@router.get("/attempts/{attempt}", responses=errors(401, 422), summary="Whether an attempt is still wanted")
def read_attempt(attempt: AttemptId, fence: Fence, work: Work, node: Asking) -> AttemptRead:
    """Live while the asking node has it and no result of it is recorded; anything else is not."""
    return AttemptRead(live=grading.is_live(work, node, attempt, fence))


@router.get(
    "/attempts/{attempt}/bundle",
    response_class=Response,
    responses={200: {"content": {BUNDLE_TYPE: {}}, "description": "The files as one tar."}, **errors(401, 404, 422)},
    summary="The files of an attempt's assignment",
)
def read_bundle(attempt: AttemptId, fence: Fence, work: Work, node: Asking) -> Response:
    """The assignment with its hidden part, for the node that holds the attempt, and while it does."""
    # Only the node itself may keep it: it knows it by its content's hash.
    return Response(
        grading.bundle_of(work, node, attempt, fence), media_type=BUNDLE_TYPE, headers={"Cache-Control": "no-store"}
    )


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
