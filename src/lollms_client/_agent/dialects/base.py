"""What a dialect decides: how tools are told, how a reply is read, how calls and results stand in the transcript."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..._bindings.request import Capabilities, ChatRequest, Sampling
from ..._stream.options import ParserOptions
from ..._stream.parser import StreamParser
from ..._stream.scrub import without_efforts
from ..._tools.spec import ToolSpec
from ...events import Event
from ..options import TurnOptions
from ..prompt import EFFORT_INSTRUCTIONS
from ..state import CallRecord, Reply, TurnState

if TYPE_CHECKING:
    from ..._stream.deltas import Delta

__all__ = ["Dialect", "Reader", "RoundView", "tag_options", "tag_parser"]


class Reader(Protocol):
    """Turns a reply's deltas into events."""

    def feed(self, delta: Delta, /) -> Sequence[Event]:
        """Events that this delta completes."""
        ...

    def close(self) -> Sequence[Event]:
        """Events that the end of the reply completes."""
        ...


@dataclass(slots=True)
class RoundView:
    """What a dialect may look at when it makes a request.

    Attributes:
        prefix: The messages before this turn, system prompt first.
        state: The turn so far.
        options: What was asked.
        tools: The tools, in a stable order.
        files: Asks for the workspace's files, as they are now (lazily: not every dialect needs them).
        sampling: What the person chose about tokens, for this turn or in the configuration.
    """

    prefix: list[dict[str, Any]]
    state: TurnState
    options: TurnOptions
    tools: Sequence[ToolSpec]
    files: Callable[[], list[str]]
    sampling: Sampling = field(default_factory=Sampling)


def tag_options(capabilities: Capabilities, tools: Sequence[ToolSpec], mint_id: Callable[[], str]) -> ParserOptions:
    """How a reply of a model that may write tags is read."""
    return ParserOptions(
        implicit_think=capabilities.implicit_think,
        thinking_tags=capabilities.thinking_tags,
        bare_json_calls=frozenset(s.name for s in tools) if capabilities.bare_json_calls else None,
        mint_id=mint_id,
    )


def tag_parser(capabilities: Capabilities, view: RoundView, mint_id: Callable[[], str]) -> Reader:
    """The stream parser, set up for a model that may write tags."""
    return StreamParser(tag_options(capabilities, view.tools, mint_id))


CODE_TEMPERATURE, TEXT_TEMPERATURE = 0.15, 0.70
"""What is chosen after a round that wrote code or asked for a tool, and after any other."""
WARMER, WARMEST = 0.15, 0.95
"""How much warmer each step is in which a model came no further, and where that ends."""


def _temperature(view: RoundView) -> float | None:
    """How freely the next tokens are chosen.

    The person's own value stands; else, in agents, one that suits what the model is doing. A model that goes round in circles
    gets a warmer one, step by step. Source: developer guide, "Task-Adapted Sampling Temperature".
    """
    base, state = view.sampling.temperature, view.state
    if base is None and (view.options.adapt_temperature or state.stalled):
        base = CODE_TEMPERATURE if state.code_intent else TEXT_TEMPERATURE
    if base is None or not state.stalled:
        return base
    return min(WARMEST, base + WARMER * state.stalled)


class Dialect(ABC):
    """One way of asking for tool calls.

    Args:
        capabilities: What the model declares.
    """

    name = ""
    reads_tags = True
    """Whether the model may write tags besides its calls."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities

    @abstractmethod
    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """What the system prompt says about tools; the same text for the same tools ("" for nothing)."""

    def effort_instructions(self, tools: Sequence[ToolSpec]) -> str:
        """What the system prompt of a turn in dynamic mode says about the effort, "" where it cannot be asked for."""
        return EFFORT_INSTRUCTIONS

    def examples(self, tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
        """Messages that show the form, between the system prompt and the history; none by default."""
        return []

    @abstractmethod
    def request(self, view: RoundView) -> ChatRequest:
        """The next request."""

    @abstractmethod
    def reader(self, view: RoundView, mint_id: Callable[[], str]) -> Reader:
        """A reader for one reply."""

    def kept(self, raw: str, view: RoundView, *, apart: bool = False) -> str:
        """A whole reply as it is kept: without what it asked about its effort, which holds once.

        Args:
            raw: The text as it came.
            view: As for `request`.
            apart: The backend keeps thoughts apart from the text, and gave one before it.
        """
        options = tag_options(self.capabilities, view.tools, str)
        return without_efforts(raw, dataclasses.replace(options, implicit_think=options.implicit_think and not apart))

    @abstractmethod
    def assistant_message(self, reply: Reply) -> dict[str, Any]:
        """The model's reply as it stands in the transcript: byte for byte what the backend will see again."""

    @abstractmethod
    def result_messages(self, records: Sequence[CallRecord], limit: int | None) -> list[dict[str, Any]]:
        """The results of a round's calls as messages."""

    def opening(self, text: str) -> str:
        """The turn's opening message: the person's words with the state of the workspace."""
        return text

    def _base_request(self, view: RoundView, **more: Any) -> ChatRequest:
        options, temperature = view.options, _temperature(view)
        same = temperature == options.sampling.temperature
        return ChatRequest(
            messages=[*view.prefix, *view.state.transcript],
            sampling=options.sampling if same else dataclasses.replace(options.sampling, temperature=temperature),
            think=options.think,
            reasoning_effort=view.state.effort,
            session=options.session or "turn",  # its rounds share a prefix, whatever else is asked for
            **more,
        )
