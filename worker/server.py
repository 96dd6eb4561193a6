"""What a node asks the server by HTTP, signed: whether an attempt is still wanted, for its files, and to keep some."""

from __future__ import annotations

import logging
from collections.abc import Generator

import httpx

from broker.identity import NodeKey, Sender

logger = logging.getLogger(__name__)

TIMEOUT_S = 3.0
UPLOAD_TIMEOUT_S = 20.0


class Signature(httpx.Auth):
    """Signs every request by the node's key, each try anew: one that arrived is not taken again."""

    requires_request_body = True

    def __init__(self, node: str, key: NodeKey) -> None:
        self._sender = Sender(node, key)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign what is about to be sent."""
        target = request.url.raw_path.decode("ascii")
        request.headers["Authorization"] = self._sender.authorization(request.method, target, request.content)
        yield request


class Server:
    """The server; safe to use from several threads. That it does not answer is never an error here."""

    def __init__(self, url: str, signature: Signature) -> None:
        self._client = httpx.Client(base_url=f"{url}/api/v1", auth=signature, timeout=TIMEOUT_S)

    def lives(self, attempt: str, fence: int) -> bool | None:
        """Whether the attempt is still this node's; `None` if the server does not say."""
        try:
            response = self._client.get(f"/attempts/{attempt}", params={"fence": fence})
            if response.is_success:
                return bool(response.json()["live"])
            logger.warning("the server answered %d about attempt %s", response.status_code, attempt)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            logger.warning("the server does not say whether attempt %s lives: %r", attempt, error)
        return None

    def keep(self, attempt: str, fence: int, name: str, data: bytes) -> bool:
        """Give it a file that an attempt left; whether it took it."""
        try:
            response = self._client.put(
                f"/attempts/{attempt}/artefacts/{name}",
                params={"fence": fence},
                content=data,
                headers={"Content-Type": "application/octet-stream"},
                timeout=UPLOAD_TIMEOUT_S,
            )
        except httpx.HTTPError as error:
            logger.warning("%s of attempt %s was not kept: %r", name, attempt, error)
            return False
        if not response.is_success:
            logger.warning("%s of attempt %s was not kept: status %d", name, attempt, response.status_code)
        return response.is_success

    def close(self) -> None:
        """Close its connections."""
        self._client.close()
