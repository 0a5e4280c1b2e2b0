"""A server on real sockets for the tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))

from ollama_kit import OllamaServer
from wire_kit import WireServer


@pytest.fixture
def server() -> Iterator[WireServer]:
    made = WireServer()
    yield made
    made.close()


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    made = OllamaServer()
    yield made
    made.close()
