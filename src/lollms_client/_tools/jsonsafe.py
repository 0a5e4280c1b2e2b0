"""Any value as JSON would hold it, and JSON values cut to a size.

Tuples, sets and other collections become lists, paths posix text, dates ISO text (with their zone where they have one), bytes
`{"type": "bytes", "encoding": "base64", "data": …}`, enums their value, dataclasses and models their fields, arrays and their
scalars plain lists and numbers. Infinities and NaN become the texts "Infinity", "-Infinity" and "NaN", because JSON has no
numbers for them. What has no such form (an open file, a generator, a class instance, a cycle) is refused by the path of its key.

Source: CONTRACT A7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from math import isfinite
from typing import Any

from ..errors import LollmsError

__all__ = ["Unrepresentable", "cap", "to_json"]

MAX_DEPTH = 200
"""Levels of nesting; deeper values are refused (`json` itself gives up at about a thousand)."""

MAX_INTEGER_BITS = 14_000
"""Python prints integers of up to 4,300 digits."""

_CONVERTERS: dict[type, Callable[[Any], Any]] = {}
"""Types of the standard library that need an import, filled when a value first needs one."""


class Unrepresentable(LollmsError):
    """A value that JSON cannot hold; the text names its key."""


def to_json(value: Any, path: str = "", *, _plain_bytes: frozenset[str] = frozenset()) -> Any:
    """A value as JSON holds it.

    Args:
        value: Any value.
        path: Where it stands, for the error ("" at the top).
        _plain_bytes: Top-level keys under which bytes become base64 text alone, as their documentation promises.

    Returns:
        The same made of dict, list, str, int, float, bool and None. Nothing of the input is shared that can be changed.

    Raises:
        Unrepresentable: Some value in it has no such form.
    """
    return _Walk(_plain_bytes).convert(value, path, 0)


class _Walk:
    def __init__(self, plain_bytes: frozenset[str]) -> None:
        self.open: set[int] = set()
        self.plain_bytes = plain_bytes

    def convert(self, value: Any, path: str, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return value if value.isascii() else _encodable(value)
        if kind is bool or value is None:
            return value
        if kind is int:
            return _printable(value, path)
        if kind is float:
            return value if isfinite(value) else _unfinite(value)
        if depth > MAX_DEPTH:
            raise Unrepresentable(f"{_at(path)} is nested more than {MAX_DEPTH} levels deep")
        if id(value) in self.open:
            raise Unrepresentable(f"{_at(path)} contains itself")
        self.open.add(id(value))
        try:
            if kind is dict or isinstance(value, Mapping):
                return self.mapping(value, path, depth)
            if kind is list or isinstance(value, (list, tuple)):
                return [self.convert(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
            return self.other(value, path, depth)
        finally:
            self.open.discard(id(value))

    def mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, one in value.items():
            name = key if type(key) is str else _key(key, path)
            if name in out:
                raise Unrepresentable(f"two keys of {_at(path)} are both written {name!r}")
            if depth == 0 and name in self.plain_bytes:
                one = _images(one)  # noqa: PLW2901 - the same value in its documented form
            out[name if name.isascii() else _encodable(name)] = self.convert(one, f"{path}.{name}" if path else name, depth + 1)
        return out

    def other(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, Enum):
            return self.convert(value.value, path, depth + 1)
        for base in (str, int, float):
            if isinstance(value, base):
                return self.convert(base(value), path, depth)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return {"type": "bytes", "encoding": "base64", "data": _base64(bytes(value))}
        if isinstance(value, (set, frozenset)):
            return [self.convert(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(_ordered(value))]
        if (listed := _listed(value)) is not None:
            return [self.convert(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(listed)]
        found, plain = _plain(value)
        if not found:
            raise Unrepresentable(f"{_at(path)} is a value of type {type(value).__name__}; return text, numbers, lists or dicts")
        return self.convert(plain, path, depth + 1)


def _at(path: str) -> str:
    return f"the value at {path!r}" if path else "the value"


def _encodable(text: str) -> str:
    """Text that UTF-8 can write: a lone surrogate (an undecodable file name) is shown by its escape."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def _printable(value: int, path: str) -> int:
    if value.bit_length() > MAX_INTEGER_BITS:
        raise Unrepresentable(f"{_at(path)} is an integer of more than 4,000 digits; return it as text in another base")
    return value


def _unfinite(value: float) -> str:
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124 - NaN is not itself


