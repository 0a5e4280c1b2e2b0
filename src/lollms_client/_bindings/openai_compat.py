"""Chat requests and answers in the form that OpenAI's API made common, as pure functions both ways.

Source: OpenAI's chat completions reference; the extensions (`top_k`, `repeat_penalty`, `reasoning_content`) as llama.cpp,
vLLM and others have them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .._http.failures import from_status
from .._http.sse import SseEvent
from .._stream.deltas import Delta, FinishDelta, ReasoningDelta, ToolCallDelta
from ..errors import BackendProtocolError
from ..events import Usage
from .request import ChatRequest, Sampling

__all__ = ["chat_body", "deltas_of", "usage_of"]

_OPEN = Sampling()
_WIRE_NAMES = {
    "n_predict": "max_tokens",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "repeat_penalty": "repeat_penalty",
    "repeat_last_n": "repeat_last_n",
    "seed": "seed",
}


def chat_body(request: ChatRequest, model: str, defaults: Sampling = _OPEN) -> dict[str, Any]:
    """The body of a streaming chat request.

    Args:
        request: What is asked.
        model: The model's name at the server.
        defaults: How tokens are chosen where the request leaves it open.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": request.messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    sampling = request.sampling.over(defaults)
    for ours, theirs in _WIRE_NAMES.items():
        value = getattr(sampling, ours)
        if value is not None:
            body[theirs] = value
    if request.stop:
        body["stop"] = list(request.stop)
    if request.json_schema is not None:
        schema = {"name": "answer", "schema": request.json_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def deltas_of(events: Iterable[SseEvent], where: str) -> Iterator[Delta]:
    """The deltas that a streamed answer consists of.

    Args:
        events: The answer's server-sent events.
        where: Who answers, for messages.

    Raises:
        BackendProtocolError: The stream is not an answer, or ended in its middle.
        BackendError: The server reported an error inside the stream.
    """
    ended = False
    for event in events:
        chunk = _chunk(event, where)
        for choice in chunk.get("choices") or ():
            yield from _choice(choice.get("delta") or {})
            reason = choice.get("finish_reason")
            if reason and not ended:
                ended = True
                yield FinishDelta(str(reason))
        if isinstance(chunk.get("usage"), dict):
            yield usage_of(chunk["usage"])
    if not ended:
        raise BackendProtocolError(f"{where} ended its answer in the middle, without a reason for the end.")


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """What a request cost, from an answer's `usage` object."""
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        int(usage.get("prompt_tokens") or 0),
        int(usage.get("completion_tokens") or 0),
        int(details.get("cached_tokens") or 0),
    )


def _chunk(event: SseEvent, where: str) -> dict[str, Any]:
    try:
        chunk = json.loads(event.data)
    except ValueError:
        chunk = None
    if not isinstance(chunk, dict):
        raise BackendProtocolError(f"{where} streamed something that is not a part of an answer: {event.data[:200]!r}")
    error = chunk.get("error")
    if error:
        code = error.get("code") if isinstance(error, dict) else None
        raise from_status(code if isinstance(code, int) else 500, chunk, where)
    return chunk


def _choice(delta: Mapping[str, Any]) -> Iterator[Delta]:
    thought = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(thought, str) and thought:
        yield ReasoningDelta(thought)
    text = delta.get("content")
    if isinstance(text, str) and text:
        yield text
    for call in delta.get("tool_calls") or ():
        function = call.get("function") or {}
        index = call.get("index")
        yield ToolCallDelta(
            index if isinstance(index, int) else None,
            call.get("id") or "",
            function.get("name") or "",
            function.get("arguments") or "",
        )


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool.get("input_schema") or {}}
    return {"type": "function", "function": function}
