"""What the turn loop needs from the world, as protocols: a model, tools, workers, and a host in which the turn lives.

A host is two things. It says what the turn stands on (`history`, `system_prompt`), and it keeps the turn's journal: it is told of
every step before and after it is made, so that what was written there can be gone on with by another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .._bindings.request import Capabilities, ChatRequest
    from .._http import CancelToken
    from .._stream.deltas import Delta
    from .._tools.spec import ToolSpec
    from ..events import ToolCall
    from .state import CallRecord, OpenRound
    from .turn import Turn

__all__ = ["Artefacts", "Host", "Message", "Model", "Tools", "WorkSite", "Workers"]

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


@dataclass(frozen=True, slots=True)
class WorkSite:
    """Where a worker is asked for.

    Attributes:
        turn: The turn that asks.
        key: Names the call within it, the same whenever it is made again.
        decision: What a person decided while the worker waited.
    """

    turn: Turn
    key: str
    decision: Mapping[str, Any] | None = None


class Workers(Protocol):
    """Agents that a turn may hand tasks to."""

    def specs(self) -> Sequence[ToolSpec]:
        """The tools by which a model asks for a worker; none where it writes tags only."""
        ...

    def instructions(self) -> str:
        """What the system prompt says about workers."""
        ...

    def run(self, call: ToolCall, site: WorkSite) -> dict[str, Any]:
        """Plays a worker's turn and returns its result in the form of the tool guide's §7.7, or a pending one."""
        ...


class Artefacts(Protocol):
    """Where versions of artefacts are kept.

    A version is `{turn, round, position, name, version, kind, language, action, content}`.
    """

    def kept(self, turn: str, number: int, position: int) -> dict[str, Any] | None:
        """The version that was made at this place of a turn, None where none was."""
        ...

    def latest(self, name: str) -> tuple[int, str] | None:
        """The last version's number and content on the turn's branch, None where there is none."""
        ...

    def version(self, name: str, number: int) -> str | None:
        """A version's content, None where it is not there."""
        ...

    def keep(self, version: dict[str, Any]) -> dict[str, Any]:
        """Keeps a version, before its file is written; gives it with its number, which no other of its name on the branch has."""
        ...


class Host(Protocol):
    """Where a turn lives: a headless session, or a branch of a discussion.

    Attributes:
        model: What answers.
        tools: What it may use, None for nothing.
        workspace: The folder that the turn works in, None for none.
        workers: Who it may hand tasks to, None for nobody.
        artefacts: Where versions of artefacts are kept.
    """

    model: Model
    tools: Tools | None
    workspace: Path | None
    workers: Workers | None
    artefacts: Artefacts

    def history(self) -> list[Message]:
        """The messages before this turn, the host's system prompt not among them."""
        ...

    def system_prompt(self) -> str:
        """What the host says before anything else; the same text for every round of the turn."""
        ...

    def turn_begun(self, turn: Turn) -> None:
        """Called once for a turn that is new, before anything else happens."""
        ...

    def reply_read(self, turn: Turn, now: OpenRound) -> None:
        """Called when a reply asks for something to be done, before any of it is done."""
        ...

    def artefact_begins(self, turn: Turn) -> None:
        """Called right before an artefact is kept and its file is written; raises where the turn is another's by now."""
        ...

    def call_started(self, turn: Turn, position: int, arguments: Mapping[str, Any]) -> None:
        """Called right before a call runs, from the thread that runs it."""
        ...

    def call_ended(self, turn: Turn, position: int, record: CallRecord) -> None:
        """Called when a call came to a result, from the thread that ran it."""
        ...

    def round_ended(self, turn: Turn, ended: OpenRound) -> None:
        """Called at the end of each round after which the turn goes on: every call in the state has its result."""
        ...

    def turn_ended(self, turn: Turn, status: str, reason: str, ended: OpenRound | None) -> None:
        """Called once, whatever way the turn ends; `ended` is a last round whose end was not told before."""
        ...


Clock = Callable[[], float]
"""Seconds that only grow."""
