"""From whatever a tool returns to the one result that callers and models see: JSON-safe, of one shape, of bounded size.

Source: tool guide §7.7 (the shape), CONTRACT A7 (JSON, falsy outputs, size, extra keys).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .jsonsafe import Unrepresentable, cap, to_json
from .spec import DEFAULT_LIMIT

__all__ = ["failure", "normalise"]

FALLBACKS = ("result", "data", "response", "papers", "content", "text")
"""Where `output` is looked for when a tool returned none, in this order."""

PAYLOAD = frozenset({"prompt_injection", "image_filename", "image_b64", "images", "image_media_types", "context_files"})
"""Keys with a documented meaning for the host."""

META = frozenset({"success", "status", "status_code", "return_code", "error", "traceback"}) | PAYLOAD
"""Keys that say something about the output and are no part of it."""

_OURS = frozenset({"success", "status", "status_code", "output"})
_WHOLE = frozenset({"image_b64", "images"})
"""Payload that is of no use in part, and that no model reads as text: never cut."""

_PLAIN = frozenset({int, bool, type(None)})


def normalise(raw: Any, limit: int | None = DEFAULT_LIMIT) -> dict[str, Any]:
    """A tool's return value as a result.

    Args:
        raw: What the tool returned.
        limit: Characters of output to keep, None for all. Images pass whole.

    Returns:
        `{"output", "status_code": 200, "success": True}` and the tool's extra keys, or
        `{"output", "error", "success": False, "status_code": 500}`. What cannot be represented in JSON makes it a failure whose
        error names the key.
    """
    if type(raw) is dict and raw.get("success") is True and len(raw) == 2 and "output" in raw:  # most calls, and the fast ones
        output = raw["output"]
        kind = type(output)
        if kind in _PLAIN or (kind is str and output.isascii() and (limit is None or len(output) <= limit)):
            return {"output": output, "status_code": 200, "success": True}
    try:
        return _shaped(raw, limit)
    except Unrepresentable as wrong:
        return failure(f"The tool's result cannot be represented: {wrong}")


def failure(error: str, *, output: Any = None, status_code: int = 500, **extra: Any) -> dict[str, Any]:
    """A failed result that this library itself says something by."""
    return {"output": output, "error": error, "success": False, "status_code": status_code, **extra}


def _shaped(raw: Any, limit: int | None) -> dict[str, Any]:
    if isinstance(raw, BaseException):  # returned, not raised
        return failure(_error_text(raw, limit))
    if not isinstance(raw, Mapping):
        return {"output": cap(to_json(raw), limit), "status_code": 200, "success": True}
    raw = to_json(raw, _plain_bytes=_WHOLE)
    output, consumed = _output(raw)
    failed = _failed(raw)
    result: dict[str, Any] = {"output": cap(output, limit), "status_code": 500 if failed else 200, "success": not failed}
    if failed:
        result["error"] = _error_text(raw.get("error"), limit) if raw.get("error") else _why(raw)
    for key, value in raw.items():
        if key in consumed or key in _OURS or key in result or (key == "error" and not value):
            continue
        result[key] = value if key in _WHOLE else cap(value, limit)
    return result


def _output(raw: dict[str, Any]) -> tuple[Any, frozenset[str]]:
    """The output, and the keys that went into it."""
    if "output" in raw:
        return raw["output"], frozenset({"output"})
    for key in FALLBACKS:
        if key in raw:
            return raw[key], frozenset({key})
    rest = {k: v for k, v in raw.items() if k not in META}
    return rest, frozenset(rest)


def _failed(raw: dict[str, Any]) -> bool:
    success = raw.get("success")
    if success is False:
        return True
    status = raw.get("status")
    if isinstance(status, str) and status in ("error", "failure", "failed"):
        return True
    code = raw.get("return_code")
    if code is not None and code not in (0, "0"):
        return True
    return bool(raw.get("error")) and success is not True


def _why(raw: dict[str, Any]) -> str:
    """An error text for a tool that said that it failed, and not why."""
    for key in ("message", "stderr", "reason", "detail"):
        if isinstance(text := raw.get(key), str) and text.strip():
            return text
    code = raw.get("return_code")
    if code is not None and code not in (0, "0"):
        return f"The tool ended with return code {code}."
    return "The tool reported a failure and gave no reason."


def _error_text(error: Any, limit: int | None) -> str:
    if isinstance(error, BaseException):
        error = f"{type(error).__name__}: {error}"
    if not isinstance(error, str):
        import json

        error = json.dumps(error, ensure_ascii=False)
    text: str = cap(error, limit)
    return text
