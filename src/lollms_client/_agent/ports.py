"""What the turn loop needs from the world, as protocols: a model, tools, a place where the turn lives, a way to be cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .._bindings.request import Capabilities, ChatRequest
    from .._http import CancelToken
    from .._stream.deltas import Delta
    from .._tools.spec import ToolSpec
    from .state import TurnState

__all__ = ["Host", "Message", "Model", "Tools"]

Message = dict[str, Any]
"""One message in OpenAI form."""


class Model(Protocol):
    """Something that answers a request with a stream of deltas."""

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do; the loop chooses its dialect by it."""
        ...

    @property
    def model_name(self) -> str | None:
        """For people."""
        ...

    def stream(self, request: ChatRequest, cancel: CancelToken | None = None) -> Iterator[Delta]:
        """Answers; ends early once `cancel` fires."""
        ...


class Tools(Protocol):
    """A set of tools behind one door. Every check and every approval stands behind `execute_tool`."""

    def specs(self) -> Sequence[ToolSpec]:
        """The tools, in a stable order, as read from their source."""
        ...

    def library_prompts(self, tool_context: Mapping[str, Any] | None = None) -> dict[str, str]:
        """What libraries say about their state in the workspace right now, by library name."""
        ...

    def execute_tool(self, tool_name: str, params: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Runs a call and returns its result in the form of the tool guide's §7.7; never raises for a tool's own fault."""
        ...


class Host(Protocol):
    """Where a turn lives: a headless session, or a branch of a discussion."""

    model: Model
    tools: Tools | None
    workspace: Path | None

    def history(self) -> list[Message]:
        """The messages before this turn, the host's system prompt not among them."""
        ...

    def system_prompt(self) -> str:
        """What the host says before anything else; the same text for every round of the turn."""
        ...

    def round_ended(self, state: TurnState) -> None:
        """Called at each round's end with a consistent state: every call in it has its result."""
        ...

    def turn_ended(self, state: TurnState, status: str) -> None:
        """Called once, whatever way the turn ends, with a consistent state."""
        ...


Clock = Callable[[], float]
"""Seconds that only grow."""
