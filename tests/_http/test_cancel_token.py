from __future__ import annotations

import threading

import pytest

from lollms_client._http import CancelToken
from lollms_client.errors import CancelledError


def test_callbacks_run_once_when_it_is_cancelled():
    token, ran = CancelToken(), []
    token.on_cancel(lambda: ran.append("a"))
    token.on_cancel(lambda: ran.append("b"))()
    assert not token.cancelled
    token.cancel()
    token.cancel()
    assert ran == ["a"]
    assert token.cancelled
    assert token.is_set()


def test_a_callback_for_a_cancelled_token_runs_at_once():
    token, ran = CancelToken(), []
    token.cancel()
    token.on_cancel(lambda: ran.append(1))
    assert ran == [1]


def test_cancelling_wakes_a_waiter():
    token = CancelToken()
    threading.Timer(0.05, token.cancel).start()
    assert token.wait(10)
    with pytest.raises(CancelledError):
        token.raise_if_cancelled()


def test_each_callback_of_many_threads_runs_exactly_once():
    token, ran, gate = CancelToken(), [], threading.Barrier(9)

    def register(number: int) -> None:
        gate.wait(10)
        for i in range(200):
            token.on_cancel(lambda key=(number, i): ran.append(key))

    threads = [threading.Thread(target=register, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    gate.wait(10)
    token.cancel()
    for thread in threads:
        thread.join(10)
    assert len(ran) == len(set(ran)) == 1600
