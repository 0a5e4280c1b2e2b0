"""Where a personality's turns live: its store. Loaded only when a turn is played or looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from .._agent.durable import DurableHost
from .._agent.ports import Artefacts, Message, Model, Tools, Workers
from .._store.artefacts import StoredArtefacts
from ..errors import ConfigurationError

if TYPE_CHECKING:
    from .._store.turns import Lease, TurnRow, TurnStore

__all__ = ["PersonalityHost"]


class PersonalityHost(DurableHost):
    """One turn of a personality.

    Args:
        store: Where its turns are.
        row: What is known about the turn.
        facts: `{"system_prompt", "history", "sources", "calls"}`: what the turn stands on.
        lease: The right to go on with a turn, None for a new one.
        artefacts: Whether it may write artefacts.
    """

    model: Model
    tools: Tools | None = None
    workspace: Path | None = None
    workers: Workers | None = None

    def __init__(
        self, store: TurnStore, row: TurnRow, facts: dict[str, Any], lease: Lease | None = None, *, artefacts: bool = True
    ) -> None:
        super().__init__(store, row, lease)
        self.artefacts: Artefacts = StoredArtefacts(store.db, row.owner, row.ai_message_id) if artefacts else _NoArtefacts()
        self._facts = facts

    def history(self) -> list[Message]:
        """The conversation that the caller gave."""
        return list(self._facts["history"])

    def system_prompt(self) -> str:
        """What the personality was told when the turn began."""
        return str(self._facts["system_prompt"])

    def also_known(self) -> dict[str, Any]:
        """What the turn stands on, for whoever goes on with it."""
        return {"personality": self._facts}


class _NoArtefacts:
    """Keeps none: who may not write artefacts writes none by the way."""

    def kept(self, turn: str, number: int, position: int) -> None:
        return None

    def latest(self, name: str) -> None:
        return None

    def version(self, name: str, number: int) -> None:
        return None

    def keep(self, version: dict[str, Any]) -> NoReturn:
        raise ConfigurationError("this agent may not write artefacts.")
