"""What a turn is asked for, packed once: the keyword arguments of the façades become this one frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from .._bindings.request import Sampling
from ..errors import UnknownNameError

if TYPE_CHECKING:
    from .budget import Budget

__all__ = ["Limits", "TurnOptions", "turn_options"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a turn stops by itself.

    Attributes:
        rounds: Requests to the model.
        calls: Tool calls that run, None for no limit.
        tokens: Tokens generated over all rounds, None for no limit.
        seconds: Wall time, None for no limit; looked at between deltas and between calls.
        stalls: Rounds in a row that bring neither a call nor an answer.
        result_chars: Characters of one tool result that the model sees; the caller always gets the whole.
        cost: What the turn and its workers may cost, in the currency of the model profile's `prices`, None for no limit.
    """

    rounds: int = 20
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    stalls: int = 2
    result_chars: int | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """One turn.

    Attributes:
        prompt: What the person asks.
        material: What goes with it as data: files, texts that were found (see `prompt.document_block`).
        images: Pictures that go with it, in any form that `_media.normalize_image_input` takes.
        videos: Videos that go with it.
        sampling: How tokens are chosen.
        think: Whether to reason (None leaves it to the model).
        reasoning_effort: A level or a score (CONTRACT E).
        dialect: "native", "constrained" or "tags"; "" chooses by the model's declared capabilities.
        limits: Where the turn stops by itself.
        tool_timeout: Seconds a call may take, None for the tool binding's own.
        tool_context: Handed to tools that declare `tool_context`.
        tool_objects: Host objects for tools that declare them (`lollms_client_instance`, `discussion_instance`).
        call_options: What else every call of a tool is run with (`confirm_handler`, `autonomy_level` …).
        auto_execute: False stops before the first call and hands it back.
        show_workspace: Whether the model is told what files are in the workspace.
        session: Names the conversation for the backend's prefix cache.
        dynamic_effort: Whether the model may change its own effort (`<effort level=…/>`); it begins at `reasoning_effort`, else
            at "none".
        adapt_temperature: Whether, where nobody chose a temperature, one is chosen by what the last round did (developer guide,
            "Task-Adapted Sampling Temperature").
        artefacts: Whether the model is told how to write artefacts. Those that it writes are kept in any case.
        on_unknown: What to do about a call that an interruption left without a result, and that may not simply run again: "ask",
            "retry" or "skip".
        budget: What this turn shares with the one that it works for, None for a budget of its own.
    """

    prompt: str
    material: str = ""
    images: Sequence[Any] = ()
    videos: Sequence[Any] = ()
    sampling: Sampling = field(default_factory=Sampling)
    think: bool | None = None
    reasoning_effort: str | float | None = None
    dialect: str = ""
    limits: Limits = field(default_factory=Limits)
    tool_timeout: float | None = None
    tool_context: Mapping[str, Any] = field(default_factory=dict)
    tool_objects: Mapping[str, Any] = field(default_factory=dict)
    call_options: Mapping[str, Any] = field(default_factory=dict)
    auto_execute: bool = True
    show_workspace: bool = True
    session: str = ""
    dynamic_effort: bool = False
    adapt_temperature: bool = False
    artefacts: bool = False
    on_unknown: Literal["ask", "retry", "skip"] = "ask"
    budget: Budget | None = None

    def __post_init__(self) -> None:
        """Refuses what cannot be."""
        if self.on_unknown not in ("ask", "retry", "skip"):
            raise UnknownNameError("policy for calls without a known outcome", self.on_unknown, ("ask", "retry", "skip"))


_LIMITS = {
    "max_rounds": "rounds",
    "max_calls": "calls",
    "max_tokens": "tokens",
    "max_seconds": "seconds",
    "max_stalls": "stalls",
    "max_result_chars": "result_chars",
    "max_cost": "cost",
}


def turn_options(prompt: str, tool_objects: Mapping[str, Any], given: Mapping[str, Any]) -> TurnOptions:
    """Packs the keyword arguments of a façade.

    Args:
        prompt: What the person asks.
        tool_objects: Host objects for tools.
        given: Keywords: limits with the prefix `max_`, sampling, and the fields of `TurnOptions`. None means "not said".

    Raises:
        ConfigurationError: A keyword that is not there; the near ones are named.
    """
    sampling = {f.name for f in fields(Sampling)}
    own = {f.name for f in fields(TurnOptions)} - {"prompt", "sampling", "limits", "tool_objects"}
    values = {k: v for k, v in given.items() if v is not None}
    if unknown := values.keys() - sampling - own - _LIMITS.keys():
        raise UnknownNameError("option of a turn", min(unknown), sampling | own | _LIMITS.keys())
    return TurnOptions(
        prompt=prompt,
        sampling=Sampling(**{k: v for k, v in values.items() if k in sampling}),
        limits=Limits(**{_LIMITS[k]: v for k, v in values.items() if k in _LIMITS}),
        tool_objects=tool_objects,
        **{k: v for k, v in values.items() if k in own},
    )
