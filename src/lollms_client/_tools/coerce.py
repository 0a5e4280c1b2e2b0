"""The leaves of validation: single values checked and coerced; `validate.py` says when, and what may be coerced.

Source: tool guide §10.2, CONTRACT A7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import Any

from ..errors import LollmsError

__all__ = [
    "SCALARS", "Check", "Mismatch", "all_of", "anything", "as_dict", "as_list", "nothing", "number_limits", "one_of", "or_null",
    "show", "size_limits", "text_limits", "unique",
]  # fmt: skip

Check = Callable[[Any], Any]
"""Takes a value, returns the value to pass on; raises `Mismatch`."""

_INTEGER = re.compile(r"[+-]?\d{1,4000}(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?")
_BOOLEANS = {"true": True, "false": False}


class Mismatch(LollmsError):
    """A value that does not fit. The path grows from the inside out, as the checks that called one another return.

    Args:
        expected: What the schema wants, in words.
        value: What was given instead.
        problem: The whole sentence, where "expected …, got …" does not say it.
    """

    def __init__(self, expected: str, value: object = None, problem: str = "") -> None:
        self.path: list[str | int] = []
        self.problem = problem or f"expected {expected}, got {show(value)}"
        super().__init__(self.problem)

    def where(self, name: str) -> str:
        """The path below the argument `name`: `filters[2].field`."""
        return name + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(self.path))


def show(value: object) -> str:
    """A value as an error message shows it: short, with its kind."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    kind = {"str": "text", "int": "a number", "float": "a number", "list": "a list", "dict": "an object"}
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"{type(value).__name__} value"
    text = text if len(text) <= 80 else text[:77] + "..."
    return f"{text} ({kind.get(type(value).__name__, type(value).__name__)})"


def anything(value: Any) -> Any:
    """Accepts whatever is given."""
    return value


def nothing(value: Any) -> Any:
    """Accepts nothing."""
    raise Mismatch("nothing", value)


def all_of(checks: list[Check]) -> Check:
    """One check that makes a value pass several, one after the other."""
    if not checks:
        return anything
    if len(checks) == 1:
        return checks[0]

    def check(value: Any) -> Any:
        for one in checks:
            value = one(value)
        return value

    return check


def or_null(inner: Check) -> Check:
    """A check that lets null pass."""
    return lambda value: None if value is None else inner(value)


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return value
    raise Mismatch("text", value)


def _text_lax(value: Any) -> Any:
    if type(value) is str or isinstance(value, str):
        return value
    if type(value) in (int, float):
        return json.dumps(value)
    if hasattr(value, "__fspath__"):  # a host, not a model, hands a Path
        return value.__fspath__()
    raise Mismatch("text (a string)", value)


def _integer(value: Any) -> Any:
    if type(value) is int:
        return value
    raise Mismatch("an integer", value)


def _integer_lax(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(text := value.strip()):
        return int(text.partition(".")[0])
    raise Mismatch("an integer", value)


def _number(value: Any) -> Any:
    if type(value) is float or type(value) is int:
        return value
    raise Mismatch("a number", value)


def _number_lax(value: Any) -> Any:
    if type(value) is float:
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()):
        if text.lstrip("+-").isdigit() and len(text) < 4000:
            return _as_float(int(text))
        if isfinite(found := float(text)):
            return found
    if type(value) is int:
        return _as_float(value)
    raise Mismatch("a number", value)


def _as_float(value: int) -> int | float:
    """The float of a whole number, or the number itself where a float cannot hold it."""
    try:
        return as_float if (as_float := float(value)) == value else value
    except OverflowError:
        return value


