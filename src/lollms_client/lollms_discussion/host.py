"""A branch of a discussion as the place where a turn lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._agent.durable import DurableHost, kept_status
from .._agent.ports import Artefacts, Message, Model, Tools, Workers
from .._store.messages import LollmsMessage, insert_message
from ..errors import LollmsError

if TYPE_CHECKING:
    from .._agent.state import OpenRound
    from .._agent.turn import Turn
    from .._bindings.request import Capabilities, ChatRequest
    from .._http import CancelToken
    from .._store.db import Tx
    from .._store.turns import Lease, TurnRow, TurnStore
    from .._stream.deltas import Delta

__all__ = ["DiscussionHost", "Unready"]


class Unready:
    """A model that cannot be asked, because what goes before the turn could not be made ready: asking it says why.

    So a turn that fails before its first request is stored as any other, with the person's words, and can be gone on with.

    Args:
        model: The model.
        error: Why.
    """

    def __init__(self, model: Model, error: LollmsError) -> None:
        self._model, self._error = model, error

    @property
    def capabilities(self) -> Capabilities:
        """Those of the model."""
        return self._model.capabilities

    @property
    def model_name(self) -> str | None:
        """The model's."""
        return self._model.model_name

    def stream(self, request: ChatRequest, cancel: CancelToken | None = None) -> Iterator[Delta]:
        """Says why."""
        raise self._error


class DiscussionHost(DurableHost):
    """One turn of a discussion.

    Args:
        store: Where its turns are.
        row: The turn.
        facts: What the turn stands on, for whoever goes on with it: `{"system_prompt", "after", "sources", "calls"}`, and
            "unready" where what goes before it could not be made ready.
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
    _made: LollmsMessage

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

    def turn_ended(self, turn: Turn, status: str, reason: str, ended: OpenRound | None) -> None:
        """Makes the answer, outside the transaction in which it is stored: it counts, and that may take a backend."""
        answer = self._answer(turn, kept_status(status), reason)
        self._made = answer
        super().turn_ended(turn, status, reason, ended)
        self.message = answer

    def also_ends(self, tx: Tx, turn: Turn, status: str, reason: str) -> None:
        """Writes the answer where the turn is completed."""
        if status == "completed":
            insert_message(tx, self._made)
            self._end(tx, self._made)
