"""Nothing gets out: each attempt, under each mechanism that this machine has, as root and as an ordinary user."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from player import BARE, EVERY  # found beside this file

USERS = ("this user", "ordinary")
MECHANISMS = ("bubblewrap", "landlock")
_MISTAKES = (
    "SyntaxError",
    "NameError",
    "TypeError",
    "AttributeError: module",
    "ImportError",
    "ModuleNotFoundError",
    "SandboxError",
)


class Player:
    """A process that plays attempts as a user."""

    def __init__(self, user: str) -> None:
        self._folder = tempfile.mkdtemp(prefix="lollms-player-")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("player.py")), user, self._folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._line() == "ready\n", "the player did not start"

    def _line(self) -> str:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], 60)[0], "the player does not answer"
        return self._process.stdout.readline().decode()

    def play(self, attempt: str, mechanism: str) -> dict[str, Any]:
        """What came of an attempt."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"attempt": attempt, "mechanism": mechanism}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._line()
        assert line, "the player is gone: the attempt ended the process that ran it"
        told: dict[str, Any] = json.loads(line)
        return told

    def close(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def alive(self) -> bool:
        """Whether it can play on."""
        return self._process.poll() is None


@pytest.fixture(scope="session")
def players() -> Iterator[dict[str, Player]]:
    made: dict[str, Player] = {}
    yield made
    for one in made.values():
        one.close()


def player(players: dict[str, Player], user: str) -> Player:
    if not sys.platform.startswith("linux"):
        pytest.skip("these attempts are for Linux")
    if user == "ordinary" and os.getuid() != 0:
        pytest.skip("this user is an ordinary one already")
    if user not in players or not players[user].alive:
        players[user] = Player(user)
    return players[user]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("attempt", EVERY)
def test_no_attempt_gets_out(players, attempt, mechanism, user):
    told = player(players, user).play(attempt, mechanism)
    if told["error"].startswith("NoConfinementError"):
        pytest.skip(told["error"])
    if told["escaped"] and told["lacks"]:
        pytest.skip("this user can make no control groups here, and each process is bounded by itself alone")
    assert told["escaped"] == [], told["output"]
    assert not any(word in told["output"] for word in _MISTAKES), f"the attempt itself is wrong: {told['output']}"


@pytest.mark.parametrize("attempt", EVERY)
def test_no_attempt_gets_out_where_no_namespaces_can_be_made(players, attempt):
    told = player(players, "this user").play(attempt, BARE)
    if told["error"].startswith("NoConfinementError") or (told["escaped"] and told["lacks"]):
        pytest.skip(told["error"] or "without control groups each process is bounded by itself alone")
    assert told["escaped"] == [], told["output"]


@pytest.mark.parametrize("attempt", [name for name, one in EVERY.items() if one.control])
def test_the_attempt_gets_out_where_nothing_confines_it(players, attempt):
    told = player(players, "ordinary" if os.getuid() == 0 else "this user").play(attempt, "none")
    assert told["escaped"], f"this attempt proves nothing: {told['output']}"


def test_there_are_enough_attempts():
    assert len(EVERY) >= 60