def _boolean(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise Mismatch("true or false", value)


def _boolean_lax(value: Any) -> Any:
    if value is True or value is False:
        return value
    if isinstance(value, str) and (known := _BOOLEANS.get(value.strip().lower())) is not None:
        return known
    if type(value) is int and value in (0, 1):
        return value == 1
    raise Mismatch("true or false", value)


def _null(value: Any) -> Any:
    if value is None:
        return None
    raise Mismatch("null", value)


def _null_lax(value: Any) -> Any:
    return None if value is None or value in ("null", "None") else _null(value)


SCALARS: dict[str, tuple[Check, Check]] = {
    "string": (_text, _text_lax),
    "integer": (_integer, _integer_lax),
    "number": (_number, _number_lax),
    "boolean": (_boolean, _boolean_lax),
    "null": (_null, _null_lax),
}
"""JSON type -> the check that takes a value as it is, and the one that coerces it."""


def as_list(value: Any, lax: bool) -> list[Any]:
    """The list that a value is, or stands for as JSON text."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, str) and lax:
        parsed = _parsed(value)
        if isinstance(parsed, list):
            return parsed
    raise Mismatch("a list", value)


def as_dict(value: Any, lax: bool) -> Mapping[str, Any]:
    """The object that a value is, or stands for as JSON text."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str) and lax:
        parsed = _parsed(value)
        if isinstance(parsed, dict):
            return parsed
    raise Mismatch("an object", value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _same(a: Any, b: Any) -> bool:
    """Equality as JSON has it: true is not 1, 1.0 is 1."""
    return a == b and (isinstance(a, bool) is isinstance(b, bool))


def one_of(allowed: list[Any], lax: bool) -> Check:
    """A check for enum and const."""
    texts = {json.dumps(v, ensure_ascii=False): v for v in allowed if not isinstance(v, str)} if lax else {}
    strings = frozenset(v for v in allowed if isinstance(v, str))
    expected = f"one of {', '.join(json.dumps(v, ensure_ascii=False) for v in allowed[:30])}"

    def check(value: Any) -> Any:
        if isinstance(value, str):
            if value in strings:
                return value
            if value.strip() in texts:
                return texts[value.strip()]
        elif any(_same(value, v) for v in allowed):
            return value
        elif lax and type(value) in (int, float) and json.dumps(value) in strings:
            return json.dumps(value)
        near = get_close_matches(value, strings, n=1, cutoff=0.6) if isinstance(value, str) else []
        raise Mismatch("", problem=f"expected {expected}, got {show(value)}" + (f"; did you mean {near[0]!r}?" if near else ""))

    return check


def _limit(holds: Callable[[Any], bool], expected: str) -> Check:
    def check(value: Any) -> Any:
        if holds(value):
            return value
        raise Mismatch(expected, value)

    return check


def text_limits(schema: Mapping[str, Any]) -> list[Check]:
    """Checks for the limits of a string."""
    checks = size_limits(schema, "minLength", "maxLength", "characters")
    if "pattern" in schema:
        try:
            found = re.compile(schema["pattern"]).search
        except re.error:  # a pattern of another language's dialect cannot be checked here
            return checks
        checks.append(_limit(lambda v: found(v) is not None, f"text that matches {schema['pattern']!r}"))
    return checks


def number_limits(schema: Mapping[str, Any]) -> list[Check]:
    """Checks for the limits of a number."""
    checks: list[Check] = []
    if (low := schema.get("minimum")) is not None:
        checks.append(_limit(lambda v: v >= low, f"at least {low}"))
    if (high := schema.get("maximum")) is not None:
        checks.append(_limit(lambda v: v <= high, f"at most {high}"))
    if (above := schema.get("exclusiveMinimum")) is not None:
        checks.append(_limit(lambda v: v > above, f"more than {above}"))
    if (below := schema.get("exclusiveMaximum")) is not None:
        checks.append(_limit(lambda v: v < below, f"less than {below}"))
    if step := schema.get("multipleOf"):
        checks.append(_limit(lambda v: abs(v / step - round(v / step)) < 1e-9, f"a multiple of {step}"))
    return checks


def size_limits(schema: Mapping[str, Any], low_key: str, high_key: str, of: str) -> list[Check]:
    """Checks for the least and greatest number of characters, items or entries."""
    checks: list[Check] = []
    if low := schema.get(low_key):
        checks.append(_limit(lambda v: len(v) >= low, f"at least {low} {of}"))
    if (high := schema.get(high_key)) is not None:
        checks.append(_limit(lambda v: len(v) <= high, f"at most {high} {of}"))
    return checks


def unique(values: list[Any]) -> list[Any]:
    """Refuses a list in which a value stands twice."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        key = json.dumps(value, sort_keys=True, default=repr)
        if key in seen:
            mismatch = Mismatch("", problem=f"{show(value)} stands twice")
            mismatch.path.append(index)
            raise mismatch
        seen.add(key)
    return values
