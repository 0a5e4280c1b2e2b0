"""From the text of a tool call to the call: what the model wrote is read, or told back to it as a problem.

A text is mended only where nothing but its notation is wrong; where content is missing or would have to be guessed, the call
carries a problem and no arguments, and the text stays in `raw`.
"""

from __future__ import annotations

from typing import Any

from .._text.json_repair import JsonResult, repair_json
from ..errors import StreamError
from .values import decode_all

__all__ = ["CALL_FORM", "read_arguments", "read_bare_call", "read_calls"]

CALL_FORM = '{"name": "tool_name", "parameters": {"argument": "value"}}'
"""The form of a call, as problems show it to the model."""

Call = tuple[str, dict[str, Any], str]
"""Name, arguments, problem."""

_CUT_OFF = frozenset({"missing closing bracket", "missing value", "truncated string"})
_ARGUMENT_KEYS = ("parameters", "arguments")


def read_calls(body: str, closed: bool = True, value: Any = None) -> list[Call]:
    """Read the body of a `<tool>` element.

    Args:
        body: The text between the tags: one call; several, one behind the other or in an array, are taken as several.
        closed: The closing tag was there, or the JSON was complete without it.
        value: The body as JSON, where it was read already.

    Returns:
        At least one call; what cannot be carried out has a problem.
    """
    values = [value] if value is not None else decode_all(body)
    if values is None:
        try:
            result = repair_json(body)
        except StreamError as error:
            return [("", {}, f"The tool call could not be read: {error} Write exactly one JSON object: {CALL_FORM}")]
        problem = _doubts(result, closed)
        if problem:
            return [(_name_of(result.value), {}, f"{problem} Write exactly one JSON object: {CALL_FORM}")]
        values = [result.value]
    if len(values) == 1 and isinstance(values[0], list) and values[0]:
        values = values[0]
    return [_read_call(value) for value in values]


def read_bare_call(text: str, names: frozenset[str]) -> Call | None:
    """Read a reply that is nothing but one JSON object (without fence) as a call, where it is one.

    Args:
        text: The object.
        names: The tools that are mounted.

    Returns:
        The call, or None where the object is valid JSON of another shape, names no mounted tool, or is no valid JSON.
    """
    values = decode_all(text)
    if not values or len(values) != 1 or not isinstance(values[0], dict):
        return None
    value = values[0]
    if value.get("name") not in names or not any(key in value for key in _ARGUMENT_KEYS):
        return None
    return _read_call(value)


def read_arguments(text: str, name: str, cut_off: bool = False) -> Call:
    """Read the argument string of a native call.

    Args:
        text: What the backend's fragments add up to.
        name: The tool's name, "" where no fragment had one.
        cut_off: The backend said that its answer ended for length.

    Returns:
        The call.
    """
    if not name:
        return "", {}, "The tool call names no tool. Call one of the tools by its name."
    if not text.strip():
        return name, {}, ""
    values = decode_all(text)
    if values is not None and len(values) > 1:
        problem = f"{len(values)} argument objects came glued together for one call of {name!r}. Make one call for each."
        return name, {}, problem
    if values is None:
        try:
            result = repair_json(text)
        except StreamError as error:
            return name, {}, f"The arguments of {name!r} could not be read: {error}"
        problem = _doubts(result, closed=not cut_off)
        if problem:
            return name, {}, f"{problem} The arguments of {name!r} must be one JSON object."
        values = [result.value]
    arguments, problem = _as_arguments(values[0])
    return name, arguments, problem


def _doubts(result: JsonResult, closed: bool) -> str:
    """Why a mended text is not taken as it is, "" where it is."""
    changes = [c for c in result.changes if c in _CUT_OFF] if not closed else []
    if changes or "truncated string" in result.changes:
        return "The JSON was cut off before its end, so nothing was executed. Send the whole call again, in parts if it is long."
    if result.certain:
        return ""
    return f"The JSON is not valid ({', '.join(result.changes)}); nothing was executed, since its meaning is not certain."


def _name_of(value: Any) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return name.strip() if isinstance(name, str) else ""


def _read_call(value: Any) -> Call:
    if not isinstance(value, dict):
        return "", {}, f"A tool call must be a JSON object, not {_kind(value)}. Write: {CALL_FORM}"
    name = _name_of(value)
    if not name:
        keys = ", ".join(repr(k) for k in list(value)[:8]) or "no key at all"
        return "", {}, f'The tool call has no "name" (it has {keys}). Write: {CALL_FORM}'
    for key in _ARGUMENT_KEYS:
        if key in value:
            arguments, problem = _as_arguments(value[key])
            return name, arguments, problem
    others = [k for k in value if k not in ("name", "id", "type")]
    if others:
        keys = ", ".join(repr(k) for k in others[:8])
        return name, {}, f'The arguments stand in an object under "parameters"; this call has {keys} instead. Write: {CALL_FORM}'
    return name, {}, ""


def _as_arguments(value: Any) -> tuple[dict[str, Any], str]:
    """The arguments as an object; models also write them as a string that holds the object."""
    if isinstance(value, str) and value.strip().startswith("{"):
        values = decode_all(value)
        value = values[0] if values and len(values) == 1 else value
    if value is None or value == "":
        return {}, ""
    if isinstance(value, dict):
        return value, ""
    return {}, f"The arguments of a call must be a JSON object, not {_kind(value)}."


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a string", list: "an array", dict: "an object", type(None): "null"}
    return names.get(type(value), "a number")
