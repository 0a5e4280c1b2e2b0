"""`LollmsClient`: one object over a language model and tools. Source: developer guide §4, CONTRACT C."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .errors import NotConfiguredError

if TYPE_CHECKING:
    from ._http import CancelToken
    from .events import Event
    from .lollms_llm_binding import LollmsLLMBinding
    from .lollms_tools_binding import LollmsToolBinding

__all__ = ["LollmsClient"]


class LollmsClient:
    """One client over the bindings that it was given; what was not configured is None and says so when called.

    Args:
        llm_binding_name: The language model binding, None for none.
        llm_binding_config: Its settings, passed as the binding's constructor keywords.
        llm_bindings_dir: A folder of the user's own language model bindings.
        tools_binding_name: The tools binding, None for none.
        tools_binding_config: Its settings.
        tools_bindings_dir: A folder of the user's own tools bindings.
        user_name: How the person is called.
        ai_name: How the assistant is called.

    Attributes:
        llm: The language model binding.
        tools: The tools binding.

    Raises:
        UnknownNameError: There is no binding of that name.
        MissingDependencyError: A binding's package is not installed.

    Building a client goes neither to the network nor to the disk's configuration; a model loads on its first use.
    """

    def __init__(
        self,
        llm_binding_name: str | None = None,
        llm_binding_config: Mapping[str, Any] | None = None,
        llm_bindings_dir: str | Path | None = None,
        tools_binding_name: str | None = None,
        tools_binding_config: Mapping[str, Any] | None = None,
        tools_bindings_dir: str | Path | None = None,
        user_name: str = "user",
        ai_name: str = "assistant",
    ) -> None:
        self.user_name, self.ai_name = user_name, ai_name
        self._turns: set[CancelToken] = set()
        self._lock = threading.Lock()
        self.llm: LollmsLLMBinding | None = _build("llm", llm_binding_name, llm_binding_config, llm_bindings_dir)
        self.tools: LollmsToolBinding | None = _build("tools", tools_binding_name, tools_binding_config, tools_bindings_dir)

    # ---- text -----------------------------------------------------------------------------------------------------------------

    def generate_text(self, prompt: str, **kwargs: Any) -> str:
        """Generates text; keywords as `LollmsLLMBinding.generate_text`.

        Raises:
            NotConfiguredError: No language model is configured.
        """
        return self._llm().generate_text(prompt, **kwargs)

    generate = generate_text

    def generate_from_messages(self, messages: Sequence[Mapping[str, Any]], **kwargs: Any) -> str:
        """Generates an answer to messages in OpenAI form; keywords as `LollmsLLMBinding.generate_from_messages`."""
        return self._llm().generate_from_messages([dict(m) for m in messages], **kwargs)

    def tokenize(self, text: str) -> list[int]:
        """The model's tokens of a text."""
        return self._llm().tokenize(text)

    def detokenize(self, tokens: list[int]) -> str:
        """The text of a model's tokens."""
        return self._llm().detokenize(tokens)

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has for the model."""
        return self._llm().count_tokens(text)

    def embed(self, text: str | list[str], **kwargs: Any) -> Any:
        """The embedding of a text, or of each of several."""
        return self._llm().embed(text, **kwargs)

    # ---- turns ----------------------------------------------------------------------------------------------------------------

    def run_turn(
        self,
        prompt: str,
        *,
        workspace_path: str | Path | None = None,
        system_prompt: str = "",
        messages: Sequence[Mapping[str, Any]] = (),
        **options: Any,
    ) -> Iterator[Event]:
        """Plays an agent turn: the model thinks, calls tools in the workspace, and answers.

        Args:
            prompt: What the person asks.
            workspace_path: The folder that tools work in; created when missing. None for a turn without files.
            system_prompt: What is said before anything else.
            messages: The conversation so far, in OpenAI form.
            **options: `max_rounds`, `max_tokens`, `max_seconds`, `max_stalls`, `max_result_chars` (limits);
                `n_predict`, `temperature`, `top_k`, `top_p`, `repeat_penalty`, `repeat_last_n`, `seed` (sampling);
                `think`, `reasoning_effort`; `dialect` ("native", "constrained", "tags"; the model's capabilities decide by
                default); `tool_timeout` in seconds; `tool_context`, a dict for tools that declare it; `auto_execute`, False
                to stop before the first call.

        Yields:
            `lollms_client.events` values, `TurnStarted` first and `TurnEnded` last.

        Raises:
            NotConfiguredError: No language model is configured.
            ConfigurationError: An option that is not there.
            LollmsError: The backend failed.

        `cancel()` from any thread ends the turn; closing the generator does the same.
        """
        from ._agent.headless import HeadlessHost
        from ._agent.loop import run_turn
        from ._agent.options import turn_options
        from ._http import CancelToken

        llm = self._llm()
        workspace = Path(workspace_path).resolve() if workspace_path is not None else None
        if workspace is not None:
            workspace.mkdir(parents=True, exist_ok=True)
        packed = turn_options(prompt, {"lollms_client_instance": self}, options)
        host = HeadlessHost(llm, self.tools, workspace, system_prompt, [dict(m) for m in messages])
        token = CancelToken()

        def turn() -> Iterator[Event]:
            with self._lock:
                self._turns.add(token)
            try:
                yield from run_turn(host, packed, token)
            finally:
                with self._lock:
                    self._turns.discard(token)

        return turn()

    def cancel(self) -> None:
        """Ends what this client is doing, from any thread: turns and generations. What was done so far is kept."""
        with self._lock:
            tokens = list(self._turns)
        for token in tokens:
            token.cancel()
        if self.llm is not None:
            self.llm.cancel()

    # ---- life -----------------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Gives back what the bindings hold: models, processes, connections."""
        for binding in (self.tools, self.llm):
            if binding is not None:
                binding.close()

    def __enter__(self) -> LollmsClient:
        """The client itself; it is closed at the end of the `with` block."""
        return self

    def __exit__(self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None) -> None:
        """Closes the client."""
        self.close()

    def _llm(self) -> LollmsLLMBinding:
        if self.llm is None:
            raise NotConfiguredError(
                "No language model is configured. Give LollmsClient an llm_binding_name, for example "
                'LollmsClient(llm_binding_name="embedded"); list_bindings("llm") tells which there are.'
            )
        return self.llm


def _build(kind: str, name: str | None, config: Mapping[str, Any] | None, folder: str | Path | None) -> Any:
    if name is None:
        return None
    from ._bindings.registry import create

    return create(kind, name, config, folder)
