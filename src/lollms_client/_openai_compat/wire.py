"""Chat requests and answers in the form that OpenAI's API made common, as pure functions both ways.

Source: OpenAI's chat completions reference; the extensions (`top_k`, `repeat_penalty`, `reasoning_content`,
`chat_template_kwargs`) as llama.cpp, vLLM and others have them; CONTRACT A11, E; developer guide ("Multi-Backend Projection",
`glm_image_embedding`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._bindings.request import ChatRequest, Sampling
from .._effort import translate_reasoning_effort, wants_thinking
from .._http.failures import from_status
from .._http.sse import SseEvent
from .._media import normalize_image_input, normalize_video_input
from .._stream.deltas import Delta, FinishDelta, ReasoningDelta, ToolCallDelta
from ..errors import BackendProtocolError
from ..events import Usage
from .names import WireNames
from .signed import RETURNED, Signed
from .strict import NotStrictError, inline_refs, strict_schema
from .vendor import Wire

__all__ = ["DONE", "ModelFacts", "chat_body", "deltas_of", "deltas_of_answer", "strict_tools_of", "usage_of"]

DONE = "[DONE]"
"""What the last event of a stream says."""

_THOUGHT = "reasoning_content"
_OPEN = Sampling()
_WIRE = Wire()
_SAME_NAMES = WireNames()


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What about a model shapes a request.

    Attributes:
        efforts: The reasoning efforts that it knows, in rising order; empty where it declares none.
        text_first: Content goes text first, and nothing is said about thinking in the chat template (`glm_image_embedding`).
        strict_tools: Which tools' arguments are held to strict schemas: True for all that can be, or their names.
    """

    efforts: Sequence[str] = ()
    text_first: bool = False
    strict_tools: bool | frozenset[str] = False


_PLAIN = ModelFacts()


def chat_body(
    request: ChatRequest,
    model: str,
    defaults: Sampling = _OPEN,
    wire: Wire = _WIRE,
    names: WireNames = _SAME_NAMES,
    facts: ModelFacts = _PLAIN,
) -> dict[str, Any]:
    """The body of a chat request.

    Args:
        request: What is asked.
        model: The model's name at the server, "" for a server that has only one.
        defaults: How tokens are chosen where the request leaves it open.
        wire: What the server takes.
        names: How tools are called there.
        facts: What about the model matters here.

    Raises:
        ConfigurationError: A picture or video cannot be read, an effort is not known, or a tool that asks for strict mode has no
            strict form; the message names which.
    """
    body: dict[str, Any] = {"model": model} if model else {}
    messages = [_message(m, names, facts.text_first) for m in request.messages]
    body["messages"] = [_with_thought(m) for m in messages] if _THOUGHT in wire.returned else messages
    body["stream"] = wire.streaming
    if wire.streaming and wire.stream_usage:
        body["stream_options"] = {"include_usage": True}
    sampling = request.sampling.over(defaults)
    for ours, theirs in wire.sampling.items():
        value = getattr(sampling, ours)
        if value is not None:
            body[theirs] = value
    if request.stop:
        body["stop"] = list(request.stop)
    if request.json_schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": _answer_schema(request.json_schema, wire)}
    if request.tools:
        strict = strict_tools_of(request, wire, facts)
        body["tools"] = [_tool(tool, wire, names, strict.get(tool["name"])) for tool in request.tools]
    return body | _reasoning(request, wire, facts)


def strict_tools_of(request: ChatRequest, wire: Wire, facts: ModelFacts) -> dict[str, dict[str, Any]]:
    """The request's tools that go in strict mode, by name, with their strict schemas.

    A tool's own `strict` (true or false) wins over the binding's.

    Raises:
        NotStrictError: A tool that was named for strict mode has no strict form; the message names tool and place.
    """
    if not wire.strict:
        return {}
    strict: dict[str, dict[str, Any]] = {}
    for tool in request.tools:
        name = tool["name"]
        said = tool.get("strict")
        by_name = said is True or (not isinstance(facts.strict_tools, bool) and name in facts.strict_tools)
        if said is False or not (by_name or facts.strict_tools is True):
            continue
        try:
            strict[name] = strict_schema(_parameters(tool))
        except NotStrictError as error:
            if by_name:
                raise NotStrictError(error.path, f"{error.why} (tool {name!r})") from None
    return strict


