"""The client of a llama.cpp server."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ..._bindings.request import Capabilities, ChatRequest
from ..._openai_compat.binding import OpenAICompatibleBinding
from ...errors import BackendProtocolError, LollmsError

__all__ = ["LlamaCppServerBinding"]

_FACTS_TIMEOUT = 3.0
_FACTS_AGAIN = 10.0
"""Seconds after which a server that said nothing about itself is asked again."""


class LlamaCppServerBinding(OpenAICompatibleBinding):
    """A client of a llama.cpp server; keywords as OpenAICompatibleBinding.

    A server serves the model that it was started with, so `model_name` may be left out. What it says about itself (`/props`:
    context, pictures, videos) is asked once, when it is first needed; until it answers, what was configured holds.

    Tools are asked for under a schema, which every model follows here. Native tool calls are for those who know that server and
    model have them (`capabilities={"native_tools": True}`): that a template renders tools does not say that calls come back.
    """

    def __init__(
        self,
        model_name: str | None = None,
        *,
        capabilities: dict[str, Any] | None = None,
        binding_name: str = "llama_cpp_server",
        **settings: Any,
    ) -> None:
        self._props: dict[str, Any] = {}
        self._next_look = 0.0
        self._looking = threading.Lock()
        self._said = dict(capabilities or {})
        super().__init__(model_name, capabilities=capabilities, binding_name=binding_name, **settings)
        parts = urlsplit(self.base_url)
        self.native = self.client_of(f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix('/v1')}")

    # ---- facts ---------------------------------------------------------------------------------------------------------------

    @property
    def own_capabilities(self) -> Capabilities:
        """What was configured, and for what was left open what the server says."""
        props = self.props()
        if not props:
            return self._configured
        modalities = _mapping(props, "modalities")
        facts: dict[str, Any] = {
            "context_size": _mapping(props, "default_generation_settings").get("n_ctx"),
            "vision": bool(modalities.get("vision")) if modalities else None,
            "video": bool(modalities.get("video")),
        }
        return replace(self._configured, **{k: v for k, v in facts.items() if v is not None and k not in self._said})

    @own_capabilities.setter
    def own_capabilities(self, value: Capabilities) -> None:
        self._configured = value

    def props(self) -> dict[str, Any]:
        """What the server says about itself, `{}` as long as it does not answer."""
        with self._looking:
            if not self._props and time.monotonic() >= self._next_look:
                self._next_look = time.monotonic() + _FACTS_AGAIN
                with contextlib.suppress(LollmsError):
                    answer = self.native.get_json("/props", read_timeout=_FACTS_TIMEOUT)
                    self._props = answer if isinstance(answer, dict) else {}
            return self._props

    def get_model_info(self) -> dict[str, Any]:
        """Facts about the model, with those that the server says."""
        props = self.props()
        info = super().get_model_info()
        return {**info, "name": info["name"] or props.get("model_alias"), "path": props.get("model_path")}

    def load_model(self, model_name: str | None = None) -> bool:
        """Wait until the server has loaded its model; True once it has.

        Raises:
            BackendError: It is not there, or not ready within the time that retries take.
        """
        if model_name:
            self.select_model(model_name)
        self._asked(lambda: self.native.get_json("/health"))
        self._props, self._next_look = {}, 0.0
        return True

    def ps(self) -> list[dict[str, Any]]:
        """The server's model: `model_name`, `path`, `context_size`, `n_parallel`; empty while it does not answer."""
        props = self.props()
        if not props:
            return []
        context = _mapping(props, "default_generation_settings").get("n_ctx")
        named, path = props.get("model_alias"), props.get("model_path")
        return [{"model_name": named, "path": path, "context_size": context, "n_parallel": props.get("total_slots")}]

    def _model(self) -> str:
        return self.model_name or ""

    # ---- requests ------------------------------------------------------------------------------------------------------------

    def extra_body(self, request: ChatRequest) -> dict[str, Any]:
        """Signs of life while the prompt is read; and a request with a seed is computed anew, so that it is repeatable.

        (The prefix that is kept from an earlier request is computed in other steps, which rounds differently.)
        """
        seeded = request.sampling.over(self.sampling).seed is not None
        return {"return_progress": True, "cache_prompt": not seeded or bool(request.session)}

    def tokenize(self, text: str) -> list[Any]:
        """The text's tokens as the model has them, markers such as `<|im_end|>` read as such."""
        answer = self._asked(lambda: self.native.post_json("/tokenize", {"content": text, "add_special": False}))
        return list(_field(answer, "tokens", list))

    def detokenize(self, tokens: list[Any]) -> str:
        """The text of tokens."""
        return str(_field(self._asked(lambda: self.native.post_json("/detokenize", {"tokens": tokens})), "content", str))

    def close(self) -> None:
        """Close the connections. The binding can be used again."""
        super().close()
        self.native.close()


def _mapping(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _field(answer: Any, key: str, kind: type) -> Any:
    value = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(value, kind):
        raise BackendProtocolError(f"The server answered without {key!r}: {str(answer)[:200]!r}")
    return value
