"""The client of an Ollama server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ..._bindings.request import Capabilities, ChatRequest
from ..._http.cancel import CancelToken
from ..._http.client import HttpStream
from ..._http.retry import retried
from ..._openai_compat.connection import take_connection
from ..._openai_compat.names import names_of
from ..._openai_compat.vendor import Vendor
from ..._stream.deltas import Delta
from ...errors import (
    BackendProtocolError,
    BackendRefusedError,
    BackendTimeoutError,
    BackendUnavailableError,
    CancelledError,
    ConfigurationError,
    LollmsError,
    UnknownNameError,
)
from ...lollms_llm_binding import LollmsLLMBinding
from .address import address_of, from_environment
from .facts import NOTHING_KNOWN, ModelFacts, PullProgress, facts_of, model_rows, progress_of, same_model
from .protocol import Asking, chat_body, deltas_of, objects_of, options_of

__all__ = ["OllamaBinding"]

T = TypeVar("T")

_VENDOR = Vendor(api_key_env="OLLAMA_API_KEY", capabilities={"json_schema": True, "embeddings": True})
_PATIENCE, _FACTS_TIMEOUT = 30.0, 3.0
"""Seconds for what a model can do, on which it hangs how a turn is played, however busy the server is; and for all else."""
_FACTS_AGAIN = 10.0
"""Seconds after which a server that said nothing about a model is asked again."""


class OllamaBinding(LollmsLLMBinding):
    """A client of one Ollama server, over the server's own protocol. Constructing it asks nobody.

    What the server says about a model (`/api/show`: tools, pictures, thinking, context) is asked once, when it is first needed;
    what was configured goes over it. Which context the server chose, where none was asked for, it says only of a model that is
    loaded (`/api/ps`): until then its context is said to be the most that it can have.

    Args:
        model_name: The model's name at the server.
        embedding_model: The model for `embed`, None for `model_name`.
        keep_alive: How long the server keeps a model loaded after a request ("5m", seconds, -1 for ever); None for its choice.
        truncate: Whether the server may drop the oldest messages of a prompt that is too long; else that is an error.
        options: Further `options` for every request (`min_p`, `num_gpu` …).
        capabilities: What the model can do where that differs from what the server says, as fields of Capabilities.
        binding_name: The binding's name.
        **settings: The fields of Connection (`base_url`, `api_key` …; `OLLAMA_HOST` and `OLLAMA_API_KEY` where they are not
            given), sampling settings, and what else LollmsLLMBinding takes.

    Attributes:
        base_url: The server's address.
        http: The client of it.
        retry: How requests are asked again.

    Raises:
        ConfigurationError: A setting that is not there, or an address that is none.
    """

    def __init__(
        self,
        model_name: str | None = None,
        *,
        embedding_model: str | None = None,
        keep_alive: str | float | None = None,
        truncate: bool = False,
        options: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        binding_name: str = "ollama",
        **settings: Any,
    ) -> None:
        connection = take_connection(settings)
        super().__init__(binding_name, model_name=model_name, **settings)
        self.refuse_unknown_settings()
        self.base_url = address_of(connection.base_url or connection.host_address or from_environment())
        self.http = connection.client(self.base_url, _VENDOR)
        self.retry = connection.retry_policy()
        self._said = dict(capabilities or {})
        self.own_capabilities = _VENDOR.capabilities_with(self._said)
        self._embedding_model, self._keep_alive = embedding_model, keep_alive
        self._truncate, self._options = truncate, dict(options or {})
        self._most_patience = min(_PATIENCE, connection.timeout)
        self._patience = self._most_patience
        self._facts: dict[str, tuple[ModelFacts, float]] = {}
        self._chosen_contexts: dict[str, int | None] = {}
        self._loaded: set[str] = set()
        parts = urlsplit(self.base_url)
        self._where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    # ---- facts ---------------------------------------------------------------------------------------------------------------

    @property
    def own_capabilities(self) -> Capabilities:
        """What was configured, and for what was left open what the server says about the model."""
        facts, asked = self.model_facts(), self._asked_context()
        chosen = None if asked else self._chosen_context()
        said: dict[str, Any] = {
            "native_tools": facts.tools,
            "parallel_tool_calls": facts.tools,
            "vision": facts.vision,
            "context_size": chosen or facts.context(asked),
            "reasoning_efforts": facts.efforts or None,
        }
        return replace(self._configured, **{k: v for k, v in said.items() if v is not None and k not in self._said})

    @own_capabilities.setter
    def own_capabilities(self, value: Capabilities) -> None:
        self._configured = value

    def model_facts(self, cancel: CancelToken | None = None) -> ModelFacts:
        """What the server says about the model; nothing as long as it does not answer.

        A server that takes too long has said nothing: it is asked again at the next look, and then has less time, so that one
        which never answers does not hold up every look.

        Raises:
            CancelledError: `cancel` fired.
        """
        name = self.model_name
        if not name:
            return NOTHING_KNOWN
        facts, good_until = self._facts.get(name, (NOTHING_KNOWN, 0.0))
        if time.monotonic() < good_until:
            return facts
        try:
            shown = _looked_up(lambda: self._in_time("/api/show", {"model": name}, cancel))
        except BackendTimeoutError:
            return NOTHING_KNOWN
        facts = facts_of(shown)
        self._facts[name] = facts, time.monotonic() + _FACTS_AGAIN if shown is None else float("inf")
        return facts

    def _in_time(self, path: str, body: dict[str, Any], cancel: CancelToken | None) -> Any:
        try:
            try:
                said = self.http.post_json(path, body, cancel, self._patience)
            except BackendUnavailableError:  # a busy server that hung up once has said nothing about its model either
                said = self.http.post_json(path, body, cancel, self._patience)
        except BackendTimeoutError:
            self._patience = min(_FACTS_TIMEOUT, self._most_patience)
            raise
        self._patience = self._most_patience
        return said

    def _asked_context(self) -> int | None:
        """The context to load a model with, None for the server's choice."""
        return self.profile_facts.get("forced_context_size") or self.ctx_size

    def _chosen_context(self, cancel: CancelToken | None = None) -> int | None:
        """The context that the server loaded the model with, None where it does not say, or is not known to have loaded it."""
        name = self.model_name
        if name is None or name not in self._loaded:
            return None
        if name not in self._chosen_contexts:
            try:
                rows = model_rows(_looked_up(lambda: self.http.get_json("/api/ps", cancel, _FACTS_TIMEOUT)))
            except BackendTimeoutError:
                return None
            sizes = [row.get("context_length") for row in rows if same_model(str(row["model_name"])) == same_model(name)]
            self._chosen_contexts[name] = next((n for n in sizes if isinstance(n, int) and n > 0), None)
        return self._chosen_contexts[name]

    def get_model_info(self) -> dict[str, Any]:
        """Facts about the model, with those that the server says."""
        facts = self.model_facts()
        more = {"base_url": self.base_url, "max_context_size": facts.trained_context, "supports_thinking": facts.thinks}
        return {**super().get_model_info(), **more, **(facts.details or {})}

    def version(self) -> str:
        """The server's version.

        Raises:
            BackendError: The server cannot be reached.
        """
        return str(self._field(self._asked(lambda token: self.http.get_json("/api/version", token)), "version", str))

    # ---- answers -------------------------------------------------------------------------------------------------------------

    def stream(self, request: ChatRequest, cancel: CancelToken | None = None) -> Iterator[Delta]:
        """Answer a request, piece by piece.

        Raises:
            CancelledError: `cancel()` was called on this binding meanwhile.
            ConfigurationError: The request cannot be put into the server's form; the message says why.
            UnknownNameError: The server does not have the model; the message says which it has, and how to get it.
            ContextWindowError: The prompt is longer than the model's context.
            BackendError: The server cannot be reached, refused, failed, or broke off in the middle. What came before that was
                given; nothing is asked again once a byte came.
        """
        with self._running(cancel) as token:
            model, names = self._model(), names_of(request)
            self.model_facts(token)  # here and not where they are used, so that this ends with the token too
            self._chosen_context(token)
            body = chat_body(request, model, self._asking(), names)
            with contextlib.ExitStack() as stack:
                with self._missing_explained(model, token):
                    answer: HttpStream = retried(
                        lambda: stack.enter_context(self.http.open("POST", "/api/chat", body, token)), self.retry, token
                    )
                yield from deltas_of(answer, self._where, names)
                answer.finish()
                self._loaded.add(model)

    def _asking(self) -> Asking:
        own = self.own_capabilities
        return Asking(
            sampling=self.sampling,
            options=self._options,
            context=self._asked_context(),
            threads=self.n_threads,
            keep_alive=self._keep_alive,
            truncate=self._truncate,
            efforts=self.capabilities.reasoning_efforts,
            takes_levels=bool(own.reasoning_efforts),
            thinks=self.model_facts().thinks,
        )

    def _model(self, named: str | None = None) -> str:
        """The model's name for a request.

        Raises:
            ConfigurationError: Nobody named one.
        """
        name = named or self.model_name
        if not name:
            raise ConfigurationError(
                f"The binding {self.binding_name!r} needs a model_name; its list_models() tells which there are."
            )
        return name

    def embed(self, text: str | list[str], **kwargs: Any) -> Any:
        """The embedding of a text (a list of floats), or those of several, in the same order.

        Args:
            text: One text, or several.
            **kwargs: `model_name` for this call alone; `dimensions` where the model can choose.

        Raises:
            UnknownNameError: The server does not have the model.
            BackendError: The model makes none, or the server failed.
        """
        if isinstance(text, list) and not text:
            return []
        model = self._model(kwargs.get("model_name") or self._embedding_model)
        body: dict[str, Any] = {"model": model, "input": text, "truncate": self._truncate}
        if kwargs.get("dimensions"):
            body["dimensions"] = kwargs["dimensions"]
        if self._keep_alive is not None:
            body["keep_alive"] = self._keep_alive
        answer = self._asked(lambda token: self.http.post_json("/api/embed", body, token), model)
        vectors = self._field(answer, "embeddings", list)
        if len(vectors) != (1 if isinstance(text, str) else len(text)):
            raise BackendProtocolError(f"{self._where} answered with {len(vectors)} embeddings for {body['input']!r:.80}.")
        return vectors[0] if isinstance(text, str) else vectors

    # ---- models --------------------------------------------------------------------------------------------------------------

    def list_models(self) -> list[Any]:
        """The models that the server has: `model_name`, `family`, `parameter_size`, `quantization_level`, `size` and so on.

        Raises:
            BackendError: The server cannot be reached.
        """
        return model_rows(self._asked(lambda token: self.http.get_json("/api/tags", token)))

    def ps(self) -> list[dict[str, Any]]:
        """The models that are loaded now: `model_name`, `size_vram`, `expires_at`, `context_length` and so on.

        Empty while the server is not there.

        Raises:
            BackendError: The server refused or failed.
        """
        with self._running(None) as token, contextlib.suppress(BackendUnavailableError):
            return model_rows(self.http.get_json("/api/ps", token))
        return []

    def load_model(self, model_name: str | None = None) -> bool:
        """Have the server load a model, and use it from now on; True once it is loaded.

        Raises:
            UnknownNameError: The server does not have it; the message says which it has, and how to get it.
            BackendError: It cannot be loaded.
        """
        if model_name:
            self.select_model(model_name)
        body: dict[str, Any] = {"model": self._model(), "stream": False}
        if self._keep_alive is not None:
            body["keep_alive"] = self._keep_alive
        if options := options_of(Asking(options=self._options, context=self._asked_context(), threads=self.n_threads)):
            body["options"] = options  # others than those of the requests would have it loaded anew
        name = body["model"]
        self._asked(lambda token: self.http.post_json("/api/generate", body, token), name)
        self._forget(name)
        self._loaded.add(name)
        return True

    def unload_model(self, model_name: str | None = None) -> bool:
        """Have the server free a model's memory; False where there is none to name, or the server does not have it.

        Raises:
            BackendError: The server cannot be reached, or failed.
        """
        name = model_name or self.model_name
        if not name:
            return False
        body = {"model": name, "keep_alive": 0, "stream": False}
        try:
            self._asked(lambda token: self.http.post_json("/api/generate", body, token), name)
        except UnknownNameError:
            return False
        self._loaded.discard(name)
        self._forget(name)
        return True

    def pull_model(
        self,
        model_name: str,
        progress: Callable[[PullProgress], object] | None = None,
        cancel: CancelToken | None = None,
        insecure: bool = False,
    ) -> bool:
        """Have the server get a model from its library. One that was begun with earlier is gone on with.

        Args:
            model_name: Its name there.
            progress: Told how far it is; False ends it.
            cancel: Ends it.
            insecure: Whether a library without a certificate may be asked.

        Returns:
            True once the server has it; False where `progress` or `cancel` ended it.

        Raises:
            CancelledError: `cancel()` was called on this binding meanwhile.
            BackendError: The server cannot be reached, or could not get it; the message says why.
        """
        body = {"model": model_name, "stream": True} | ({"insecure": True} if insecure else {})
        status = ""
        with self._running(cancel) as token, self.http.open("POST", "/api/pull", body, token) as answer:
            for step in progress_of(objects_of(answer, self._where), model_name):
                status = step.status
                if progress is not None and progress(step) is False:
                    return False
            self._forget(model_name)
            if status != "success":
                raise BackendProtocolError(f"{self._where} ended getting {model_name!r} in the middle, after {status!r}.")
        return status == "success"

    def delete_model(self, model_name: str) -> bool:
        """Have the server delete a model from its disk.

        Raises:
            UnknownNameError: The server does not have it.
            BackendError: The server cannot be reached, or failed.
        """

        def delete(token: CancelToken) -> None:
            with self.http.open("DELETE", "/api/delete", {"model": model_name}, token) as answer:
                answer.finish()

        self._asked(delete, model_name)
        self._forget(model_name)
        return True

    def _forget(self, model_name: str) -> None:
        """Look anew at what the server says about a model."""
        self._facts.pop(model_name, None)
        self._chosen_contexts.pop(model_name, None)

    def retire(self) -> None:
        """Nothing: a server has other users, and frees models by itself (`keep_alive`)."""

    def close(self) -> None:
        """Close the connections. The server and its models stay; the binding can be used again."""
        self.http.close()

    # ---- asking --------------------------------------------------------------------------------------------------------------

    def _asked(self, ask: Callable[[CancelToken], T], model: str = "") -> T:
        """What a request without a stream answers, asked again where that can help.

        Args:
            ask: Asks, with a token that ends it.
            model: The model that it is about, "" for none.
        """
        with contextlib.ExitStack() as stack:
            token = stack.enter_context(self._running(None))
            if model:
                stack.enter_context(self._missing_explained(model, token))
            return retried(lambda: ask(token), self.retry, token)

    @contextlib.contextmanager
    def _missing_explained(self, model: str, cancel: CancelToken) -> Iterator[None]:
        """A model that is not there becomes an error that says which are, and how to get it."""
        try:
            yield
        except BackendRefusedError as error:
            if error.answered != 404:
                raise
            answer = None
            with contextlib.suppress(BackendTimeoutError):
                answer = _looked_up(lambda: self.http.get_json("/api/tags", cancel, _FACTS_TIMEOUT))
            there = [str(row["model_name"]) for row in model_rows(answer)]
            if answer is None or same_model(model) in map(same_model, there):
                raise
            hint = f"Get it with pull_model({model!r}) of this binding, or with `ollama pull {model}`."
            raise UnknownNameError(f"model at {self._where}", model, there, hint) from error

    def _field(self, answer: Any, key: str, kind: type[T]) -> T:
        value = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(value, kind):
            raise BackendProtocolError(f"{self._where} answered without {key!r}: {str(answer)[:200]!r}")
        return value


def _looked_up(ask: Callable[[], Any]) -> Any:
    """What the server says when it is asked beside a request; None where it does not: the request itself says what is wrong.

    Raises:
        BackendTimeoutError: It took too long, which says nothing about the next time.
        CancelledError: It was cancelled.
    """
    try:
        return ask()
    except (BackendTimeoutError, CancelledError):
        raise
    except LollmsError:
        return None
