"""The typed events of a turn.

A turn is a generator of these values, in order. "Not streaming" is draining it; a callback is an adapter at the edge. Two
families stand here: what a model's own stream says (`TextDelta` … `DoneTag`, made by the stream parser) and what the turn does
(`TurnStarted` … `TurnEnded`, made by the turn loop). Source: CONTRACT J for the tags, docs/architecture.md for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

__all__ = [
    "ApprovalRequested",
    "ArtefactChunk",
    "ArtefactEnd",
    "ArtefactRevert",
    "ArtefactSaved",
    "ArtefactStart",
    "ArtefactSymbol",
    "DoneTag",
    "EffortChange",
    "Event",
    "Notice",
    "RoundEnded",
    "RoundStarted",
    "TextDelta",
    "ThoughtDelta",
    "ToolCall",
    "ToolEnded",
    "ToolStarted",
    "TurnEnded",
    "TurnStarted",
    "Usage",
    "WorkerEnded",
    "WorkerRequest",
    "WorkerStarted",
]

_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(slots=True)
class Event:
    """Anything that happens in a turn."""

    def to_dict(self) -> dict[str, Any]:
        """The event as plain data: `{"event": "text_delta", ...}`, ready for JSON."""
        out: dict[str, Any] = {"event": _CAMEL.sub("_", type(self).__name__).lower()}
        for f in fields(self):
            value = getattr(self, f.name)
            out[f.name] = value.to_dict() if isinstance(value, Event) else value
        return out


# ---- what a model's own stream says -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class TextDelta(Event):
    """A piece of the visible answer."""

    text: str


@dataclass(slots=True)
class ThoughtDelta(Event):
    """A piece of the model's reasoning; never part of the answer."""

    text: str


@dataclass(slots=True)
class ToolCall(Event):
    """The model asks for a tool.

    Attributes:
        name: The tool's name as the model wrote it, mapped back from the wire where a provider needed another form.
        arguments: The arguments, `{}` where they could not be read (see `problem`).
        id: The call's id: the backend's own, or one minted here; unique within the turn.
        raw: The text that was read as a call (tag body, or native argument string).
        problem: Why the call cannot be carried out as written ("" where it can); said to the model.
        dialect: "native", "tag", "constrained", "bare_json", or "agent" for a worker that was asked for by a tag.
    """

    WORKER: ClassVar[str] = "agent"
    """The name under which an `<agent>` tag stands among a reply's calls."""

    name: str
    arguments: dict[str, Any]
    id: str = ""
    raw: str = ""
    problem: str = ""
    dialect: str = "tag"


@dataclass(slots=True)
class EffortChange(Event):
    """The model sets the reasoning effort of the next round (`<effort level=…/>`, or the effort that a step ends with)."""

    level: str


@dataclass(slots=True)
class ArtefactStart(Event):
    """An artefact begins; `attributes` holds every attribute as written, `name` and `type` the documented ones."""

    name: str
    type: str = ""
    language: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ArtefactChunk(Event):
    """A piece of an artefact's body, verbatim."""

    name: str
    text: str


@dataclass(slots=True)
class ArtefactEnd(Event):
    """An artefact ends; `complete` is False when the stream ended first."""

    name: str
    complete: bool = True


@dataclass(slots=True)
class ArtefactSymbol(Event):
    """A structural unit was seen in an artefact's body while it streams.

    Attributes:
        name: The artefact.
        header: `Section: <name>`, `def <name>()` or `class <Name>`: all that a collapsible header may show besides the file's
            name (developer guide, "Collapsible Artifact UI Protocol").
        line: Its line in the body, from 1.
    """

    name: str
    header: str
    line: int


@dataclass(slots=True)
class ArtefactSaved(Event):
    """What became of an artefact once the reply was complete.

    Attributes:
        name: The artefact: a path in the workspace.
        version: The version that it has now, 0 where nothing came of it.
        action: "created", "modified", "reverted" or "failed".
        size: Bytes of its file.
        problem: Why nothing came of it, in the words that the model hears; "" where all is well.
    """

    name: str
    version: int
    action: str
    size: int = 0
    problem: str = ""


@dataclass(slots=True)
class ArtefactRevert(Event):
    """The model asks for an earlier version of an artefact (`<revert_artifact name= version=/>`)."""

    name: str
    version: str = ""


