"""A turn as processes live it: each of them goes on until the turn stops, answers what waits, or looks at what became of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from lollms_client import events as ev
from lollms_client._agent.delegation import Delegation
from lollms_client._agent.durable import checkpoint, resumption
from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options
from lollms_client._agent.toolsets import GivenTools
from lollms_client._store.db import Database
from lollms_client._store.statements import Statement
from lollms_client._store.turns import TurnStore

from ..agent.durable_kit import StoredHost
from .points import Points
from .scripted_turn import PROMPT, World, model

_LEASES = Statement("SELECT count(*) FROM turns WHERE lease_owner IS NOT NULL")
_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


class Life:
    """What the processes of one turn do.

    Args:
        url: The store.
        world: Where the turn works.
        points: Told what is going on.
    """

    def __init__(self, url: str, world: World, points: Points) -> None:
        self.db, self.world, self.points = Database(url), world, points
        self.store = TurnStore(self.db)

    def go(self) -> str:
        """Begins the turn, or goes on with it where it stands in the store, until it stops; its status."""
        self.points.part = "begin"
        if any(row.parent_turn is None and row.status == "completed" for row in self._settled_turns()):
            return "completed"  # its process was killed when there was nothing left to do
        return self.play()

    def play(self) -> str:
        """Begins the turn, or goes on with it."""
        for event in self.events():
            if isinstance(event, ev.RoundStarted):
                self.points.part = f"round {event.round}"
        assert isinstance(event, ev.TurnEnded)
        return event.status

    def events(self) -> Iterator[ev.Event]:
        """Begins the turn, or goes on with it."""
        turns = [row for row in self.store.turns() if row.parent_turn is None]
        tools = GivenTools(self.world.tools())
        if not turns:
            options = turn_options(PROMPT, {}, {"call_options": {"defer_approval": True}})
            return run_turn(self._host(tools), options)
        (row,) = turns
        lease, stored = self.store.claim(row.id)
        options, resumed = resumption(stored, {spec.name: spec for spec in tools.specs()})
        host = self._host(tools, lease)
        host.go_on(resumed.state.open)
        options = dataclasses.replace(options, call_options={"defer_approval": True})
        return run_turn(host, options, turn_id=row.id, resumed=resumed)

    def _host(self, tools: GivenTools, lease: Any = None) -> StoredHost:
        workers = Delegation(lambda name: model(), self.store, owner="test")
        return StoredHost(self.store, model(), tools, self.world.workspace, lease, workers)

    def _settled_turns(self) -> list[Any]:
        """The turns. Where there is none, a server may be about to commit the last words of one who was killed: it is waited for."""
        turns = self.store.turns()
        if not turns and self.db.dialect == "postgresql":
            self.db.close()
            wait_until_alone(self.db.url)
            turns = self.store.turns()
        return turns

    def answer(self) -> dict[str, int]:
        """Decides about everything that waits; how many of each kind it were."""
        self.points.part = "answer"
        counts = {"approval": 0, "question": 0, "outcome": 0}
        for waiting in self.store.waiting():
            asked = waiting.call.result["result"]
            kind = asked.get("kind") or "approval"
            counts[kind] += 1
            decision = self.world.decide(waiting.call.name, waiting.call.payload["arguments"], kind)
            self.store.decide(waiting.turn.id, waiting.call.ticket, decision)
        return counts

    def report(self) -> dict[str, Any]:
        """What became of it."""
        turns = [self.store.load(row.id) for row in self.store.turns()]
        points = [checkpoint(turn) for turn in turns]
        with self.db.read() as tx:
            (leases,) = tx.row(_LEASES)
        return {
            "turns": [{k: v for k, v in point.items() if k != "timestamp"} for point in points],
            "lengths": [[len((one.outcome or {}).get("messages", ())) for one in turn.rounds] for turn in turns],
            "waiting": len(self.store.waiting()),
            "leases": leases,
            "files": self.world.files(),
            "keys": self.world.keys(),
        }


def wait_until_alone(url: str) -> None:
    """Waits until a server has noticed that everybody else is gone. Whoever runs this is killed if that takes too long."""
    import psycopg

    with psycopg.connect(url.replace("postgresql+psycopg", "postgresql"), autocommit=True) as connection:
        while connection.execute(_OTHERS).fetchone() != (0,):
            pass


class ForgetfulLife(Life):
    """One whose journal does not say when a call begins, to see whether anybody notices."""

    def _host(self, tools: GivenTools, lease: Any = None) -> StoredHost:
        host = super()._host(tools, lease)
        host.call_started = lambda turn, position, arguments: None
        return host


HOSTS: dict[str, Callable[[str, World, Points], Life]] = {"bare": Life, "forgetful": ForgetfulLife}
"""What a turn may live in."""
