"""The students: each submits as planned, tries again with the same key until there is an answer, and keeps receipts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import httpx

from tests.chaos.plan import Step
from tests.chaos.promises import Promise

TIMEOUT = httpx.Timeout(6.0, connect=3.0)
PATIENCE_S = 300.0
"""How long a student tries before giving up on an answer."""
_TRY_AGAIN = frozenset({500, 502, 503, 504})


class Load:
    """Submits everything once; `promises` says what came of it.

    Args:
        pace: how many times as fast as planned.
    """

    def __init__(self, url: str, tokens: Mapping[int, str], steps: Sequence[Step], *, pace: float = 1.0) -> None:
        self._pace = pace
        self._url = f"{url}/api/v1"
        self._tokens = tokens
        self.promises = [Promise(step) for step in steps]
        self.lost_answers = 0
        self.statuses: dict[int, int] = {}

    def run(self) -> None:
        """Submit as planned; returns when everybody has an answer or gave up."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=20)
        async with httpx.AsyncClient(timeout=TIMEOUT, limits=limits, trust_env=False) as self._http:
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                for promises in _by_student(self.promises):
                    group.create_task(self._student(promises, began))

    async def _student(self, promises: Sequence[Promise], began: float) -> None:
        """A student does one thing after the other; only taking back waits beside it."""
        async with asyncio.TaskGroup() as group:
            for promise in promises:
                await asyncio.sleep(began + promise.step.at_s / self._pace - time.monotonic())
                await self._submit(promise)
                if promise.receipt and promise.step.cancel_after_s is not None:
                    group.create_task(self._take_back(promise, promise.step.cancel_after_s))

    async def _submit(self, promise: Promise) -> None:
        step = promise.step
        body = {
            "mode": step.mode, "lane": step.lane, "language": "triton", "filename": "kernel.py", "source": step.source,
        }  # fmt: skip
        promise.sent_at = time.time()
        url = f"/courses/{step.course}/assignments/{step.assignment}/submissions"
        answer = await self._until_answered(promise, url, body, {"Idempotency-Key": step.key})
        promise.answered_at = time.time()
        if answer is None:
            return
        if answer.status_code == httpx.codes.CREATED:
            promise.receipt = {name: answer.json()[name] for name in ("public_id", "number", "source_hash")}
        else:
            promise.refused = f"{answer.status_code}: {answer.text[:200]}"

    async def _take_back(self, promise: Promise, after_s: float) -> None:
        await asyncio.sleep(after_s)
        lost_before = self.lost_answers
        answer = await self._until_answered(promise, f"/submissions/{promise.public_id}/cancel", None, {})
        if answer is not None and answer.is_success:
            promise.cancelled = True
        elif answer is None or self.lost_answers > lost_before:
            # An answer was lost somewhere, perhaps ours: what is refused now may have been done before.
            promise.cancel_in_doubt = True

    async def _until_answered(
        self, promise: Promise, path: str, body: object, headers: Mapping[str, str]
    ) -> httpx.Response | None:
        """The answer that settles it; `None` if none came."""
        give_up_at = time.monotonic() + PATIENCE_S
        pause_s = 0.2
        own = {"Authorization": f"Bearer {self._tokens[promise.step.student]}", **headers}
        while time.monotonic() < give_up_at:
            promise.tries += 1
            try:
                answer = await self._http.post(self._url + path, json=body, headers=own)
            except httpx.TransportError:
                self.lost_answers += 1
            else:
                self.statuses[answer.status_code] = self.statuses.get(answer.status_code, 0) + 1
                if answer.status_code not in _TRY_AGAIN:
                    return answer
            await asyncio.sleep(pause_s)
            pause_s = min(2.0, pause_s * 1.6)
        return None


def _by_student(promises: Iterable[Promise]) -> list[list[Promise]]:
    by_student = attrgetter("step.student")
    return [list(group) for _, group in groupby(sorted(promises, key=by_student), key=by_student)]
