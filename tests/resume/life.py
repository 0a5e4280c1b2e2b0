"""A turn as processes live it: each of them goes on until the turn stops, answers what waits, or looks at what became of it."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from lollms_client import events as ev
from lollms_client._agent.delegation import Delegation
from lollms_client._agent.durable import checkpoint, resumption
from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options
from lollms_client._agent.questions import AskUser
from lollms_client._agent.toolsets import GivenTools, JoinedTools
from lollms_client._store.db import Database
from lollms_client._store.statements import Statement
from lollms_client._store.turns import TurnRow, TurnStore
from lollms_client.lollms_core import LollmsClient
from lollms_client.lollms_discussion import LollmsDataManager, LollmsDiscussion
from lollms_client.lollms_personality import LollmsPersonality
from lollms_client.lollms_types import MSG_TYPE

from ..agent.durable_kit import StoredHost
from .points import Points
from .scripted_turn import PROMPT, World

_LEASES = Statement("SELECT count(*) FROM turns WHERE lease_owner IS NOT NULL")
_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


class Life(ABC):
    """What the processes of one turn do.

    Args:
        url: The store.
        world: Where the turn works.
        points: Told what is going on.
    """

    def __init__(self, url: str, world: World, points: Points) -> None:
        self.db, self.world, self.points = Database(url), world, points
        self.store = TurnStore(self.db)

    @abstractmethod
    def play(self) -> str:
        """Begins the turn, or goes on with it where it stands in the store, until it stops; its status."""

    def go(self) -> str:
        """The same for a turn that may have ended: its process was killed when there was nothing left to do."""
        self.points.part = "begin"
        over = any(row.status == "completed" for row in self._main_turns())
        return "completed" if over else self.play()

    def _main_turns(self) -> list[TurnRow]:
        """The turn. Where there is none, a server may be about to commit the last words of one who was killed: it is waited for."""
        turns = self.store.turns()
        if not turns and self.db.dialect == "postgresql":
            self.db.close()
            wait_until_alone(self.db.url)
            turns = self.store.turns()
        return [row for row in turns if row.parent_turn is None]

    def answer(self) -> dict[str, int]:
        """Decides about everything that waits; how many of each kind it were."""
        self.points.part = "answer"
        counts = {"approval": 0, "question": 0, "outcome": 0}
        for waiting in self.store.waiting():
            asked = waiting.call.result["result"]
            kind = asked.get("kind") or "approval"
            counts[kind] += 1
            decision = self.world.decide(waiting.call.name, waiting.call.payload["arguments"], kind)
            self.decide(waiting.turn.id, waiting.call.ticket, decision)
        return counts

    def decide(self, turn_id: str, ticket: str, decision: dict[str, Any]) -> None:
        """Stores a decision."""
        self.store.decide(turn_id, ticket, decision)

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
            "requests": self.world.requests(),
        }


class BareLife(Life):
    """Of a turn that stands on nothing but its prompt."""

    def play(self) -> str:
        """Plays it by the loop itself."""
        tools = JoinedTools([GivenTools(self.world.tools()), AskUser()])
        living = {"call_options": {"defer_approval": True}}
        turns = self._main_turns()
        if turns:
            lease, stored = self.store.claim(turns[0].id)
            options, resumed = resumption(stored, {spec.name: spec for spec in tools.specs()})
            host = self._host(tools, lease)
            host.go_on(resumed.state.open)
            events = run_turn(host, dataclasses.replace(options, **living), turn_id=stored.row.id, resumed=resumed)
        else:
            events = run_turn(self._host(tools), turn_options(PROMPT, {}, living))
        for event in events:
            if isinstance(event, ev.RoundStarted):
                self.points.part = f"round {event.round}"
        assert isinstance(event, ev.TurnEnded)
        return event.status

    def _host(self, tools: JoinedTools, lease: Any = None) -> StoredHost:
        model = self.world.model()
        workers = Delegation(lambda name: model, self.store, owner="test")
        return StoredHost(self.store, model, tools, self.world.workspace, lease, workers)


class ForgetfulLife(BareLife):
    """One whose journal does not say when a call begins, to see whether anybody notices."""

    def _host(self, tools: JoinedTools, lease: Any = None) -> StoredHost:
        host = super()._host(tools, lease)
        host.call_started = lambda turn, position, arguments: None
        return host


class PersonalityLife(Life):
    """Of a personality's turn."""

    def __init__(self, url: str, world: World, points: Points) -> None:
        super().__init__(url, world, points)
        self._miller = LollmsPersonality(
            "miller",
            system_prompt="You keep books.",
            tools=world.tools(),
            workspace_path=world.workspace,
            lollms_client=_client(world),
            store=self.db,
        )

    def play(self) -> str:
        """Chats; the prompt is played where there is nothing to go on with."""
        living = {"ask_user": True, "defer_approval": True, "streaming_callback": _rounds_heard(self.points)}
        return self._miller.chat(PROMPT, resume_turn=True, **living)["turn_status"]

    def decide(self, turn_id: str, ticket: str, decision: dict[str, Any]) -> None:
        """Stores a decision through the personality."""
        told = dict(decision)
        self._miller.decide(ticket, told.pop("decision", None), turn_id=turn_id, **told)

    def report(self) -> dict[str, Any]:
        """What became of it, and whether there is something to go on with."""
        return {**super().report(), "resumable": self._miller.has_resumable_turn()}


