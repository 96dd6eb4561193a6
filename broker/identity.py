"""Who a node is: an Ed25519 key pair. The node makes it and keeps the private half; the server knows the public one.

At the broker a node has a password, which follows from the private half, so that no further secret has to travel. The
server and Redis know the SHA-256 of it. Neither what they keep nor a backup of it signs anything or lets anybody in.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from autograder import codec
from autograder.contract import Envelope, Kind, Stamp
from autograder.errors import ContractError
from autograder.signing import SignatureError, SigningKey, check_public, verify_bytes

SCHEME = "Ladder-Node"
"""Of the `Authorization` header that a node signs a request by."""
MAX_CREDENTIALS = 1000
_BROKER = "kernel-ladder broker password"
_MESSAGE, _REQUEST, _NEW_KEY = "kernel-ladder message", "kernel-ladder request", "kernel-ladder new key"
"""What is signed says what it is, so that none passes for another."""


class ForgedError(ContractError):
    """The signature is not that of the node which is named."""


@dataclass(frozen=True)
class Identity:
    """What others know a node by.

    Attributes:
        public_key: base64 of 32 bytes.
        broker_hash: hex SHA-256 of its password at the broker.
    """

    public_key: str
    broker_hash: str

    def check(self) -> None:
        """Raise `ContractError` if it can be nobody's."""
        try:
            check_public(self.public_key)
        except SignatureError as error:
            raise ContractError(str(error)) from None
        if not re.fullmatch(r"[0-9a-f]{64}", self.broker_hash):
            raise ContractError("the broker's hash has 64 hexadecimal digits")


class NodeKey:
    """A node's key pair; never leaves the node."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        self.broker_password = key.derived(_BROKER)
        self.identity = Identity(key.public, hashlib.sha256(self.broker_password.encode()).hexdigest())

    @classmethod
    def generate(cls) -> NodeKey:
        """A new one."""
        return cls(SigningKey.generate())

    @classmethod
    def load(cls, path: Path) -> NodeKey:
        """Read what `save` wrote, or `openssl genpkey -algorithm ed25519`.

        Raises:
            OSError, SignatureError: it cannot be read, or is no such key.
        """
        return cls(SigningKey.load(path))

    def save(self, path: Path) -> None:
        """Write it, mode 0400; raises `FileExistsError` rather than write over another."""
        self._key.save(path, mode=0o400)

    def sign(self, *parts: object) -> str:
        """The signature of these parts in this order."""
        return self._key.sign_bytes(_text(*parts))

    def consent(self, name: str, replaced: str) -> str:
        """What shows that this key's owner wants it to be node `name`'s, in place of the public key `replaced`."""
        return self.sign(_NEW_KEY, name, replaced)


class Sender:
    """Signs what one process of a node says, each time with another stamp; safe to use from several threads.

    Args:
        clock: seconds since 1970.
    """

    def __init__(self, node: str, key: NodeKey, *, clock: Callable[[], float] = time.time) -> None:
        self.node = node
        self._key = key
        self._clock = clock
        self._session = secrets.randbits(62)
        self._numbers = count(1)

    def envelope(self, kind: Kind, body: str) -> Envelope:
        """A message, signed."""
        unsigned = Envelope(self.node, kind, self._stamp(), body, "")
        return dataclasses.replace(unsigned, signature=self._key.sign(*_message(unsigned)))

    def authorization(self, method: str, target: str, content: bytes) -> str:
        """The `Authorization` header of one request.

        Args:
            target: path and query, as they are sent.
        """
        stamp = self._stamp()
        signature = self._key.sign(*_request(self.node, stamp, method, target, content))
        text = codec.dumps(Credentials(self.node, stamp, signature))
        return f"{SCHEME} {base64.urlsafe_b64encode(text.encode()).decode()}"

    def _stamp(self) -> Stamp:
        return Stamp(self._session, next(self._numbers), float(self._clock()))


@dataclass(frozen=True)
class Credentials:
    """By whom a request says it is."""

    node: str
    stamp: Stamp
    signature: str

    @classmethod
    def parse(cls, text: str) -> Credentials:
        """What stands behind the scheme; raises `ContractError` where it is nothing of the kind."""
        if len(text) > MAX_CREDENTIALS:
            raise ContractError("these credentials are too long")
        try:
            decoded = base64.b64decode(text, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise ContractError("these credentials are not base64") from None
        return codec.loads(cls, decoded, max_bytes=MAX_CREDENTIALS)

    def check(self, public_key: str, method: str, target: str, content: bytes) -> None:
        """Raise `ForgedError` unless the owner of this key signed this request."""
        verify(public_key, self.signature, *_request(self.node, self.stamp, method, target, content))


def check_consent(public_key: str, signature: str, name: str, replaced: str) -> None:
    """Raise `ForgedError` unless the owner of this key wants it to be node `name`'s in place of `replaced`."""
    verify(public_key, signature, _NEW_KEY, name, replaced)


def check_envelope(envelope: Envelope, public_key: str) -> None:
    """Raise `ForgedError` unless the owner of this key signed this message."""
    verify(public_key, envelope.signature, *_message(envelope))


def verify(public_key: str, signature: str, *parts: object) -> None:
    """Raise `ForgedError` unless the owner of this key signed these parts in this order."""
    try:
        verify_bytes(_text(*parts), signature, public_key)
    except SignatureError:
        raise ForgedError("the signature is not this node's") from None


def _message(envelope: Envelope) -> tuple[object, ...]:
    stamp = envelope.stamp
    return _MESSAGE, envelope.node, stamp.session, stamp.number, stamp.at, envelope.kind, envelope.body


def _request(node: str, stamp: Stamp, method: str, target: str, content: bytes) -> tuple[object, ...]:
    digest = hashlib.sha256(content).hexdigest()
    return _REQUEST, node, stamp.session, stamp.number, stamp.at, method, target, digest


def _text(*parts: object) -> bytes:
    return json.dumps(parts, separators=(",", ":")).encode()
