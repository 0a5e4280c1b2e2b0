"""What a language model is asked, and what it can do: the values between the turn loop and a binding.

Source: CONTRACT C (parameters of `generate_text`), J (dialects), docs/architecture.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..errors import BackendRefusedError

__all__ = ["Capabilities", "ChatRequest", "Sampling"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. None leaves the choice to the binding's configuration, then to the backend (CONTRACT A19)."""

    n_predict: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repeat_penalty: float | None = None
    repeat_last_n: int | None = None
    seed: int | None = None

    def over(self, defaults: Sampling) -> Sampling:
        """These settings, and those of `defaults` where these leave the choice open."""
        mine = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(defaults, **{name: value for name, value in mine.items() if value is not None})


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request.

    Attributes:
        messages: OpenAI form: `{"role", "content"}`, with `tool_calls` / `tool_call_id` where the native dialect uses them.
        sampling: How tokens are chosen.
        stop: Texts that end the answer.
        tools: `{"name", "description", "input_schema"}` each, for backends with native tool calls.
        json_schema: The answer must be JSON valid against it (constrained decoding).
        think: Whether to reason; None leaves it to the model.
        reasoning_effort: A level or a score (CONTRACT E).
        session: Names the conversation, so that a backend can keep its prefix cached.
    """

    messages: list[dict[str, Any]]
    sampling: Sampling = Sampling()
    stop: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    json_schema: dict[str, Any] | None = None
    think: bool | None = None
    reasoning_effort: str | float | None = None
    session: str = ""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model behind a binding can do. Facts from its description, profile or catalogue entry; never guessed from a name.

    Attributes:
        native_tools: The backend takes tool specs and answers with tool calls.
        parallel_tool_calls: It may ask for several at once.
        json_schema: It decodes under a JSON schema.
        implicit_think: Its stream begins inside a thought, without an opening tag.
        bare_json_calls: A reply that is nothing but one JSON object of a call's shape is a call (CONTRACT J).
        embeddings: It makes embeddings.
        vision: It takes images; None where nobody said, so that whoever sends some finds out.
        video: It takes videos.
        context_size: Its context in tokens, None where unknown.
        reasoning_efforts: The levels it supports, in rising order.
        thinking_tags: Extra pairs of markers that enclose thoughts, for models with names of their own.
    """

    native_tools: bool = False
    parallel_tool_calls: bool = False
    json_schema: bool = False
    implicit_think: bool = False
    bare_json_calls: bool = False
    embeddings: bool = False
    vision: bool | None = None
    video: bool = False
    context_size: int | None = None
    reasoning_efforts: tuple[str, ...] = ()
    thinking_tags: tuple[tuple[str, str], ...] = field(default=())

    @property
    def is_blind(self) -> bool:
        """Whether it was said that the model takes no images."""
        return self.vision is False

    def demand_sight(self, model: str) -> None:
        """Refuses images that go with a prompt, for a model of which it was said that it takes none.

        Args:
            model: Its name, for people.

        Raises:
            BackendRefusedError: It takes none.
        """
        if self.is_blind:
            raise BackendRefusedError(
                f"The model {model!r} takes no images: it is declared so. Ask a model that sees; or, where this one does, say so "
                "in its model profile: vision_enabled: true."
            )
