"""A worker's turn in the store: loaded only where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .artefacts import MemoryArtefacts
from .durable import DurableHost, resumption
from .ports import Artefacts, Message, Model, Tools, Workers
from .state import TurnState

if TYPE_CHECKING:
    from .._store.turns import Lease, StoredTurn, TurnRow, TurnStore

__all__ = ["WorkerHost", "ended", "stored_state"]


class WorkerHost(DurableHost):
    """Where a worker's turn lives; it has no history.

    Args:
        store: Where turns are stored.
        row: What is known about a new turn.
        lease: The right to go on with an old one.
        facts: `{"name", "system_prompt", "model_name", "tools"}`: what a worker was given when it began; no tools for all.
    """

    model: Model
    tools: Tools | None = None
    workspace: Path | None = None
    workers: Workers | None = None

    def __init__(self, store: TurnStore, row: TurnRow, lease: Lease | None, facts: dict[str, Any]) -> None:
        super().__init__(store, row, lease)
        self.artefacts: Artefacts = MemoryArtefacts()
        self._facts = facts

    def history(self) -> list[Message]:
        """Nothing: all that a worker has to know stands in its task."""
        return []

    def system_prompt(self) -> str:
        """What it was told when it began."""
        return str(self._facts["system_prompt"])

    def also_known(self) -> dict[str, Any]:
        """What it was given."""
        return {"worker": self._facts}


def ended(stored: StoredTurn) -> str:
    """How a worker's turn ended for good, "" where it can be gone on with.

    One that stopped at a limit is over: its parent hears of it, and decides.
    """
    if stored.row.status == "completed":
        return "closed" if stored.row.state.get("closed") else "completed"
    return "limit" if stored.row.state.get("limited") else ""


def stored_state(stored: StoredTurn) -> TurnState:
    """What a turn did, as far as it is stored."""
    return resumption(stored, {})[1].state
