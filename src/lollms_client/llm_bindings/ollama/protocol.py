"""Chat requests and answers in Ollama's own protocol, as pure functions both ways.

An answer is newline-delimited JSON: an object a line, the last of which says `done`. It differs from OpenAI's form in this: a
tool call comes whole, its arguments an object; thoughts stand in `message.thinking`; pictures are plain base64 beside the text;
how tokens are chosen stands in `options`, where the server ignores what it does not know.

Source: Ollama's API reference ("Generate a chat completion", "Streaming", "Thinking", "Tool calling", "Errors"); developer guide
("Dynamic Mode Architecture": `think=True, options["think"]="high"`); CONTRACT A11, E.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._bindings.request import ChatRequest, Sampling
from ..._effort import translate_reasoning_effort, wants_thinking
from ..._http.failures import from_status
from ..._media import normalize_image_input
from ..._openai_compat.names import WireNames
from ..._stream.deltas import Delta, FinishDelta, ReasoningDelta, SignedDelta, ToolCallDelta
from ...errors import BackendProtocolError, ConfigurationError
from ...events import Usage

__all__ = ["Asking", "chat_body", "deltas_of", "lines_of", "objects_of", "options_of"]

_SAMPLING = {
    "n_predict": "num_predict",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "repeat_penalty": "repeat_penalty",
    "repeat_last_n": "repeat_last_n",
    "seed": "seed",
}
"""Our sampling settings -> their names in `options`."""

_LEVELS = ("low", "medium", "high", "max")
"""The levels that `think` takes in place of true."""

_SAME_NAMES = WireNames()
_OPEN = Sampling()


@dataclass(frozen=True, slots=True)
class Asking:
    """How a binding asks, whatever is asked.

    Attributes:
        sampling: How tokens are chosen where the request leaves it open.
        options: Further `options`; what the request says itself goes over them.
        context: The context to load the model with, in tokens; None for the server's choice.
        threads: Threads to generate with; None for the server's choice.
        keep_alive: How long the model stays loaded afterwards ("5m", seconds, -1 for ever); None for the server's choice.
        truncate: Whether the server may drop the oldest messages of a prompt that is too long; else that is an error.
        efforts: The reasoning efforts that the model knows, in rising order; empty where it declares none.
        takes_levels: `think` has to be a level for this model, which ignores true.
        thinks: Whether the model can think; None where nobody knows.
    """

    sampling: Sampling = _OPEN
    options: Mapping[str, Any] = field(default_factory=dict)
    context: int | None = None
    threads: int | None = None
    keep_alive: str | float | None = None
    truncate: bool = False
    efforts: Sequence[str] = ()
    takes_levels: bool = False
    thinks: bool | None = None


# ---- out -----------------------------------------------------------------------------------------------------------------------


def chat_body(request: ChatRequest, model: str, asking: Asking, names: WireNames = _SAME_NAMES) -> dict[str, Any]:
    """The body of a chat request.

    Args:
        request: What is asked.
        model: The model's name at the server.
        asking: How it is asked.
        names: How tools are called on the wire.

    Raises:
        ConfigurationError: A picture cannot be sent, a message holds what the server does not take, or an effort is not known.
    """
    body: dict[str, Any] = {"model": model, "messages": [_message(m, names) for m in request.messages], "stream": True}
    if not asking.truncate:  # else what does not fit is cut without a word
        body |= {"truncate": False, "shift": False}
    if request.tools:
        body["tools"] = [_tool(tool, names) for tool in request.tools]
    if request.json_schema is not None:
        body["format"] = request.json_schema
    if asking.keep_alive is not None:
        body["keep_alive"] = asking.keep_alive
    think, effort = _thinking(request, asking)
    if think is not None:
        body["think"] = think
    options = options_of(asking, request.sampling)
    if request.stop:
        options["stop"] = list(request.stop)
    if effort is not None:
        options["think"] = effort
    if options:
        body["options"] = options
    return body


def options_of(asking: Asking, sampling: Sampling = _OPEN) -> dict[str, Any]:
    """The `options` of a request."""
    options = dict(asking.options)
    chosen = sampling.over(asking.sampling)
    said = {theirs: getattr(chosen, ours) for ours, theirs in _SAMPLING.items()}
    said |= {"num_ctx": asking.context, "num_thread": asking.threads}
    return options | {name: value for name, value in said.items() if value is not None}


def _thinking(request: ChatRequest, asking: Asking) -> tuple[bool | str | None, str | None]:
    """What `think` says, and the effort; a model that cannot think refuses to be asked to."""
    thinks = wants_thinking(request.reasoning_effort, request.think)
    effort = translate_reasoning_effort(request.reasoning_effort, asking.efforts, request.think)
    if thinks is None or asking.thinks is False:
        return None, None
    if not thinks:
        return False, None
    by_level = asking.takes_levels and effort is not None and effort.lower() in _LEVELS
    return (effort.lower() if by_level and effort else True), effort


def _message(message: Mapping[str, Any], names: WireNames) -> dict[str, Any]:
    """A message in the server's form."""
    text, images = _content(message.get("content"))
    made: dict[str, Any] = {"role": message.get("role", "user"), "content": text}
    if images:
        made["images"] = images
    thought = message.get("thinking") or message.get("reasoning_content")
    if thought:
        made["thinking"] = thought
    if message.get("tool_calls"):
        made["tool_calls"] = [_call(call, names) for call in message["tool_calls"]]
    if made["role"] == "tool":
        if message.get("name"):
            made["tool_name"] = names.out(message["name"])
        if message.get("tool_call_id"):
            made["tool_call_id"] = message["tool_call_id"]
    return made