def _key(key: Any, path: str) -> str:
    """A key as JSON writes it; what has no text of its own is refused."""
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, Enum):
        return _key(key.value, path) if not isinstance(key.value, str) else key.value
    if isinstance(key, (str, int, float)):
        return str(key)
    found, plain = _plain(key)
    if found and isinstance(plain, (str, int, float)):
        return str(plain)
    if isinstance(key, tuple) and all(isinstance(k, (str, int, float)) for k in key):
        return ", ".join(map(str, key))
    raise Unrepresentable(f"a key of {_at(path)} is a {type(key).__name__}; keys are text")


def _base64(data: bytes) -> str:
    from base64 import b64encode

    return b64encode(data).decode("ascii")


def _images(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return _base64(bytes(value))
    return [_images(v) for v in value] if isinstance(value, (list, tuple)) else value


def _ordered(values: set[Any] | frozenset[Any]) -> list[Any]:
    """A set in an order that is the same every time."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _listed(value: Any) -> Any:
    """The values of a collection that is neither list nor tuple nor set, None where it is none."""
    from collections import deque
    from collections.abc import KeysView, ValuesView

    return list(value) if isinstance(value, (range, deque, KeysView, ValuesView)) else None


def _plain(value: Any) -> tuple[bool, Any]:
    """A simpler value that says the same: (found, value)."""
    if not _CONVERTERS:
        _CONVERTERS.update(_standard_converters())
    for base in type(value).__mro__:
        if (convert := _CONVERTERS.get(base)) is not None:
            return True, convert(value)
    if hasattr(type(value), "__dataclass_fields__"):
        from dataclasses import fields

        return True, {field.name: getattr(value, field.name) for field in fields(value)}
    for method in ("model_dump", "to_dict", "tolist", "item"):
        if callable(getattr(type(value), method, None)):
            return _called(getattr(value, method))
    if callable(getattr(type(value), "keys", None)) and hasattr(type(value), "__getitem__"):
        return True, {k: value[k] for k in value.keys()}  # noqa: SIM118 - sqlite3.Row iterates over values, not keys
    return False, None


def _called(method: Callable[[], Any]) -> tuple[bool, Any]:
    """What a method of a foreign type gives; one that only has the name of what was looked for gives nothing."""
    try:
        return True, method()
    except (TypeError, ValueError, AttributeError):
        return False, None


def _standard_converters() -> dict[type, Callable[[Any], Any]]:
    from datetime import date, time, timedelta
    from decimal import Decimal
    from fractions import Fraction
    from pathlib import PurePath
    from uuid import UUID

    return {
        PurePath: lambda v: v.as_posix(),
        date: lambda v: v.isoformat(),
        time: lambda v: v.isoformat(),
        timedelta: lambda v: v.total_seconds(),
        Decimal: str,
        Fraction: str,
        UUID: str,
    }


def cap(value: Any, limit: int | None) -> Any:
    """A JSON value cut to a number of characters, with a marker that says what was cut.

    Args:
        value: A JSON value.
        limit: Characters of its JSON text to keep, None for all.

    Returns:
        The value itself where it is small enough. Text keeps its beginning; lists and objects keep their first entries.
    """
    if limit is None:
        return value
    if type(value) is str:
        return value if len(value) <= limit else _cut_text(value, limit)
    kept, _ = _keep(value, limit)
    return kept


def _cut_text(text: str, limit: int) -> str:
    marker = f"\n[cut here: the first {{kept:,}} of {len(text):,} characters are shown; ask for a smaller part to see more]"
    kept = max(limit - len(marker) - 12, 0)
    return text[:kept] + marker.format(kept=kept)


def _keep(value: Any, room: int) -> tuple[Any, int]:
    """The part of a value that fits into `room` characters, and the room that is left."""
    kind = type(value)
    if kind is str:
        if len(value) + 2 <= room:
            return value, room - len(value) - 2
        return _cut_text(value, max(room, 0)), 0
    if kind is dict:
        return _keep_entries(value, room)
    if kind is list:
        return _keep_items(value, room)
    return value, room - (len(str(value)) if kind in (int, float) else 5)


def _keep_items(values: list[Any], room: int) -> tuple[list[Any], int]:
    kept: list[Any] = []
    room -= 2
    for index, value in enumerate(values):
        if room <= 0:
            kept.append(f"[cut here: {len(values) - index:,} of {len(values):,} items are not shown]")
            return kept, 0
        one, room = _keep(value, room)
        kept.append(one)
        room -= 2
    return kept, room


def _keep_entries(values: dict[str, Any], room: int) -> tuple[dict[str, Any], int]:
    kept: dict[str, Any] = {}
    room -= 2
    for index, (key, value) in enumerate(values.items()):
        room -= len(key) + 6
        if room <= 0:
            kept["[cut here]"] = f"{len(values) - index:,} of {len(values):,} keys are not shown"
            return kept, 0
        kept[key], room = _keep(value, room)
    return kept, room