def _reasoning(request: ChatRequest, wire: Wire, facts: ModelFacts) -> dict[str, Any]:
    """What a request says about reasoning."""
    thinks = wants_thinking(request.reasoning_effort, request.think)
    effort = translate_reasoning_effort(request.reasoning_effort, facts.efforts, request.think)
    body: dict[str, Any] = {}
    if effort is not None and wire.reasoning_effort:
        body["reasoning_effort"] = effort
    if thinks is None:
        return body
    template: dict[str, Any] = {} if facts.text_first else {"enable_thinking": thinks}
    if not thinks and isinstance(wire.silence, Mapping):
        body |= wire.silence
    elif not thinks and wire.silence:
        body["thinking"] = False
        template["thinking"] = False
    if template and wire.template_kwargs:
        body["chat_template_kwargs"] = template
    return body


# ---- messages and tools out ---------------------------------------------------------------------------------------------------


def _message(message: Mapping[str, Any], names: WireNames, text_first: bool) -> Mapping[str, Any]:
    """A message as it goes out; one that needs no change goes as it is."""
    changed: dict[str, Any] = {}
    content = message.get("content")
    if isinstance(content, list):
        parts = [_part(part) for part in content]
        changed["content"] = sorted(parts, key=lambda p: p.get("type") != "text") if text_first else parts
    if names:
        if message.get("role") == "tool" and "name" in message:
            changed["name"] = names.out(message["name"])
        if message.get("tool_calls"):
            changed["tool_calls"] = [_call(call, names) for call in message["tool_calls"]]
    return {**message, **changed} if changed else message


