"""Asking again, where a server could not answer just now.

Asked again: what a server answers with 408, 409, 429, 500, 502, 503 or 504, and connections that were refused or lost before the
answer's first byte. Not asked again: any other status; 429 for a quota that is used up, since waiting does not bring it back; a
server that was silent until the deadline, since it may still be working on the first request.

Waits double from one to the next, each cut by chance to between a half and the whole, so that clients that failed together do not
come back together; `Retry-After` is obeyed where a server says it. Nobody waits beyond the budget.

Source: RFC 9110 §10.2.3 (Retry-After).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ..errors import BackendError, BackendUnavailableError, CancelledError, ContextWindowError
from .cancel import CancelToken

__all__ = ["RetryPolicy", "retried", "retry_after"]

T = TypeVar("T")

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how long.

    Attributes:
        times: How many times to ask again; 0 never.
        budget: Seconds that all waits together may take.
        first_wait: Seconds before asking again the first time, where the server does not say.
        longest_wait: Seconds that one wait takes at most, where the server does not say.
    """

    times: int = 2
    budget: float = 60.0
    first_wait: float = 0.5
    longest_wait: float = 8.0

    def wait_before(self, attempt: int, error: BackendError) -> float:
        """Seconds to wait before asking again for the `attempt`-th time, counted from 0."""
        if error.retry_after is not None:
            return error.retry_after
        whole = min(self.longest_wait, self.first_wait * 2.0**attempt)
        return whole * random.uniform(0.5, 1.0)  # noqa: S311 - spreads clients, hides nothing


def retried(
    ask: Callable[[], T],
    policy: RetryPolicy,
    cancel: CancelToken | None = None,
    wait: Callable[[float], bool] | None = None,
) -> T:
    """What `ask` gives, asked again where that can help.

    Args:
        ask: Asks; must fail before anything of an answer was used.
        policy: How often, and how long.
        cancel: Ends a wait at once.
        wait: Waits so many seconds and says whether to give up; by default it waits for `cancel`.

    Raises:
        CancelledError: `cancel` fired.
        LollmsError: What `ask` raised the last time.
    """
    wait = wait or (cancel or CancelToken()).wait
    left = policy.budget
    for attempt in range(policy.times + 1):
        try:
            return ask()
        except BackendError as error:
            seconds = policy.wait_before(attempt, error)
            if attempt == policy.times or seconds > left or not _can_help(error):
                raise
            left -= seconds
            if wait(seconds):
                raise CancelledError("The request was cancelled.") from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def _can_help(error: BackendError) -> bool:
    if isinstance(error, ContextWindowError):
        return False
    if error.answered is None:
        return isinstance(error, BackendUnavailableError)
    return error.answered in _AGAIN and "insufficient_quota" not in str(error)


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds after which a server wants to be asked again, None where it does not say.

    Args:
        headers: Of its answer; keys are looked up in lower case.
        now: The time, in seconds since 1970; for `Retry-After` as a date.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    if not said:
        return None
    seconds = _number(said)
    if seconds is not None:
        return seconds
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - now())
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
