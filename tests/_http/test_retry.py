"""Asking again: when, how long, and what ends it. Nothing here waits: time is a list of what was asked of it."""

from __future__ import annotations

import email.utils
import threading

import pytest

from lollms_client._http import CancelToken
from lollms_client._http.failures import from_status
from lollms_client._http.retry import RetryPolicy, retried, retry_after
from lollms_client.errors import (
    BackendError,
    BackendProtocolError,
    BackendRefusedError,
    BackendTimeoutError,
    BackendUnavailableError,
    CancelledError,
)


def _status(status: int, after: float | None = None, /, **error: object) -> BackendError:
    made = from_status(status, {"error": {"message": f"said {status}", **error}}, "S")
    made.retry_after = after
    return made


class Asked:
    """Fails with each error in turn, then answers; notes the waits in between."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.times, self.waits = list(errors), 0, []

    def __call__(self) -> str:
        self.times += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return False

    def run(self, **policy: float) -> str:
        return retried(self, RetryPolicy(**policy), wait=self.wait)


@pytest.mark.parametrize(
    "error", [*(_status(c) for c in (408, 409, 429, 500, 502, 503, 504)), BackendUnavailableError("refused")]
)
def test_what_may_pass_is_asked_again(error):
    asked = Asked(error)
    assert asked.run() == "answer"
    assert asked.times == 2
    assert 0.25 <= asked.waits[0] <= 0.5


@pytest.mark.parametrize(
    "error",
    [
        *(_status(c) for c in (400, 401, 403, 404, 413, 422, 501)),
        _status(429, code="insufficient_quota"),
        _status(500, type="exceed_context_size_error"),
        BackendTimeoutError("silent"),
        BackendProtocolError("garbage"),
        BackendRefusedError("ours"),
    ],
)
def test_what_does_not_pass_is_not_asked_again(error):
    asked = Asked(error)
    with pytest.raises(BackendError) as caught:
        asked.run()
    assert caught.value is error
    assert asked.times == 1
    assert asked.waits == []


def test_waits_double_up_to_the_longest_and_the_last_error_is_raised():
    asked = Asked(*(_status(503) for _ in range(9)))
    with pytest.raises(BackendUnavailableError):
        asked.run(times=5, first_wait=1.0, longest_wait=6.0, budget=1000.0)
    assert asked.times == 6
    for wait, whole in zip(asked.waits, [1, 2, 4, 6, 6], strict=True):
        assert whole / 2 <= wait <= whole


def test_the_server_s_own_word_is_obeyed():
    asked = Asked(_status(429, 7.5), _status(429, 0.0))
    assert asked.run() == "answer"
    assert asked.waits == [7.5, 0.0]


def test_nobody_waits_beyond_the_budget():
    asked = Asked(_status(429, 30.0), _status(429, 31.0), _status(429, 1.0))
    with pytest.raises(BackendRefusedError, match="429"):
        asked.run(times=5, budget=60.0)
    assert asked.waits == [30.0]


def test_no_retries_is_no_retries():
    asked = Asked(_status(503))
    with pytest.raises(BackendUnavailableError):
        asked.run(times=0)
    assert asked.times == 1


def test_a_cancelled_token_ends_the_wait_at_once():
    token, waiting = CancelToken(), threading.Event()

    def ask() -> str:
        waiting.set()
        raise _status(429, 3600.0)

    threading.Thread(target=lambda: (waiting.wait(10), token.cancel()), daemon=True).start()
    with pytest.raises(CancelledError):
        retried(ask, RetryPolicy(budget=7200.0), token)


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": email.utils.formatdate(NOW + 42, usegmt=True)}, 42.0),
        ({"retry-after": email.utils.formatdate(NOW - 42, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_seconds_and_as_a_date(headers, seconds):
    assert retry_after(headers, lambda: NOW) == seconds
