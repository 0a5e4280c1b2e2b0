"""What goes out again of the messages of earlier turns: what was said and done, without what was only for that turn."""

from __future__ import annotations

import re
from typing import Any

from .._bindings.request import Capabilities
from .._text.thinking import remove_thinking_blocks
from .ports import Message

__all__ = ["plain", "sent_again", "unseen", "unsigned"]

_KEPT = ("role", "content", "tool_calls", "name")
_KEPT_OF_CALLS = ("id", "type", "function")


def sent_again(message: Message, model: Capabilities) -> Message:
    """A message of an earlier turn as a model gets it: without thoughts, and without pictures for one that sees none."""
    kept = plain(message, model.thinking_tags)
    return unseen(kept) if model.is_blind else kept


def plain(message: Message, thinking_tags: tuple[tuple[str, str], ...] = ()) -> Message:
    """A message of an earlier turn without the model's thoughts, and without what a provider signed for its tool loop.

    Args:
        message: In OpenAI form; only what an assistant said is changed.
        thinking_tags: Further pairs of markers that enclose the model's thoughts.

    Source: developer guide, "Thought Stream Handling".
    """
    if message.get("role") != "assistant":
        return message
    kept, content = unsigned(message), message.get("content")
    if isinstance(content, str):
        kept["content"] = _said(content, thinking_tags)
    elif isinstance(content, list):
        kept["content"] = [_said_part(part, thinking_tags) for part in content if _kind(part) != "thinking"]
    return kept


def unseen(message: Message) -> Message:
    """A message for a model that takes no pictures: each is left out, and a line in its place says so."""
    content = message.get("content")
    if not isinstance(content, list) or not any(_kind(part) == "image_url" for part in content):
        return message
    parts = [_left_out(part) if _kind(part) == "image_url" else part for part in content]
    if all(_kind(part) == "text" for part in parts):
        return {**message, "content": "\n".join(part["text"] for part in parts)}
    return {**message, "content": parts}


def _left_out(part: dict[str, Any]) -> dict[str, Any]:
    url = part.get("image_url")
    said = str(url.get("url", "") if isinstance(url, dict) else url)
    address = re.match(r"https?://[^?#]*/([\w.%-]+)", said)
    data = re.match(r"data:(image/[\w.+-]+)", said)
    name = address[1] if address else data[1] if data else ""
    return {"type": "text", "text": f"[picture{f' {name}' if name else ''} left out: this model does not see]"}


def unsigned(message: Message) -> Message:
    """A message with the fields that every server knows, and no others, where an assistant said it."""
    if message.get("role") != "assistant":
        return message
    kept = {name: message[name] for name in _KEPT if name in message}
    if kept.get("tool_calls"):
        kept["tool_calls"] = [{name: call[name] for name in _KEPT_OF_CALLS if name in call} for call in kept["tool_calls"]]
    return kept


def _said(text: str, tags: tuple[tuple[str, str], ...]) -> str:
    return remove_thinking_blocks(text, tags) if tags or "think" in text.lower() else text


def _said_part(part: Any, tags: tuple[tuple[str, str], ...]) -> Any:
    return {**part, "text": _said(part["text"], tags)} if _kind(part) == "text" and isinstance(part.get("text"), str) else part


def _kind(part: Any) -> Any:
    return part.get("type") if isinstance(part, dict) else None