def _with_thought(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message whose calls do not go out without a field for the thought behind them: earlier turns have lost theirs."""
    return {_THOUGHT: "", **message} if message.get("tool_calls") else message


def _part(part: Any) -> dict[str, Any]:
    """A part of a message's content; a picture or video in whatever form a person has it becomes an address or a data URL."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    for key, normalise in (("image_url", normalize_image_input), ("video_url", normalize_video_input)):
        if part.get("type") == key:
            said = part.get(key)
            source = said.get("url") if isinstance(said, Mapping) else said
            more = {k: v for k, v in said.items() if k != "url"} if isinstance(said, Mapping) else {}
            url = normalise(source if source is not None else "")[key]["url"]
            return {**part, key: {"url": url, **more}}
    return dict(part)


def _call(call: Mapping[str, Any], names: WireNames) -> dict[str, Any]:
    function = call.get("function") or {}
    return {**call, "function": {**function, "name": names.out(function.get("name") or "")}}


def _parameters(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's schema; providers refuse one without `type` or `properties`."""
    return {"type": "object", "properties": {}, **(tool.get("input_schema") or {})}


def _tool(tool: Mapping[str, Any], wire: Wire, names: WireNames, strict: dict[str, Any] | None) -> dict[str, Any]:
    parameters = strict if strict is not None else _parameters(tool)
    function = {
        "name": names.out(tool["name"]),
        "description": tool.get("description", ""),
        "parameters": inline_refs(parameters) if wire.inline_refs else parameters,
    }
    if strict is not None:
        function["strict"] = True
    return {"type": "function", "function": function}


def _answer_schema(schema: dict[str, Any], wire: Wire) -> dict[str, Any]:
    """The schema of an answer: in strict mode where that changes nothing of what the caller asked for."""
    strict = True
    if wire.strict:
        try:
            schema = strict_schema(schema, optional="refuse")
        except NotStrictError:
            strict = False
    if wire.inline_refs:
        schema = inline_refs(schema)
    return {"name": "answer", "schema": schema, "strict": strict}


# ---- answers in ---------------------------------------------------------------------------------------------------------------


def deltas_of(
    events: Iterable[SseEvent], where: str, names: WireNames = _SAME_NAMES, returned: Sequence[str] = RETURNED
) -> Iterator[Delta]:
    """The deltas that a streamed answer consists of; what the server wants to have back comes last.

    Args:
        events: The answer's server-sent events.
        where: Who answers, for messages.
        names: How tools are called there.
        returned: Fields of the answer that the server wants to have back.

    Raises:
        BackendProtocolError: The stream is not an answer, or ended in its middle.
        BackendError: The server reported an error inside the stream.
    """
    ended, signed = False, Signed(returned)
    for event in events:
        if event.data == DONE:
            if not ended:  # some servers end without a reason
                ended = True
                yield FinishDelta()
            break
        chunk = _chunk(event, where)
        for choice in _objects(chunk.get("choices"), where):
            delta = choice.get("delta")
            if delta:
                yield from _said(delta, where, names)
                signed.take(delta)
            reason = choice.get("finish_reason")
            if reason and not ended:
                ended = True
                yield FinishDelta(str(reason))
        usage = chunk.get("usage")
        if usage:
            yield usage_of(usage)
    if not ended:
        raise BackendProtocolError(f"{where} ended its answer in the middle, without a reason for the end.")
    if (gathered := signed.gathered()) is not None:
        yield gathered


def deltas_of_answer(
    answer: Any, where: str, names: WireNames = _SAME_NAMES, returned: Sequence[str] = RETURNED
) -> Iterator[Delta]:
    """The deltas of an answer that came whole. Arguments and errors as with `deltas_of`."""
    whole = _checked(answer, where, json.dumps(answer, ensure_ascii=False))
    choices = _objects(whole.get("choices"), where)
    if not choices:
        raise BackendProtocolError(f"{where} answered without a choice: {json.dumps(answer, ensure_ascii=False)[:200]}")
    message, signed = choices[0].get("message") or {}, Signed(returned)
    yield from _said(message, where, names)
    signed.take(message, whole=True)
    yield FinishDelta(str(choices[0].get("finish_reason") or "stop"))
    if whole.get("usage"):
        yield usage_of(whole["usage"])
    if (gathered := signed.gathered()) is not None:
        yield gathered


def usage_of(usage: Any) -> Usage:
    """What a request cost, from an answer's `usage` object; 0 for what it does not say."""
    if not isinstance(usage, Mapping):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    return Usage(*(_count(n) for n in (usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)))


def _count(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def _chunk(event: SseEvent, where: str) -> dict[str, Any]:
    try:
        chunk = json.loads(event.data)
    except ValueError:
        chunk = None
    if event.event == "error" and isinstance(chunk, dict) and "error" not in chunk:
        chunk = {"error": chunk}
    return _checked(chunk, where, event.data)


def _checked(value: Any, where: str, said: str) -> dict[str, Any]:
    """An answer, or a part of one, that is no error."""
    if not isinstance(value, dict):
        raise BackendProtocolError(f"{where} sent something that is not a part of an answer: {said[:200]!r}")
    error = value.get("error")
    if error:
        code = error.get("code", error.get("status")) if isinstance(error, dict) else None
        status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdigit()) else 500
        raise from_status(status, value, where)
    return value


def _objects(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of objects, empty where there is none."""
    if not value:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BackendProtocolError(f"{where} sent something that is not a part of an answer: {str(value)[:200]!r}")
    return value


def _said(delta: Any, where: str, names: WireNames) -> Iterator[Delta]:
    """What a delta, or a whole message, says."""
    if not isinstance(delta, dict):
        raise BackendProtocolError(f"{where} sent something that is not a part of an answer: {str(delta)[:200]!r}")
    thought = delta.get("reasoning_content") or delta.get("reasoning")
    if thought and isinstance(thought, str):
        yield ReasoningDelta(thought)
    text = delta.get("content") or delta.get("refusal")
    if text:
        if isinstance(text, str):
            yield text
        else:
            yield from _parts(text, where)
    if delta.get("tool_calls"):
        for call in _objects(delta["tool_calls"], where):
            yield _call_delta(call, names)


def _parts(parts: Any, where: str) -> Iterator[Delta]:
    """Content in parts, as some servers send it: texts, and thoughts that consist of texts."""
    for part in _objects(parts, where):
        if part.get("type") == "thinking":
            thought = part.get("thinking")
            pieces = thought if isinstance(thought, list) else [{"text": thought}]
            yield from (ReasoningDelta(str(p["text"])) for p in pieces if isinstance(p, dict) and p.get("text"))
        elif isinstance(part.get("text"), str) and part["text"]:
            yield part["text"]


def _call_delta(call: Mapping[str, Any], names: WireNames) -> ToolCallDelta:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    index, arguments = call.get("index"), function.get("arguments") or ""
    return ToolCallDelta(
        index if isinstance(index, int) else None,
        str(call.get("id") or ""),
        names.back(str(function.get("name") or "")),
        arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
    )
