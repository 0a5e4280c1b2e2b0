"""One of several processes that want the same turn: does what it is told on its standard input, and says how it went.

Each line in is `{"do": …}`, each line out is one word, or the class and the message of what was raised.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lollms_client._store import leases, turns
from lollms_client.errors import LollmsError

from .life import HOSTS, Life
from .points import Points, observe
from .scripted_turn import World


def _say(word: str) -> None:
    sys.stdout.write(json.dumps(word) + "\n")
    sys.stdout.flush()


def _hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    heard: dict[str, Any] = json.loads(line)
    return heard


class Stops(Points):
    """Points at one of which a process says "there" and waits for a word, the first time that it comes by."""

    def __init__(self) -> None:
        super().__init__()
        self.stop_at = ""

    def reach(self, name: str, last_act: Callable[[], None] | None = None) -> None:
        """Passes a point, or waits there."""
        super().reach(name, last_act)
        if self.stop_at == f"{self.part}: {name}":
            self.stop_at = ""
            _say("there")
            _hear()


class Actor:
    """Lives steps of a turn, and stops in the midst of one where it is told to."""

    def __init__(self) -> None:
        self._life: Life | None = None
        self._stops = Stops()
        observe(self._stops)

    def open(self, url: str, folder: str, lease_seconds: float) -> str:
        """Takes a store and a world, with leases that last as long as this."""
        leases.LEASE_SECONDS = turns.LEASE_SECONDS = lease_seconds
        leases.KEEPER._seconds = lease_seconds / 3
        world = World(Path(folder), self._stops.around)
        if not world.workspace.exists():
            world.make()
        self._life = HOSTS["bare"](url, world, self._stops)
        return "open"

    def go(self, stop_at: str = "") -> str:
        """Plays the turn until it stops."""
        self._stops.stop_at = stop_at
        assert self._life is not None
        return self._life.go()

    def answer(self) -> str:
        """Decides about what waits."""
        assert self._life is not None
        return "answered" if any(self._life.answer().values()) else "nothing waits"


def main() -> None:
    """Does what it is told."""
    actor = Actor()
    while True:
        heard = _hear()
        try:
            _say(getattr(actor, heard.pop("do"))(**heard))
        except LollmsError as error:
            _say(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
