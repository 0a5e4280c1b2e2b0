"""What every language model binding is.

Everything stands on one primitive, `stream`: a request in, deltas out. The documented calls (`generate_text`,
`generate_from_messages`) are built on it here, once. A binding written for the documented calls alone works too: a subclass
defines any one of `stream`, `generate_from_messages` and `generate_text`, and has the other two.

Source: CONTRACT A19, C, F; developer guide ("Adding New Bindings").
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ._bindings.base import LollmsBaseBinding
from ._bindings.manager import BindingManager
from ._bindings.request import Capabilities, ChatRequest, Sampling
from ._effort import translate_reasoning_effort
from .errors import BackendRefusedError, CancelledError

if TYPE_CHECKING:
    from ._bindings.answers import StreamingCallback
    from ._http.cancel import CancelToken
    from ._stream.deltas import Delta

__all__ = ["LollmsLLMBinding", "LollmsLLMBindingManager"]

Message = dict[str, Any]
_WAYS = ("stream", "generate_from_messages", "generate_text")


class LollmsLLMBinding(LollmsBaseBinding, ABC):
    """The base of all language model bindings.

    Args:
        binding_name: The binding's name, which is its folder's; the class's name where none is given.
        model_name: The model to use.
        ctx_size: Context in tokens to ask for, None for the backend's choice.
        n_predict, stream, temperature, top_k, top_p, repeat_penalty, repeat_last_n, seed: What holds where a call leaves it open.
        n_threads: Threads to generate with, where the model runs on this machine.
        **config: Settings of the binding, kept as `config`.

    Attributes:
        own_capabilities: What the model can do, as the binding knows it. A subclass that says `capabilities = …` says this.
        sampling: How tokens are chosen where a call leaves it open.
        tp: The text processor over it, which a client attaches.
    """

    own_capabilities: Capabilities = Capabilities()
    tp: Any = None

    def __init__(
        self,
        binding_name: str | None = None,
        *,
        model_name: str | None = None,
        ctx_size: int | None = None,
        n_predict: int | None = None,
        stream: bool | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repeat_penalty: float | None = None,
        repeat_last_n: int | None = None,
        seed: int | None = None,
        n_threads: int | None = None,
        **config: Any,
    ) -> None:
        super().__init__(binding_name, **config)
        self.model_name = model_name
        self.ctx_size, self.n_threads = ctx_size, n_threads
        self.stream_by_default = stream
        self.sampling = Sampling(n_predict, temperature, top_k, top_p, repeat_penalty, repeat_last_n, seed)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        said = cls.__dict__.get("capabilities")
        if isinstance(said, Capabilities):  # of the binding; what a profile says still goes over it
            cls.own_capabilities = said
            del cls.capabilities

    def __new__(cls, *args: Any, **kwargs: Any) -> LollmsLLMBinding:  # noqa: D102 - nothing for callers
        if not any(_defines(cls, way) for way in _WAYS):
            raise TypeError(f"Can't instantiate {cls.__name__}: it defines none of {', '.join(_WAYS)}, and one is needed.")
        binding = super().__new__(cls)
        # Here and not in __init__, so that a subclass that forgets to call ours can still be cancelled.
        binding._calls_lock = threading.Lock()
        binding._calls = set()
        binding._cancelled = threading.Event()
        return binding

    _calls_lock: threading.Lock
    _calls: set[CancelToken]
    _cancelled: threading.Event

    def apply_defaults(
        self, *, ctx_size: int | None = None, stream: bool | None = None, n_threads: int | None = None, **sampling: Any
    ) -> None:
        """Take over what holds where this binding's own configuration says nothing (CONTRACT A19)."""
        self.sampling = getattr(self, "sampling", Sampling()).over(Sampling(**sampling))
        for name, value in (("ctx_size", ctx_size), ("stream_by_default", stream), ("n_threads", n_threads)):
            if getattr(self, name, None) is None:
                setattr(self, name, value)

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do: what the binding knows, and over it what the active model profile says."""
        facts, own = self.profile_facts, self.own_capabilities
        if not facts:
            return own
        efforts = facts.get("supported_reasoning_efforts")
        return replace(
            own,
            vision=True if facts.get("vision_enabled") else own.vision,
            video=own.video or bool(facts.get("video_enabled")),
            context_size=facts.get("forced_context_size") or own.context_size,
            reasoning_efforts=tuple(efforts) if efforts else own.reasoning_efforts,
        )

    @capabilities.setter
    def capabilities(self, value: Capabilities) -> None:
        self.own_capabilities = value

    # ---- the primitive -------------------------------------------------------------------------------------------------------

    def stream(self, request: ChatRequest, cancel: CancelToken | None = None) -> Iterator[Delta]:
        """Answer a request, piece by piece.

        Here, for a binding that defines only the documented calls, the pieces are those that its callback brings.

        Args:
            request: What is asked.
            cancel: Ends the answer early once it fires; what came so far stands.

        Raises:
            CancelledError: `cancel()` was called on this binding meanwhile.
            BackendError: The backend failed.
        """
        with self._running(cancel) as token:
            from ._bindings.answers import pieces_of_call

            yield from pieces_of_call(lambda callback: self._documented_call(request, callback), token)

    # ---- the documented calls ------------------------------------------------------------------------------------------------

    def generate_text(
        self,
        /,
        prompt: str,
        images: Sequence[str] | None = None,
        videos: Sequence[str] | None = None,
        system_prompt: str = "",
        n_predict: int | None = None,
        stream: bool | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repeat_penalty: float | None = None,
        repeat_last_n: int | None = None,
        seed: int | None = None,
        streaming_callback: StreamingCallback | None = None,
        think: bool | None = None,
        reasoning_effort: str | float | None = None,
        **kwargs: Any,
    ) -> str:
        """Answer a prompt.

        Args:
            prompt: What the user says.
            images: Pictures that go with it, as URLs or data URLs, for models that take them.
            videos: Videos that go with it, in the same form.
            system_prompt: What stands before it.
            n_predict: Tokens to generate at most. This and the next ones: None for the binding's own settings.
            stream: Whether the callback gets pieces as they come (else once, the whole).
            temperature: How freely tokens are chosen; 0 always takes the likeliest.
            top_k: Choose among this many likeliest tokens; 0 for no limit.
            top_p: Choose among the likeliest tokens that have this share of the probability, 0.0 to 1.0.
            repeat_penalty: Divides the likelihood of tokens that stand in the last `repeat_last_n`; 1.0 for none.
            repeat_last_n: How many tokens back repetition counts.
            seed: Makes the choice repeatable.
            streaming_callback: `cb(chunk, msg_type, params, metadata)`, of two to four parameters; False stops, and what was
                generated is kept. Reasoning comes as MSG_TYPE_THOUGHT_CHUNK, all else as MSG_TYPE_CHUNK.
            think: Whether to reason; None leaves it to the model.
            reasoning_effort: A level or a score.
            **kwargs: `stop`, `json_schema`, `session`, as ChatRequest has them; others are for bindings that know them.

        Returns:
            The text as the model wrote it, its reasoning between `<think>` and `</think>`, also where the backend keeps it apart
            (`remove_thinking_blocks` takes it out). What was generated so far, where the callback stopped or `cancel()` was
            called.

        Raises:
            BackendError: The backend failed.
        """
        messages: list[Message] = [{"role": "system", "content": system_prompt}] if system_prompt else []
        messages.append({"role": "user", "content": self._content(prompt, images, videos)})
        sampling = Sampling(n_predict, temperature, top_k, top_p, repeat_penalty, repeat_last_n, seed)
        return self._answer(_request(messages, sampling, think, reasoning_effort, kwargs), stream, streaming_callback)

    def generate_from_messages(
        self,
        /,
        messages: list[Message],
        n_predict: int | None = None,
        stream: bool | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repeat_penalty: float | None = None,
        repeat_last_n: int | None = None,
        seed: int | None = None,
        streaming_callback: StreamingCallback | None = None,
        think: bool | None = None,
        reasoning_effort: str | float | None = None,
        **kwargs: Any,
    ) -> str:
        """Answer a conversation in OpenAI form: `{"role", "content"}` each. Everything else is as in `generate_text`."""
        sampling = Sampling(n_predict, temperature, top_k, top_p, repeat_penalty, repeat_last_n, seed)
        return self._answer(_request(list(messages), sampling, think, reasoning_effort, kwargs), stream, streaming_callback)

    def _answer(self, request: ChatRequest, stream: bool | None, callback: StreamingCallback | None) -> str:
        self.reset_cancel()
        # Without a word about streaming, a callback is there to be called piece by piece.
        pieces = (self.stream_by_default if stream is None else stream) is not False
        if not _defines(type(self), "stream"):
            return self._documented_call(request, callback)
        from ._bindings.answers import collect
        from ._http.cancel import surrounding_token

        return collect(self.stream(request, surrounding_token()), callback, pieces, self.capabilities)

    def _documented_call(self, request: ChatRequest, callback: StreamingCallback | None) -> str:
        """A request through the documented call that the subclass defines."""
        from ._bindings.answers import as_prompt, call_with_known

        sampling = request.sampling.over(getattr(self, "sampling", Sampling()))
        options: dict[str, Any] = {
            **asdict(sampling), "stream": True if callback else None, "streaming_callback": callback,
            "think": request.think, "reasoning_effort": request.reasoning_effort,
        }  # fmt: skip
        ours = {"stop": list(request.stop) or None, "json_schema": request.json_schema, "session": request.session or None}
        if _defines(type(self), "generate_from_messages"):
            return call_with_known(self.generate_from_messages, request.messages, options, ours)
        system, prompt = as_prompt(request.messages)
        return call_with_known(self.generate_text, prompt, {**options, "system_prompt": system or None}, ours)

    def left_open(self, call: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The binding's own settings that a documented call leaves open, where a subclass has that call from itself.

        The calls of this class take them over by themselves; a third party's knows nothing of them.

        Args:
            call: "generate_text" or "generate_from_messages".
            args: What the call is given by position.
            kwargs: What it is given by name.
        """
        if not _defines(type(self), call):
            return {}
        signature = inspect.signature(getattr(self, call))
        given = signature.bind_partial(*args, **kwargs).arguments
        takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
        mine = asdict(getattr(self, "sampling", Sampling()))
        return {
            name: value
            for name, value in mine.items()
            if value is not None and name not in given and name not in kwargs and (takes_any or name in signature.parameters)
        }

    def _content(self, prompt: str, images: Sequence[str] | None, videos: Sequence[str] | None) -> Any:
        if images:
            self.capabilities.demand_sight(self.model_name or self.binding_name)
        if videos and not self.capabilities.video:
            raise BackendRefusedError(f"The model {self.model_name or self.binding_name!r} takes no videos.")
        from ._media import with_media

        return with_media(prompt, images or (), videos or ())

    translate_reasoning_effort = staticmethod(translate_reasoning_effort)

    # ---- cancelling ----------------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """End every request that runs now; callable from any thread."""
        self._cancelled.set()
        with self._calls_lock:
            running = list(self._calls)
        for token in running:
            token.cancel()

    def reset_cancel(self) -> None:
        """Forget an earlier `cancel()`. The documented calls do it when they begin."""
        self._cancelled.clear()

    def is_cancelled(self) -> bool:
        """Whether `cancel()` was called since the last `reset_cancel()`."""
        return self._cancelled.is_set()

    @contextlib.contextmanager
    def _running(self, callers: CancelToken | None) -> Iterator[CancelToken]:
        """A token for one request, which fires with the caller's own and with `cancel()`.

        Where the caller's own token fired, CancelledError ends here: the answer just ends early.
        """
        from ._http.cancel import CancelToken

        token = CancelToken()
        forget = callers.on_cancel(token.cancel) if callers is not None else None
        with self._calls_lock:
            self._calls.add(token)
        try:
            yield token
        except CancelledError:
            if callers is None or not callers.cancelled:
                raise
        finally:
            if forget is not None:
                forget()
            with self._calls_lock:
                self._calls.discard(token)
                last = not self._calls
            if last and self.retired:
                self.unload_model()

    def retire(self) -> None:
        """Give back the model as soon as no request runs any more, since another binding takes its place."""
        self.retired = True
        with self._calls_lock:
            idle = not self._calls
        if idle:
            self.unload_model()

    # ---- tokens, embeddings, facts -------------------------------------------------------------------------------------------

    def tokenize(self, text: str) -> list[Any]:
        """The text's tokens, for a backend that gives them.

        Raises:
            BackendRefusedError: This backend does not.
        """
        raise BackendRefusedError(f"The binding {self.binding_name!r} has no tokenizer.", 501)

    def detokenize(self, tokens: list[Any]) -> str:
        """The text of tokens. Raises as `tokenize` does."""
        raise BackendRefusedError(f"The binding {self.binding_name!r} has no tokenizer.", 501)

    def count_tokens(self, text: str) -> int:
        """How many tokens the text has; an estimate (four bytes a token) where the backend has no tokenizer."""
        try:
            return len(self.tokenize(text))
        except BackendRefusedError:
            return -(-len(text.encode("utf-8", "surrogatepass")) // 4)

    @property
    def counts_locally(self) -> bool:
        """Whether `count_tokens` costs next to nothing and asks nobody, so that whoever counts by the way may do so.

        True of the estimate. A binding that brings a tokenizer into this process says so itself.
        """
        return not (_defines(type(self), "tokenize") or _defines(type(self), "count_tokens"))

    def embed(self, /, text: str | list[str], **kwargs: Any) -> Any:
        """The embedding of a text (a list of floats), or those of several (a list of such lists).

        Raises:
            BackendRefusedError: This backend makes none.
        """
        raise BackendRefusedError(f"The binding {self.binding_name!r} makes no embeddings.", 501)

    def get_ctx_size(self) -> int | None:
        """The context in tokens, None where it is not known."""
        return self.capabilities.context_size or self.ctx_size

    def get_model_info(self) -> dict[str, Any]:
        """Facts about the model: name, binding_name, context_size, supports_vision, supports_video and what a binding adds."""
        return {
            "name": self.model_name,
            "binding_name": self.binding_name,
            "context_size": self.get_ctx_size(),
            "supports_vision": bool(self.capabilities.vision),
            "supports_video": self.capabilities.video,
        }

    def list_models(self) -> list[Any]:
        """The models that can be asked for, `{"model_name": …}` each."""
        return [{"model_name": self.model_name}] if self.model_name else []


class LollmsLLMBindingManager(BindingManager[LollmsLLMBinding]):
    """The language model bindings of a client."""

    modality = "llm"


def _defines(cls: type[LollmsLLMBinding], way: str) -> bool:
    """Whether a subclass brings its own version of a method."""
    return getattr(cls, way) is not getattr(LollmsLLMBinding, way)


def _request(
    messages: list[Message], sampling: Sampling, think: bool | None, effort: str | float | None, more: dict[str, Any]
) -> ChatRequest:
    stop = more.get("stop") or ()
    return ChatRequest(
        messages,
        sampling,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        json_schema=more.get("json_schema"),
        think=think,
        reasoning_effort=effort,
        session=more.get("session") or "",
    )
