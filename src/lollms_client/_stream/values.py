"""JSON values in a text, read without mending (but raw control characters in strings pass: what they mean is plain)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["decode_all", "decode_one"]

_SPACE = " \t\r\n"


@cache
def _decoder() -> Callable[[str, int], tuple[Any, int]]:
    import json

    return json.JSONDecoder(strict=False).raw_decode


def decode_one(text: str) -> Any:
    """The one JSON object or array that the text consists of, None where it is anything else."""
    text = text.strip(_SPACE)
    if text[:1] not in ("{", "["):
        return None
    try:
        value, end = _decoder()(text, 0)
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) else None


def decode_all(text: str) -> list[Any] | None:
    """The JSON values that the text consists of, one behind the other, commas between or not; None where it is anything else."""
    decode = _decoder()
    values: list[Any] = []
    pos, end = 0, len(text)
    while True:
        while pos < end and text[pos] in " \t\r\n,":
            pos += 1
        if pos == end:
            return values or None
        try:
            value, pos = decode(text, pos)
        except (ValueError, RecursionError):
            return None
        values.append(value)
