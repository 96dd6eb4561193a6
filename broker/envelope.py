"""What a node puts on the results queue: signed, numbered, and bounded before it is parsed."""

from __future__ import annotations

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
from broker.identity import Sender, check_envelope

Message = NodeReport | Claim | AttemptEvent | AttemptResult | AttemptFailure


_CLASSES: Mapping[Kind, type[Message]] = {
    Kind.node: NodeReport,
    Kind.claimed: Claim,
    Kind.heartbeat: Claim,
    Kind.event: AttemptEvent,
    Kind.result: AttemptResult,
    Kind.failure: AttemptFailure,
}


def seal(sender: Sender, kind: Kind, message: Message) -> str:
    """Sign a message; the envelope as JSON text.

    Raises:
        ContractError: the message is larger than the recorder takes.
    """
    body = codec.dumps(message)
    if len(body) > codec.MAX_TEXT:
        raise ContractError(f"a {kind} may have {codec.MAX_TEXT} characters, this one has {len(body)}")
    return codec.dumps(sender.envelope(kind, body))


def unseal(envelope: Envelope, public_key: str) -> Message:
    """The message inside, of the class that the envelope's kind names. That it comes once is the recorder's to see.

    Raises:
        ForgedError: a signature by another key.
        ContractError: another contract version, or a body that does not fit its kind.
    """
    if envelope.version != CONTRACT_VERSION:
        raise ContractError(f"contract version {envelope.version}, this side speaks {CONTRACT_VERSION}")
    check_envelope(envelope, public_key)
    return codec.loads(_CLASSES[envelope.kind], envelope.body)
