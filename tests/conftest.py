"""What every test may count on: no network but this machine's loopback, an empty home folder, a clean environment."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lollms_client import _imports, _kept

settings.register_profile("default", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

REPO = Path(__file__).resolve().parent.parent
_CLEAN = ("LOLLMS_", "OLLAMA_", "LLAMA_", "OPENAI_", "ANTHROPIC_", "HF_", "HUGGING")


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(_CLEAN) and not name.startswith("LOLLMS_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")  # nobody there: a server of the developer's own is left alone
    monkeypatch.setenv("LOLLMS_HOME", str(home / ".lollms"))


@pytest.fixture(autouse=True)
def _no_folder_is_watched():
    """Where tools of one test wrote, another one imports, and what it recorded is not this one's."""
    for known in (_imports._starts, _imports._looked, _imports._accepted, _imports._folders, _kept._records):
        known.clear()
    _imports._may_lead_there.cache_clear()


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch):
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and str(address[0]) not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test tried to reach {address!r}; tests stay on this machine")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _same_folder_afterwards():
    before = os.getcwd()
    yield
    assert os.getcwd() == before, "a test, or the code it ran, changed the process's working directory"


@pytest.fixture
def python() -> str:
    """The interpreter, for tests that need a process of their own."""
    return sys.executable
