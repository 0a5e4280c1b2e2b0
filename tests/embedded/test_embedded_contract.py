"""The embedded binding keeps the contract of language models with a real model."""

from __future__ import annotations

import threading

import pytest

from lollms_client._http import CancelToken
from lollms_client.testing import check_llm

pytestmark = [pytest.mark.embedded, pytest.mark.timeout(600)]


def test_it_generates_as_the_contract_says(binding):
    assert check_llm(binding) == []


def test_cancel_from_another_thread_keeps_what_came(binding):
    came = threading.Event()
    pieces: list[str] = []

    def listen(chunk: str, msg_type: object) -> bool:
        pieces.append(chunk)
        came.set()
        return True

    def cancel() -> None:
        came.wait(120)
        CancelToken().wait(0.05)  # let a few more pieces come
        binding.cancel()

    threading.Thread(target=cancel, daemon=True).start()
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 1000}
    text = binding.generate_text("Count.", n_predict=3000, json_schema=schema, streaming_callback=listen)
    assert binding.is_cancelled()
    assert text.startswith("[")
    assert len(text) < 3000
    assert "".join(pieces) == text
