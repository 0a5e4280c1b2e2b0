"""Kinds of values: whether one fits, and how text that a person typed becomes one."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from ..errors import ConfigurationError

__all__ = ["fits", "from_text", "kinds_of", "plain", "said_kinds", "what_stands"]

_SPELLINGS = {
    **dict.fromkeys(("str", "string", "text", "path", "file", "password"), "str"),
    **dict.fromkeys(("int", "integer"), "int"),
    **dict.fromkeys(("float", "number"), "float"),
    **dict.fromkeys(("bool", "boolean"), "bool"),
    **dict.fromkeys(("list", "array"), "list"),
    **dict.fromkeys(("dict", "object", "mapping"), "dict"),
}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "list": (list, tuple),
    "dict": (Mapping,),
}
_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "dict": "a mapping",
}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_MAX_DEPTH = 50


def kinds_of(spelled: str) -> tuple[str, ...]:
    """The kinds that a type means as `description.yaml` spells it ("bool | list" is both); none where it says nothing to us."""
    kinds = [_SPELLINGS.get(word.strip().lower().partition("[")[0], "") for word in spelled.split("|")]
    return tuple(kinds) if all(kinds) else ()


def fits(value: Any, kinds: Iterable[str]) -> bool:
    """Whether a value is of one of these kinds. None fits every kind: it means "not given". No kinds fit everything."""
    kinds = tuple(kinds)
    if value is None or not kinds:
        return True
    if isinstance(value, bool):
        return "bool" in kinds
    if "list" in kinds and isinstance(value, str):  # one of them
        return True
    return isinstance(value, tuple(t for kind in kinds for t in _TYPES[kind]))


def from_text(text: str, kinds: Iterable[str], where: str) -> Any:
    """The value that a text stands for, as in an environment variable or on a command line.

    Text stays as it is where text is wanted (in JSON's quotation marks it is what they hold); where anything will do, it is read
    as JSON if it is some.

    Raises:
        ConfigurationError: It is none of these kinds.
    """
    kinds = tuple(kinds)
    word = text.strip().lower()
    if "bool" in kinds and word in (*_TRUE, *_FALSE):
        return word in _TRUE
    found = _number(text) if "float" in kinds else _as_json(text)
    if "str" in kinds:
        other = found is not None and not isinstance(found, str) and len(kinds) > 1 and fits(found, kinds)
        return found if other or isinstance(found, str) else text
    if not kinds:
        return text if found is None and word != "null" else found
    if found is None or not fits(found, kinds):
        hidden = not {"dict", "list"}.isdisjoint(kinds)  # what was meant as a mapping may hold a secret
        stands = "which this text is not; mappings and lists are written as JSON" if hidden else f"not {text[:60]!r}"
        raise ConfigurationError(f"{where} should be {said_kinds(kinds)}, {stands}.")
    return found


def said_kinds(kinds: Iterable[str]) -> str:
    """The kinds in words."""
    return " or ".join(_WORDS[kind] for kind in kinds)


def what_stands(value: Any) -> str:
    """A value in a message: its type, and its beginning."""
    return f"{type(value).__name__} ({str(value)[:60]!r})"


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """A copy as data that every form of file can hold: texts, numbers, true, false, null, lists, and mappings with texts as keys.

    Raises:
        ConfigurationError: Something in it is no such data; says where it stands.
    """
    if depth > _MAX_DEPTH:
        raise ConfigurationError(f"{where} is nested more than {_MAX_DEPTH} levels deep.")
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ConfigurationError(f"{where} is {value}, which is no number that a file can hold.")
        return value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ConfigurationError(f"{where}: the key {key!r} is {type(key).__name__}, not text. Write it in quotes.")
        return {key: plain(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    raise ConfigurationError(
        f"{where} holds a value of type {type(value).__name__}, which only a program can give; a file cannot hold it."
    )


def _number(text: str) -> Any:
    """As JSON, or in the other ways in which people write numbers: `.5`, `1.`."""
    found = _as_json(text)
    if found is None:
        with contextlib.suppress(ValueError):
            value = float(text)
            found = value if math.isfinite(value) else None
    return found


def _as_json(text: str) -> Any:
    try:
        found = json.loads(text, parse_constant=lambda word: None)
    except (ValueError, RecursionError):
        return None
    return found
