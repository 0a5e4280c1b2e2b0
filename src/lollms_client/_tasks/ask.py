"""Asking a model on behalf of a task: budgets of tokens, steps that a person can follow and stop, thoughts left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .._bindings.answers import StreamingCallback, adapted, call_with_known
from .._bindings.request import Capabilities
from .._text.thinking import remove_thinking_blocks
from ..errors import BackendProtocolError, ConfigurationError
from ..lollms_types import MSG_TYPE

__all__ = ["TRIES", "Asker", "Generator", "Step", "StreamingCallback"]

TRIES = 3
"""How often a model is asked for one answer, the first time included."""

_UNKNOWN_CONTEXT = 4096  # what is counted on where a backend does not tell its context
_MOST_FOR_AN_ANSWER = 4096
_UNBOUNDED_FROM = 32_768  # from this context on an answer needs no bound of ours, and thoughts may take their room
_LEAST_PIECE = 16


class Generator(Protocol):
    """Something that generates, as every language model binding does."""

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do."""

    @property
    def generate_text(self) -> Callable[..., str]:
        """`generate_text(prompt, **documented options)`, with those options that it knows."""

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has."""

    def get_ctx_size(self) -> int | None:
        """The context in tokens, None where it is not known."""

    def is_cancelled(self) -> bool:
        """Whether somebody cancelled."""

    def reset_cancel(self) -> None:
        """Forgets an earlier cancelling."""


@dataclass(frozen=True, slots=True)
class Step:
    """One of several steps on the way to a result: "Reading part 2 of 5"; its numbers also come as a callback's `params`."""

    what: str
    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.what} part {self.number} of {self.of}"

    @property
    def params(self) -> dict[str, int]:
        """`{"step", "steps"}`, for a bar of progress."""
        return {"step": self.number, "steps": self.of}


class Asker:
    """One task's conversation with a model.

    Args:
        llm: The model.
        options: Options of `generate_text` that hold for every request; a `system_prompt` among them goes before the task's own.
        callback: Told of steps (STEP_START, STEP_PROGRESS, STEP_END) and of the pieces of the result (CHUNK); False stops.
            None takes the `streaming_callback` of the options.
        ctx_size: Tokens of context to use, at most those that the model has. None for all of them.

    Attributes:
        context: Tokens of context that the task counts on.
        answer_tokens: Tokens that are kept free for one answer.

    Raises:
        ConfigurationError: `ctx_size` or `n_predict` is no positive number.
    """

    def __init__(
        self, llm: Generator, options: Mapping[str, Any], callback: StreamingCallback | None = None, ctx_size: int | None = None
    ) -> None:
        self.llm = llm
        self._options = dict(options)
        spare = self._options.pop("streaming_callback", None)
        callback = callback if callback is not None else spare
        self._say = adapted(callback) if callback is not None else None
        self._system = str(self._options.pop("system_prompt", None) or "")
        self._own_bound: int | None = self._options.pop("n_predict", None)
        for name, value in (("ctx_size", ctx_size), ("n_predict", self._own_bound)):
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} is {value}; it must be at least 1.")
        real = llm.get_ctx_size()
        sizes = [size for size in (real, ctx_size) if size]
        self._known_context = bool(sizes)
        self.context = min(sizes, default=_UNKNOWN_CONTEXT)
        self.answer_tokens = self._own_bound or min(self.context // 4, _MOST_FOR_AN_ANSWER)
        self._told_to_stop = False
        llm.reset_cancel()

    def stopped(self) -> bool:
        """Whether the callback or a `cancel()` ended the task; what was made so far is its result."""
        return self._told_to_stop or self.llm.is_cancelled()

    def room(self, *said: str, answers: int = 1) -> int:
        """Tokens that are left for data beside what is said and what will be answered.

        Args:
            said: What else stands in the prompt.
            answers: How many answers must fit: the one that is asked for, and earlier ones in the prompt.

        Raises:
            ConfigurationError: Nothing is left.
        """
        spare = self.context // 8  # what a chat template adds, and what an estimate of tokens is wrong by
        words = sum(self.llm.count_tokens(part) for part in (self._system, *said) if part)
        left = self.context - spare - words - answers * self.answer_tokens
        if left < _LEAST_PIECE:
            raise ConfigurationError(
                f"A context of {self.context} tokens is too small here: {words} are for the instructions and "
                f"{answers * self.answer_tokens} for {'answers' if answers > 1 else 'the answer'}. Give a larger ctx_size, "
                "a smaller n_predict or a shorter prompt."
            )
        return left

    def _tell(self, text: str, kind: MSG_TYPE, params: dict[str, Any] | None = None) -> None:
        """Tells the callback; False from it stops the task."""
        if self._say is not None and self._say(text, kind, params) is False:
            self._told_to_stop = True

    def text(self, prompt: str, system: str, *, step: Step | None = None, most: int | None = None) -> str:
        """The model's answer in words, without thoughts.

        Args:
            prompt: The request.
            system: The task's instructions.
            step: The step that this is, whose pieces are progress; None for the result itself.
            most: Tokens of the answer at most, where that is less than otherwise.

        Returns:
            The answer; what there is of it, and perhaps nothing, where the task was stopped.

        Raises:
            BackendProtocolError: The model answered nothing, several times.
        """
        if step:
            self._tell(str(step), MSG_TYPE.MSG_TYPE_STEP_START, step.params)
        said = ""
        for _ in range(TRIES):
            if said or self.stopped():
                break
            said = self.ask(prompt, system, progress=step is not None, most=most).strip()
        if not said and not self.stopped():
            raise BackendProtocolError(f"The model said nothing, {TRIES} times (thoughts do not count): {_begin_of(prompt)}")
        if step:
            self._tell(str(step), MSG_TYPE.MSG_TYPE_STEP_END, step.params)
        return said

    def ask(
        self,
        prompt: str,
        system: str,
        *,
        progress: bool = False,
        most: int | None = None,
        json_schema: dict[str, Any] | None = None,
    ) -> str:
        """One request, answered without thoughts; the pieces of an answer that is only `progress` are told as that."""
        options: dict[str, Any] = {
            **self._options,
            "system_prompt": "\n\n".join(part for part in (self._system, system) if part) or None,
            "n_predict": self._bound(most),
            "json_schema": json_schema,
            "streaming_callback": None if self._say is None else self._heard(progress),
        }
        answer = call_with_known(self.llm.generate_text, prompt, options, {})
        return remove_thinking_blocks(answer, self.llm.capabilities.thinking_tags)

    def _bound(self, most: int | None) -> int | None:
        if self._own_bound is not None:
            return min(self._own_bound, most or self._own_bound)
        if not self._known_context or self.context >= _UNBOUNDED_FROM:
            return None
        return min(self.answer_tokens, most or self.answer_tokens)

    def _heard(self, progress: bool) -> Callable[..., bool]:
        def heard(chunk: str, kind: MSG_TYPE = MSG_TYPE.MSG_TYPE_CHUNK, params: Any = None, metadata: Any = None) -> bool:
            progressing = progress and kind in (MSG_TYPE.MSG_TYPE_CHUNK, MSG_TYPE.MSG_TYPE_CONTENT)
            self._tell(chunk, MSG_TYPE.MSG_TYPE_STEP_PROGRESS if progressing else kind, params)
            return not self._told_to_stop

        return heard


def _begin_of(prompt: str) -> str:
    line = " ".join(prompt.split())
    return line if len(line) <= 120 else line[:117] + "..."
