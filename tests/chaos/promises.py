"""What the server said: kept by the students, and held against what it has in the end."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.chaos.plan import Step


@dataclass
class Promise:
    """One submission as its student saw it.

    Attributes:
        sent_at: when it was first sent, seconds since 1970; 0 if it never was.
        tries: how often it was sent.
        receipt: public id, number and source hash of the answer that accepted it; empty if none came.
        refused: the answer that refused it for good.
        answered_at: when it was accepted or refused.
        cancelled: the server said that it is taken back.
        cancel_in_doubt: taking it back was asked for, and no answer came.
    """

    step: Step
    sent_at: float = 0.0
    tries: int = 0
    receipt: dict[str, object] = field(default_factory=dict)
    refused: str = ""
    answered_at: float = 0.0
    cancelled: bool = False
    cancel_in_doubt: bool = False

    @property
    def public_id(self) -> str:
        """The receipt number; empty where nothing was accepted."""
        return str(self.receipt.get("public_id", ""))
