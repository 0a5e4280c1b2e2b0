"""What a provider signs, and wants to have back unchanged as long as a tool loop lasts, gathered from the pieces of an answer.

Providers that sign a model's thoughts refuse the results of its calls where the thoughts are missing or were touched. Each keeps
them in a field of its own, and nobody reads them but the provider: so here are names of fields, and one way in which pieces grow
together. Only what a server sent goes back to it.

| field | whose |
|---|---|
| `reasoning_details` | OpenRouter: a list of blocks with `type`, `index`, and `text`, `summary` or `data` |
| `thinking_blocks` | LiteLLM: Anthropic's blocks, with `thinking` and `signature`, or with `data` |
| `extra_content` | Gemini's OpenAI-compatible endpoint: `{"google": {"thought_signature"}}`, of a message or of a call |
| `provider_specific_fields` of a call | LiteLLM: `{"thought_signature"}` |
| `reasoning_content` | DeepSeek, which signs nothing, but refuses a call that comes back without the thought behind it |

Source: OpenRouter's documentation ("Preserving Reasoning Blocks", "reasoning_details Array Structure"), LiteLLM's
("Reasoning Content", "Gemini 3"), Google's ("Thought Signatures", "OpenAI compatibility"), DeepSeek's ("Thinking Mode").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._stream.deltas import SignedDelta

__all__ = ["RETURNED", "Signed"]

RETURNED = ("reasoning_details", "thinking_blocks", "extra_content")
"""Fields of a message that go back to any server that sends them."""

_OF_CALLS = ("extra_content", "provider_specific_fields")
_GROWS = ("text", "summary", "data", "thinking")
"""What of a block comes in pieces; all else comes whole, with any of them."""


class Signed:
    """Gathers the signed fields of one answer.

    Args:
        returned: Which fields of a message the server wants to have back. Texts among them are thoughts: they go with calls.
    """

    def __init__(self, returned: Sequence[str] = RETURNED) -> None:
        self._returned = returned
        self._fields: dict[str, Any] = {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._ids: dict[Any, str] = {}  # position of a call -> its id, which may come with its first fragment alone

    def take(self, said: Mapping[str, Any], whole: bool = False) -> None:
        """Takes the next piece of the answer, or the whole message, whose fields are as they are to be."""
        for name in self._returned:
            if said.get(name):
                self._fields[name] = said[name] if whole else _grown(self._fields.get(name), said[name])
        for call in said.get("tool_calls") or ():
            self._take_call(call)

    def _take_call(self, call: Mapping[str, Any]) -> None:
        index = call.get("index")
        call_id = str(call.get("id") or "") or self._ids.get(index, "")
        self._ids[index] = call_id
        for name in _OF_CALLS:
            if call_id and isinstance(call.get(name), Mapping):
                mine = self._calls.setdefault(call_id, {})
                mine[name] = _grown(mine.get(name), call[name])

    def gathered(self) -> SignedDelta | None:
        """What goes back; None where there is nothing."""
        called = bool(self._ids)
        fields = {name: value for name, value in self._fields.items() if called or not isinstance(value, str)}
        return SignedDelta(fields, self._calls) if fields or self._calls else None


def _grown(before: Any, said: Any) -> Any:
    """A field with its next piece: texts are joined, blocks go on or follow, objects are filled in."""
    if isinstance(said, list):
        blocks = before if isinstance(before, list) else []
        for block in said:
            _add_block(blocks, block)
        return blocks
    if isinstance(before, str) and isinstance(said, str):
        return before + said
    if isinstance(before, Mapping) and isinstance(said, Mapping):
        filled = {k: _filled(before.get(k), v) for k, v in said.items() if v is not None or k not in before}
        return {**before, **filled}
    return said


def _filled(before: Any, said: Any) -> Any:
    return {**before, **said} if isinstance(before, Mapping) and isinstance(said, Mapping) else said


def _add_block(blocks: list[Any], block: Any) -> None:
    mine = _same_block(blocks, block) if isinstance(block, Mapping) else None
    if mine is None:
        blocks.append(dict(block) if isinstance(block, Mapping) else block)
        return
    signed = bool(block.get("signature"))
    for name, value in block.items():
        before = mine.get(name)
        if name in _GROWS and isinstance(before, str) and isinstance(value, str):
            # Some send the whole text once more, with its signature.
            mine[name] = before if signed and value == before else before + value
        elif value or name not in mine:
            mine[name] = value


def _same_block(blocks: list[Any], block: Mapping[str, Any]) -> Any:
    """The block that a piece goes on with: the one of its position, else the last one, as long as that is not signed."""
    index, kind = block.get("index"), block.get("type")
    if index is not None:
        there = (b for b in reversed(blocks) if isinstance(b, dict) and b.get("index") == index and b.get("type") == kind)
        return next(there, None)
    last = blocks[-1] if blocks else None
    if not isinstance(last, dict) or last.get("type") != kind or last.get("index") is not None or last.get("signature"):
        return None
    return last if "data" not in block and block.get("id") in (None, last.get("id")) else None
