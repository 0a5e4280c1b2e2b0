"""A host over a store with nothing behind it, for tests of turns that survive."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from lollms_client import events as ev
from lollms_client._agent.durable import DurableHost, resumption
from lollms_client._agent.loop import run_turn
from lollms_client._agent.options import turn_options
from lollms_client._store.artefacts import StoredArtefacts
from lollms_client._store.db import Database
from lollms_client._store.ids import new_id
from lollms_client._store.turns import TurnRow, TurnStore


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it, and nothing is written after it."""


class StoredHost(DurableHost):
    """A turn that stands on nothing but its prompt."""

    def __init__(self, store: TurnStore, model, tools=None, workspace: Path | None = None, lease=None, workers=None) -> None:
        super().__init__(store, TurnRow("", new_id(), owner="test"), lease)
        self.model, self.tools, self.workspace, self.workers = model, tools, workspace, workers
        self.artefacts = StoredArtefacts(store.db, "test")
        self.ended: list[str] = []
        self.dies_after: tuple[str, ...] = ()

    def history(self):
        return []

    def system_prompt(self) -> str:
        return "You are helpful."

    def call_ended(self, turn, position, record) -> None:
        if record.call.arguments.get("word") in self.dies_after:
            self.lease.abandon()
            self.lease = None
            raise Killed
        super().call_ended(turn, position, record)

    def also_ends(self, tx, turn, status, reason) -> None:
        self.ended.append(status)


def turn(db: Database, model, tools=None, workspace=None, prompt="Do it.", cancel=None, dies_after=(), **options):
    """A new turn's events."""
    host = StoredHost(TurnStore(db), model, tools, workspace)
    host.dies_after = dies_after
    return run_turn(host, turn_options(prompt, {}, options), cancel)


def only_turn(db: Database) -> str:
    """The id of the one turn there is."""
    (row,) = TurnStore(db).turns()
    return row.id


def resumed(db: Database, model, tools=None, workspace=None, cancel=None, turn_id="", **options):
    """The events of the one turn there is, gone on with."""
    store = TurnStore(db)
    lease, stored = store.claim(turn_id or only_turn(db))
    specs = {spec.name: spec for spec in tools.specs()} if tools is not None else {}
    packed, resumption_ = resumption(stored, specs)
    host = StoredHost(store, model, tools, workspace, lease)
    host.go_on(resumption_.state.open)
    return run_turn(host, dataclasses.replace(packed, **options), cancel, turn_id=stored.row.id, resumed=resumption_)


def end_of(events) -> ev.TurnEnded:
    """Plays a turn to its end."""
    *_, end = events
    assert isinstance(end, ev.TurnEnded)
    return end
