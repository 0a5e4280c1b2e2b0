"""What goes out again of the messages of earlier turns: what was said and done, without what was only for that turn."""

from __future__ import annotations

from typing import Any

from .._text.thinking import remove_thinking_blocks
from .ports import Message

__all__ = ["plain", "unsigned"]

_KEPT = ("role", "content", "tool_calls", "name")
_KEPT_OF_CALLS = ("id", "type", "function")


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
