"""Ed25519 signatures over JSON documents (receipts of grades, acceptance reports) and over bytes (what a node says).

A signed document has one more key, `signature`. What is signed is the rest of it as canonical JSON: keys sorted, no
spaces, UTF-8, numbers as Python writes them, nothing that is not finite. So a file may be indented or reordered and
its signature still holds; a changed digit breaks it.

Needs `cryptography`, which the vocabulary beside it does not: only who signs or verifies imports this.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ALGORITHM = "Ed25519"
SIGNATURE = "signature"
_RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)
_PEM = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


class SignatureError(Exception):
    """A document is not signed, or not by the key that was asked for, or is not what was signed."""


class SigningKey:
    """A private key; `public` is its other half, base64 of 32 bytes."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = base64.b64encode(key.public_key().public_bytes(*_RAW)).decode()

    @classmethod
    def generate(cls) -> SigningKey:
        """A new one, from the system's random source."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read a key that `save` wrote.

        Raises:
            SignatureError: the file holds no Ed25519 key.
        """
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except ValueError as error:
            raise SignatureError(f"{path} holds no key that can be read: {error}") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SignatureError(f"{path} holds a different kind of key than {ALGORITHM}.")
        return cls(key)

    def save(self, path: Path, *, mode: int = 0o600) -> None:
        """Write it as PEM, its owner's alone from the first byte on.

        Raises:
            FileExistsError: there is such a file; no key is ever overwritten.
        """
        new = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self._key.private_bytes(*_PEM))
                file.flush()
                os.fsync(file.fileno())
            # Unlike a rename, a link fails where the name is taken: of two that make a key at once, one wins.
            os.link(new, path)
        finally:
            new.unlink()

    def sign(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The document with its signature; one that it had is replaced."""
        value = base64.b64encode(self._key.sign(canonical(document))).decode()
        signature = {"algorithm": ALGORITHM, "key": self.public, "value": value}
        return {**_unsigned(document), SIGNATURE: signature}

    def sign_bytes(self, data: bytes) -> str:
        """The signature of bytes, base64. A document begins with a brace: let nothing else that is signed do so."""
        return base64.b64encode(self._key.sign(data)).decode()

    def derived(self, purpose: str) -> str:
        """A secret of 32 bytes, as hex, that follows from the private half and tells nothing of it: HMAC-SHA256."""
        seed = self._key.private_bytes_raw()
        return hmac.new(seed, purpose.encode(), hashlib.sha256).hexdigest()


def canonical(document: Mapping[str, Any]) -> bytes:
    """The bytes that are signed: the document without its signature.

    Raises:
        SignatureError: a number in it is not finite, or a text holds half a surrogate pair.
    """
    try:
        text = json.dumps(
            _unsigned(document), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode()
    except (ValueError, RecursionError) as error:
        raise SignatureError(f"this document cannot be signed: {error}") from None


def verify(document: Mapping[str, Any], public: str | None = None) -> str:
    """The public key that signed the document; `public` is the one that has to be it.

    Without `public` the answer says only that whoever holds that key signed this: compare it with a key that you trust.

    Raises:
        SignatureError: see there.
    """
    said = document.get(SIGNATURE)
    if not isinstance(said, Mapping) or not all(isinstance(said.get(name), str) for name in ("key", "value")):
        raise SignatureError("this document is not signed")
    if said.get("algorithm") != ALGORITHM:
        raise SignatureError(f"it is not signed with {ALGORITHM}")
    if public is not None and said["key"] != public:
        raise SignatureError(f"it is signed by the key {key_id(said['key'])}, not by {key_id(public)}")
    try:
        _public_key(said["key"]).verify(_bytes(said["value"]), canonical(document))
    except InvalidSignature:
        raise SignatureError("it was changed after it was signed") from None
    return str(said["key"])


def verify_bytes(data: bytes, signature: str, public: str) -> None:
    """Raise `SignatureError` unless this is the signature of these bytes by the owner of that public key."""
    try:
        _public_key(public).verify(_bytes(signature), data)
    except InvalidSignature:
        raise SignatureError("the signature does not match: another key signed it, or it was changed") from None


def check_public(public: str) -> None:
    """Raise `SignatureError` unless this is a public key: base64 of 32 bytes."""
    _public_key(public)


def key_id(public: str) -> str:
    """A short name of a public key for people to compare: 16 hex digits of its SHA-256."""
    return hashlib.sha256(_bytes(public)).hexdigest()[:16]


def _unsigned(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != SIGNATURE}


def _public_key(public: str) -> Ed25519PublicKey:
    try:
        return Ed25519PublicKey.from_public_bytes(_bytes(public))
    except ValueError:
        raise SignatureError("that is no public key: base64 of 32 bytes is asked for") from None


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SignatureError("a key or a signature is not base64") from None
