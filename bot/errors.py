"""The two failures: the person's, whose text is the answer, and the outside world's, which is tried again."""

from __future__ import annotations

from datetime import datetime


class UserError(Exception):
    """What a person did that can't be done; its text is what they read, a full sentence with the next step.

    `code` is the exit code of a command that ends with it (1 failed, 2 usage).
    """

    def __init__(self, text: str, *, code: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class UsageError(UserError):
    """A call whose words are off: exit code 2."""

    def __init__(self, text: str) -> None:
        super().__init__(text, code=2)


class Unavailable(Exception):
    """The outside (a forge, a remote, a disk) did not answer as it should: tried again, not before `retry_at`."""

    def __init__(self, text: str, *, retry_at: datetime | None = None) -> None:
        super().__init__(text)
        self.retry_at = retry_at


class NotYet(Unavailable):
    """The outside answered that the thing does not exist, and it may only be too new: tried again for a while."""


class OutOfTurn(Unavailable):
    """Nothing was asked: too many of our own calls stand before this one. It is no try that failed."""


class Gone(Exception):
    """The outside answered that the thing does not exist, or not for us (404, 410)."""


class Forbidden(Exception):
    """The outside refused our credentials for this call (401, or 403 without a rate limit): which right is missing."""
