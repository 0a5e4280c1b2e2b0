"""What a person told in confidence: kept in memory for tools of this process, and out of everything that a call brings back.

A secret is known here from the moment at which its question is answered, so a tool that prints it, or fails with it in its
traceback, brings back a mark in its place. Source: tool guide §13.
"""

from __future__ import annotations

import json
import threading
from typing import Any

__all__ = ["MARK", "hear", "keep", "told", "without_secrets"]

MARK = "[secret]"
_SHORTEST = 4
"""Characters below which a secret is not looked for: it would be found in words that have nothing to do with it."""

_lock = threading.Lock()
_values: set[str] = set()
_named: dict[tuple[str, str], str] = {}


def hear(value: str) -> None:
    """Notes an answer that is a secret, whoever asked for it, as it is and as it would stand in JSON."""
    if len(value) >= _SHORTEST:
        with _lock:
            _values.update((value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]))


def keep(session: str, name: str, value: str) -> None:
    """Keeps a secret under a name for the tools of a session; nothing of it is written anywhere."""
    hear(value)
    with _lock:
        _named[session, name] = value


def told(session: str, name: str) -> str | None:
    """A secret that was kept, None where none was."""
    return _named.get((session, name))


def without_secrets(value: Any) -> Any:
    """A JSON value in which every secret that was heard is a mark."""
    if not _values:
        return value
    with _lock:
        known = sorted(_values, key=len, reverse=True)
    return _without(value, known)


def _without(value: Any, known: list[str]) -> Any:
    if isinstance(value, str):
        for secret in known:
            if secret in value:
                value = value.replace(secret, MARK)
        return value
    if isinstance(value, dict):
        return {_without(name, known): _without(one, known) for name, one in value.items()}
    return [_without(one, known) for one in value] if isinstance(value, list) else value
