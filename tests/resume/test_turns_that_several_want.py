"""One turn and several processes: one of them plays it, and who lost it writes nothing more."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options
from lollms_client._store.db import Database
from lollms_client._store.turns import TurnStore
from lollms_client.errors import NotResumableError
from lollms_client.testing import ScriptedLLM

from ..agent.durable_kit import StoredHost, only_turn
from ..postgres_server import PostgresServer
from .harness import REPO, ask, hear, tell
from .scripted_turn import World

LAPSES = 0.5  # seconds: the lease of a test in which one lapses
RENEWED = 2.0  # seconds: of one in which it is renewed, however busy the machine is
HOLDS = 60.0
BOUND = 20.0


class Play:
    """A store, a world, and processes that want its turn."""

    def __init__(self, folder: Path) -> None:
        self.url, self.world, self.store = str(folder / "store.db"), World(folder), folder / "store.db"
        self._actors: list[subprocess.Popen[str]] = []

    def actor(self, lease_seconds: float = HOLDS) -> subprocess.Popen[str]:
        """A process of its own, with the store open."""
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.resume.actor"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPO,
        )  # fmt: skip
        self._actors.append(process)
        opened = {"do": "open", "url": self.url, "folder": str(self.world.folder), "lease_seconds": lease_seconds}
        assert ask(process, opened) == "open"
        return process

    def to_the_end(self, actor: subprocess.Popen[str]) -> str:
        """Goes on and answers, until the turn ends."""
        for _ in range(20):
            status = ask(actor, {"do": "go"})
            if not status.startswith("waiting"):
                return status
            assert ask(actor, {"do": "answer"}) == "answered"
        return status

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that is in the store."""
        with closing(sqlite3.connect(self.store)) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}

    def lease_ends(self) -> float:
        """When the lease of the turn ends, in seconds since the epoch."""
        with closing(sqlite3.connect(self.store)) as connection:
            return connection.execute("SELECT lease_expires FROM turns").fetchone()[0]

    def end(self) -> None:
        """Ends the processes."""
        for process in self._actors:
            process.kill()
            process.communicate()


@pytest.fixture
def play(tmp_path) -> Iterator[Play]:
    one = Play(tmp_path)
    yield one
    one.end()


def test_of_two_processes_that_go_on_with_a_turn_at_once_one_wins_and_the_other_is_told(play):
    first, second = play.actor(), play.actor()
    assert ask(first, {"do": "go"}) == "waiting_approval"
    assert ask(first, {"do": "answer"}) == "answered"
    for actor in (first, second):  # both before either could have ended: the one that wins stops in the approved call
        tell(actor, {"do": "go", "stop_at": "round 6: after drop old sack"})
    said = {actor: hear(actor) for actor in (first, second)}
    (winner,) = [actor for actor, word in said.items() if word == "there"]
    (loser,) = [actor for actor in said if actor is not winner]
    assert said[loser].startswith("TurnBusyError: ")
    assert ask(loser, {"do": "go"}).startswith("TurnBusyError: ")
    assert ask(winner, {"do": "on"}) == "waiting_approval"
    assert ask(winner, {"do": "answer"}) == "answered"
    assert play.to_the_end(loser) == "completed"
    assert play.world.lines("dropped.txt") == ["old sack", "torn sack", "worn sack"]


def test_a_call_that_takes_longer_than_a_lease_keeps_its_turn(play):
    owner, other = play.actor(RENEWED), play.actor(RENEWED)
    assert ask(owner, {"do": "go", "stop_at": "round 3: after append flour 3"}) == "there"
    first = play.lease_ends()
    while play.lease_ends() < first + RENEWED:  # so it was renewed beyond its first end
        assert ask(other, {"do": "go"}).startswith("TurnBusyError: ")
    assert ask(owner, {"do": "on"}) == "waiting_approval"


@pytest.mark.parametrize(
    ("stop_at", "asked_about"),
    [
        ("round 3: after append flour 3", 1),  # a call that did its work: its result is not written
        ("round 4: after COMMIT", 0),  # a reply that is in the store: its artefact is neither kept nor written
    ],
)
def test_who_was_stopped_and_lost_the_turn_meanwhile_is_told_so_and_changes_nothing(play, stop_at, asked_about):
    stopped, other = play.actor(LAPSES), play.actor(LAPSES)
    assert ask(stopped, {"do": "go", "stop_at": stop_at}) == "there"
    os.kill(stopped.pid, signal.SIGSTOP)
    deadline = time.monotonic() + BOUND
    while (status := ask(other, {"do": "go"})).startswith("TurnBusyError: "):
        assert time.monotonic() < deadline, "the lease of a stopped process does not lapse"
    assert status == ("waiting_user" if asked_about else "waiting_approval")
    assert ask(other, {"do": "answer"}) == "answered"
    assert play.to_the_end(other) == "completed"
    before, files = play.rows(), play.world.files()
    tell(stopped, {"do": "on"})
    os.kill(stopped.pid, signal.SIGCONT)
    assert hear(stopped).startswith("LeaseLostError: ")
    assert (play.rows(), play.world.files()) == (before, files)
    assert play.world.lines("ledger.txt")[:5] == [f"flour {n}" for n in range(1, 6)]
    assert play.world.lines("notes.md") == ["# Notes", "", "Two sacks.", "A line more."]


def test_a_process_that_is_killed_gives_its_turn_up_at_once(play):
    killed, other = play.actor(), play.actor()
    assert ask(killed, {"do": "go", "stop_at": "round 3: after append flour 3"}) == "there"
    killed.kill()
    killed.wait(BOUND)
    assert ask(other, {"do": "go"}) == "waiting_user"


def test_a_claim_waits_for_the_last_words_of_a_killed_process_that_a_server_is_still_committing(postgres):
    with _ended_but_not_committed(postgres) as (store, turn_id, connection):
        raised: list[BaseException] = []

        def claim() -> None:
            try:
                store.claim(turn_id)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=claim)
        thread.start()
        _wait_until_somebody_waits(postgres)
        connection.execute("COMMIT")
        thread.join(BOUND)
    (error,) = raised
    assert isinstance(error, NotResumableError), error


@contextmanager
def _ended_but_not_committed(server: PostgresServer) -> Iterator[tuple[TurnStore, str, Any]]:
    """A turn whose end stands in a transaction that is not committed yet."""
    import psycopg

    url = server.fresh()
    db = Database(url)
    store = TurnStore(db)
    _begin_and_abandon(store)
    turn_id = only_turn(db)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute(
            "UPDATE turns SET status = 'completed', lease_owner = NULL, lease_expires = NULL WHERE id = %s", (turn_id,)
        )
        yield store, turn_id, connection
    db.close()


def _begin_and_abandon(store: TurnStore) -> None:
    one = StoredHost(store, ScriptedLLM(["Never said."]))
    events = run_turn(one, turn_options("Do it.", {}, {}))
    next(events)
    one.lease.abandon()
    one.lease = None
    events.close()


def _wait_until_somebody_waits(server: PostgresServer) -> None:
    deadline = time.monotonic() + BOUND
    with server.connect() as connection:
        while connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):
            assert time.monotonic() < deadline, "nobody waits"
