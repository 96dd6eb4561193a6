"""An OpenID provider on loopback: real HTTP, real signed tokens, and every way to be wrong that a test asks for."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT, SECRET = "kernel-ladder", "the client's secret"


@dataclass
class IdentityProvider:
    """Who is logged in there, and how its tokens differ from what they have to be.

    Attributes:
        claims: put into the ID token instead of what belongs there; `None` leaves one out.
        signing: `RS256`, `none`, `HS256` (with our own secret), or `other key`.
        iss: of the answer that goes through the browser; `None` leaves it out.
        slow_s: how long it takes to answer for a token.
    """

    url: str = ""
    subject: str = "u-1"
    email: str = "alice@example.org"
    name: str = "Alice"
    claims: dict[str, Any] = field(default_factory=dict)
    signing: str = "RS256"
    iss: str | None = None
    description: dict[str, Any] = field(default_factory=dict)
    token_status: int = 200
    slow_s: float = 0.0
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, parameters={"kid": "first"}, private=True))
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def rotate(self) -> None:
        """Sign with a new key from now on."""
        self.key = RSAKey.generate_key(2048, parameters={"kid": secrets.token_hex(4)}, private=True)

    def configuration(self) -> dict[str, Any]:
        """What it says of itself."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "id_token_signing_alg_values_supported": ["RS256"],
            **self.description,
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to, with a code."""
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        back = {"code": code, "state": asked["state"], **({"iss": self.iss} if self.iss is not None else {})}
        return f"{asked['redirect_uri']}?{urlencode(back)}"

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any]:
        """The answer for a code, once, to whoever proves to be the client that asked for it."""
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            authorization != f"Basic {expected}"
            or asked is None
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != asked["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return {"error": "invalid_grant"}
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": self.id_token(asked["nonce"])}

    def id_token(self, nonce: str) -> str:
        """The token, signed as it is told to."""
        at = int(time.time())
        claims = {
            "iss": self.url, "sub": self.subject, "aud": CLIENT, "exp": at + 300, "iat": at, "nonce": nonce,
            "email": self.email, "email_verified": True, "name": self.name, **self.claims,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.signing == "none":
            return ".".join((_part({"alg": "none", "typ": "JWT"}), _part(claims), ""))
        if self.signing == "HS256":
            return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET.ljust(32)), algorithms=["HS256"])
        key = self.key
        if self.signing == "other key":
            key = RSAKey.generate_key(2048, parameters={"kid": self.key.kid}, private=True)
        return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key)


@contextmanager
def served() -> Iterator[IdentityProvider]:
    """A provider for the time of the block."""
    provider = IdentityProvider()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(provider))
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(provider: IdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the standard library's name
            parts = urlsplit(self.path)
            provider.asked.append(parts.path)
            if parts.path == "/.well-known/openid-configuration":
                self._json(provider.configuration())
            elif parts.path == "/jwks":
                self._json({"keys": [provider.key.as_dict(private=False)]})
            else:
                self.send_response(302)
                asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_header("location", provider.authorize(asked))
                self.end_headers()

        def do_POST(self) -> None:  # the standard library's name
            provider.asked.append("/token")
            time.sleep(provider.slow_s)
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            answer = provider.token(form, self.headers.get("authorization", ""))
            self._json(answer, 400 if "error" in answer else provider.token_status)

        def _json(self, content: dict[str, Any], status: int = 200) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
