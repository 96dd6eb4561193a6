"""What a node puts on the results queue: signed, and bounded before it is parsed.

A node's token is its secret. Both sides know the SHA-256 of it, which is the signing key: the node makes it from the
token, the server stores nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from autograder import codec
from autograder.contract import (
    CONTRACT_VERSION,
    AttemptEvent,
    AttemptFailure,
    AttemptResult,
    Claim,
    Envelope,
    Kind,
    NodeReport,
)
from autograder.errors import ContractError

Message = NodeReport | Claim | AttemptEvent | AttemptResult | AttemptFailure


class ForgedError(ContractError):
    """The signature is not that of the node which the envelope names."""


_CLASSES: Mapping[Kind, type[Message]] = {
    Kind.node: NodeReport,
    Kind.claimed: Claim,
    Kind.heartbeat: Claim,
    Kind.event: AttemptEvent,
    Kind.result: AttemptResult,
    Kind.failure: AttemptFailure,
}


def key_of(token: str) -> str:
    """The signing key of a node's token, as hex."""
    return hashlib.sha256(token.encode()).hexdigest()


def seal(node: str, key: str, kind: Kind, message: Message) -> str:
    """Sign a message; the envelope as JSON text.

    Raises:
        ContractError: the message is larger than the recorder takes.
    """
    body = codec.dumps(message)
    if len(body) > codec.MAX_TEXT:
        raise ContractError(f"a {kind} may have {codec.MAX_TEXT} characters, this one has {len(body)}")
    return codec.dumps(Envelope(node, kind, body, _signature(node, key, kind, body)))


def unseal(envelope: Envelope, key: str) -> Message:
    """The message inside, of the class that the envelope's kind names.

    Raises:
        ForgedError: a signature by another key.
        ContractError: another contract version, or a body that does not fit its kind.
    """
    if envelope.version != CONTRACT_VERSION:
        raise ContractError(f"contract version {envelope.version}, this side speaks {CONTRACT_VERSION}")
    expected = _signature(envelope.node, key, envelope.kind, envelope.body)
    if not hmac.compare_digest(expected.encode(), envelope.signature.encode()):
        raise ForgedError("the signature is not this node's")
    return codec.loads(_CLASSES[envelope.kind], envelope.body)


def _signature(node: str, key: str, kind: Kind, body: str) -> str:
    text = f"{node}\n{kind}\n{body}".encode()
    return hmac.new(bytes.fromhex(key), text, hashlib.sha256).hexdigest()