def _content(content: Any) -> tuple[str, list[str]]:
    """A message's text, and its pictures as base64."""
    if content is None or isinstance(content, str):
        return content or "", []
    texts: list[str] = []
    images: list[str] = []
    for part in content:
        kind = "text" if isinstance(part, str) else part.get("type")
        if kind == "text":
            texts.append(part if isinstance(part, str) else str(part.get("text") or ""))
        elif kind == "image_url":
            images.append(_base64(part))
        else:
            raise ConfigurationError(f"Ollama takes text and pictures; a message holds a part of type {kind!r}.")
    return "\n".join(texts), images


def _base64(part: Mapping[str, Any]) -> str:
    said = part.get("image_url")
    source = said.get("url") if isinstance(said, Mapping) else said
    url: str = normalize_image_input(source if source is not None else "")["image_url"]["url"]
    if url[:5].lower() != "data:":
        raise ConfigurationError(
            f"Ollama takes a picture's content and fetches none, so {url!r} cannot be sent. "
            "Fetch it, and give the file or its bytes."
        )
    return url.partition(",")[2]


def _call(call: Mapping[str, Any], names: WireNames) -> dict[str, Any]:
    function = call.get("function") or {}
    made: dict[str, Any] = {
        "function": {"name": names.out(str(function.get("name") or "")), "arguments": _arguments(function.get("arguments"))}
    }
    return {"id": call["id"], **made} if call.get("id") else made


def _arguments(said: Any) -> dict[str, Any]:
    """A call's arguments as the object that the server insists on; what is none stands in one."""
    if isinstance(said, Mapping):
        return dict(said)
    try:
        value = json.loads(said or "{}")
    except (ValueError, TypeError):
        value = said
    return value if isinstance(value, dict) else {"arguments": value}


def _tool(tool: Mapping[str, Any], names: WireNames) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}, **(tool.get("input_schema") or {})}
    function = {"name": names.out(tool["name"]), "description": tool.get("description", ""), "parameters": parameters}
    return {"type": "function", "function": function}


# ---- in ------------------------------------------------------------------------------------------------------------------------


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a stream that are not blank, each as soon as it is complete; the last one may lack its end.

    The cost is linear in the number of bytes, however they are cut.
    """
    begun: list[bytes] = []
    for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join([*begun, complete[0]])
            begun = []
            yield from (line for line in complete if line.strip())
        begun.append(rest)
    last = b"".join(begun)
    if last.strip():
        yield last


def objects_of(chunks: Iterable[bytes], where: str) -> Iterator[dict[str, Any]]:
    """The objects of a newline-delimited stream.

    Args:
        chunks: The stream's bytes, cut anywhere.
        where: Who answers, for messages.

    Raises:
        BackendProtocolError: A line is no JSON object.
        BackendError: The server reported an error inside the stream.
    """
    for line in lines_of(chunks):
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise BackendProtocolError(
                f"{where} sent something that is not a part of an answer: {line[:200].decode('utf-8', 'replace')!r}"
            )
        if value.get("error"):
            code = value.get("status_code", value.get("status"))
            raise from_status(code if isinstance(code, int) and code >= 400 else 500, value, where)
        yield value


def deltas_of(chunks: Iterable[bytes], where: str, names: WireNames = _SAME_NAMES) -> Iterator[Delta]:
    """The deltas that a streamed answer consists of. What follows the object that says `done` is not read.

    Args:
        chunks: The answer's bytes, cut anywhere.
        where: Who answers, for messages.
        names: How tools are called on the wire.

    Raises:
        BackendProtocolError: The stream is not an answer, or ended in its middle.
        BackendError: The server reported an error inside the stream.
    """
    calls, thoughts = 0, []
    for part in objects_of(chunks, where):
        message = part.get("message") or {}
        if not isinstance(message, dict):
            raise _no_part(part, where)
        thought, text = message.get("thinking"), message.get("content")
        if isinstance(thought, str) and thought:
            thoughts.append(thought)
            yield ReasoningDelta(thought)
        if isinstance(text, str) and text:
            yield text
        for call in _calls(message, where):
            # Each comes whole. The positions that the server gives are its own count within a part, often 0 for all.
            yield _call_delta(call, calls, names)
            calls += 1
        if part.get("done"):
            if calls and thoughts:  # a model that thinks between its calls is to have its thoughts before it
                yield SignedDelta({"thinking": "".join(thoughts)})
            reason = str(part.get("done_reason") or "stop")
            yield FinishDelta("tool_calls" if calls and reason == "stop" else reason)
            if "eval_count" in part or "prompt_eval_count" in part:
                yield Usage(_count(part.get("prompt_eval_count")), _count(part.get("eval_count")))
            return
    raise BackendProtocolError(f"{where} ended its answer in the middle, without saying that it is done.")


def _calls(message: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(c, dict) and isinstance(c.get("function"), dict) for c in calls):
        raise _no_part(message, where)
    return calls


def _call_delta(call: Mapping[str, Any], position: int, names: WireNames) -> ToolCallDelta:
    function = call["function"]
    arguments = function.get("arguments")
    written = arguments if isinstance(arguments, str) else json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    return ToolCallDelta(position, str(call.get("id") or ""), names.back(str(function.get("name") or "")), written)


def _count(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def _no_part(value: Mapping[str, Any], where: str) -> BackendProtocolError:
    return BackendProtocolError(f"{where} sent something that is not a part of an answer: {str(value)[:200]!r}")
