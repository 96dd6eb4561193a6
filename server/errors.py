"""What a service raises and a front renders: one tree, each with its HTTP status and a message that is safe to show.

    LadderError                 500
    ├── NotFoundError           404   it does not exist, or you may not know that it does
    ├── ForbiddenError          403   you may know of it, and may not do this
    │   └── SecondFactorError   403   staff came with a password alone
    ├── UnauthenticatedError    401   log in first
    ├── InvalidInputError       422   what you sent cannot be taken; `field` says which part
    ├── ConflictError           409   somebody or something was there before you
    ├── TooLargeError           413
    ├── TooManyError            429   a rate limit or a quota; `retry_after_s` says when
    └── ProviderError           502   an identity provider did not answer as it has to (`server.accounts.oidc`)

`server.http.error_responses` renders them.
"""

from __future__ import annotations


class LadderError(Exception):
    """Something a reader of the message can act on."""

    status = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotFoundError(LadderError):
    """It does not exist, or the reader may not know that it does."""

    status = 404


class ForbiddenError(LadderError):
    """The reader may know of it, and may not do this."""

    status = 403


class SecondFactorError(ForbiddenError):
    """It is for staff, who need more than a password here: a second factor, or a log-in elsewhere."""


class UnauthenticatedError(LadderError):
    """The caller is not logged in, or the token is not valid."""

    status = 401


class InvalidInputError(LadderError):
    """The input is not valid; `field` names the part."""

    status = 422

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class ConflictError(LadderError):
    """It conflicts with the current state."""

    status = 409


class TooLargeError(LadderError):
    """The request has too many bytes."""

    status = 413


class TooManyError(LadderError):
    """A rate limit or a quota."""

    status = 429

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
