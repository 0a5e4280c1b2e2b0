"""A conversation and its branches, drawn in lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..lollms_utilities import one_line, safe_text

__all__ = ["drawn", "in_order"]


def in_order(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The nodes of a tree from top to bottom as it is drawn: each before its answers, however long the conversation is."""
    pending = nodes[::-1]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(node["children"])


def drawn(nodes: list[dict[str, Any]]) -> list[str]:
    """A tree as lines. A message with one answer stands above it without an indent: only branches move to the right.

    Args:
        nodes: As `LollmsDiscussion.get_tree` gives them.
    """
    lines: list[str] = []
    pending = _beside(nodes, "")  # what is still to be drawn, the next one last: a conversation may be longer than Python's stack
    while pending:
        node, head, below = pending.pop()
        message, label = node["message"], node["label"]
        named = f" [{safe_text(label)}]" if label else ""
        mark = "*" if node["active"] else " "
        lines.append(f"{mark} {head}{safe_text(message.sender)}: {one_line(message.content, 70)}{named}  {message.id[-8:]}")
        pending += _beside(node["children"], below)
    return lines


def _beside(nodes: list[dict[str, Any]], before: str) -> list[tuple[dict[str, Any], str, str]]:
    """Messages that follow the same one, the last one first: each with what stands before it, and before those below it."""
    if len(nodes) < 2:
        return [(node, before, before) for node in nodes]
    drawn = [(node, f"{before}├─ ", f"{before}│  ") for node in nodes[:-1]]
    return [(nodes[-1], f"{before}└─ ", f"{before}   "), *reversed(drawn)]
