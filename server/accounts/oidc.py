"""OpenID Connect as a relying party: where to send a browser, and who came back. No database here, only the network.

Authorization code with PKCE, state and nonce (Authlib). An ID token is taken if it is signed by a key that the issuer
publishes, with an asymmetric algorithm, is for us, answers our nonce, and is not over.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from authlib.oauth2 import OAuth2Client, OAuth2Error
from authlib.oauth2.auth import ClientAuth
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from server.accounts.providers import Provider, is_guarded
from server.errors import LadderError

logger = logging.getLogger(__name__)

TIMEOUT_S = 5.0
"""Each question to a provider."""
KNOWN_FOR_S = 3600.0
"""How long a provider's description and keys are believed; a key that is not among them is looked for at once."""
LOOK_AGAIN_S = 30.0
"""But not more often: tokens with keys that nobody has must not make us ask for each."""
LEEWAY_S = 60
"""By how much a provider's clock may differ."""
MAX_ANSWER_BYTES = 1 << 20
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric ones only: neither `none`, nor one for which our own secret is the key."""
_SUBJECT_CHARS = 255
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderError(LadderError):
    """An identity provider did not answer as it has to; ours or theirs, not the person's."""

    status = 502


@dataclass(frozen=True)
class Person:
    """Who a provider says that somebody is.

    Attributes:
        email: `""` unless the provider says that it verified it.
    """

    issuer: str
    subject: str
    email: str
    name: str


@dataclass(frozen=True)
class _Known:
    """A provider's own description, its keys, and when they were read."""

    description: Mapping[str, Any]
    keys: KeySet
    at: float


