"""A whole binding over any server that speaks the chat completions protocol.

A vendor is a subclass of a few lines with a `description.yaml` whose key `openai_compatible` says what its server takes
(`vendor.py`).

Source: CONTRACT A11, A19, C, E, F; OpenAI's API reference.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from .._bindings.request import ChatRequest
from .._http.cancel import CancelToken
from .._http.client import HttpClient
from .._http.retry import retried
from .._http.sse import parse_sse
from .._stream.deltas import Delta
from ..errors import BackendError, BackendProtocolError, ConfigurationError
from ..lollms_llm_binding import LollmsLLMBinding
from .connection import take_connection
from .names import WireNames, names_of
from .strict import without_nulls
from .vendor import Vendor, read_vendor
from .wire import ModelFacts, chat_body, deltas_of, deltas_of_answer, strict_tools_of

__all__ = ["OpenAICompatibleBinding"]

_NO_SUCH_PLACE = (404, 405, 501)


class OpenAICompatibleBinding(LollmsLLMBinding):
    """A client of one OpenAI-compatible server. Constructing it asks nobody.

    Args:
        model_name: The model's name at the server.
        embedding_model: The model for `embed`, None for `model_name`.
        strict_tools: Hold tools' arguments to strict schemas: True for all tools that have a strict form, or the names of those
            that must (`strict.py`); for servers that have a strict mode.
        capabilities: What the model can do where that differs from what the vendor says, as fields of Capabilities.
        wire: What the server takes where that differs from what the vendor says, as fields of Wire.
        binding_name: The binding's name.
        **settings: The fields of Connection (`base_url`, `api_key` …), sampling settings, and what else LollmsLLMBinding takes.

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
        strict_tools: bool | Iterable[str] = False,
        capabilities: Mapping[str, Any] | None = None,
        wire: Mapping[str, Any] | None = None,
        binding_name: str | None = None,
        **settings: Any,
    ) -> None:
        connection = take_connection(settings)
        super().__init__(binding_name, model_name=model_name, **settings)
        self.refuse_unknown_settings()
        vendor = self._vendor = self.vendor()
        self.base_url = connection.address(vendor, self.binding_name)
        self.http = connection.client(self.base_url, vendor)
        self.retry = connection.retry_policy()
        self.own_capabilities = vendor.capabilities_with(capabilities)
        self._connection = connection
        self._wire = vendor.wire_at(self.base_url, wire)
        self._strict_tools = strict_tools if isinstance(strict_tools, bool) else frozenset(strict_tools)
        self._embedding_model = embedding_model
        parts = urlsplit(self.base_url)
        self._where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def vendor(self) -> Vendor:
        """What the vendor's server takes; from `description.yaml`, unless a subclass says it otherwise."""
        return read_vendor(self.description.raw, f"The description of {self.binding_name}")

    def client_of(self, url: str) -> HttpClient:
        """A client of another address of the same server."""
        return self._connection.client(url, self._vendor)

    # ---- answers -------------------------------------------------------------------------------------------------------------

    def stream(self, request: ChatRequest, cancel: CancelToken | None = None) -> Iterator[Delta]:
        """Answer a request, piece by piece; in one piece, where the server does not stream.

        Raises:
            CancelledError: `cancel()` was called on this binding meanwhile.
            ConfigurationError: The request cannot be put into the server's form; the message says why.
            ContextWindowError: The prompt is longer than the model's context.
            BackendError: The server cannot be reached, refused, failed, or broke off in the middle. What came before that was
                given; nothing is asked again once a byte came.
        """
        with self._running(cancel) as token:
            names, facts, wire = names_of(request), self._facts(), self._wire
            body = chat_body(request, self._model(), self.sampling, wire, names, facts) | self.extra_body(request)
            deltas = self._deltas(body, names, token)
            strict = strict_tools_of(request, wire, facts)
            if strict:
                deltas = without_nulls(
                    deltas, {t["name"]: t.get("input_schema") or {} for t in request.tools if t["name"] in strict}
                )
            yield from deltas

    def extra_body(self, request: ChatRequest) -> dict[str, Any]:
        """What else a server of this kind is told with a request; nothing by default."""
        return {}

    def _deltas(self, body: Mapping[str, Any], names: WireNames, cancel: CancelToken) -> Iterator[Delta]:
        returned = self._wire.returned
        with contextlib.ExitStack() as stack:
            answer = retried(
                lambda: stack.enter_context(self.http.open("POST", "/chat/completions", body, cancel)), self.retry, cancel
            )
            if "json" in answer.headers.get("content-type", ""):  # whole, whether or not it was asked to stream
                yield from deltas_of_answer(_parsed(b"".join(answer), self._where), self._where, names, returned)
            else:
                yield from deltas_of(parse_sse(answer), self._where, names, returned)
                answer.finish()

    def _facts(self) -> ModelFacts:
        text_first = bool(self.profile_facts.get("glm_image_embedding"))
        return ModelFacts(self.capabilities.reasoning_efforts, text_first, self._strict_tools)

    def _model(self) -> str:
        """The model's name for a request.

        Raises:
            ConfigurationError: Nobody named one.
        """
        if not self.model_name:
            raise ConfigurationError(
                f"The binding {self.binding_name!r} needs a model_name; its list_models() tells which there are."
            )
        return self.model_name

    # ---- embeddings, models, facts -------------------------------------------------------------------------------------------

    def embed(self, text: str | list[str], **kwargs: Any) -> Any:
        """The embedding of a text (a list of floats), or those of several, in the same order.

        Args:
            text: One text, or several.
            **kwargs: `model_name` for this call alone; `dimensions` where the model can choose.

        Raises:
            BackendError: The server makes none, or failed.
        """
        if isinstance(text, list) and not text:
            return []
        body: dict[str, Any] = {"model": kwargs.get("model_name") or self._embedding_model or self._model()}
        body["input"] = text
        if kwargs.get("dimensions"):
            body["dimensions"] = kwargs["dimensions"]
        with self._running(None) as token:
            answer = self._asked(lambda: self.http.post_json("/embeddings", body, token), token)
        vectors = _vectors(answer, 1 if isinstance(text, str) else len(text), self._where)
        return vectors[0] if isinstance(text, str) else vectors

    def list_models(self) -> list[Any]:
        """The server's models, `{"model_name", "owned_by", "created", "context_size"}` each, None for what it does not say.

        A server without such a list has the one model that this binding was told of.

        Raises:
            BackendError: The server cannot be reached, or refuses the key.
        """
        with self._running(None) as token:
            try:
                answer = self._asked(lambda: self.http.get_json("/models", token), token)
            except BackendError as error:
                if not isinstance(error, BackendProtocolError) and error.answered not in _NO_SUCH_PLACE:
                    raise
                return super().list_models()
        return [_model_row(row) for row in _model_rows(answer)] or super().list_models()

    def get_model_info(self) -> dict[str, Any]:
        """Facts about the model, with the server's address."""
        return {**super().get_model_info(), "base_url": self.base_url}

    def close(self) -> None:
        """Close the connections. The binding can be used again."""
        super().close()
        self.http.close()

    def _asked(self, ask: Callable[[], Any], cancel: CancelToken | None = None) -> Any:
        """What a request without a stream answers, asked again where that can help."""
        return retried(ask, self.retry, cancel)