@dataclass(slots=True)
class WorkerRequest(Event):
    """The model delegates a task (`<agent …><task>…</task></agent>`)."""

    name: str
    task: str
    context_files: list[str] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    complete: bool = True


@dataclass(slots=True)
class DoneTag(Event):
    """The model says that the turn is finished (`<done/>`)."""


@dataclass(slots=True)
class Usage(Event):
    """What one request cost, as the backend counted it.

    Attributes:
        prompt_tokens: Tokens of the prompt, cached ones included.
        completion_tokens: Tokens generated.
        cached_tokens: Tokens of the prompt that the backend did not have to compute again.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def cost(self, prices: Mapping[str, float] | None) -> float | None:
        """What these tokens cost.

        Args:
            prices: "prompt", "completion" and "cached", for a million tokens; None where they are not known.

        Returns:
            The cost in the prices' currency, None where they are not known.
        """
        if not prices:
            return None
        fresh = self.prompt_tokens - self.cached_tokens
        prompt = prices.get("prompt", 0.0)
        paid = fresh * prompt + self.cached_tokens * prices.get("cached", prompt)
        return (paid + self.completion_tokens * prices.get("completion", 0.0)) / 1e6


# ---- what the turn does -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class TurnStarted(Event):
    """A turn begins, or goes on where it was interrupted.

    Attributes:
        prompt: What the person asked.
        model: What answers.
        dialect: How it asks for tools.
        tools: The tools that there are.
        resumed: Whether it goes on.
        turn_id: Names it.
    """

    prompt: str
    model: str = ""
    dialect: str = ""
    tools: list[str] = field(default_factory=list)
    resumed: bool = False
    turn_id: str = ""


@dataclass(slots=True)
class RoundStarted(Event):
    """A round begins: one request to the model. Rounds count from 1."""

    round: int


@dataclass(slots=True)
class RoundEnded(Event):
    """A round is over."""

    round: int
    seconds: float
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class ToolStarted(Event):
    """A call passed every check and is about to run."""

    round: int
    call: ToolCall


@dataclass(slots=True)
class ToolEnded(Event):
    """A call came to a result, in the form of the tool guide's §7."""

    round: int
    call: ToolCall
    result: dict[str, Any]
    seconds: float


@dataclass(slots=True)
class WorkerStarted(Event):
    """A worker begins with a task; `call` holds the task and what the worker was given."""

    round: int
    call: ToolCall


@dataclass(slots=True)
class WorkerEnded(Event):
    """A worker came to a result (CONTRACT H)."""

    round: int
    call: ToolCall
    result: dict[str, Any]
    seconds: float


@dataclass(slots=True)
class ApprovalRequested(Event):
    """A call waits for a person; the turn ends as "waiting_approval" or "waiting_user", and goes on once `ticket` is answered.

    Attributes:
        round: The round that asked for the call.
        call: What was asked for.
        ticket: Names exactly this question.
        reason: Why somebody is asked.
        kind: "approval" of exactly these arguments; "question" of a tool; "outcome" of a call that was started and interrupted.
        turn_id: The turn whose call waits: this one, or a worker's.
    """

    round: int
    call: ToolCall
    ticket: str
    reason: str = ""
    kind: str = "approval"
    turn_id: str = ""


@dataclass(slots=True)
class Notice(Event):
    """Something the person should know: a remedy that was applied, a limit that was reached."""

    text: str
    level: str = "info"
    kind: str = ""


@dataclass(slots=True)
class TurnEnded(Event):
    """A turn is over.

    Attributes:
        status: "completed", "cancelled", "waiting_approval", "waiting_user", "pending_tool" or "limit".
        response: The visible answer.
        rounds: Rounds that were completed.
        tool_calls: `{round, name, parameters, raw}` each.
        tool_results: `{round, name, result}` each.
        workspace_changes: `{action, path, size}` each (action: created, modified, deleted).
        usage: The sum over all rounds.
        seconds: Wall time of the turn.
        reason: Why it ended, where the status does not say.
        artefacts: `{name, version, action, size}` each: the versions that the turn made.
    """

    status: str
    response: str
    rounds: int
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    tool_results: list[dict[str, Any]] = field(default_factory=list)
    workspace_changes: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    reason: str = ""
    artefacts: list[dict[str, Any]] = field(default_factory=list)