class DiscussionLife(Life):
    """Of a turn of a discussion, in which something was said before."""

    def __init__(self, url: str, world: World, points: Points) -> None:
        super().__init__(url, world, points)
        self._manager = LollmsDataManager(url)
        self._manager.db, self._manager.turns = self.db, self.store
        self._client = _client(world)

    def _discussion(self) -> LollmsDiscussion:
        return LollmsDiscussion(self._client, self._manager, "mill", workspace_path=self.world.workspace)

    def play(self) -> str:
        """Chats, or goes on where there is something to go on with."""
        mill = self._discussion()
        living = {"tools": self.world.tools(), "workers": True, "ask_user": True, "defer_approval": True}
        living["streaming_callback"] = _rounds_heard(self.points)
        if mill.has_resumable_turn():
            return mill.resume_turn(**living)["turn_status"]
        if not mill.get_messages():
            mill.add_message("Ada", "user", "Good morning.")
            mill.add_message("Miller", "assistant", "<think>Morning?</think>Good morning.")
        return mill.chat(PROMPT, **living)["turn_status"]

    def decide(self, turn_id: str, ticket: str, decision: dict[str, Any]) -> None:
        """Stores a decision through the discussion."""
        told = dict(decision)
        self._discussion().decide(ticket, told.pop("decision", None), **told)

    def report(self) -> dict[str, Any]:
        """What became of it, with the messages that the discussion has."""
        mill = self._discussion()
        messages = [dataclasses.asdict(message) for message in mill.get_messages()]
        for message in messages:
            del message["created_at"], message["generation_speed"]
        tip = {"resumable": mill.has_resumable_turn(), "tip": mill.active_branch_id, "branch": [m.id for m in mill.get_branch()]}
        return {**super().report(), "messages": messages, **tip, "artefacts": [one["content"] for one in mill.artefacts()]}


def _client(world: World) -> LollmsClient:
    client = LollmsClient()
    client.llm = world.model()
    return client


def _rounds_heard(points: Points) -> Callable[..., bool]:
    """A streaming callback that tells the points which round is played."""

    def hear(chunk: str, kind: MSG_TYPE, params: dict[str, Any] | None = None, metadata: Any = None) -> bool:
        if kind == MSG_TYPE.MSG_TYPE_ROUND_START:
            points.part = f"round {params['round']}"
        return True

    return hear


def wait_until_alone(url: str) -> None:
    """Waits until a server has noticed that everybody else is gone. Whoever runs this is killed if that takes too long."""
    import psycopg

    with psycopg.connect(url.replace("postgresql+psycopg", "postgresql"), autocommit=True) as connection:
        while connection.execute(_OTHERS).fetchone() != (0,):
            pass


HOSTS: dict[str, Callable[[str, World, Points], Life]] = {
    "bare": BareLife,
    "forgetful": ForgetfulLife,
    "personality": PersonalityLife,
    "discussion": DiscussionLife,
}
"""What a turn may live in."""