def _parsed(raw: bytes, where: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError as error:
        raise BackendProtocolError(
            f"{where} answered something that is not JSON: {raw[:200].decode('utf-8', 'replace')!r}"
        ) from error


def _vectors(answer: Any, count: int, where: str) -> list[Any]:
    rows = answer.get("data") if isinstance(answer, dict) else answer
    if isinstance(rows, list) and len(rows) == count and all(isinstance(r, dict) and "embedding" in r for r in rows):
        return [row["embedding"] for row in sorted(rows, key=lambda row: row.get("index") or 0)]
    raise BackendProtocolError(f"{where} answered something that is not {count} embeddings: {str(answer)[:200]!r}")


def _model_rows(answer: Any) -> list[Any]:
    """The rows of a list of models, in the forms that servers give it."""
    if isinstance(answer, dict):
        answer = answer.get("data") or answer.get("models")
    return [row for row in answer if isinstance(row, (dict, str))] if isinstance(answer, list) else []


def _model_row(row: dict[str, Any] | str) -> dict[str, Any]:
    if isinstance(row, str):
        row = {"id": row}
    meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
    assert isinstance(meta, dict)
    context = row.get("max_model_len") or row.get("context_length") or meta.get("n_ctx") or meta.get("n_ctx_train")
    name = row.get("id") or row.get("name") or row.get("model")
    return {"model_name": name, "owned_by": row.get("owned_by"), "created": row.get("created"), "context_size": context}
