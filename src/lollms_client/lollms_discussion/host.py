"""A branch of a discussion as the place where a turn lives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._agent.durable import DurableHost
from .._agent.ports import Artefacts, Message, Model, Tools, Workers
from .._store.messages import LollmsMessage, insert_message

if TYPE_CHECKING:
    from .._agent.turn import Turn
    from .._store.db import Tx
    from .._store.turns import Lease, TurnRow, TurnStore

__all__ = ["DiscussionHost"]


class DiscussionHost(DurableHost):
    """One turn of a discussion.

    Args:
        store: Where its turns are.
        row: The turn.
        facts: `{"system_prompt", "after", "calls"}`: what the turn stands on, for whoever goes on with it.
        history: What is sent before it.
        begin: Writes the person's message with the turn.
        answer: Makes the assistant's message of a turn that is over.
        end: Writes what the discussion notes about it.
        lease: The right to go on with a turn, None for a new one.
    """

    model: Model
    tools: Tools | None = None
    workspace: Path | None = None
    workers: Workers | None = None
    artefacts: Artefacts

    def __init__(
        self,
        store: TurnStore,
        row: TurnRow,
        facts: dict[str, Any],
        history: list[Message],
        begin: Callable[[Tx], None],
        answer: Callable[[Turn, str, str], LollmsMessage],
        end: Callable[[Tx, LollmsMessage], None],
        lease: Lease | None = None,
    ) -> None:
        super().__init__(store, row, lease)
        self.row, self._facts, self._history = row, facts, history
        self._begin, self._answer, self._end = begin, answer, end
        self.message: LollmsMessage | None = None

    def history(self) -> list[Message]:
        """The branch before the turn, as it is sent."""
        return list(self._history)

    def system_prompt(self) -> str:
        """What the model is told before anything else; a summary of what is not sent any more stands at its end."""
        return str(self._facts["system_prompt"])

    def also_known(self) -> dict[str, Any]:
        """What the turn stands on."""
        return {"discussion": self._facts}

    def also_begins(self, tx: Tx) -> None:
        """Writes the person's message."""
        self._begin(tx)

    def also_ends(self, tx: Tx, turn: Turn, status: str, reason: str) -> None:
        """Makes the answer, and writes it where the turn is completed."""
        self.message = self._answer(turn, status, reason)
        if status == "completed":
            insert_message(tx, self.message)
            self._end(tx, self.message)
