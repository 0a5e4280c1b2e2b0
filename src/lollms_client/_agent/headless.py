"""A host without a discussion: the turn lives in memory, and its messages can be handed to the next one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .ports import Message, Model, Tools
from .state import TurnState

__all__ = ["HeadlessHost"]


class HeadlessHost:
    """Keeps a conversation in memory.

    Args:
        model: What answers.
        tools: What it may use, None for nothing.
        workspace: The folder that the turn works in, None for none.
        system_prompt: What is said before anything else.
        messages: The conversation so far, in OpenAI form.

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
    ) -> None:
        self.model, self.tools, self.workspace = model, tools, workspace
        self.messages: list[Message] = list(messages)
        self.status = ""
        self._system_prompt = system_prompt

    def history(self) -> list[Message]:
        """The conversation so far."""
        return list(self.messages)

    def system_prompt(self) -> str:
        """What is said before anything else."""
        return self._system_prompt

    def round_ended(self, state: TurnState) -> None:
        """Nothing to do: the turn keeps its own state, and memory needs no checkpoint."""

    def turn_ended(self, state: TurnState, status: str) -> None:
        """Takes the turn's messages over."""
        self.messages.extend(state.transcript)
        self.status = status
