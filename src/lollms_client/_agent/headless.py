"""A host without a store: the turn lives in memory, and its messages can be handed to the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .artefacts import MemoryArtefacts
from .ports import Artefacts, Message, Model, Tools, Workers

if TYPE_CHECKING:
    from .state import CallRecord, OpenRound
    from .turn import Turn

__all__ = ["HeadlessHost"]


class HeadlessHost:
    """Keeps a conversation in memory.

    Args:
        model: What answers.
        tools: What it may use, None for nothing.
        workspace: The folder that the turn works in, None for none.
        system_prompt: What is said before anything else.
        messages: The conversation so far, in OpenAI form.
        workers: Who it may hand tasks to, None for nobody.

    Attributes:
        messages: The conversation; a turn's own messages are added when it ends.
        status: How the last turn ended, "" before the first.
    """

    def __init__(
        self,
        model: Model,
        tools: Tools | None = None,
        workspace: Path | None = None,
        system_prompt: str = "",
        messages: Sequence[Message] = (),
        workers: Workers | None = None,
    ) -> None:
        self.model, self.tools, self.workspace, self.workers = model, tools, workspace, workers
        self.messages: list[Message] = list(messages)
        self.artefacts: Artefacts = MemoryArtefacts()
        self.status = ""
        self._system_prompt = system_prompt

    def history(self) -> list[Message]:
        """The conversation so far."""
        return list(self.messages)

    def system_prompt(self) -> str:
        """What is said before anything else."""
        return self._system_prompt

    def turn_begun(self, turn: Turn) -> None:
        """Nothing to do: memory needs no journal."""

    def reply_read(self, turn: Turn, now: OpenRound) -> None:
        """Nothing to do."""

    def artefact_begins(self, turn: Turn) -> None:
        """Nothing to do: nobody else knows of the turn."""

    def call_started(self, turn: Turn, position: int, arguments: Mapping[str, object]) -> None:
        """Nothing to do."""

    def call_ended(self, turn: Turn, position: int, record: CallRecord) -> None:
        """Nothing to do: the turn keeps the record."""

    def round_ended(self, turn: Turn, ended: OpenRound) -> None:
        """Nothing to do: the turn keeps its own state."""

    def turn_ended(self, turn: Turn, status: str, reason: str, ended: OpenRound | None) -> None:
        """Takes the turn's messages over."""
        self.messages.extend([*turn.state.transcript, *turn.state.closing])
        self.status = status