class Relying:
    """Us, to one provider."""

    def __init__(self, provider: Provider, redirect_uri: str) -> None:
        self.provider = provider
        self._redirect_uri = redirect_uri
        self._known: _Known | None = None
        self._lock = threading.Lock()

    def look(self) -> None:
        """Read what the provider says of itself, if that is not known: `address` then asks nobody.

        Raises:
            ProviderError: the provider does not answer.
        """
        self._description()

    def address(self, *, state: str, nonce: str, verifier: str) -> str:
        """Where to send the browser.

        Raises:
            ProviderError: the provider does not answer.
        """
        known = self._description()
        with httpx.Client() as http:
            url, _state = self._client(http, known).create_authorization_url(
                known.description["authorization_endpoint"], state=state, nonce=nonce, code_verifier=verifier
            )
        return str(url)

    def person(self, *, code: str, nonce: str, verifier: str) -> Person:
        """Who came back with this code.

        Raises:
            ProviderError: the provider does not answer, or with a token that is not to be believed.
        """
        known = self._description()
        token = self._exchange(known, code, verifier)
        text = token.get("id_token")
        if not isinstance(text, str):
            raise self._refused("it sent no ID token")
        return self._person(self._claims(known, text, nonce, token))

    def _exchange(self, known: _Known, code: str, verifier: str) -> Mapping[str, Any]:
        def ask() -> Mapping[str, Any]:
            with httpx.Client(timeout=TIMEOUT_S) as http:
                answer: Mapping[str, Any] = self._client(http, known).fetch_token(
                    known.description["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    code_verifier=verifier,
                    redirect_uri=self._redirect_uri,
                )
            return answer

        answer: Mapping[str, Any] = self._asked(ask)
        return answer

    def _client(self, http: httpx.Client, known: _Known) -> OAuth2Client:
        methods = known.description.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        by_body = "client_secret_basic" not in methods and "client_secret_post" in methods
        client = OAuth2Client(
            http,
            client_id=self.provider.client_id,
            client_secret=self.provider.client_secret or None,
            token_endpoint_auth_method="client_secret_post" if by_body and self.provider.client_secret else None,
            scope="openid email profile",
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
        )
        client.client_auth_class = _Auth
        return client

    def _claims(self, known: _Known, text: str, nonce: str, token: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            decoded = self._decoded(known, text)
            options = {
                "iss": {"essential": True, "value": self.provider.issuer},
                "aud": {"essential": True, "value": self.provider.client_id},
                "exp": {"essential": True},
            }
            given = {
                "nonce": nonce,
                "client_id": self.provider.client_id,
                "access_token": token.get("access_token"),
            }
            claims: Mapping[str, Any] = CodeIDToken(decoded.claims, decoded.header, options, given)
            claims.validate(leeway=LEEWAY_S)  # type: ignore[attr-defined]  # Authlib is untyped
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise self._refused(f"its ID token is not to be believed: {error}") from error
        return claims

    def _decoded(self, known: _Known, text: str) -> jwt.Token:
        said = known.description.get("id_token_signing_alg_values_supported") or ALGORITHMS
        allowed = [name for name in ALGORITHMS if name in said]
        registry = JWSRegistry(algorithms=allowed, strict_check_header=False)
        try:
            return jwt.decode(text, known.keys, registry=registry)
        except InvalidKeyIdError:
            return jwt.decode(text, self._description(unknown_key=True).keys, registry=registry)

    def _person(self, claims: Mapping[str, Any]) -> Person:
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_CHARS or not subject.isprintable():
            raise self._refused("its ID token names nobody")
        email, name = claims.get("email"), claims.get("name")
        # Some say "true", as a text: what is not plainly yes is no.
        verified = isinstance(email, str) and claims.get("email_verified") is True
        return Person(
            issuer=self.provider.issuer,
            subject=subject,
            email=str(email).strip().lower() if verified else "",
            name=name if isinstance(name, str) else "",
        )

    def _description(self, *, unknown_key: bool = False) -> _Known:
        """What the provider says of itself; asked for again after a while, or for a key that it did not have then."""
        with self._lock:
            known = self._known
            age = time.monotonic() - known.at if known else KNOWN_FOR_S
            if known is None or age >= (LOOK_AGAIN_S if unknown_key else KNOWN_FOR_S):
                self._known = known = self._asked(self._discover)
            return known

    def _discover(self) -> _Known:
        with httpx.Client(timeout=TIMEOUT_S) as http:
            description = _json(http, f"{self.provider.issuer.rstrip('/')}/.well-known/openid-configuration")
            if description.get("issuer") != self.provider.issuer:
                raise ValueError(f"it calls itself {description.get('issuer')!r}")
            unguarded = [name for name in _ENDPOINTS if not is_guarded(str(description.get(name, "")))]
            if unguarded:
                raise ValueError(f"{', '.join(unguarded)} is missing or not reached by https")
            keys = KeySet.import_key_set(_json(http, description["jwks_uri"]))  # type: ignore[arg-type]  # checked there
        return _Known(description, keys, time.monotonic())

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (httpx.HTTPError, httpx.InvalidURL, OAuth2Error, JoseError, ValueError, KeyError, TypeError) as error:
            raise self._refused(f"{type(error).__name__}: {error}") from error

    def _refused(self, why: str) -> ProviderError:
        logger.warning("log-in with %s failed: %s", self.provider.slug, why)
        return ProviderError(f"{self.provider.name} did not give a valid answer. Try again, or log in another way.")


class _Auth(httpx.Auth, ClientAuth):  # type: ignore[misc]  # Authlib is untyped
    """How we say who we are at the token endpoint: Authlib's way, for httpx."""

    requires_request_body = True

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add it to the request."""
        headers = {"accept": "application/json", "content-type": request.headers["content-type"]}
        url, headers, body = self.prepare(request.method, str(request.url), headers, request.content.decode())
        yield httpx.Request(request.method, url, headers=headers, content=body, extensions=request.extensions)


def relying_parties(providers: Sequence[Provider], public_url: str) -> Mapping[str, Relying]:
    """Us to each provider, by its slug."""
    return {item.slug: Relying(item, f"{public_url}/login/{item.slug}/callback") for item in providers}


def _json(http: httpx.Client, url: str) -> dict[str, Any]:
    """What stands there. No redirect is followed: it could leave for another host, or for this one."""
    with http.stream("GET", url, headers={"accept": "application/json"}) as answer:
        if answer.status_code != httpx.codes.OK:
            raise ValueError(f"{url} answers {answer.status_code}")
        content = b""
        for part in answer.iter_bytes():
            content += part
            if len(content) > MAX_ANSWER_BYTES:
                raise ValueError(f"{url} answers with more than {MAX_ANSWER_BYTES} bytes")
    found = json.loads(content)
    if not isinstance(found, dict):
        raise TypeError(f"{url} answers with no JSON object")
    return found
