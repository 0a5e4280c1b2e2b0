"""What a backend's stream is made of, before it is parsed: the vocabulary between bindings and the stream parser.

A piece of text is a plain `str`, since it comes by the hundred a second; whatever else a backend says natively has its own type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..events import Usage

__all__ = ["Delta", "FinishDelta", "ReasoningDelta", "SignedDelta", "ToolCallDelta"]


@dataclass(slots=True)
class ReasoningDelta:
    """A piece of reasoning that the backend keeps apart from the text."""

    text: str


@dataclass(slots=True)
class ToolCallDelta:
    """A fragment of a native tool call.

    Attributes:
        index: The position that the backend gives, None where it gives none (some give 0 for every call).
        id: The call's id; backends send it with the first fragment only, or never.
        name: The tool's name; like the id, often with the first fragment only.
        arguments: The next piece of the argument string.
    """

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class FinishDelta:
    """The backend ended its answer; `reason` is "stop", "length", "tool_calls", "content_filter" or its own word."""

    reason: str = "stop"


@dataclass(slots=True)
class SignedDelta:
    """What a provider wants to have back, unread and unchanged, as long as a tool loop lasts: signed reasoning, for example.

    Attributes:
        fields: Fields of the assistant message that it belongs to.
        calls: Fields of that message's calls, by their ids.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)


Delta: TypeAlias = str | ReasoningDelta | ToolCallDelta | Usage | FinishDelta | SignedDelta
